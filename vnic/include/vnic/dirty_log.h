/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The pages of a virtual machine's memory that its devices have written, while a hypervisor asks
 * for them during a live migration (vfio-user's DMA logging). vnic_guest_memory_log returns the log
 * of a memory.
 */
#ifndef URXE_VNIC_DIRTY_LOG_H
#define URXE_VNIC_DIRTY_LOG_H

#include <stdbool.h>
#include <stdint.h>

struct vnic_dirty_log {
	bool on;
	/* `bytes`: an address in this process, of mapped guest memory. */
	void (*add)(struct vnic_dirty_log *log, const void *bytes, uint64_t size);
};

/* The device has written these bytes: at least 1, in one region of the guest's memory. */
static inline void vnic_dirty_mark(struct vnic_dirty_log *log, const void *bytes, uint64_t size)
{
	if (__builtin_expect(log->on, 0))
		log->add(log, bytes, size);
}

#endif
