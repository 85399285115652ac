/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "direct/lent.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include <isa-l/crc.h>

#include "objects/device.h"
#include "util/ordered_copy.h"
#include "wire/icrc.h"

static_assert(URXE_MAX_OVERHEAD - URXE_ICRC_LEN <= LENT_HEADERS, "all headers fit");

static uint8_t *payload_place(struct urxe_dev *dev)
{
	uintptr_t at = (uintptr_t)dev->lent.bytes + LENT_HEADERS;

	return dev->lent.bytes + LENT_HEADERS + (-at & (LENT_LINE - 1));
}

bool lent_lay_out(struct urxe_dev *dev, const struct urxe_frame *frame, struct urxe_frame *whole)
{
	uint8_t *payload = payload_place(dev);
	uint32_t here = frame->len - frame->lent, behind = URXE_ICRC_LEN + (-frame->lent & 3);
	uint32_t headers = here - behind;

	if (frame->lent > URXE_LENT_MAX || here < behind || headers > LENT_HEADERS)
		return false;
	*whole = (struct urxe_frame){.data = payload - headers, .len = frame->len};
	memcpy(whole->data, frame->data, headers);
	memcpy(payload + frame->lent, frame->data + headers, behind);
	return true;
}

/* Between the headers and the payload's end there is nothing else. */
static bool is_in_place(struct urxe_dev *dev, const struct urxe_frame *frame,
			const struct urxe_packet *p)
{
	return p->payload == payload_place(dev) && p->payload_len == frame->lent;
}

bool lent_headers_ok(struct urxe_dev *dev, const struct urxe_frame *frame,
		     const struct urxe_packet *p)
{
	uint32_t crc;

	if (!is_in_place(dev, frame, p))
		return false;
	crc = dev->lent.headers_crc = urxe_icrc_headers(p->net, p->l3, p->bth, p->payload);
	return frame->trusted ? urxe_icrc_is(p, crc) : crc == frame->headers_crc;
}

struct taking {
	const struct urxe_ops *ops;
	const struct urxe_packet *packet;
	uint8_t *to;
	uint32_t crc; /* of the headers */
	bool right;
};

static void take_trusted(struct taking *t)
{
	const struct urxe_packet *p = t->packet;

	memcpy(t->to, p->lent->payload, p->payload_len);
	t->right = lent_stands(p->lent);
}

/* All but the last n bytes to their place. */
static uint32_t take_but(const struct taking *t, uint8_t *last, uint64_t n)
{
	const struct urxe_packet *p = t->packet;
	const uint8_t *from = p->lent->payload;
	uint64_t before = p->payload_len - n;

	if (t->ops->take_crc && n == URXE_TAKE_LAST)
		return t->ops->take_crc(t->crc, t->to, last, from, p->payload_len);
	memcpy(t->to, from, before);
	memcpy(last, from + before, n);
	return crc32_gzip_refl(crc32_gzip_refl(t->crc, t->to, before), last, n);
}

/* What comes last waits here, until the ICRC is known to be right. */
static void take_checked(struct taking *t)
{
	uint32_t len = t->packet->payload_len, n = len < URXE_TAKE_LAST ? len : URXE_TAKE_LAST;
	uint8_t last[URXE_TAKE_LAST];

	t->right = urxe_icrc_ends(t->packet, take_but(t, last, n));
	if (t->right)
		copy_last_bytes_last(t->to + len - n, last, n);
}

static void take(void *arg)
{
	struct taking *t = arg;

	if (t->packet->lent->trusted)
		take_trusted(t);
	else
		take_checked(t);
}

bool lent_place(struct urxe_dev *dev, const struct urxe_packet *p, uint8_t *to)
{
	const struct urxe_extent source = {(void *)(uintptr_t)p->lent->payload, p->payload_len};
	const struct urxe_extent place = {to, p->payload_len};
	const struct urxe_ops *ops = dev->attr.ops;
	struct taking t = {.ops = ops, .packet = p, .to = to, .crc = dev->lent.headers_crc};

	if (!ops->guard)
		take(&t);
	else if (!ops->guard(dev->attr.ctx, &source, &place, take, &t))
		return false;
	return t.right;
}

bool lent_take(struct urxe_dev *dev, const struct urxe_packet *p)
{
	return lent_place(dev, p, payload_place(dev));
}

bool lent_stands(const struct urxe_frame *frame)
{
	atomic_thread_fence(memory_order_acquire);
	return __atomic_load_n(frame->recalls, __ATOMIC_RELAXED) == frame->recalled;
}

enum urxe_drop lent_drop(const struct urxe_frame *frame)
{
	return frame->trusted ? URXE_DROP_RECALLED : URXE_DROP_BAD_ICRC;
}
