/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "error_text.h"

#include <stdarg.h>
#include <stdio.h>

int error_text_set(char *error, uint32_t error_size, int err, const char *format, ...)
{
	va_list args;

	if (error && error_size) {
		va_start(args, format);
		vsnprintf(error, error_size, format, args);
		va_end(args);
	}
	return err;
}
