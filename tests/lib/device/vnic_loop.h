/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A vNIC whose driver and device are in one process, without a daemon, a socket or a descriptor:
 * another transport of vnic/common/transport.h. Also an inbox without a daemon.
 */
#ifndef URXE_TEST_VNIC_LOOP_H
#define URXE_TEST_VNIC_LOOP_H

#include <stdint.h>

#include <vnic/device.h>
#include <vnic/driver.h>
#include <vnic/inbox.h>

struct vnic_loop {
	struct vnic_driver *driver;
	struct vnic_device *device;
	/* Memory that the driver and the device share. */
	void *memory;
	uint64_t memory_size;
	void *bars;
	uint64_t kicks;      /* doorbells that found the device asleep */
	uint64_t interrupts; /* interrupts delivered so far */
};

/*
 * Returns 0 or a negative errno value. On success the driver has activated the NIC, with masked
 * interrupts.
 */
int vnic_loop_open(uint16_t mtu, struct vnic_loop **loop);
/* Destroys driver and device; `driver` may be NULL if it was detached already. */
void vnic_loop_close(struct vnic_loop *loop);

/* Creates, opens and publishes an inbox: does the work of the daemon and of the receiver. Returns 0
 * or a negative errno value. */
int vnic_inbox_create(uint16_t mtu, struct vnic_inbox **inbox);

#endif
