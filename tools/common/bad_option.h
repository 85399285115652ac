/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_COMMON_BAD_OPTION_H
#define URXE_COMMON_BAD_OPTION_H

/*
 * Returns the word of argv that getopt_long(3) refused, for the error message of a program's
 * main(). `at` is the value of optind before that call: afterwards optind may stand on the word or
 * behind it.
 */
static inline const char *bad_option(char **argv, int at)
{
	/* getopt_long skips arguments that are not options. */
	while (argv[at][0] != '-' || !argv[at][1])
		at++;
	return argv[at];
}

#endif
