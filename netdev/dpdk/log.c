/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * While a port opens, a failure is told once, in the sentence that the caller
 * gets. Of DPDK's log the first error is kept, which is nearest to the cause: those
 * that follow tell who gave up because of it. Afterwards the log goes to stderr.
 */
#include <stdio.h>
#include <string.h>

#include <bpf/libbpf.h>
#include <rte_log.h>

#include "dpdk/eal.h"

static char first[256];
static FILE *stream;

static ssize_t keep_first_line(void *cookie, const char *text, size_t size)
{
	size_t length = size < sizeof(first) - 1 ? size : sizeof(first) - 1;

	(void)cookie;
	while (length && text[length - 1] == '\n')
		length--;
	if (length && !first[0]) {
		memcpy(first, text, length);
		first[length] = '\0';
	}
	return size;
}

/* Of libbpf, on which the af_xdp driver calls: it goes where DPDK's log goes. */
static int print_bpf(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level != LIBBPF_WARN)
		return 0;
	return vfprintf(stream ?: stderr, format, args);
}

void dpdk_log_hold(void)
{
	cookie_io_functions_t functions = {.write = keep_first_line};

	first[0] = '\0';
	stream = fopencookie(NULL, "w", functions);
	if (!stream)
		return;
	setlinebuf(stream);
	rte_openlog_stream(stream);
	libbpf_set_print(print_bpf);
}

const char *dpdk_log_reason(void)
{
	if (stream)
		fflush(stream);
	return first[0] ? first : "DPDK gives no reason";
}

void dpdk_log_release(void)
{
	if (!stream)
		return;
	rte_openlog_stream(NULL);
	fclose(stream);
	stream = NULL;
}
