/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device as a byte stream, for the live migration of a virtual machine. */
#include <string.h>

#include <rxe/state_stream.h>

#include "nic.h"
#include "shared.h"

static const struct state_format format = {.name = "urxevmx3", .version = 1};

void vnic_device_pause(struct vnic_device *dev)
{
	dev->paused = true;
	if (dev->no_master)
		return;
	for (uint32_t i = 0; i < dev->tx_queues; i++)
		vnic_device_tx_discard(dev, i);
	vnic_device_set_polling(dev, false);
	vnic_device_flush(dev);
}

void vnic_device_resume(struct vnic_device *dev)
{
	dev->paused = false;
	if (dev->due_error.status && !dev->no_master)
		vnic_device_break(dev, dev->due_error.event, dev->due_error.status,
				  dev->due_error.error);
	if (dev->state == VNIC_DEVICE_DOWN || dev->no_master)
		return;
	vnic_device_set_polling(dev, false);
	vnic_device_tell_link(dev);
	/*
	 * An interrupt of the old device may not have reached the guest, so the new device raises
	 * all. That is harmless, since drivers look for work at each interrupt. A vector that an
	 * interrupt had masked on the old device is unmasked here.
	 */
	for (uint32_t i = 0; i < dev->vectors; i++)
		vnic_device_mark_interrupt(dev, (uint8_t)i);
	vnic_device_flush(dev);
}

void vnic_device_mark_rings(const struct vnic_device *dev)
{
	struct vnic_dirty_log *log = dev->attr.log;

	if (dev->state == VNIC_DEVICE_DOWN)
		return;
	vnic_dirty_mark(log, dev->shared, sizeof(*dev->shared));
	for (uint32_t i = 0; i < dev->tx_queues; i++) {
		const struct vnic_device_txq *tx = &dev->tx[i];

		vnic_dirty_mark(log, tx->shared, sizeof(*tx->shared));
		vnic_dirty_mark(log, tx->comp, tx->comp_next.size * sizeof(*tx->comp));
	}
	for (uint32_t i = 0; i < dev->rx_queues; i++) {
		const struct vnic_device_rxq *rx = &dev->rx[i];

		vnic_dirty_mark(log, rx->shared, sizeof(*rx->shared));
		vnic_dirty_mark(log, rx->comp, rx->comp_next.size * sizeof(*rx->comp));
	}
}

/* --- Memory of the driver */

/* The driver's address of bytes in this process; 0: they are not in the table. */
static uint64_t address_of(const struct vnic_device *dev, const void *memory)
{
	for (uint32_t i = 0; i < dev->region_count; i++) {
		const struct vnic_region *region = &dev->regions[i];
		const uint64_t offset = (uintptr_t)memory - (uintptr_t)region->memory;

		if (offset < region->size)
			return region->addr + offset;
	}
	return 0;
}

/* Writes or reads a pointer to `size` bytes of the driver's memory, as the driver's address.
 * Returns the pointer in this process. After an error while restoring: NULL if the address is not
 * valid, `memory` if the stream could not be read. */
static void *memory_record(struct state_stream *s, const struct vnic_device *dev, void *memory,
			   uint64_t size, uint64_t align)
{
	uint64_t addr = s->restoring ? 0 : address_of(dev, memory);

	state_require(s, s->restoring || addr);
	state_u64(s, &addr);
	if (!s->restoring || s->error)
		return memory;
	state_require(s, addr && addr % align == 0);
	memory = vnic_region_memory(dev, addr, size);
	if (!memory)
		state_fail(s, -EFAULT);
	return s->error ? NULL : memory;
}

static void cursor_record(struct state_stream *s, struct vnic_cursor *cursor, uint32_t max)
{
	state_u32_max(s, &cursor->size, max);
	state_u32(s, &cursor->index);
	state_bool(s, &cursor->gen);
	state_require(s, cursor->size ? cursor->index < cursor->size : !cursor->index);
}

static void *ring_record(struct state_stream *s, const struct vnic_device *dev, void *ring,
			 struct vnic_cursor *cursor, uint32_t max)
{
	cursor_record(s, cursor, max);
	state_require(s, cursor->size && cursor->size % VMXNET3_RING_SIZE_ALIGN == 0);
	return memory_record(s, dev, ring, cursor->size * UINT64_C(16), VMXNET3_RING_BA_ALIGN);
}

static void stats_record(struct state_stream *s, uint64_t *stats, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		state_u64(s, &stats[i]);
}

/* --- Queues */

static void tx_record(struct state_stream *s, struct vnic_device *dev, uint32_t number)
{
	uint8_t *buffers = dev->buffers + number * vnic_device_buffers_size(dev);
	struct vnic_device_txq *tx = &dev->tx[number];

	if (s->restoring)
		*tx = (struct vnic_device_txq){.slots = buffers,
					       .packet = buffers + vnic_device_slots_size(dev)};
	tx->shared = memory_record(s, dev, tx->shared, sizeof(*tx->shared), 8);
	tx->ring = ring_record(s, dev, tx->ring, &tx->next, VMXNET3_RING_MAX_SIZE);
	tx->comp = ring_record(s, dev, tx->comp, &tx->comp_next, VMXNET3_RING_MAX_SIZE);
	state_u8(s, &tx->vector);
	state_require(s, tx->comp_next.size >= tx->next.size && tx->vector < dev->vectors);
	stats_record(s, tx->stats, UPT1_TX_STATS);
}

static void data_ring_record(struct state_stream *s, struct vnic_device *dev,
			     struct vnic_device_rxq *rx)
{
	bool exists = rx->data_ring;

	state_bool(s, &exists);
	if (!exists)
		return;
	state_u32_max(s, &rx->data_size, VMXNET3_RXDATA_DESC_MAX_SIZE);
	state_require(s, rx->data_size && rx->data_size % VMXNET3_RXDATA_DESC_SIZE_ALIGN == 0);
	rx->data_ring =
		memory_record(s, dev, rx->data_ring, (uint64_t)rx->next[0].size * rx->data_size, 1);
}

static void rx_record(struct state_stream *s, struct vnic_device *dev, uint32_t number)
{
	struct vnic_device_rxq *rx = &dev->rx[number];
	bool second = rx->ring[1];

	if (s->restoring)
		*rx = (struct vnic_device_rxq){.number = number};
	rx->shared = memory_record(s, dev, rx->shared, sizeof(*rx->shared), 8);
	rx->ring[0] = ring_record(s, dev, rx->ring[0], &rx->next[0], VMXNET3_RING_MAX_SIZE);
	state_bool(s, &second);
	if (second)
		rx->ring[1] = ring_record(s, dev, rx->ring[1], &rx->next[1], VMXNET3_RING_MAX_SIZE);
	else if (s->restoring)
		rx->next[1] = vnic_cursor_start(0);
	rx->comp = ring_record(s, dev, rx->comp, &rx->comp_next, VMXNET3_RC_RING_MAX);
	state_require(s, rx->comp_next.size >= (uint64_t)rx->next[0].size + rx->next[1].size);
	data_ring_record(s, dev, rx);
	state_bool(s, &rx->wants_rxprod);
	state_u8(s, &rx->vector);
	state_require(s, rx->vector < dev->vectors);
	stats_record(s, rx->stats, UPT1_RX_STATS);
}

/* --- The device */

static void rss_record(struct state_stream *s, struct vnic_device *dev)
{
	struct vnic_rss *rss = &dev->rss;
	uint32_t *partial = &rss->partial[0][0];

	state_u16s(s, &rss->types, &rss->table_size);
	state_require(s, rss->table_size && rss->table_size <= UPT1_RSS_TABLE_SIZE);
	state_bytes(s, rss->table, sizeof(rss->table));
	for (uint32_t i = 0; i < UPT1_RSS_TABLE_SIZE && i < rss->table_size; i++)
		state_require(s, rss->table[i] < dev->rx_queues);
	for (uint32_t i = 0; i < sizeof(rss->partial) / sizeof(*partial); i++)
		state_u32(s, &partial[i]);
}

static void filter_record(struct state_stream *s, struct vnic_device_filter *filter)
{
	uint32_t kept;

	state_u32s(s, &filter->mode, &filter->group_count);
	/* With more groups the device stores none of them, and delivers all multicast frames. */
	kept = filter->group_count <= VNIC_FILTER_GROUPS ? filter->group_count : 0;
	state_bytes(s, filter->groups, kept * sizeof(filter->groups[0]));
	for (uint32_t i = 0; i < VMXNET3_VFT_SIZE; i++)
		state_u32(s, &filter->vlan[i]);
}

/* Saves only the masks that the driver has set. A vector that an interrupt has masked is saved as
 * unmasked, because vnic_device_resume raises all interrupts again. */
static void masks_record(struct state_stream *s, struct vnic_device *dev)
{
	for (uint32_t i = 0; i < VMXNET3_MAX_INTRS; i++) {
		uint32_t *imr = vnic_reg(dev->attr.bars, VMXNET3_REG_IMR + i * VMXNET3_REG_STRIDE);
		uint32_t mask = vnic_load(imr) != 0 && !(dev->auto_masked >> i & 1);

		state_u32_max(s, &mask, 1);
		if (s->restoring)
			vnic_store(imr, mask);
	}
}

static void registers_record(struct state_stream *s, struct vnic_device *dev)
{
	uint8_t permanent[6];

	memcpy(permanent, dev->attr.mac, sizeof(permanent));
	state_bytes(s, permanent, sizeof(permanent));
	if (memcmp(permanent, dev->attr.mac, sizeof(permanent)))
		state_fail(s, -EINVAL);
	state_bytes(s, dev->mac, sizeof(dev->mac));
	state_u32(s, &dev->revision);
	state_require(s,
		      dev->revision & VMXNET3_REVISIONS && !(dev->revision & (dev->revision - 1)));
	state_u32s(s, &dev->shared_low, &dev->shared_high, &dev->result, &dev->mac_low,
		   &dev->capabilities, &dev->rss_fields);
	state_bytes(s, &dev->coalesce, sizeof(dev->coalesce));
	state_u16(s, &dev->driver_link);
	masks_record(s, dev);
}

static void interrupts_record(struct state_stream *s, struct vnic_device *dev)
{
	const uint32_t all = (UINT32_C(1) << VMXNET3_MAX_INTRS) - 1;

	state_bool(s, &dev->auto_mask);
	state_u8s(s, &dev->vectors, &dev->event_vector);
	state_require(s, dev->vectors <= VMXNET3_MAX_INTRS && dev->event_vector < dev->vectors);
	state_u32_max(s, &dev->interrupts, all);
	state_u32_max(s, &dev->missed, all);
}

/* The stream has the MTU as the length of a frame with one VLAN tag. */
static void mtu_record(struct state_stream *s, struct vnic_device *dev)
{
	uint32_t frame = VNIC_FRAME_MAX(dev->mtu);

	state_u32(s, &frame);
	if (frame > VNIC_FRAME_MAX(dev->attr.mtu))
		state_fail(s, -EINVAL);
	state_require(s, frame >= VNIC_FRAME_MAX(VMXNET3_MIN_MTU));
	if (s->restoring && !s->error)
		vnic_device_set_mtu(dev, frame - VNIC_FRAME_MAX(0));
}

/* The state that begins with the driver's ACTIVATE_DEV. Of a broken NIC (`active` false) only the
 * shared area and the interrupts. */
static void activation_record(struct state_stream *s, struct vnic_device *dev, bool active)
{
	dev->shared = memory_record(s, dev, dev->shared, sizeof(*dev->shared), 8);
	interrupts_record(s, dev);
	if (!active)
		return;
	mtu_record(s, dev);
	state_u32(s, &dev->features);
	filter_record(s, &dev->filter);
	state_u32_max(s, &dev->tx_queues, VMXNET3_MAX_TX_QUEUES);
	state_u32_max(s, &dev->rx_queues, VMXNET3_MAX_RX_QUEUES);
	state_require(s, dev->tx_queues && dev->rx_queues);
	if (dev->features & UPT1_F_RSS)
		rss_record(s, dev);
	for (uint32_t i = 0; i < dev->tx_queues && !s->error; i++)
		tx_record(s, dev, i);
	for (uint32_t i = 0; i < dev->rx_queues && !s->error; i++)
		rx_record(s, dev, i);
}

/* In place of an enum vnic_device_state: the NIC is down, and has a due error. Earlier versions of
 * urxe refuse it. */
#define DOWN_BY_ERROR (VNIC_DEVICE_BROKEN + 1)

static void due_error_record(struct state_stream *s, struct vnic_device *dev)
{
	struct vnic_device_error *due = &dev->due_error;

	activation_record(s, dev, false);
	due->status = memory_record(s, dev, due->status, sizeof(*due->status),
				    _Alignof(struct vmxnet3_queue_status));
	state_u32s(s, &due->event, &due->error);
	state_require(s, due->event == VMXNET3_ECR_TQERR || due->event == VMXNET3_ECR_RQERR);
}

static void device_record(struct state_stream *s, struct vnic_device *dev)
{
	uint32_t state = dev->due_error.status ? DOWN_BY_ERROR : dev->state;

	state_u32_max(s, &state, DOWN_BY_ERROR);
	registers_record(s, dev);
	if (state == DOWN_BY_ERROR && !s->error)
		due_error_record(s, dev);
	else if (state != VNIC_DEVICE_DOWN && !s->error)
		activation_record(s, dev, state == VNIC_DEVICE_ACTIVE);
	if (s->restoring && !s->error && state != DOWN_BY_ERROR)
		dev->state = (enum vnic_device_state)state;
}

int vnic_device_save(struct vnic_device *dev, uint8_t **stream, size_t *length)
{
	struct state_stream s;

	stream_begin_save(&s, &format);
	device_record(&s, dev);
	return stream_finish_save(&s, stream, length);
}

int vnic_device_restore(struct vnic_device *dev, const uint8_t *stream, size_t length)
{
	struct state_stream s;
	int rc;

	vnic_device_reset(dev);
	dev->no_master = false;
	dev->paused = true;
	if (stream_begin_restore(&s, &format, stream, length))
		return s.error;
	device_record(&s, dev);
	rc = stream_finish_restore(&s);
	if (rc)
		vnic_device_power_on(dev);
	return rc;
}
