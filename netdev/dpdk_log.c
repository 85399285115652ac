/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * While a port opens, a failure is told once, in the sentence that the caller
 * gets: DPDK's log goes into a buffer of one line. Afterwards it goes to stderr.
 */
#include <stdio.h>
#include <string.h>

#include <rte_log.h>

#include "dpdk_eal.h"

static char last[256];
static FILE *stream;

static ssize_t keep_line(void *cookie, const char *text, size_t size)
{
	size_t length = size < sizeof(last) - 1 ? size : sizeof(last) - 1;

	(void)cookie;
	while (length && text[length - 1] == '\n')
		length--;
	if (length) {
		memcpy(last, text, length);
		last[length] = '\0';
	}
	return size;
}

void dpdk_log_hold(void)
{
	cookie_io_functions_t functions = {.write = keep_line};

	last[0] = '\0';
	stream = fopencookie(NULL, "w", functions);
	if (!stream)
		return;
	setlinebuf(stream);
	rte_openlog_stream(stream);
}

const char *dpdk_log_last(void)
{
	if (stream)
		fflush(stream);
	return last[0] ? last : "DPDK gives no reason";
}

void dpdk_log_release(void)
{
	if (!stream)
		return;
	rte_openlog_stream(NULL);
	fclose(stream);
	stream = NULL;
}
