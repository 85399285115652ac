/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Takes frames from the driver: finds, checks and returns them, and completes them when they are
 * sent.
 */
#include <netinet/in.h>
#include <string.h>

#include "nic.h"
#include "shared.h"

/* Linux uses up to 24 descriptors for a packet to be segmented, DPDK up to 255. */
#define TSO_DESCRIPTORS 256

/* One descriptor, copied and decoded. */
struct segment {
	uint64_t addr;
	const uint8_t *data; /* NULL: the segment spans several regions */
	uint32_t len;
};

/* The descriptors of a frame. */
struct chain {
	struct segment segments[TSO_DESCRIPTORS];
	uint32_t count;
	uint32_t len;
	uint32_t word, flags; /* of the first descriptor: the frame's offloads */
	uint16_t eop;         /* index of the last descriptor */
	bool completion;
	struct vnic_cursor end; /* the position behind the last descriptor */
};

/* What a look at the ring found. LOOK_NONE: descriptors are missing; LOOK_MISFIT: the frame is too
 * long, or does not suit its offload; LOOK_BAD: the driver has violated the protocol. */
enum look { LOOK_NONE, LOOK_FRAME, LOOK_MISFIT, LOOK_BAD };

static uint32_t offload_mode(const struct chain *chain)
{
	return chain->flags & VMXNET3_TXD_OM;
}

/* The segment size, if the offload is segmentation; else the offset of the checksum field. */
static uint32_t mss_or_offset(const struct chain *chain)
{
	return chain->word >> VMXNET3_TXD_MSSCOF_SHIFT;
}

static bool is_tso(const struct chain *chain)
{
	return offload_mode(chain) == VMXNET3_OM_TSO ||
	       (offload_mode(chain) == VMXNET3_OM_ENCAP && mss_or_offset(chain));
}

/* Whether the offload concerns the inner packet of a tunnel: mode ENCAP or, from revision 7 on, any
 * mode with the bit EXT1. */
static bool is_tunnel(const struct vnic_device *dev, const struct chain *chain)
{
	return offload_mode(chain) == VMXNET3_OM_ENCAP ||
	       (dev->revision >= VMXNET3_REV_7 && chain->word & VMXNET3_TXD_EXT1);
}

static bool wants_tag(const struct chain *chain)
{
	return chain->flags & VMXNET3_TXD_TI;
}

static enum look read_descriptor(const struct vnic_device *dev, const struct vnic_device_txq *tx,
				 struct chain *chain, bool *eop, uint32_t *error)
{
	struct vmxnet3_tx_desc *desc = &tx->ring[chain->end.index];
	/* Acquire: a driver writes the generation bit last. */
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
	if ((word & VMXNET3_TXD_DTYPE) ||
	    (offload_mode(chain) == VMXNET3_OM_ENCAP && dev->revision < VMXNET3_REV_4))
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

/* Reads the descriptors of the next frame. LOOK_NONE: some are missing. After LOOK_BAD, *error is
 * the error for the queue's status. */
static enum look read_chain(const struct vnic_device *dev, const struct vnic_device_txq *tx,
			    struct chain *chain, uint32_t *error)
{
	bool eop = false;

	chain->count = chain->len = 0;
	chain->completion = false;
	chain->end = tx->next;
	while (!eop) {
		enum look look = read_descriptor(dev, tx, chain, &eop, error);
		bool tso = look != LOOK_NONE && is_tso(chain);
		uint32_t len;

		if (look != LOOK_FRAME)
			return look;
		*error = VMXNET3_ERR_BIG_PKT;
		len = chain->segments[chain->count].len;
		if (tso && len > VNIC_TSO_MAX - chain->len)
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

/* --- Frames that vnic_device_tx returns */

static void add_pending(struct vnic_device_txq *tx, struct vnic_tx_pending frame)
{
	tx->pending[(tx->first + tx->count++) % VNIC_TX_AHEAD] = frame;
}

/* A slot for one frame; NULL: all are taken, until an earlier frame is complete. */
static uint8_t *take_slot(const struct vnic_device *dev, struct vnic_device_txq *tx)
{
	uint32_t slot = (tx->slot_first + tx->slot_count) % VNIC_TX_SLOTS;

	if (tx->slot_count == VNIC_TX_SLOTS)
		return NULL;
	tx->slot_count++;
	return tx->slots + (size_t)slot * VNIC_FRAME_MAX(dev->attr.mtu);
}

/* Moves the MACs of a frame at slot + TAG to `slot`, and puts the VLAN tag behind them. */
static void insert_tag(uint8_t *slot, uint32_t tci)
{
	const uint8_t tag[TAG] = {0x81, 0x00, (uint8_t)(tci >> 8), (uint8_t)tci};

	memmove(slot, slot + TAG, MACS);
	memcpy(slot + MACS, tag, TAG);
}

/* Stores the checksum of the bytes from `start` on in the field `at`. The guest's network stack has
 * stored the pseudo-header's sum in this field. */
static void insert_checksum(uint8_t *frame, uint32_t len, uint32_t start, uint32_t at)
{
	uint16_t sum = vnic_sum_fold(vnic_sum(frame + start, len - start, 0));

	/* 0 means "no checksum" in UDP; elsewhere 0 and 0xffff are equal. */
	if (sum == 0)
		sum = 0xffff;
	memcpy(frame + at, &sum, sizeof(sum));
}

/* Offsets in a frame: the first byte that the checksum covers, and the checksum's field. */
struct checksum {
	uint32_t start, at;
};

/* Finds the checksum of the packet in a tunnel, for which the driver gives only all headers'
 * length. False: no such tunnel, or its packet is a fragment, or neither TCP nor UDP. */
static bool find_inner_checksum(const uint8_t *frame, uint32_t len, struct checksum *sum)
{
	struct vnic_headers outer, inner;

	if (!vnic_headers_find_inner(&outer, &inner, frame, len) || inner.fragment ||
	    (inner.protocol != IPPROTO_TCP && inner.protocol != IPPROTO_UDP))
		return false;
	sum->start = inner.l4;
	sum->at = inner.l4 + (inner.protocol == IPPROTO_TCP ? TCP_SUM_AT : UDP_SUM_AT);
	return true;
}

static bool find_checksum(const struct vnic_device *dev, const struct chain *chain,
			  const uint8_t *frame, struct checksum *sum)
{
	sum->start = chain->flags & VMXNET3_TXD_HLEN;
	sum->at = mss_or_offset(chain);
	if (is_tunnel(dev, chain) && !find_inner_checksum(frame, chain->len, sum))
		return false;
	return sum->start >= VNIC_ETH_HEADER && sum->at >= sum->start && sum->at + 2 <= chain->len;
}

/* Completes an assembled frame; false: the frame does not suit its offload. */
static bool finish_frame(const struct vnic_device *dev, const struct chain *chain, uint8_t *frame)
{
	struct checksum sum;

	if (offload_mode(chain) == VMXNET3_OM_NONE)
		return true;
	if (!find_checksum(dev, chain, frame, &sum))
		return false;
	insert_checksum(frame, chain->len, sum.start, sum.at);
	return true;
}

/*
 * Assembles a frame of several pieces, or with an offload, in a slot. LOOK_NONE: no slot is free;
 * LOOK_MISFIT: the frame is too long, or does not suit its offload.
 */
static enum look make_frame(const struct vnic_device *dev, struct vnic_device_txq *tx,
			    const struct chain *chain)
{
	uint32_t tag = wants_tag(chain) ? TAG : 0;
	uint8_t *slot;

	if (chain->len + tag > dev->frame_max)
		return LOOK_MISFIT;
	slot = take_slot(dev, tx);
	if (!slot)
		return LOOK_NONE;
	copy_chain(dev, chain, slot + tag);
	if (!finish_frame(dev, chain, slot + tag)) {
		tx->slot_count--;
		return LOOK_MISFIT;
	}
	if (tag)
		insert_tag(slot, chain->flags >> VMXNET3_TXD_TCI_SHIFT);
	add_pending(tx, (struct vnic_tx_pending){.data = slot,
						 .len = chain->len + tag,
						 .eop = chain->eop,
						 .completion = chain->completion,
						 .slot = true});
	tx->next = chain->end;
	return LOOK_FRAME;
}

/* --- Segmentation */

/* Makes the next frame of the packet that is being segmented. The last frame completes the packet.
 * LOOK_NONE: no slot is free. */
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
	add_pending(tx,
		    (struct vnic_tx_pending){.data = slot,
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
	uint32_t header = chain->flags & VMXNET3_TXD_HLEN, mss = mss_or_offset(chain);
	enum vnic_tso_tunnel tunnel = VNIC_TSO_PLAIN;

	if (is_tunnel(dev, chain))
		tunnel = chain->word & VMXNET3_TXD_OCO ? VNIC_TSO_TUNNEL_CSUM : VNIC_TSO_TUNNEL;

	if (header + mss > dev->frame_max - (wants_tag(chain) ? TAG : 0))
		return LOOK_MISFIT;
	copy_chain(dev, chain, tx->packet);
	if (!vnic_tso_start(&tx->tso, tx->packet, chain->len, header, mss, tunnel))
		return LOOK_MISFIT;
	tx->segmenting = true;
	tx->tso_tag = wants_tag(chain);
	tx->tso_tci = (uint16_t)(chain->flags >> VMXNET3_TXD_TCI_SHIFT);
	tx->tso_eop = chain->eop;
	tx->tso_completion = chain->completion;
	tx->next = chain->end;
	return next_segment(dev, tx);
}

/* --- Taking frames from the ring */

static enum look take_chain(const struct vnic_device *dev, struct vnic_device_txq *tx,
			    const struct chain *chain)
{
	/* A packet to be segmented waits until no other frame is pending. A misfit is reported only
	 * then (take_next), so an earlier attempt would copy it in vain. */
	if (is_tso(chain))
		return tx->count ? LOOK_NONE : start_segmentation(dev, tx, chain);
	return make_frame(dev, tx, chain);
}

static void write_completion(struct vnic_device *dev, struct vnic_device_txq *tx, uint32_t index)
{
	struct vmxnet3_tx_comp *comp = &tx->comp[tx->comp_next.index];
	uint32_t gen = tx->comp_next.gen ? VMXNET3_CD_GEN : 0;

	vnic_store(&comp->index, index);
	/* Release: the device has read the frame, and the driver may reuse its buffer. */
	vnic_publish(&comp->gen, gen | VMXNET3_CDTYPE_TXCOMP << VMXNET3_CD_TYPE_SHIFT);
	vnic_cursor_advance(&tx->comp_next);
	vnic_device_mark_interrupt(dev, tx->vector);
}

/*
 * Drops a frame that is too long, or does not suit its offload, and completes it. The NIC goes on,
 * because the driver is not at fault: a guest's user can create such packets by raw sockets or VLAN
 * interfaces.
 */
static void drop_misfit(struct vnic_device *dev, struct vnic_device_txq *tx,
			const struct chain *chain)
{
	dev->counters[VNIC_TX_MISFIT]++;
	tx->stats[UPT1_TX_ERROR]++;
	tx->next = chain->end;
	if (chain->completion)
		write_completion(dev, tx, chain->eop);
}

/* Takes the usual frame, of one piece and without an offload, which needs no copy. False: any other
 * frame. The caller then reads its descriptors anew, and uses no value of this read. */
static bool take_plain(const struct vnic_device *dev, struct vnic_device_txq *tx)
{
	struct vmxnet3_tx_desc *desc = &tx->ring[tx->next.index];
	/* Acquire: a driver writes the generation bit last. */
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
	add_pending(tx, (struct vnic_tx_pending){.data = data,
						 .len = len,
						 .eop = (uint16_t)tx->next.index,
						 .completion = flags & VMXNET3_TXD_CQ});
	vnic_cursor_advance(&tx->next);
	return true;
}

/* Takes the next frame, or the next segment, into tx->pending. LOOK_NONE: none can be taken now, or
 * the driver has violated the protocol, which stops the NIC; LOOK_MISFIT: dropped it. */
static enum look take_next(struct vnic_device *dev, struct vnic_device_txq *tx)
{
	struct chain chain;
	uint32_t error;
	enum look look;

	if (tx->segmenting)
		return next_segment(dev, tx);
	look = read_chain(dev, tx, &chain, &error);
	if (look == LOOK_FRAME)
		look = take_chain(dev, tx, &chain);
	/* Handles a bad frame or a misfit only after the frames before it are sent. */
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

/* Completes the oldest frame: its descriptors belong to the driver again. */
static void complete_oldest(struct vnic_device *dev, struct vnic_device_txq *tx)
{
	const struct vnic_tx_pending *frame = &tx->pending[tx->first];

	if (frame->completion)
		write_completion(dev, tx, frame->eop);
	if (frame->slot) {
		tx->slot_first = (tx->slot_first + 1) % VNIC_TX_SLOTS;
		tx->slot_count--;
	}
	tx->first = (tx->first + 1) % VNIC_TX_AHEAD;
	tx->count--;
}

/* Completes the pending frames and counts them as dropped, because the link is down. */
static void drop_frames(struct vnic_device *dev, struct vnic_device_txq *tx)
{
	while (tx->count) {
		complete_oldest(dev, tx);
		dev->counters[VNIC_LINK_DOWN]++;
		tx->stats[UPT1_TX_DISCARD]++;
	}
}

/* Takes frames from the ring until n are pending, or none can be taken. */
static void fill_pending(struct vnic_device *dev, struct vnic_device_txq *tx, uint32_t n)
{
	bool dropped = false;

	/*
	 * No more than one ring of frames: a driver may post new ones while the device drops them.
	 */
	for (uint32_t i = 0; i < tx->next.size && tx->count < n; i++) {
		enum look look = LOOK_FRAME;

		if (tx->segmenting || !take_plain(dev, tx))
			look = take_next(dev, tx);
		if (look == LOOK_NONE)
			break;
		dropped |= look == LOOK_MISFIT || !dev->link;
		if (!dev->link)
			drop_frames(dev, tx);
	}
	/* The caller does not learn of these completions, so the device raises the interrupt. */
	if (dropped)
		vnic_device_flush(dev);
}

uint32_t vnic_device_tx_queues(const struct vnic_device *dev)
{
	return dev->no_master ? 0 : dev->tx_queues;
}

uint32_t vnic_device_tx(struct vnic_device *dev, uint32_t queue, struct vnic_tx_frame *frames,
			uint32_t n)
{
	struct vnic_device_txq *tx;

	if (queue >= vnic_device_tx_queues(dev))
		return 0;
	tx = &dev->tx[queue];
	if (n > VNIC_TX_AHEAD)
		n = VNIC_TX_AHEAD;
	if (tx->count < n)
		fill_pending(dev, tx, n);
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

	/* The NIC may have stopped, or lost its right to access memory, since vnic_device_tx. */
	if (queue >= vnic_device_tx_queues(dev))
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
		complete_oldest(dev, tx);
	}
}

void vnic_device_tx_discard(struct vnic_device *dev, uint32_t queue)
{
	struct vnic_device_txq *tx = &dev->tx[queue];

	while (tx->count || tx->segmenting) {
		if (!tx->count)
			next_segment(dev, tx);
		if (dev->link)
			vnic_device_tx_done(dev, queue, 1);
		else
			drop_frames(dev, tx);
	}
}
