/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Processes of this host that the daemon introduces, where an HCA chooses the QPNs. */
#include "daemon/introduction.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/told_qp.h"
#include "loop_adapter.h"
#include "samehost/published.h"

#define MTU     1500
#define PROCESS 7u /* of all peers */
#define CHOSEN  0xf00001u

static void get_introduced(const struct vnic_inbox *inbox, uint32_t qpn)
{
	int fds[VNIC_INBOX_FDS];

	vnic_inbox_fds(inbox, fds);
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
	adapter_lock();
	adapter_add_inbox(qpn, fds);
	adapter_unlock();
}

static bool knows(uint32_t qpn)
{
	uint32_t process;

	return qpn_process_find(&adapter.tx.processes, qpn, &process) && process == PROCESS;
}

/* A program that connects again and again meets ever new numbers, though it has few connections. */
static void numbers_without_connection_are_forgotten(void **state)
{
	static const uint8_t dgid[16];
	struct vnic_loop *loop = loop_adapter_open(MTU);
	struct told_qp *remote;
	struct vnic_inbox *inbox;
	uint32_t most = 0;

	(void)state;
	strcpy(adapter.welcome.port.hca.name, "hca0");
	assert_int_equal(vnic_inbox_create(MTU, &inbox), 0);
	((struct published *)vnic_inbox_published(inbox))->process = PROCESS;
	adapter_lock();
	remote = told_qp_restore(1, dgid, 0xff000011u); /* the program may set further bits */
	for (uint32_t i = 0; i < 1u << 20; i += 2) {
		assert_int_equal(qpn_process_set(&adapter.tx.processes, i + 0x11, PROCESS), 0);
		if (2 * adapter.tx.processes.n <= adapter.tx.processes.mask)
			continue;
		adapter_unlock();
		get_introduced(inbox, i + 0x12);
		adapter_lock();
		if (adapter.tx.processes.n > most)
			most = adapter.tx.processes.n;
	}
	adapter_unlock();
	assert_in_range(most, LEASES_QPS, 2 * LEASES_QPS);
	assert_true(knows(0x11));
	get_introduced(inbox, CHOSEN);
	assert_true(knows(CHOSEN));
	LIST_REMOVE(remote, link);
	free(remote);
	vnic_inbox_destroy(inbox);
	loop_adapter_close(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_without_connection_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
