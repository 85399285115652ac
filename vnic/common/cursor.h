/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A position in a ring, with the generation bit that its descriptors have on this lap. */
#ifndef URXE_VNIC_CURSOR_H
#define URXE_VNIC_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/regs.h>

struct vnic_cursor {
	uint32_t index;
	uint32_t size;
	bool gen;
};

static inline struct vnic_cursor vnic_cursor_start(uint32_t size)
{
	return (struct vnic_cursor){.size = size, .gen = VMXNET3_INIT_GEN};
}

static inline void vnic_cursor_advance(struct vnic_cursor *cursor)
{
	if (++cursor->index == cursor->size) {
		cursor->index = 0;
		cursor->gen = !cursor->gen;
	}
}

/* The distance from `from` forward to `to`; both are below size. */
static inline uint32_t vnic_ring_distance(uint32_t from, uint32_t to, uint32_t size)
{
	return to >= from ? to - from : to + size - from;
}

#endif
