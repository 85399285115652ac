/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The configuration file of urxed: the options of its command line, one a line.
 *
 *	# a comment, up to the end of the line; also behind white space
 *	uplink af_packet:eth0
 *	address = 192.0.2.1/24
 *	private                     (or: private yes, private = no)
 *
 * A name ends at white space or '='; the value is what follows, without the
 * white space around it. Nothing is quoted. An option that may be given more
 * than once may be so here; any other one stands once.
 */
#ifndef URXE_URXED_CONFIG_H
#define URXE_URXED_CONFIG_H

#include <stddef.h>

#include "urxed/options.h"

/* Bytes: a longer file is not a configuration. */
#define CONFIG_MAX 65536

/*
 * Both return a negative errno value on error, `error` being one sentence that
 * starts with the file's name, and the line where there is one ("urxe.conf:12:
 * unknown option foo"). Options before the line are set then.
 *
 * config_parse takes text of len bytes and one more, which it may overwrite; the
 * options refer to it afterwards. config_read allocates that text, never to be
 * freed while the options are in use: *text is the caller's, NULL on error.
 */
int config_parse(struct options *o, const char *name, char *text, size_t len,
		 char error[OPTIONS_ERROR]);
int config_read(struct options *o, const char *name, char **text, char error[OPTIONS_ERROR]);

#endif
