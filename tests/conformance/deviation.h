/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rules that drivers are known to break, with the reasons. */
#ifndef URXE_CONFORMANCE_DEVIATION_H
#define URXE_CONFORMANCE_DEVIATION_H

/* The reason why a driver breaks a rule, and that it was asked about; NULL: it should keep it. */
const char *deviation_find(const char *driver, const char *test, const char *rule);
/* The next one from *at on that was never asked about in this test; NULL: none. */
const char *deviation_unseen(const char *driver, const char *test, unsigned int *at);

#endif
