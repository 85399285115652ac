/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "daemon/introduction.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "adapter/adapter.h"
#include "adapter/told_qp.h"
#include "process/log.h"

void adapter_populate_inbox(void)
{
	if (adapter.inbox && !atomic_exchange(&adapter.inbox_populated, true))
		vnic_inbox_populate(adapter.inbox);
}

/*
 * Shortens the table of QPNs of peers and their processes. It grows without end otherwise, because
 * an HCA chooses a new QPN for each queue pair. If the table is full and has at least twice as many
 * QPNs as connections are possible, keeps only those of present connections. No memory: no effect.
 */
static void forget_old_qpns(struct qpn_processes *processes)
{
	struct qpn_processes kept = {0};
	const struct told_qp *remote;
	uint32_t process;

	if (processes->n < 2 * LEASES_QPS || !qpn_processes_full(processes))
		return;
	LIST_FOREACH(remote, &adapter.remote_qps, link)
	{
		const uint32_t qpn = remote->qpn & 0xffffff;

		if (!qpn_process_find(processes, qpn, &process))
			continue;
		if (qpn_process_set(&kept, qpn, process)) {
			qpn_processes_free(&kept);
			return;
		}
	}
	qpn_processes_free(processes);
	*processes = kept;
}

int adapter_take_inbox(const uint8_t mac[6], uint32_t qpn, const int fds[VNIC_INBOX_FDS])
{
	forget_old_qpns(&adapter.tx.processes);
	return tx_add_inbox(&adapter.tx, mac, qpn, adapter.welcome.port.hca.name[0], fds);
}

void adapter_add_inbox(uint32_t qpn, const int fds[VNIC_INBOX_FDS])
{
	int rc;

	/* The adapter has the inbox already. The daemon has sent it because frames to the process
	 * went by the switch while the inbox was full. */
	if (tx_has_inbox(&adapter.tx, adapter.welcome.mac, qpn)) {
		for (int i = 0; i < VNIC_INBOX_FDS; i++)
			close(fds[i]);
		return;
	}
	rc = adapter_take_inbox(adapter.welcome.mac, qpn, fds);
	if (rc)
		log_info("frames to qp %#x go by the switch: %s", qpn, strerror(-rc));
	adapter_unlock();
	adapter_populate_inbox();
	adapter_claim();
}
