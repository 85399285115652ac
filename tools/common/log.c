/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "common/log.h"

#include <stdarg.h>
#include <stdbool.h>
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

static bool take_log_token(struct log_ratelimit *b, uint64_t now)
{
	uint64_t back = now > b->since ? (now - b->since) / LOG_EVERY_NS : 0;

	if (back >= b->spent) {
		b->spent = 0;
		b->since = now;
	} else {
		b->spent -= (uint32_t)back;
		b->since += back * LOG_EVERY_NS;
	}
	if (b->spent == LOG_BURST)
		return false;
	b->spent++;
	return true;
}

void log_ratelimited(struct log_ratelimit *budget, uint64_t now, const char *fmt, ...)
{
	va_list ap;

	if (!take_log_token(budget, now)) {
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
