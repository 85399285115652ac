/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * DPDK's log while a port opens: the first error, which is nearest to the cause, becomes a part of
 * the error text that the caller gets. The errors after it only follow from it. Afterwards the log
 * goes to stderr.
 */
#include <stdio.h>
#include <string.h>

#include <bpf/libbpf.h>
#include <rte_log.h>

#include "dpdk/eal.h"

static char first_error[256];
static FILE *stream;

static ssize_t keep_first_line(void *cookie, const char *text, size_t size)
{
	size_t length = size < sizeof(first_error) - 1 ? size : sizeof(first_error) - 1;

	(void)cookie;
	while (length && text[length - 1] == '\n')
		length--;
	if (length && !first_error[0]) {
		memcpy(first_error, text, length);
		first_error[length] = '\0';
	}
	return size;
}

/* Prints the warnings of libbpf, which the af_xdp driver uses, to the held log of DPDK, or to
 * stderr if none is held. */
static int print_bpf(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level != LIBBPF_WARN)
		return 0;
	return vfprintf(stream ?: stderr, format, args);
}

void dpdk_log_hold(void)
{
	cookie_io_functions_t functions = {.write = keep_first_line};

	first_error[0] = '\0';
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
	return first_error[0] ? first_error : "DPDK reported no reason";
}

void dpdk_log_release(void)
{
	if (!stream)
		return;
	rte_openlog_stream(NULL);
	fclose(stream);
	stream = NULL;
}
