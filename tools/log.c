/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>

const char *log_name = "urxe";

void log_line(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", log_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}
