/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks rules that a device must keep.
 *
 * The test's name and the rule's text identify a rule. A broken rule fails the test unless
 * deviation.c lists it for the driver. A listed rule that the device keeps fails the test, too.
 * Each test is a process of its own. Only one thread at a time may call these functions.
 */
#ifndef URXE_CONFORMANCE_RULE_H
#define URXE_CONFORMANCE_RULE_H

#include <stdbool.h>

/* Rules of every test. A test whose harmlessness deviation.c lists as broken does not run. A test
 * must end. */
#define RULE_HARMLESS "it does no harm"
#define RULE_GOES_ON  "it goes on"

/* Begins a test; driver is a name for the patterns of deviation.c. */
void rule_begin(const char *driver, const char *test);
/* Whether the device kept all rules except the known deviations, which must all have occurred. */
bool rule_end(void);

/* Checks a rule, whose text says what must hold. Returns `kept`. */
bool rule(bool kept, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Checks the result of a call: 0 or an errno value. */
bool rule_errno(int expected, int got, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Checks a precondition of the test; the test fails and ends without it. */
#define MUST(condition) ((condition) ? (void)0 : must_fail(__FILE__, __LINE__, #condition))
void must_fail(const char *file, int line, const char *condition) __attribute__((noreturn));
/* Ends the test without a result, because the device lacks the feature. */
void skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Ends the test without a result, because the machine lacks a resource. */
void skip_here(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Exit statuses of a test's process after skip and skip_here. */
#define EXIT_LACKING 77
#define EXIT_SKIPPED 78

#endif
