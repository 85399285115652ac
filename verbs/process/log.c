/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "process/log.h"
#include "process/cancellation.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <session/env.h>

enum log_level log_level = LOG_NONE;

void log_init(void)
{
	static const char *const names[] = {"none", "error", "warning", "info", "debug"};
	const char *wanted = env_get("LOG");

	if (!wanted)
		return;
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(wanted, names[i]))
			log_level = (enum log_level)i;
}

/* One write(2) a line, so that lines of several processes do not mix. */
void log_write(const char *format, ...)
{
	char line[512];
	int saved = errno, cancel = cancellation_disable();
	int n = snprintf(line, sizeof(line), "urxe[%d]: ", getpid());
	va_list args;

	va_start(args, format);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
	va_end(args);
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0) {
		/* An error here cannot be reported. */
	}
	cancellation_restore(cancel);
	errno = saved;
}
