/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frames from the driver: found, checked, shown, and completed once they went. */
#include <string.h>

#include "nic.h"
#include "shared.h"

/* Linux uses up to 24 descriptors for a packet to be segmented; mbufs of 2 KiB make 33. */
#define TSO_DESCRIPTORS 64
#define TAG             4 /* bytes of an 802.1Q tag */
#define MACS            12

/* One descriptor, copied and taken apart. */
struct segment {
	uint64_t addr;
	const uint8_t *data; /* NULL: it reaches over several regions */
	uint32_t len;
};

/* The descriptors of a frame. */
struct chain {
	struct segment segments[TSO_DESCRIPTORS];
	uint32_t count;
	uint32_t len;
	uint32_t word, flags; /* of the first descriptor: what is to be done with the frame */
	uint16_t eop;         /* index of the last */
	bool completion;
	struct vnic_cursor end; /* behind it */
};

/* LOOK_NONE: not all there yet; LOOK_MISFIT: an offload that the frame is not fit for. */
enum look { LOOK_NONE, LOOK_FRAME, LOOK_MISFIT, LOOK_BAD };

static uint32_t offload_mode(const struct chain *chain)
{
	return chain->flags & VMXNET3_TXD_OM;
}

static bool wants_tag(const struct chain *chain)
{
	return chain->flags & VMXNET3_TXD_TI;
}

static enum look read_descriptor(const struct vnic_device *dev, const struct vnic_device_txq *tx,
				 struct chain *chain, bool *eop, uint32_t *error)
{
	struct vmxnet3_tx_desc *desc = &tx->ring[chain->end.index];
	/* Acquire: the generation bit is the last that a driver writes. */
	uint32_t word = vnic_acquire(&desc->len);
	uint32_t flags = vnic_load(&desc->flags);
	struct segment *segment = &chain->segments[chain->count];

	if (!!(word & VMXNET3_TXD_GEN) != chain->end.gen)
		return LOOK_NONE;
	if (chain->count == 0) {
		chain->word = word;
		chain->flags = flags;
	}
	*error = VMXNET3_ERR_DESC_NOT_SPT;
	if ((word & VMXNET3_TXD_DTYPE) || offload_mode(chain) == VMXNET3_OM_ENCAP)
		return LOOK_BAD;
	segment->addr = vnic_load(&desc->addr);
	segment->len = word & VMXNET3_TXD_LEN ? word & VMXNET3_TXD_LEN : VMXNET3_TXD_LEN_ZERO;
	segment->data = vnic_region_memory(dev, segment->addr, segment->len);
	*error = VMXNET3_ERR_TXD_INVALID;
	if (!segment->data && !vnic_region_covers(dev, segment->addr, segment->len))
		return LOOK_BAD;
	*eop = flags & VMXNET3_TXD_EOP;
	chain->completion |= !!(flags & VMXNET3_TXD_CQ);
	return LOOK_FRAME;
}

/* The frame that the next descriptors make. */
static enum look read_chain(const struct vnic_device *dev, const struct vnic_device_txq *tx,
			    struct chain *chain, uint32_t *error)
{
	bool eop = false;

	chain->count = chain->len = 0;
	chain->completion = false;
	chain->end = tx->next;
	while (!eop) {
		enum look look = read_descriptor(dev, tx, chain, &eop, error);
		bool tso = look != LOOK_NONE && offload_mode(chain) == VMXNET3_OM_TSO;
		uint32_t len;

		if (look != LOOK_FRAME)
			return look;
		*error = VMXNET3_ERR_BIG_PKT;
		len = chain->segments[chain->count].len;
		if (len > (tso ? VNIC_TSO_MAX : dev->frame_max) - chain->len)
			return LOOK_BAD;
		chain->len += len;
		if (++chain->count == (tso ? TSO_DESCRIPTORS : VMXNET3_MAX_TXD_PER_PKT) && !eop)
			return LOOK_BAD;
		chain->eop = (uint16_t)chain->end.index;
		vnic_cursor_advance(&chain->end);
	}
	*error = VMXNET3_ERR_TXD_INVALID;
	return chain->len < VNIC_ETH_HEADER ? LOOK_BAD : LOOK_FRAME;
}

static void copy_chain(const struct vnic_device *dev, const struct chain *chain, uint8_t *to)
{
	for (uint32_t i = 0; i < chain->count; i++) {
		const struct segment *segment = &chain->segments[i];

		if (segment->data)
			memcpy(to, segment->data, segment->len);
		else
			vnic_region_read(dev, segment->addr, to, segment->len);
		to += segment->len;
	}
}

/* --- Frames that are shown */

static void show(struct vnic_device_txq *tx, struct vnic_tx_pending frame)
{
	tx->pending[(tx->first + tx->count++) % VNIC_TX_AHEAD] = frame;
}

/* Room for one frame; NULL until one that was made before has gone. */
static uint8_t *take_slot(const struct vnic_device *dev, struct vnic_device_txq *tx)
{
	uint32_t slot = (tx->slot_first + tx->slot_count) % VNIC_TX_SLOTS;

	if (tx->slot_count == VNIC_TX_SLOTS)
		return NULL;
	tx->slot_count++;
	return tx->slots + (size_t)slot * VNIC_FRAME_MAX(dev->attr.mtu);
}

/* Moves the MACs of a frame that lies TAG bytes behind `slot` to its start, and a tag between. */
static void insert_tag(uint8_t *slot, uint32_t tci)
{
	const uint8_t tag[TAG] = {0x81, 0x00, (uint8_t)(tci >> 8), (uint8_t)tci};

	memmove(slot, slot + TAG, MACS);
	memcpy(slot + MACS, tag, TAG);
}

/* The stack has put the pseudo-header's sum where the checksum will be. */
static void insert_checksum(uint8_t *frame, uint32_t len, uint32_t start, uint32_t at)
{
	uint16_t sum = vnic_sum_fold(vnic_sum(frame + start, len - start, 0));

	/* 0 means none in UDP; elsewhere both are the same. */
	if (sum == 0)
		sum = 0xffff;
	memcpy(frame + at, &sum, sizeof(sum));
}

static uint32_t checksum_start(const struct chain *chain)
{
	return chain->flags & VMXNET3_TXD_HLEN;
}

static uint32_t checksum_place(const struct chain *chain)
{
	return chain->word >> VMXNET3_TXD_MSSCOF_SHIFT;
}

static bool offloads_fit(const struct vnic_device *dev, const struct chain *chain)
{
	if (wants_tag(chain) && chain->len > dev->frame_max - TAG)
		return false;
	return offload_mode(chain) != VMXNET3_OM_CSUM ||
	       (checksum_start(chain) >= VNIC_ETH_HEADER &&
		checksum_place(chain) >= checksum_start(chain) &&
		checksum_place(chain) + 2 <= chain->len);
}

/* A frame that is made here: of several pieces, or with an offload. */
static enum look make_frame(const struct vnic_device *dev, struct vnic_device_txq *tx,
			    const struct chain *chain)
{
	uint32_t tag = wants_tag(chain) ? TAG : 0;
	uint8_t *slot;

	if (!offloads_fit(dev, chain))
		return LOOK_MISFIT;
	slot = take_slot(dev, tx);
	if (!slot)
		return LOOK_NONE;
	copy_chain(dev, chain, slot + tag);
	if (offload_mode(chain) == VMXNET3_OM_CSUM)
		insert_checksum(slot + tag, chain->len, checksum_start(chain),
				checksum_place(chain));
	if (tag)
		insert_tag(slot, chain->flags >> VMXNET3_TXD_TCI_SHIFT);
	show(tx, (struct vnic_tx_pending){.data = slot,
					  .len = chain->len + tag,
					  .eop = chain->eop,
					  .completion = chain->completion,
					  .slot = true});
	tx->next = chain->end;
	return LOOK_FRAME;
}

/* --- Segmentation */

/* The next frame of the packet that is being segmented. Its last one completes it. */
static enum look next_segment(const struct vnic_device *dev, struct vnic_device_txq *tx)
{
	uint32_t tag = tx->tso_tag ? TAG : 0;
	uint8_t *slot = take_slot(dev, tx);
	uint32_t len;

	if (!slot)
		return LOOK_NONE;
	len = vnic_tso_next(&tx->tso, slot + tag);
	if (tag)
		insert_tag(slot, tx->tso_tci);
	tx->segmenting = !vnic_tso_finished(&tx->tso);
	show(tx, (struct vnic_tx_pending){.data = slot,
					  .len = len + tag,
					  .eop = tx->tso_eop,
					  .completion = tx->tso_completion && !tx->segmenting,
					  .slot = true,
					  .tso = true});
	return LOOK_FRAME;
}

static enum look start_segmentation(const struct vnic_device *dev, struct vnic_device_txq *tx,
				    const struct chain *chain)
{
	uint32_t header = chain->flags & VMXNET3_TXD_HLEN;
	uint32_t mss = chain->word >> VMXNET3_TXD_MSSCOF_SHIFT;

	if (header + mss > dev->frame_max - (wants_tag(chain) ? TAG : 0))
		return LOOK_MISFIT;
	copy_chain(dev, chain, tx->packet);
	if (!vnic_tso_start(&tx->tso, tx->packet, chain->len, header, mss))
		return LOOK_MISFIT;
	tx->segmenting = true;
	tx->tso_tag = wants_tag(chain);
	tx->tso_tci = (uint16_t)(chain->flags >> VMXNET3_TXD_TCI_SHIFT);
	tx->tso_eop = chain->eop;
	tx->tso_completion = chain->completion;
	tx->next = chain->end;
	return next_segment(dev, tx);
}

/* --- Looking ahead */

static enum look take_chain(const struct vnic_device *dev, struct vnic_device_txq *tx,
			    const struct chain *chain)
{
	/* Alone, so that a packet that turns out not to fit is copied once. */
	if (offload_mode(chain) == VMXNET3_OM_TSO)
		return tx->count ? LOOK_NONE : start_segmentation(dev, tx, chain);
	return make_frame(dev, tx, chain);
}

static void complete(struct vnic_device *dev, struct vnic_device_txq *tx, uint32_t index)
{
	struct vmxnet3_tx_comp *comp = &tx->comp[tx->comp_next.index];
	uint32_t gen = tx->comp_next.gen ? VMXNET3_CD_GEN : 0;

	vnic_store(&comp->index, index);
	/* Release: also our last reads of the frame, whose buffer is the driver's again now. */
	vnic_publish(&comp->gen, gen | VMXNET3_CDTYPE_TXCOMP << VMXNET3_CD_TYPE_SHIFT);
	vnic_cursor_advance(&tx->comp_next);
	vnic_device_mark_interrupt(dev, tx->vector);
}

/* A packet as a guest's user can make them: the driver is not to blame, and the frame is lost. */
static void drop_misfit(struct vnic_device *dev, struct vnic_device_txq *tx,
			const struct chain *chain)
{
	dev->counters[VNIC_TX_MISFIT]++;
	tx->stats[UPT1_TX_ERROR]++;
	tx->next = chain->end;
	if (chain->completion)
		complete(dev, tx, chain->eop);
}

/*
 * The usual frame: one piece, as it is, so that it stays where it lies. False, with
 * nothing kept of what was read, for all others, which are read again.
 */
static bool take_plain(const struct vnic_device *dev, struct vnic_device_txq *tx)
{
	struct vmxnet3_tx_desc *desc = &tx->ring[tx->next.index];
	/* Acquire: the generation bit is the last that a driver writes. */
	uint32_t word = vnic_acquire(&desc->len);
	uint32_t flags = vnic_load(&desc->flags), len = word & VMXNET3_TXD_LEN;
	const uint8_t *data;

	if (!!(word & VMXNET3_TXD_GEN) != tx->next.gen || (word & VMXNET3_TXD_DTYPE) ||
	    (flags & (VMXNET3_TXD_EOP | VMXNET3_TXD_OM | VMXNET3_TXD_TI)) != VMXNET3_TXD_EOP ||
	    len < VNIC_ETH_HEADER || len > dev->frame_max)
		return false;
	data = vnic_region_memory(dev, vnic_load(&desc->addr), len);
	if (!data)
		return false;
	show(tx, (struct vnic_tx_pending){.data = data,
					  .len = len,
					  .eop = (uint16_t)tx->next.index,
					  .completion = flags & VMXNET3_TXD_CQ});
	vnic_cursor_advance(&tx->next);
	return true;
}

/* LOOK_NONE: there is nothing more to be had at the moment. */
static enum look look_ahead(struct vnic_device *dev, struct vnic_device_txq *tx)
{
	struct chain chain;
	uint32_t error;
	enum look look;

	if (tx->segmenting)
		return next_segment(dev, tx);
	look = read_chain(dev, tx, &chain, &error);
	if (look == LOOK_FRAME)
		look = take_chain(dev, tx, &chain);
	/* What was posted before it still goes first. */
	if ((look == LOOK_BAD || look == LOOK_MISFIT) && tx->count)
		return LOOK_NONE;
	if (look == LOOK_BAD) {
		dev->counters[VNIC_TX_BAD]++;
		vnic_device_break(dev, VMXNET3_ECR_TQERR, &tx->shared->status, error);
		return LOOK_NONE;
	}
	if (look == LOOK_MISFIT)
		drop_misfit(dev, tx, &chain);
	return look;
}

/* The oldest frame's descriptors are the driver's again. */
static void retire(struct vnic_device *dev, struct vnic_device_txq *tx)
{
	const struct vnic_tx_pending *frame = &tx->pending[tx->first];

	if (frame->completion)
		complete(dev, tx, frame->eop);
	if (frame->slot) {
		tx->slot_first = (tx->slot_first + 1) % VNIC_TX_SLOTS;
		tx->slot_count--;
	}
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

/* Looks for n frames to show. */
static void look_for(struct vnic_device *dev, struct vnic_device_txq *tx, uint32_t n)
{
	bool dropped = false;

	/* No more than a ring holds: a driver may go on posting what is dropped here. */
	for (uint32_t i = 0; i < tx->next.size && tx->count < n; i++) {
		enum look look = LOOK_FRAME;

		if (tx->segmenting || !take_plain(dev, tx))
			look = look_ahead(dev, tx);
		if (look == LOOK_NONE)
			break;
		dropped |= look == LOOK_MISFIT || !dev->link;
		if (!dev->link)
			discard(dev, tx);
	}
	/* Of what is not shown, the caller does not know that it was completed. */
	if (dropped)
		vnic_device_flush(dev);
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
	if (tx->count < n)
		look_for(dev, tx, n);
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
		if (frame->tso) {
			tx->stats[UPT1_TX_TSO]++;
			tx->stats[UPT1_TX_TSO_BYTES] += frame->len;
		}
		retire(dev, tx);
	}
}
