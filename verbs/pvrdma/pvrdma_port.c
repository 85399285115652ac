/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "pvrdma_port.h"

#include <string.h>

#include "queues/event_ring.h"

#define PATH_MTU_MIN 256u /* bytes; IBA 9.4.3 has no shorter one */

/* Time for the driver to tell its users that the port is active. */
#define DRIVER_REPORTS_NS 10000000u

static struct pvrdma_nic nic_of(const struct pvrdma *dev)
{
	const struct pvrdma_owner *owner = dev->attr.owner;
	struct pvrdma_nic nic = {.active = true, .mtu = dev->attr.mtu};

	memcpy(nic.mac, dev->attr.mac, sizeof(nic.mac));
	if (owner && owner->nic)
		owner->nic(owner->ctx, &nic);
	return nic;
}

bool pv_port_has_nic(const struct pvrdma *dev)
{
	return nic_of(dev).active;
}

bool pv_port_has_mac(const struct pvrdma *dev, const uint8_t mac[6])
{
	return !memcmp(mac, dev->attr.mac, sizeof(dev->attr.mac)) ||
	       !memcmp(mac, nic_of(dev).mac, sizeof(dev->attr.mac));
}

bool pv_port_is_up(const struct pvrdma *dev)
{
	return dev->link_up && pv_port_has_nic(dev);
}

uint32_t pv_port_path_mtu(const struct pvrdma *dev)
{
	const struct pvrdma_nic nic = nic_of(dev);
	const uint32_t mtu = nic.active && nic.mtu < dev->attr.mtu ? nic.mtu : dev->attr.mtu;
	const uint32_t path_mtu = urxe_max_path_mtu(mtu);

	return path_mtu ? path_mtu : PATH_MTU_MIN;
}

/* Reports the state of the link, not that of the NIC: PVRDMA's driver learns from the NIC's driver
 * that the NIC is down. */
bool pv_port_report_link(struct pvrdma *dev)
{
	const bool known = dev->believed_down == !dev->link_up;

	if (known || !dev->active || dev->no_master || dev->paused ||
	    dev->now < dev->report_link_at || !nic_of(dev).active)
		return false;
	pv_event_report_port(dev, dev->link_up ? PV_EVENT_PORT_ACTIVE : PV_EVENT_PORT_ERR);
	dev->believed_down = !dev->link_up;
	return true;
}

void pv_port_delay_report(struct pvrdma *dev)
{
	dev->report_link_at = dev->now + DRIVER_REPORTS_NS;
}

void pvrdma_set_link(struct pvrdma *dev, bool up)
{
	dev->link_up = up;
	pv_port_report_link(dev);
}
