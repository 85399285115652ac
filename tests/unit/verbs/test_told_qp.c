/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs whose numbers and connections the daemon takes or refuses. The test plays the daemon.
 */
#include "adapter/told_qp.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <vnic/attach_protocol.h>

#include "adapter/adapter.h"

#define QPN       0x123u
#define LOCAL_QPN 0x77u

static int answer;     /* of the daemon */
static uint32_t flags; /* that the daemon has read last */

int __wrap_vnic_driver_add_qpn(struct vnic_driver *nic, uint32_t qpn, uint32_t new_flags);
int __wrap_vnic_driver_set_qpn(struct vnic_driver *nic, uint32_t qpn, uint32_t new_flags);
int __wrap_vnic_driver_register(struct vnic_driver *nic, uint32_t local_qpn, const uint8_t dgid[16],
				uint32_t qpn);

int __wrap_vnic_driver_add_qpn(struct vnic_driver *nic, uint32_t qpn, uint32_t new_flags)
{
	(void)nic;
	assert_int_equal(qpn, QPN);
	flags = new_flags;
	return answer;
}

int __wrap_vnic_driver_register(struct vnic_driver *nic, uint32_t local_qpn, const uint8_t dgid[16],
				uint32_t qpn)
{
	(void)nic;
	(void)dgid;
	assert_int_equal(local_qpn, LOCAL_QPN);
	assert_int_equal(qpn, QPN);
	return answer;
}

int __wrap_vnic_driver_set_qpn(struct vnic_driver *nic, uint32_t qpn, uint32_t new_flags)
{
	return __wrap_vnic_driver_add_qpn(nic, qpn, new_flags);
}

/* The daemon learns the end of the queue pair. */
static bool end_is_told(struct told_qp *added)
{
	bool told;

	told_qp_release(added);
	assert_true(LIST_EMPTY(&adapter.added_qps));
	told = !LIST_EMPTY(&adapter.released_qps);
	told_qp_forget_released();
	return told;
}

static struct told_qp *add(int the_answer)
{
	struct told_qp *added;

	answer = the_answer;
	assert_int_equal(told_qp_add_locked(NULL, QPN, &added), the_answer);
	assert_non_null(added);
	return added;
}

static void the_end_of_a_refused_number_is_not_told(void **state)
{
	(void)state;
	assert_true(end_is_told(add(0)));
	assert_false(end_is_told(add(-ENOSPC)));
}

static void answer_of_the_newest_daemon_counts(void **state)
{
	struct told_qp *added = add(-ENOSPC);

	(void)state;
	answer = 0;
	told_qp_tell_all(NULL, &adapter.added_qps);
	assert_true(end_is_told(added));
	added = add(0);
	answer = -ENOSPC;
	told_qp_tell_all(NULL, &adapter.added_qps);
	assert_false(end_is_told(added));
}

static void daemon_learns_changed_flags_of_a_qpn(void **state)
{
	struct told_qp *added = add(0);

	(void)state;
	assert_int_equal(flags, VNIC_QPN_REACHABLE);
	assert_int_equal(told_qp_set_uplink(added, true), 0);
	assert_int_equal(flags, VNIC_QPN_REACHABLE | VNIC_QPN_UPLINK);
	/* The message did not fit the socket. */
	answer = -EAGAIN;
	assert_int_equal(told_qp_set_uplink(added, false), -EAGAIN);
	assert_true(added->uplink);
	/* The daemon has gone. */
	answer = -EPIPE;
	assert_int_equal(told_qp_set_uplink(added, false), 0);
	answer = 0;
	told_qp_tell_all(NULL, &adapter.added_qps);
	assert_int_equal(flags, VNIC_QPN_REACHABLE);
	told_qp_forget_all();
}

static void a_daemon_that_has_refused_a_number_learns_no_changes(void **state)
{
	struct told_qp *added = add(-ENOSPC);

	(void)state;
	flags = 0;
	answer = 0;
	assert_int_equal(told_qp_set_uplink(added, true), 0);
	assert_int_equal(flags, 0);
	told_qp_tell_all(NULL, &adapter.added_qps);
	assert_int_equal(flags, VNIC_QPN_REACHABLE | VNIC_QPN_UPLINK);
	told_qp_forget_all();
}

static void the_end_of_a_refused_connection_is_not_told(void **state)
{
	static const uint8_t gid[16];
	struct told_qp *remote = told_qp_restore(LOCAL_QPN, gid, QPN);

	(void)state;
	assert_true(end_is_told(remote));
	remote = told_qp_restore(LOCAL_QPN, gid, QPN);
	answer = -EACCES;
	assert_int_equal(told_qp_tell_all(NULL, &adapter.remote_qps), -EACCES);
	assert_false(end_is_told(remote));
	assert_true(LIST_EMPTY(&adapter.remote_qps));
}

static void all_records_are_forgotten_at_once(void **state)
{
	(void)state;
	told_qp_release(add(0));
	add(0);
	add(-EEXIST);
	assert_false(LIST_EMPTY(&adapter.released_qps));
	told_qp_forget_all();
	assert_true(LIST_EMPTY(&adapter.added_qps));
	assert_true(LIST_EMPTY(&adapter.released_qps));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_a_refused_number_is_not_told),
		cmocka_unit_test(answer_of_the_newest_daemon_counts),
		cmocka_unit_test(daemon_learns_changed_flags_of_a_qpn),
		cmocka_unit_test(a_daemon_that_has_refused_a_number_learns_no_changes),
		cmocka_unit_test(the_end_of_a_refused_connection_is_not_told),
		cmocka_unit_test(all_records_are_forgotten_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
