/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "checkpoint/image/checkpoint_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "process/log.h"

static char text[256];

int checkpoint_fail(int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	log_info("checkpoint: %s", text);
	return error;
}

int checkpoint_explain(int error, const char *what)
{
	return error && !text[0] ? checkpoint_fail(error, "%s: %s", what, strerror(-error)) : error;
}

void checkpoint_error_clear(void)
{
	text[0] = 0;
}

const char *checkpoint_error_text(void)
{
	return text;
}
