/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rule.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deviation.h"

#define TEXT_MAX 256

static const char *this_driver, *this_test;
static unsigned int n_rules, n_broken, n_known;

void rule_begin(const char *driver, const char *test)
{
	const char *reason;

	this_driver = driver;
	this_test = test;
	reason = deviation_find(driver, test, RULE_HARMLESS);
	if (reason)
		skip("%s", reason);
}

static void judge(bool kept, const char *text, const char *details)
{
	const char *reason = deviation_find(this_driver, this_test, text);

	n_rules++;
	if (kept && !reason)
		return;
	if (!kept && reason) {
		n_known++;
		printf("  deviates: %s%s\n            (%s)\n", text, details, reason);
		return;
	}
	n_broken++;
	if (kept)
		printf("  KEPT, though known to be broken: %s\n", text);
	else
		printf("  BROKEN: %s%s\n", text, details);
}

bool rule(bool kept, const char *format, ...)
{
	char text[TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	judge(kept, text, "");
	return kept;
}

bool rule_errno(int expected, int got, const char *format, ...)
{
	char text[TEXT_MAX], details[TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(details, sizeof(details), ": %s (%d), not %s",
		 got ? strerror(got < 0 ? -got : got) : "it succeeds", got,
		 expected ? strerror(expected) : "success");
	judge(expected == got, text, details);
	return expected == got;
}

bool rule_end(void)
{
	const char *unseen;
	unsigned int at = 0;

	while ((unseen = deviation_unseen(this_driver, this_test, &at))) {
		printf("  NOT ASKED, though known to be broken: %s\n", unseen);
		n_broken++;
	}
	printf("%s: %u rules, %u known deviations, %u broken\n", this_test, n_rules, n_known,
	       n_broken);
	return !n_broken;
}

void must_fail(const char *file, int line, const char *condition)
{
	const char *name = strrchr(file, '/');
	const char *reason = deviation_find(this_driver, this_test, RULE_GOES_ON);

	if (reason && !n_broken) {
		printf("%s: %u rules, %u known deviations, the last of which ends it\n            "
		       "(%s)\n",
		       this_test, n_rules, n_known + 1, reason);
		fflush(stdout);
		_Exit(EXIT_SUCCESS);
	}
	printf("  cannot go on: %s:%d: %s (%s)\n", name ? name + 1 : file, line, condition,
	       strerror(errno));
	fflush(stdout);
	_Exit(EXIT_FAILURE);
}

static void say_why(const char *format, va_list args)
{
	printf("%s: skipped: ", this_test);
	vprintf(format, args);
	putchar('\n');
	fflush(stdout);
}

void skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_why(format, args);
	va_end(args);
	_Exit(EXIT_LACKING);
}

void skip_here(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_why(format, args);
	va_end(args);
	_Exit(EXIT_SKIPPED);
}
