/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rules that a device keeps, and those that it is known not to keep.
 *
 * A rule is named by its test and its sentence. One that is broken fails the test, unless
 * deviation.c has it for this driver; one that stands there and is kept fails it, too.
 * Each test is a process of its own; none of this is for more than one thread at a time.
 */
#ifndef URXE_CONFORMANCE_RULE_H
#define URXE_CONFORMANCE_RULE_H

#include <stdbool.h>

/* Rules of every test: it harms nobody but itself, else it is not run; it comes to its end. */
#define RULE_HARMLESS "it does no harm"
#define RULE_GOES_ON  "it goes on"

/* Begins a test; driver is that of deviation.c. */
void rule_begin(const char *driver, const char *test);
/* Whether all rules were kept but for the known deviations, which all must have occurred. */
bool rule_end(void);

/* States a rule; returns whether the device keeps it. The text says what holds. */
bool rule(bool kept, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same of a call that returns, or leaves in errno, 0 or an errno value. */
bool rule_errno(int expected, int got, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* What the test itself needs: it ends here, failed, where it is not so. */
#define MUST(condition) ((condition) ? (void)0 : must_fail(__FILE__, __LINE__, #condition))
void must_fail(const char *file, int line, const char *condition) __attribute__((noreturn));
/* The device has not what the test is about: it ends here, without a verdict. */
void skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* The machine has not what the test needs, whatever the device may have. */
void skip_here(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* How a test's process ends then. */
#define EXIT_LACKING 77
#define EXIT_SKIPPED 78

#endif
