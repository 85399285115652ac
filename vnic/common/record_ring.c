/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <vnic/record_ring.h>

#include <string.h>
#include <sys/mman.h>

#include "message.h"

int vnic_record_create(void)
{
	return vnic_memory_create("urxe-record", VNIC_RECORD_SIZE);
}

int vnic_record_open(struct vnic_record_side *side, int fd)
{
	void *memory;
	int ret = vnic_memory_map(fd, VNIC_RECORD_SIZE, &memory);

	*side = (struct vnic_record_side){.ring = ret ? NULL : memory};
	return ret;
}

void vnic_record_abandon(struct vnic_record_side *side)
{
	if (side->ring)
		munmap(side->ring, VNIC_RECORD_SIZE);
	side->ring = NULL;
}

void vnic_record_close(struct vnic_record_side *side)
{
	if (side->ring)
		atomic_store_explicit(&side->ring->ended, 1, memory_order_release);
	vnic_record_abandon(side);
}

void vnic_record_isolate(const struct vnic_record_side *side)
{
	if (side->ring)
		vnic_memory_isolate(side->ring, VNIC_RECORD_SIZE);
}

/* Copies bytes between a buffer and a position of the ring. */
static void copy_bytes(struct vnic_record_ring *ring, uint64_t at, uint8_t *bytes, size_t n,
		       bool write)
{
	uint8_t *memory = (uint8_t *)ring + VNIC_RECORD_START;
	const uint64_t first = at % VNIC_RECORD_BYTES;
	const size_t to_end = (size_t)(VNIC_RECORD_BYTES - first);
	const size_t part = n < to_end ? n : to_end;

	if (write) {
		memcpy(memory + first, bytes, part);
		memcpy(memory, bytes + part, n - part);
	} else {
		memcpy(bytes, memory + first, part);
		memcpy(bytes + part, memory, n - part);
	}
}

/* --- The writer: the process that records. */

void vnic_record_set_process(struct vnic_record_side *side,
			     const struct vnic_record_process *process)
{
	side->ring->process = *process;
	atomic_store_explicit(&side->ring->ready, 1, memory_order_release);
}

bool vnic_record_write(struct vnic_record_side *side, const void *bytes, size_t n, size_t reserve)
{
	const uint64_t used =
		side->at - atomic_load_explicit(&side->ring->tail, memory_order_acquire);

	/* A reader whose position is impossible has broken the ring, and gets no more bytes. */
	if (used > VNIC_RECORD_BYTES || VNIC_RECORD_BYTES - used < n + reserve)
		return false;
	copy_bytes(side->ring, side->at, (uint8_t *)(uintptr_t)bytes, n, true);
	side->at += n;
	atomic_store_explicit(&side->ring->head, side->at, memory_order_release);
	return true;
}

/* --- The reader: urxe capture. */

bool vnic_record_get_process(const struct vnic_record_side *side,
			     struct vnic_record_process *process)
{
	if (!atomic_load_explicit(&side->ring->ready, memory_order_acquire))
		return false;
	*process = side->ring->process;
	process->program[sizeof(process->program) - 1] = '\0';
	return true;
}

bool vnic_record_has_ended(const struct vnic_record_side *side)
{
	return atomic_load_explicit(&side->ring->ended, memory_order_acquire);
}

size_t vnic_record_read(struct vnic_record_side *side, void *bytes, size_t n)
{
	const uint64_t pending =
		atomic_load_explicit(&side->ring->head, memory_order_acquire) - side->at;

	if (pending > VNIC_RECORD_BYTES)
		return 0;
	if (n > pending)
		n = (size_t)pending;
	copy_bytes(side->ring, side->at, bytes, n, false);
	side->at += n;
	atomic_store_explicit(&side->ring->tail, side->at, memory_order_release);
	return n;
}
