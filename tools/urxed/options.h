/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table of urxed's options, one row per option. main.c parses the command line and prints
 * --help from the table, config.c parses the configuration file.
 */
#ifndef URXE_URXED_OPTIONS_H
#define URXE_URXED_OPTIONS_H

#include <stdbool.h>

#include "urxed/daemon.h"

#define OPTIONS_ERROR 512
#define OPTIONS       15 /* rows */

/* The members point to the texts that the user gave, so these must stay valid. */
struct options {
	struct daemon_options daemon; /* main.c sets run_dir and own_dir */
	const char *run_dir;          /* NULL = not given */
	bool foreground;
};

struct options_row {
	const char *name;
	const char *argument; /* the value's name in --help; NULL: a flag, "yes" or "no" */
	bool repeats;     /* each use adds a value; else the last one on the command line counts */
	const char *help; /* lines, without a newline at the end */
	/* As options_set; the value is not empty, and a flag's value is "yes" or "no". */
	int (*set)(struct options *o, const char *value, char error[OPTIONS_ERROR]);
	bool once; /* a second use on the command line is an error */
};

extern const struct options_row options_rows[OPTIONS];

/* Returns the row of an option; NULL: unknown option. */
const struct options_row *options_find(const char *name);

/*
 * Sets an option in *o. value NULL: the user gave none, which sets a flag to yes. Returns 0;
 * -EINVAL: invalid value, -ENOSPC: too many values, -EEXIST: the value was given before, -EPERM:
 * this user may not set it. On error, `error` has one sentence.
 */
int options_set(struct options *o, const struct options_row *row, const char *value,
		char error[OPTIONS_ERROR]);

/* Writes the rows to standard output, for --help. */
void options_print(void);

#endif
