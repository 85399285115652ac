/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "error_text.h"

#include <stdarg.h>
#include <stdio.h>

int netdev_why(char *why, uint32_t why_size, int err, const char *format, ...)
{
	va_list args;

	if (why && why_size) {
		va_start(args, format);
		vsnprintf(why, why_size, format, args);
		va_end(args);
	}
	return err;
}
