/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Delivers frames to the driver: copies them into its receive buffers. */
#include <errno.h>
#include <string.h>

#include "nic.h"
#include "shared.h"

/* Maximum number of buffers of one frame; drivers post larger buffers instead. */
#define RX_SEGMENTS 16

#define HEADS (VNIC_ETH_HEADER + TAG)

/*
 * VLAN tags in a frame whose checksums the device reports to the driver. Behind two tags, Linux'
 * driver does not find the TCP header of a frame that exceeds the MTU: its BUG() ends the kernel.
 */
#define CSUM_TAGS 1

/* A frame on its way to the driver, in parts, and the fields of its last completion. */
struct frame {
	const struct iovec *parts;
	struct iovec cut[2]; /* the parts of a frame whose tag was removed */
	uint32_t len;
	uint32_t unverified; /* VMXNET3_RCD_CNC or 0 */
	uint32_t tag;        /* VMXNET3_RCD_TS with the tag, or 0 */
	uint32_t checksums;  /* VMXNET3_RCD_V4 and so on */
	struct vnic_rss_hash rss;
};

/* A receive descriptor, copied and checked. */
struct buffer {
	uint64_t addr;
	uint8_t *data; /* NULL: the buffer spans several regions */
	uint32_t len;
	uint32_t ring; /* 0, 1, or DATA_RING */
	uint32_t index;
};

/* The value of struct buffer's `ring` for a data ring. In completions (rqID) the data rings have
 * the numbers behind those of ring 0 and ring 1 of all queues. */
#define DATA_RING 2

/* The buffers for one frame, and the positions of the rings behind them. */
struct scatter {
	struct buffer buffers[RX_SEGMENTS];
	uint32_t count;
	uint32_t room;
	struct vnic_cursor next[2];
};

enum found { FOUND_NONE, FOUND_WRONG_TYPE, FOUND_BUFFER, FOUND_BAD };

/* Takes the next descriptor of a ring if it has the requested type (head or body), else returns
 * FOUND_WRONG_TYPE. FOUND_NONE: the driver has posted none; FOUND_BAD: it is malformed. */
static enum found take_buffer(const struct vnic_device *dev, const struct vnic_device_rxq *rx,
			      struct scatter *scatter, uint32_t ring, uint32_t type)
{
	struct vnic_cursor *at = &scatter->next[ring];
	struct buffer *buffer = &scatter->buffers[scatter->count];
	struct vmxnet3_rx_desc *desc;
	uint32_t word;

	if (!rx->ring[ring])
		return FOUND_NONE;
	desc = &rx->ring[ring][at->index];
	/* Acquire: the driver wrote the address before the generation bit. */
	word = vnic_acquire(&desc->len);
	if (!!(word & VMXNET3_RXD_GEN) != at->gen)
		return FOUND_NONE;
	if ((word & VMXNET3_RXD_BODY) != type)
		return FOUND_WRONG_TYPE;
	buffer->len = word & VMXNET3_RXD_LEN;
	buffer->addr = vnic_load(&desc->addr);
	buffer->data = vnic_region_memory(dev, buffer->addr, buffer->len);
	buffer->ring = ring;
	buffer->index = at->index;
	if ((word & VMXNET3_RXD_DTYPE) || !buffer->len ||
	    (!buffer->data && !vnic_region_covers(dev, buffer->addr, buffer->len)))
		return FOUND_BAD;
	vnic_cursor_advance(at);
	scatter->count++;
	scatter->room += buffer->len;
	return FOUND_BUFFER;
}

/*
 * Takes a head buffer of ring 0. Body buffers before it belong to frames that did not need them:
 * the device skips them for good, so it reads each only once. Never returns FOUND_WRONG_TYPE.
 */
static enum found take_head_buffer(const struct vnic_device *dev, struct vnic_device_rxq *rx,
				   struct scatter *scatter)
{
	for (uint32_t i = 0; i < rx->next[0].size; i++) {
		enum found found = take_buffer(dev, rx, scatter, 0, 0);

		if (found != FOUND_WRONG_TYPE)
			return found;
		vnic_cursor_advance(&rx->next[0]);
		scatter->next[0] = rx->next[0];
	}
	return FOUND_NONE;
}

/* Takes a body buffer from ring 0 if one is next, otherwise from ring 1. FOUND_WRONG_TYPE: no later
 * body buffer can come; FOUND_NONE: one may. */
static enum found take_body_buffer(const struct vnic_device *dev, const struct vnic_device_rxq *rx,
				   struct scatter *scatter)
{
	enum found first = take_buffer(dev, rx, scatter, 0, VMXNET3_RXD_BODY);
	enum found second;

	if (first == FOUND_BUFFER || first == FOUND_BAD)
		return first;
	second = take_buffer(dev, rx, scatter, 1, VMXNET3_RXD_BODY);
	/* A head buffer is next and ring 1 is empty: no later buffer can help. */
	if (second == FOUND_NONE && first == FOUND_WRONG_TYPE)
		return FOUND_WRONG_TYPE;
	return second;
}

/* Uses the data ring for a small frame: the driver need not replace the descriptor's buffer. */
static void use_data_ring(const struct vnic_device_rxq *rx, struct buffer *buffer)
{
	buffer->data = rx->data_ring + (size_t)buffer->index * rx->data_size;
	buffer->len = rx->data_size;
	buffer->ring = DATA_RING;
}

static int gather_buffers(const struct vnic_device *dev, struct vnic_device_rxq *rx, uint32_t len,
			  struct scatter *scatter)
{
	enum found found;

	scatter->count = 0;
	scatter->room = 0;
	memcpy(scatter->next, rx->next, sizeof(scatter->next));
	found = take_head_buffer(dev, rx, scatter);
	if (found == FOUND_BUFFER && len <= rx->data_size) {
		use_data_ring(rx, &scatter->buffers[0]);
		return 0;
	}
	while (found == FOUND_BUFFER && scatter->room < len) {
		if (scatter->count == RX_SEGMENTS)
			return -EMSGSIZE;
		found = take_body_buffer(dev, rx, scatter);
	}
	switch (found) {
	case FOUND_BUFFER: return 0;
	case FOUND_NONE: return -ENOBUFS;
	case FOUND_WRONG_TYPE: return -EMSGSIZE;
	default: return -EBADMSG;
	}
}

static void write_completion(const struct vnic_device *dev, struct vnic_device_rxq *rx,
			     const struct buffer *buffer, uint32_t len, uint32_t position,
			     const struct frame *frame)
{
	/* Rings are numbered: ring 0 of each queue, ring 1 of each, data ring of each. */
	uint32_t number = rx->number + buffer->ring * dev->rx_queues;
	struct vmxnet3_rx_comp *comp = &rx->comp[rx->comp_next.index];
	uint32_t gen = rx->comp_next.gen ? VMXNET3_CD_GEN : 0;
	bool last = position & VMXNET3_RCD_EOP;

	vnic_store(&comp->index, buffer->index | position | number << VMXNET3_RCD_RQID_SHIFT |
					 frame->rss.type << VMXNET3_RCD_RSS_SHIFT |
					 frame->unverified);
	vnic_store(&comp->rss_hash, frame->rss.hash);
	vnic_store(&comp->len, len | (last ? frame->tag : 0));
	/* Release: a driver that sees the generation bit sees the frame. */
	vnic_publish(&comp->gen, gen | VMXNET3_CDTYPE_RXCOMP << VMXNET3_CD_TYPE_SHIFT |
					 (last ? frame->checksums : 0));
	vnic_cursor_advance(&rx->comp_next);
}

/* The position of the copy in the current part. */
struct source {
	const struct iovec *part;
	size_t done;
};

static void copy_to_buffer(const struct vnic_device *dev, struct source *from,
			   const struct buffer *to, uint32_t len)
{
	uint32_t at = 0;

	while (at < len) {
		const uint8_t *data = (const uint8_t *)from->part->iov_base + from->done;
		size_t left = from->part->iov_len - from->done;
		uint32_t n = left < len - at ? (uint32_t)left : len - at;

		/* A driver may send from a receive buffer: the overlap harms only its own data. */
		if (to->data) {
			memmove(to->data + at, data, n);
			vnic_dirty_mark(dev->attr.log, to->data + at, n);
		} else {
			vnic_region_write(dev, to->addr + at, data, n);
		}
		at += n;
		from->done += n;
		if (n == left) {
			from->part++;
			from->done = 0;
		}
	}
}

static void fill_buffers(const struct vnic_device *dev, struct vnic_device_rxq *rx,
			 const struct scatter *scatter, const struct frame *frame)
{
	struct source from = {frame->parts, 0};
	uint32_t position = VMXNET3_RCD_SOP, len = frame->len;

	for (uint32_t i = 0; i < scatter->count; i++) {
		const struct buffer *buffer = &scatter->buffers[i];
		uint32_t part = len < buffer->len ? len : buffer->len;

		copy_to_buffer(dev, &from, buffer, part);
		len -= part;
		if (i + 1 == scatter->count)
			position |= VMXNET3_RCD_EOP;
		write_completion(dev, rx, buffer, part, position, frame);
		position = 0;
	}
	memcpy(rx->next, scatter->next, sizeof(scatter->next));
}

/*
 * Asks the driver to write RXPROD when it posts buffers, then gathers buffers once more: the driver
 * may have posted some just before it could see the request, and would not write RXPROD for them.
 * The fence keeps this order. Returns the result of gather_buffers.
 */
static int request_rxprod(const struct vnic_device *dev, struct vnic_device_rxq *rx, uint32_t len,
			  struct scatter *scatter)
{
	rx->wants_rxprod = true;
	vnic_store(&rx->shared->update_prod, 1);
	vnic_fence();
	return gather_buffers(dev, rx, len, scatter);
}

static void end_rxprod_request(struct vnic_device_rxq *rx)
{
	rx->wants_rxprod = rx->stalled = false;
	vnic_store(&rx->shared->update_prod, 0);
}

/* Finds buffers of a queue for a frame of `len` bytes. Errors are those of vnic_device_rxv; of
 * them, only -ENOBUFS is not counted. Malformed descriptors stop the NIC: -ENETDOWN. */
static int find_buffers(struct vnic_device *dev, struct vnic_device_rxq *rx, uint32_t len,
			struct scatter *scatter)
{
	int ret = gather_buffers(dev, rx, len, scatter);

	if (ret == -ENOBUFS && !rx->wants_rxprod)
		ret = request_rxprod(dev, rx, len, scatter);
	switch (ret) {
	case 0: return 0;
	case -ENOBUFS: dev->refused_by = rx; return ret;
	case -EMSGSIZE:
		dev->counters[VNIC_RX_TOO_LONG]++;
		rx->stats[UPT1_RX_ERROR]++;
		return ret;
	default:
		dev->counters[VNIC_RX_BAD]++;
		vnic_device_break(dev, VMXNET3_ECR_RQERR, &rx->shared->status,
				  VMXNET3_ERR_SMALL_BUF);
		return -ENETDOWN;
	}
}

/* Counts a dropped frame. Returns `ret`. */
static int drop_frame(struct vnic_device *dev, enum vnic_counter reason, int ret)
{
	dev->counters[reason]++;
	return ret;
}

/* Returns the receive queue of a flow: a destination QPN, or 0. A process takes the QPNs of its
 * lease in ascending order, so the remainder spreads its queue pairs over all queues. */
static struct vnic_device_rxq *queue_of(struct vnic_device *dev, uint32_t flow)
{
	return &dev->rx[dev->rx_queues > 1 ? flow % dev->rx_queues : 0];
}

static uint32_t frame_length(const struct iovec *parts, uint32_t n)
{
	uint32_t len = 0;

	while (n--)
		len += (uint32_t)parts[n].iov_len;
	return len;
}

/* Copies the first bytes of a frame, `len` at most. */
static void copy_head(const struct iovec *parts, uint32_t n, uint8_t *head, uint32_t len)
{
	uint32_t got = 0;

	for (uint32_t i = 0; i < n && got < len; i++) {
		uint32_t part = len - got;

		if (parts[i].iov_len < part)
			part = (uint32_t)parts[i].iov_len;
		memcpy(head + got, parts[i].iov_base, part);
		got += part;
	}
}

/* Computes the frame's RSS hash, and returns the receive queue that the driver's table gives it. A
 * frame without a hash, for example of RoCEv1, goes to its flow's queue. */
static struct vnic_device_rxq *hash_frame(struct vnic_device *dev, struct frame *frame, uint32_t n,
					  uint32_t flow)
{
	uint32_t len = frame->len < VNIC_RSS_HEAD ? frame->len : VNIC_RSS_HEAD;
	uint8_t head[VNIC_RSS_HEAD];

	copy_head(frame->parts, n, head, len);
	frame->rss = vnic_rss_hash(&dev->rss, dev->rss_fields, head, len);
	if (frame->rss.type == VMXNET3_RCD_RSS_TYPE_NONE)
		return queue_of(dev, flow);
	return &dev->rx[vnic_rss_queue(&dev->rss, frame->rss.hash)];
}

/* Removes the VLAN tag: the bytes before and behind it become parts of their own. */
static void strip_tag(struct frame *frame, uint8_t *whole)
{
	frame->tag = VMXNET3_RCD_TS | (uint32_t)(whole[14] << 8 | whole[15])
					      << VMXNET3_RCD_TCI_SHIFT;
	frame->cut[0] = (struct iovec){whole, MACS};
	frame->cut[1] = (struct iovec){whole + MACS + TAG, frame->len - MACS - TAG};
	frame->len -= TAG;
}

/*
 * Applies the driver's offloads for received frames. They look into the frame, so they use a
 * private copy, which no other process can change.
 */
static void apply_offloads(struct vnic_device *dev, struct frame *frame, uint32_t n,
			   const uint8_t *head)
{
	bool tagged = frame->len >= HEADS && head[MACS] == 0x81 && head[MACS + 1] == 0x00;

	tagged = tagged && dev->features & UPT1_F_RXVLAN;
	if (!tagged && !(dev->features & UPT1_F_RXCSUM))
		return;
	copy_head(frame->parts, n, dev->whole, frame->len);
	if (dev->features & UPT1_F_RXCSUM &&
	    vnic_rx_csum(dev->whole, frame->len, CSUM_TAGS + tagged, &frame->checksums))
		frame->unverified = 0;
	frame->cut[0] = (struct iovec){dev->whole, frame->len};
	frame->parts = frame->cut;
	if (tagged)
		strip_tag(frame, dev->whole);
}

/* 0: the device may deliver the frame, and `head` has its first HEADS bytes. Else the error of
 * vnic_device_rxv; the dropped frame is counted, unless the NIC is not active. */
static int check_frame(struct vnic_device *dev, const struct frame *frame, uint32_t n,
		       uint8_t *head)
{
	if (dev->state != VNIC_DEVICE_ACTIVE)
		return -ENETDOWN;
	if (!dev->link || dev->no_master)
		return drop_frame(dev, VNIC_LINK_DOWN, -ENETDOWN);
	if (frame->len < VNIC_ETH_HEADER)
		return drop_frame(dev, VNIC_RX_RUNT, -EINVAL);
	if (frame->len > dev->frame_max)
		return drop_frame(dev, VNIC_RX_TOO_LONG, -EMSGSIZE);
	/* The usual case has a copy of constant size, which the compiler inlines. */
	if (frame->parts->iov_len >= HEADS)
		memcpy(head, frame->parts->iov_base, HEADS);
	else
		copy_head(frame->parts, n, head, HEADS);
	return 0;
}

/* Whether no filter applies to the frame: it is unicast without a VLAN tag, and the NIC's MAC needs
 * no comparison (shared_mac). */
static bool plainly_wanted(const struct vnic_device *dev, const uint8_t *head)
{
	return dev->attr.shared_mac && dev->filter.mode & VMXNET3_RXM_UCAST && !(head[0] & 1) &&
	       head[MACS] != 0x81;
}

int vnic_device_rxv(struct vnic_device *dev, uint32_t flow, const struct iovec *parts, uint32_t n)
{
	struct vnic_device_rxq *rx;
	const uint32_t len = frame_length(parts, n);
	uint8_t head[HEADS];
	struct scatter scatter;
	struct frame frame;
	int ret;

	frame.parts = parts;
	frame.len = len;
	frame.unverified = VMXNET3_RCD_CNC;
	frame.tag = frame.checksums = 0;
	frame.rss = (struct vnic_rss_hash){0, VMXNET3_RCD_RSS_TYPE_NONE};
	ret = check_frame(dev, &frame, n, head);
	if (ret)
		return ret;
	if (!plainly_wanted(dev, head) && !vnic_device_wants(dev, head, len))
		return drop_frame(dev, VNIC_RX_FILTERED, 0);
	rx = dev->features & UPT1_F_RSS ? hash_frame(dev, &frame, n, flow) : queue_of(dev, flow);
	if (dev->features & (UPT1_F_RXVLAN | UPT1_F_RXCSUM))
		apply_offloads(dev, &frame, n, head);
	ret = find_buffers(dev, rx, frame.len, &scatter);
	if (ret)
		return ret;
	if (rx->wants_rxprod)
		end_rxprod_request(rx);
	fill_buffers(dev, rx, &scatter, &frame);
	dev->counters[VNIC_RX_FRAMES]++;
	dev->counters[VNIC_RX_BYTES] += len;
	vnic_device_count(rx->stats, head, len);
	vnic_device_mark_interrupt(dev, rx->vector);
	return 0;
}

int vnic_device_rx(struct vnic_device *dev, uint32_t flow, const uint8_t *data, uint32_t len)
{
	const struct iovec part = {(void *)(uintptr_t)data, len};

	return vnic_device_rxv(dev, flow, &part, 1);
}

void vnic_device_rx_give_up(struct vnic_device *dev, bool stalled)
{
	dev->refused_by->stalled |= stalled;
	dev->refused_by->stats[UPT1_RX_OUT_OF_BUF]++;
	dev->counters[VNIC_RX_NO_BUFFER]++;
}

bool vnic_device_rx_is_stalled(const struct vnic_device *dev)
{
	return dev->refused_by->stalled;
}
