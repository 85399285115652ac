/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The peers of a machine: requests to urxed, which a double answers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "vm/host/machine_peers.h"

static const uint8_t mac[6] = {2, 3};

static struct {
	struct vm_session session;
	struct machine_peers peers;
	int answer;
	uint32_t asked, qpn; /* calls, and the QPN of the last one */
} f;

/* The linker puts this function in the place of vnic_driver_introduce. */
int __wrap_vnic_driver_introduce(struct vnic_driver *drv, const uint8_t of[6], uint32_t qpn,
				 int fds[VNIC_INBOX_FDS]);

int __wrap_vnic_driver_introduce(struct vnic_driver *drv, const uint8_t of[6], uint32_t qpn,
				 int fds[VNIC_INBOX_FDS])
{
	(void)drv, (void)fds;
	assert_memory_equal(of, mac, sizeof(mac));
	f.asked++;
	f.qpn = qpn;
	return f.answer;
}

/* A session with urxed, whose other end is the double. */
static int setup(void **state)
{
	static uint64_t nic, table;

	(void)state;
	memset(&f, 0, sizeof(f));
	f.session.nic = (struct vnic_driver *)&nic;
	f.session.welcome.port.machines = 1;
	f.peers.session = &f.session;
	f.peers.table = (struct urxe_copy_table *)&table;
	return 0;
}

static void a_process_of_a_user_unknown_for_the_moment_is_asked_for_again(void **state)
{
	uint64_t due;

	(void)state;
	assert_int_equal(machine_peers_tick(&f.peers, 0), UINT64_MAX);
	f.answer = -EBUSY;
	machine_peers_request_introduction(&f.peers, mac, 0x1234);
	assert_int_equal(f.asked, 1);
	due = machine_peers_tick(&f.peers, 0);
	assert_int_not_equal(due, UINT64_MAX);
	assert_int_equal(f.asked, 1);
	f.qpn = 0;
	due = machine_peers_tick(&f.peers, due);
	assert_int_equal(f.asked, 2);
	assert_int_equal(f.qpn, 0x1234);
	assert_int_not_equal(due, UINT64_MAX);
	f.answer = -ENOENT;
	assert_int_equal(machine_peers_tick(&f.peers, due), UINT64_MAX);
	assert_int_equal(f.asked, 3);
}

static void not_all_processes_are_asked_for_again(void **state)
{
	uint64_t due;

	(void)state;
	f.answer = -EBUSY;
	for (uint32_t i = 0; i < 2 * MACHINE_PEERS_UNKNOWN; i++)
		machine_peers_request_introduction(&f.peers, mac, 0x1000 + i);
	due = machine_peers_tick(&f.peers, 0);
	f.asked = 0;
	machine_peers_tick(&f.peers, due);
	assert_int_equal(f.asked, MACHINE_PEERS_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			a_process_of_a_user_unknown_for_the_moment_is_asked_for_again, setup),
		cmocka_unit_test_setup(not_all_processes_are_asked_for_again, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
