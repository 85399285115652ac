/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_COMMON_BAD_OPTION_H
#define URXE_COMMON_BAD_OPTION_H

#include "common/log.h"

/*
 * Logs which word of argv getopt_long(3) has refused. `opt`: what getopt_long returned; ':' means
 * that the option lacks its value. `at` is the value of optind before that call: afterwards optind
 * may stand on the word or behind it. `program`: "urxed", or "urxe" and the command.
 */
static inline void log_bad_option(const char *program, int opt, char **argv, int at)
{
	/* getopt_long skips arguments that are not options. */
	while (argv[at][0] != '-' || !argv[at][1])
		at++;
	log_line(opt == ':' ? "option %s needs a value; see %s --help"
			    : "unknown option %s; see %s --help",
		 argv[at], program);
}

#endif
