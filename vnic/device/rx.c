/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frames to the driver: into its receive buffers, by copy. */
#include <errno.h>
#include <string.h>

#include "nic.h"
#include "shared.h"

/* Buffers that one frame may span; a driver that wants more posts larger ones. */
#define RX_SEGMENTS 16

/* A receive descriptor, copied and checked. */
struct buffer {
	uint8_t *data;
	uint32_t len;
	uint32_t ring;
	uint32_t index;
};

/* The buffers for one frame, and where the rings stand after them. */
struct scatter {
	struct buffer buffers[RX_SEGMENTS];
	uint32_t count;
	uint32_t room;
	struct vnic_cursor next[2];
};

enum look { LOOK_NONE, LOOK_OTHER, LOOK_BUFFER, LOOK_BAD };

/* The next descriptor of a ring, taken where it is of the type (head or body) that is wanted. */
static enum look take(struct vnic_device *dev, struct scatter *scatter, uint32_t ring,
		      uint32_t type)
{
	struct vnic_cursor *at = &scatter->next[ring];
	struct buffer *buffer = &scatter->buffers[scatter->count];
	struct vmxnet3_rx_desc *desc;
	uint32_t word;

	if (!dev->rx.ring[ring])
		return LOOK_NONE;
	desc = &dev->rx.ring[ring][at->index];
	/* Acquire: the address was written before the generation bit. */
	word = vnic_acquire(&desc->len);
	if (!!(word & VMXNET3_RXD_GEN) != at->gen)
		return LOOK_NONE;
	if ((word & VMXNET3_RXD_BODY) != type)
		return LOOK_OTHER;
	buffer->len = word & VMXNET3_RXD_LEN;
	buffer->data = vnic_device_memory(dev, vnic_load(&desc->addr), buffer->len);
	buffer->ring = ring;
	buffer->index = at->index;
	if ((word & VMXNET3_RXD_DTYPE) || !buffer->len || !buffer->data)
		return LOOK_BAD;
	vnic_cursor_advance(at);
	scatter->count++;
	scatter->room += buffer->len;
	return LOOK_BUFFER;
}

/*
 * A head of ring 0. Body buffers that stand before it belong to frames that did
 * not need them: they are passed over for good, so that they cost their walk once.
 */
static enum look take_head(struct vnic_device *dev, struct scatter *scatter)
{
	for (uint32_t i = 0; i < dev->rx.next[0].size; i++) {
		enum look look = take(dev, scatter, 0, 0);

		if (look != LOOK_OTHER)
			return look;
		vnic_cursor_advance(&dev->rx.next[0]);
		scatter->next[0] = dev->rx.next[0];
	}
	return LOOK_NONE;
}

/* Bodies follow in ring 0 where the driver put some there, else they come from ring 1. */
static enum look take_body(struct vnic_device *dev, struct scatter *scatter)
{
	enum look first = take(dev, scatter, 0, VMXNET3_RXD_BODY);
	enum look second;

	if (first == LOOK_BUFFER || first == LOOK_BAD)
		return first;
	second = take(dev, scatter, 1, VMXNET3_RXD_BODY);
	/* A head stands next and ring 1 is empty: waiting would not help. */
	if (second == LOOK_NONE && first == LOOK_OTHER)
		return LOOK_OTHER;
	return second;
}

static int gather_buffers(struct vnic_device *dev, uint32_t len, struct scatter *scatter)
{
	enum look look;

	scatter->count = 0;
	scatter->room = 0;
	memcpy(scatter->next, dev->rx.next, sizeof(scatter->next));
	look = take_head(dev, scatter);
	while (look == LOOK_BUFFER && scatter->room < len) {
		if (scatter->count == RX_SEGMENTS)
			return -EMSGSIZE;
		look = take_body(dev, scatter);
	}
	switch (look) {
	case LOOK_BUFFER: return 0;
	case LOOK_NONE: return -ENOBUFS;
	case LOOK_OTHER: return -EMSGSIZE;
	default: return -EBADMSG;
	}
}

static void complete(struct vnic_device *dev, const struct buffer *buffer, uint32_t len,
		     uint32_t position)
{
	struct vnic_device_rxq *rx = &dev->rx;
	struct vmxnet3_rx_comp *comp = &rx->comp[rx->comp_next.index];
	uint32_t gen = rx->comp_next.gen ? VMXNET3_CD_GEN : 0;

	/* One queue: ring 1 has the number after it. */
	vnic_store(&comp->index, buffer->index | position | buffer->ring << VMXNET3_RCD_RQID_SHIFT |
					 VMXNET3_RCD_CNC);
	vnic_store(&comp->rss_hash, 0);
	vnic_store(&comp->len, len);
	/* Release: a driver that sees the generation sees the frame. */
	vnic_publish(&comp->gen, gen | VMXNET3_CDTYPE_RXCOMP << VMXNET3_CD_TYPE_SHIFT);
	vnic_cursor_advance(&rx->comp_next);
}

/* A frame, and how much of its first part is copied. */
struct source {
	const struct iovec *part;
	size_t done;
};

static void copy(struct source *from, uint8_t *to, uint32_t len)
{
	while (len) {
		size_t left = from->part->iov_len - from->done, n = left < len ? left : len;

		/* A driver may send from the buffer it receives in: that is its own affair. */
		memmove(to, (const uint8_t *)from->part->iov_base + from->done, n);
		to += n;
		len -= (uint32_t)n;
		from->done += n;
		if (n == left) {
			from->part++;
			from->done = 0;
		}
	}
}

static void fill(struct vnic_device *dev, const struct scatter *scatter, const struct iovec *parts,
		 uint32_t len)
{
	struct source from = {parts, 0};
	uint32_t position = VMXNET3_RCD_SOP;

	for (uint32_t i = 0; i < scatter->count; i++) {
		const struct buffer *buffer = &scatter->buffers[i];
		uint32_t part = len < buffer->len ? len : buffer->len;

		copy(&from, buffer->data, part);
		len -= part;
		if (i + 1 == scatter->count)
			position |= VMXNET3_RCD_EOP;
		complete(dev, buffer, part, position);
		position = 0;
	}
	memcpy(dev->rx.next, scatter->next, sizeof(scatter->next));
}

/*
 * From now on the driver tells when it returns a buffer (RXPROD). It may have
 * returned one just before it could know: the fence and a second look find it.
 */
static int starve(struct vnic_device *dev, uint32_t len, struct scatter *scatter)
{
	dev->rx.starved = true;
	vnic_store(&dev->rx.shared->update_prod, 1);
	vnic_fence();
	return gather_buffers(dev, len, scatter);
}

static void feed(struct vnic_device *dev)
{
	dev->rx.starved = false;
	vnic_store(&dev->rx.shared->update_prod, 0);
}

static uint32_t length(const struct iovec *parts, uint32_t n)
{
	uint32_t len = 0;

	while (n--)
		len += (uint32_t)parts[n].iov_len;
	return len;
}

int vnic_device_rxv(struct vnic_device *dev, const struct iovec *parts, uint32_t n)
{
	uint32_t len = length(parts, n);
	struct scatter scatter;
	int ret;

	if (dev->state != VNIC_DEVICE_ACTIVE)
		return -ENETDOWN;
	ret = len && len <= dev->frame_max ? gather_buffers(dev, len, &scatter) : -EMSGSIZE;
	if (ret == -ENOBUFS && !dev->rx.starved)
		ret = starve(dev, len, &scatter);
	switch (ret) {
	case 0: break;
	case -ENOBUFS: dev->counters[VNIC_RX_NO_BUFFER]++; return ret;
	case -EMSGSIZE: dev->counters[VNIC_RX_TOO_LONG]++; return ret;
	default:
		dev->counters[VNIC_RX_BAD]++;
		vnic_device_break(dev, VMXNET3_ECR_RQERR, VMXNET3_ERR_SMALL_BUF);
		return -ENETDOWN;
	}
	if (dev->rx.starved)
		feed(dev);
	fill(dev, &scatter, parts, len);
	dev->counters[VNIC_RX_FRAMES]++;
	dev->counters[VNIC_RX_BYTES] += len;
	vnic_device_news(dev, dev->rx.vector);
	return 0;
}

int vnic_device_rx(struct vnic_device *dev, const uint8_t *data, uint32_t len)
{
	const struct iovec part = {(void *)(uintptr_t)data, len};

	return vnic_device_rxv(dev, &part, 1);
}
