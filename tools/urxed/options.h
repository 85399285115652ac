/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The options of urxed, each one row of a table: the command line, the
 * configuration file and --help are made from it.
 */
#ifndef URXE_URXED_OPTIONS_H
#define URXE_URXED_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/daemon.h"

#define OPTIONS_ERROR 512
#define OPTIONS       10 /* rows */

/* Values are not copied: they must stay where they are. */
struct options {
	struct daemon_options daemon; /* run_dir is not set here */
	const char *run_dir;          /* NULL = not given */
	bool foreground;
};

struct options_row {
	const char *name;
	const char *argument; /* as --help calls the value; NULL: a flag, "yes" or "no" */
	bool repeats;         /* each time one more; else the last one holds */
	const char *help;     /* lines, without a newline at the end */
	/* As options_set, for a value whose form was checked. */
	int (*set)(struct options *o, const char *value, char error[OPTIONS_ERROR]);
};

extern const struct options_row options_rows[OPTIONS];

/* NULL: no option has that name. */
const struct options_row *options_find(const char *name);

/*
 * Takes a value; NULL where none was given, which sets a flag. -EINVAL: it is not
 * one, -ENOSPC: it is one too many, -EEXIST: it was given before, -EPERM: it is
 * not this user's to give; `error` has one sentence then.
 */
int options_set(struct options *o, const struct options_row *row, const char *value,
		char error[OPTIONS_ERROR]);

/* Writes the rows as --help shows them to standard output. */
void options_print(void);

#endif
