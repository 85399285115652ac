/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_COMMON_BAD_OPTION_H
#define URXE_COMMON_BAD_OPTION_H

/*
 * The word of argv that getopt_long has refused; `at` is what optind was before the
 * call. (Afterwards optind stands behind the word, or on it while it has more letters.)
 */
static inline const char *bad_option(char **argv, int at)
{
	/* Arguments that are no options were passed over. */
	while (argv[at][0] != '-' || !argv[at][1])
		at++;
	return argv[at];
}

#endif
