/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads the configuration file of urxed: the options of its command line, one a line. main.c calls
 * this.
 *
 *	# a comment, up to the end of the line; a comment may also follow white space
 *	uplink af_packet:eth0
 *	address = 192.0.2.1/24
 *	private                     (or: private yes, private = no)
 *
 * A name ends at white space or '='. The value is the rest of the line, without the white space
 * around it. There is no quoting. Only an option of which each use adds a value (`repeats` in
 * options.h) may be set twice.
 */
#ifndef URXE_URXED_CONFIG_H
#define URXE_URXED_CONFIG_H

#include <stddef.h>

#include "urxed/options.h"

/* Bytes; a longer file is an error. */
#define CONFIG_MAX 65536

/*
 * Both return 0 or a negative errno value. On error, `error` has one sentence. For an error
 * in a line it starts with the file's name and the line ("urxe.conf:12: unknown option foo"), and
 * options before that line are set.
 *
 * config_parse takes a buffer of len + 1 bytes and overwrites it; afterwards the options point into
 * this buffer. config_read allocates that buffer: the caller frees *text once the options are no
 * longer in use; *text is NULL on error.
 */
int config_parse(struct options *o, const char *name, char *text, size_t len,
		 char error[OPTIONS_ERROR]);
int config_read(struct options *o, const char *name, char **text, char error[OPTIONS_ERROR]);

#endif
