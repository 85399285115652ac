/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "common/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/printable.h"

const char *log_name = "urxe";

/* Longer lines are cut. */
#define LINE 4096

/* Names of processes, files and addresses in a line may come from any user. */
static void print_line(const char *fmt, va_list ap)
{
	char raw[LINE], line[LINE];

	vsnprintf(raw, sizeof(raw), fmt, ap);
	printable_copy(line, sizeof(line), raw);
	fprintf(stderr, "%s: %s\n", log_name, line);
}

void log_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_line(fmt, ap);
	va_end(ap);
}

void log_ratelimited(struct log_ratelimit *budget, uint64_t now, const char *fmt, ...)
{
	va_list ap;

	if (!token_bucket_take(&budget->bucket, now, LOG_BURST, LOG_EVERY_NS)) {
		budget->left_out++;
		return;
	}
	if (budget->left_out)
		log_line("%llu lines were left out", (unsigned long long)budget->left_out);
	budget->left_out = 0;
	va_start(ap, fmt);
	print_line(fmt, ap);
	va_end(ap);
}
