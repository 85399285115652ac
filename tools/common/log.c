/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "common/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "common/printable.h"

const char *log_name = "urxe";
bool log_has_times;

/* Longer lines are cut. */
#define LINE 4096

/* Writes the time with which a line begins; an empty text if lines have none (log_has_times). */
static void format_time(char *text, size_t size)
{
	struct timespec now;
	struct tm utc;
	size_t n;

	*text = '\0';
	if (!log_has_times)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	n = strftime(text, size, "%FT%T", gmtime_r(&now.tv_sec, &utc));
	snprintf(text + n, size - n, ".%03ldZ ", now.tv_nsec / 1000000);
}

/*
 * Prints a line without control characters: names of processes, files and addresses in it may come
 * from any user.
 */
static void print_line(const char *fmt, va_list ap)
{
	char raw[LINE], line[LINE], time[40];

	vsnprintf(raw, sizeof(raw), fmt, ap);
	printable_copy(line, sizeof(line), raw);
	format_time(time, sizeof(time));
	fprintf(stderr, "%s%s: %s\n", time, log_name, line);
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
