/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The tests, grouped by the kind of object that they test. */
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

extern const struct test command_tests[];
extern const struct test device_tests[];
extern const struct test pd_tests[];
extern const struct test mr_tests[];
extern const struct test odp_tests[];
extern const struct test mw_tests[];
extern const struct test ah_tests[];
extern const struct test cq_tests[];
extern const struct test cq_event_tests[];
extern const struct test srq_tests[];
extern const struct test qp_tests[];
extern const struct test qp_state_tests[];
extern const struct test qp_rc_tests[];
extern const struct test qp_uc_tests[];
extern const struct test qp_ud_tests[];
extern const struct test mcast_tests[];
extern const struct test async_tests[];
/* Only in builds with librdmacm. */
extern const struct test cm_id_tests[];
extern const struct test cm_event_tests[];
extern const struct test cm_connect_tests[];
extern const struct test cm_endpoint_tests[];
extern const struct test cm_ud_tests[];
extern const struct test cm_socket_tests[];

#endif
