/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state of the device's port. The device shares the Ethernet link of the machine's NIC, a
 * vmxnet3: the port is up while the link is up and the NIC's driver has activated the NIC.
 */
#ifndef URXE_PVRDMA_PVRDMA_PORT_H
#define URXE_PVRDMA_PVRDMA_PORT_H

#include "pvrdma_device.h"

/* Whether the NIC is active. If not, no frame may leave the device or enter it. */
bool pv_port_has_nic(const struct pvrdma *dev);
/* Whether an address is the device's own, or that of the NIC. */
bool pv_port_has_mac(const struct pvrdma *dev, const uint8_t mac[6]);
/* Whether the port is up: the NIC is active, and the link is up. */
bool pv_port_is_up(const struct pvrdma *dev);
/*
 * Sends the driver an event with the present state of the Ethernet link if the driver knows another
 * state. A NIC that is not active does not count as a link that is down: it only delays the event.
 * False: no event was sent, because the driver knows the state, the NIC or the device is not
 * active, the device may not access memory or is paused, or the driver is just telling its users
 * that the port is active. pvrdma_poll sends a delayed event by this function, because no call
 * tells the device when the NIC's driver activates the NIC, for example after a change of the MTU.
 */
bool pv_port_report_link(struct pvrdma *dev);
/* The driver may be about to tell its users that the port is active: pv_port_report_link sends no
 * event for 10 ms, so that an event of a link that is down comes after that. */
void pv_port_delay_report(struct pvrdma *dev);
/* The longest path MTU, in bytes, whose packets fit the MTU of the device and, if active, of the
 * NIC; 256 if none fits. */
uint32_t pv_port_path_mtu(const struct pvrdma *dev);

#endif
