/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The rules that each driver is known to break, with the reasons. */
#ifndef URXE_CONFORMANCE_DEVIATION_H
#define URXE_CONFORMANCE_DEVIATION_H

/* Returns the reason why a driver breaks a rule, and marks the deviation as seen. NULL: it must
 * keep the rule. */
const char *deviation_find(const char *driver, const char *test, const char *rule);
/* Returns the next deviation from *at on that this test has not seen; NULL: none. */
const char *deviation_unseen(const char *driver, const char *test, unsigned int *at);

#endif
