/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What urxe and urxed tell the caller of a command: exit statuses, and wrong options. */
#ifndef URXE_COMMON_COMMAND_LINE_H
#define URXE_COMMON_COMMAND_LINE_H

#include <unistd.h>

#include "common/log.h"

enum exit_status {
	STATUS_FAILED = 1,
	STATUS_USAGE = 2,
	STATUS_BUSY = 3, /* urxed: another daemon serves the run directory */
	/* urxe run: as env(1) reports them */
	STATUS_CANNOT_EXEC = 126,
	STATUS_NOT_FOUND = 127,
};

/*
 * Logs the word of argv that getopt_long(3) has refused. `opt`: the result of getopt_long: ':', the
 * option lacks its value, or '?'. With '?', optopt is not 0 if a long option got a value that it
 * does not take. `at`: the value of optind before that call; afterwards optind may be the word's
 * index or the next one. `program`: "urxed", or "urxe" and the command.
 */
static inline void log_bad_option(const char *program, int opt, char **argv, int at)
{
	/* getopt_long skips arguments that are not options. */
	while (argv[at][0] != '-' || !argv[at][1])
		at++;
	log_line(opt == ':'                     ? "option %s needs a value; see %s --help"
		 : argv[at][1] == '-' && optopt ? "option %s takes no value; see %s --help"
						: "unknown option %s; see %s --help",
		 argv[at], program);
}

#endif
