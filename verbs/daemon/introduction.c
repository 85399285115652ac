/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "daemon/introduction.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "port/port.h"
#include "process/log.h"

void port_populate_inbox(void)
{
	if (port.inbox && !atomic_exchange(&port.inbox_populated, true))
		vnic_inbox_populate(port.inbox);
}

void port_add_inbox(uint32_t qpn, const int fds[VNIC_INBOX_FDS])
{
	int rc;

	/* The process is known: its frames went by the switch while the inbox was full. */
	if (tx_has_inbox(&port.tx, port.welcome.mac, qpn)) {
		for (int i = 0; i < VNIC_INBOX_FDS; i++)
			close(fds[i]);
		return;
	}
	rc = tx_add_inbox(&port.tx, port.welcome.mac, qpn, port.welcome.port.hca.name[0], fds);
	if (rc)
		log_info("frames to qp %#x go by the switch: %s", qpn, strerror(-rc));
	port_unlock();
	port_populate_inbox();
	port_claim();
}
