/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frames from the driver: found, checked, shown, and completed once they went. */
#include <string.h>

#include "nic.h"
#include "shared.h"

/* One descriptor, copied and taken apart. */
struct segment {
	uint64_t addr;
	const uint8_t *data; /* NULL: it reaches over several regions */
	uint32_t len;
	bool eop;
	bool completion;
};

enum look { LOOK_NONE, LOOK_FRAME, LOOK_BAD };

static enum look look_at_descriptor(const struct vnic_device *dev, const struct vnic_device_txq *tx,
				    struct vnic_cursor at, struct segment *segment, uint32_t *error)
{
	struct vmxnet3_tx_desc *desc = &tx->ring[at.index];
	/* Acquire: the generation bit is the last that a driver writes. */
	uint32_t len = vnic_acquire(&desc->len);
	uint32_t flags = vnic_load(&desc->flags);
	uint64_t addr = vnic_load(&desc->addr);

	if (!!(len & VMXNET3_TXD_GEN) != at.gen)
		return LOOK_NONE;
	/* Offloads were not offered (upt_features). */
	if ((len & VMXNET3_TXD_DTYPE) || (flags & (VMXNET3_TXD_OM | VMXNET3_TXD_TI))) {
		*error = VMXNET3_ERR_DESC_NOT_SPT;
		return LOOK_BAD;
	}
	segment->len = len & VMXNET3_TXD_LEN ? len & VMXNET3_TXD_LEN : VMXNET3_TXD_LEN_ZERO;
	segment->addr = addr;
	segment->data = vnic_device_memory(dev, addr, segment->len);
	segment->eop = flags & VMXNET3_TXD_EOP;
	segment->completion = flags & VMXNET3_TXD_CQ;
	*error = VMXNET3_ERR_TXD_INVALID;
	return segment->data || vnic_device_covers(dev, addr, segment->len) ? LOOK_FRAME : LOOK_BAD;
}

/*
 * The frame that starts at *at, which moves behind it. One descriptor's data stay
 * where they are; several are gathered in the bounce buffer, so that the frame
 * is contiguous.
 */
static enum look look_at_frame(const struct vnic_device *dev, const struct vnic_device_txq *tx,
			       struct vnic_cursor *at, struct vnic_tx_pending *frame,
			       uint32_t *error)
{
	uint32_t descriptors = 0;

	*frame = (struct vnic_tx_pending){.data = tx->bounce};
	for (;;) {
		struct segment segment;
		enum look look = look_at_descriptor(dev, tx, *at, &segment, error);

		if (look != LOOK_FRAME)
			return look;
		*error = VMXNET3_ERR_BIG_PKT;
		if (++descriptors > VMXNET3_MAX_TXD_PER_PKT ||
		    segment.len > dev->frame_max - frame->len)
			return LOOK_BAD;
		frame->completion |= segment.completion;
		if (descriptors == 1 && segment.eop && segment.data) {
			frame->data = segment.data;
		} else {
			if (tx->bounce_used)
				return LOOK_NONE; /* until the frame in it has gone */
			vnic_device_read(dev, segment.addr, tx->bounce + frame->len, segment.len);
			frame->gathered = true;
		}
		frame->len += segment.len;
		frame->eop = (uint16_t)at->index;
		vnic_cursor_advance(at);
		if (segment.eop)
			break;
	}
	*error = VMXNET3_ERR_TXD_INVALID;
	return frame->len < VNIC_ETH_HEADER ? LOOK_BAD : LOOK_FRAME;
}

static bool look_ahead(struct vnic_device *dev, struct vnic_device_txq *tx)
{
	struct vnic_cursor at = tx->next;
	struct vnic_tx_pending frame;
	uint32_t error;

	switch (look_at_frame(dev, tx, &at, &frame, &error)) {
	case LOOK_NONE: return false;
	case LOOK_BAD:
		/* What was posted before it still goes; the NIC stops when its turn has come. */
		if (tx->count == 0) {
			dev->counters[VNIC_TX_BAD]++;
			vnic_device_break(dev, VMXNET3_ECR_TQERR, &tx->shared->status, error);
		}
		return false;
	case LOOK_FRAME: break;
	}
	tx->bounce_used |= frame.gathered;
	tx->pending[(tx->first + tx->count++) % VNIC_TX_AHEAD] = frame;
	tx->next = at;
	return true;
}

static void complete(struct vnic_device *dev, struct vnic_device_txq *tx, uint32_t index)
{
	struct vmxnet3_tx_comp *comp = &tx->comp[tx->comp_next.index];
	uint32_t gen = tx->comp_next.gen ? VMXNET3_CD_GEN : 0;

	vnic_store(&comp->index, index);
	/* Release: also our last reads of the frame, whose buffer is the driver's again now. */
	vnic_publish(&comp->gen, gen | VMXNET3_CDTYPE_TXCOMP << VMXNET3_CD_TYPE_SHIFT);
	vnic_cursor_advance(&tx->comp_next);
	vnic_device_news(dev, tx->vector);
}

/* The oldest frame's descriptors are the driver's again. */
static void retire(struct vnic_device *dev, struct vnic_device_txq *tx)
{
	const struct vnic_tx_pending *frame = &tx->pending[tx->first];

	if (frame->completion)
		complete(dev, tx, frame->eop);
	if (frame->gathered)
		tx->bounce_used = false;
	tx->first = (tx->first + 1) % VNIC_TX_AHEAD;
	tx->count--;
}

/* Without a link, what is sent goes nowhere. */
static void discard(struct vnic_device *dev, struct vnic_device_txq *tx)
{
	while (tx->count) {
		retire(dev, tx);
		dev->counters[VNIC_LINK_DOWN]++;
		tx->stats[UPT1_TX_DISCARD]++;
	}
}

uint32_t vnic_device_tx_queues(const struct vnic_device *dev)
{
	return dev->tx_queues;
}

uint32_t vnic_device_tx(struct vnic_device *dev, uint32_t queue, struct vnic_tx_frame *frames,
			uint32_t n)
{
	struct vnic_device_txq *tx;

	if (queue >= dev->tx_queues)
		return 0;
	tx = &dev->tx[queue];
	if (n > VNIC_TX_AHEAD)
		n = VNIC_TX_AHEAD;
	while (tx->count < n && look_ahead(dev, tx))
		if (!dev->link)
			discard(dev, tx);
	if (n > tx->count)
		n = tx->count;
	for (uint32_t i = 0; i < n; i++) {
		const struct vnic_tx_pending *frame = &tx->pending[(tx->first + i) % VNIC_TX_AHEAD];

		frames[i] = (struct vnic_tx_frame){.data = frame->data, .len = frame->len};
	}
	return n;
}

void vnic_device_tx_done(struct vnic_device *dev, uint32_t queue, uint32_t n)
{
	struct vnic_device_txq *tx;

	/* The NIC may have stopped since it showed the frames. */
	if (queue >= dev->tx_queues)
		return;
	tx = &dev->tx[queue];
	for (; n && tx->count; n--) {
		const struct vnic_tx_pending *frame = &tx->pending[tx->first];

		dev->counters[VNIC_TX_FRAMES]++;
		dev->counters[VNIC_TX_BYTES] += frame->len;
		vnic_device_count(tx->stats, frame->data, frame->len);
		retire(dev, tx);
	}
}
