/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "daemon/introduction.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "adapter/adapter.h"
#include "process/log.h"

void adapter_populate_inbox(void)
{
	if (adapter.inbox && !atomic_exchange(&adapter.inbox_populated, true))
		vnic_inbox_populate(adapter.inbox);
}

void adapter_add_inbox(uint32_t qpn, const int fds[VNIC_INBOX_FDS])
{
	int rc;

	/* The process is known: its frames went by the switch while the inbox was full. */
	if (tx_has_inbox(&adapter.tx, adapter.welcome.mac, qpn)) {
		for (int i = 0; i < VNIC_INBOX_FDS; i++)
			close(fds[i]);
		return;
	}
	rc = tx_add_inbox(&adapter.tx, adapter.welcome.mac, qpn, adapter.welcome.port.hca.name[0],
			  fds);
	if (rc)
		log_info("frames to qp %#x go by the switch: %s", qpn, strerror(-rc));
	adapter_unlock();
	adapter_populate_inbox();
	adapter_claim();
}
