/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The tests, by the object that they are about. */
#ifndef URXE_CONFORMANCE_SUITE_H
#define URXE_CONFORMANCE_SUITE_H

struct test {
	const char *name;
	void (*run)(void);
};

struct suite {
	const char *object;
	const struct test *tests; /* ends with a name of NULL */
};

#define SUITES(X) \
	X(device) \
	X(pd)     \
	X(mr)     \
	X(mw)     \
	X(ah)     \
	X(cq) X(cq_event) X(srq) X(qp) X(qp_state) X(qp_rc) X(qp_uc) X(qp_ud) X(mcast) X(async)

#define DECLARE(object) extern const struct test object##_tests[];
SUITES(DECLARE)
#undef DECLARE

#endif
