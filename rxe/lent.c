/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lent.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include <isa-l/crc.h>

#include "dev.h"
#include "icrc.h"

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

static uint32_t crc_of_headers(const struct urxe_packet *p)
{
	return urxe_icrc_headers(p->net, p->l3, p->bth, p->payload);
}

struct taking {
	const struct urxe_ops *ops;
	uint8_t *to;
	const uint8_t *from;
	uint64_t n;
	uint32_t crc;
};

static void copy(void *arg)
{
	const struct taking *t = arg;

	memcpy(t->to, t->from, t->n);
}

static void take(void *arg)
{
	struct taking *t = arg;

	if (t->ops->take_crc) {
		t->crc = t->ops->take_crc(t->crc, t->to, t->from, t->n);
		return;
	}
	copy(t);
	t->crc = crc32_gzip_refl(t->crc, t->to, t->n);
}

static bool guarded(struct urxe_dev *dev, void (*touch)(void *), struct taking *t)
{
	const struct urxe_extent bytes = {(void *)(uintptr_t)t->from, t->n};

	if (dev->attr.ops->guard)
		return dev->attr.ops->guard(dev->attr.ctx, &bytes, NULL, touch, t);
	touch(t);
	return true;
}

static struct taking taking_of(struct urxe_dev *dev, const struct urxe_frame *frame)
{
	return (struct taking){
		.ops = dev->attr.ops,
		.to = payload_place(dev),
		.from = frame->payload,
		.n = frame->lent,
	};
}

bool lent_take(struct urxe_dev *dev, const struct urxe_frame *frame, const struct urxe_packet *p)
{
	struct taking t = taking_of(dev, frame);

	if (!is_in_place(dev, frame, p))
		return false;
	t.crc = crc_of_headers(p);
	return guarded(dev, take, &t) && urxe_icrc_ends(p, t.crc);
}

/* --- Trusted ones. */

bool lent_headers_ok(struct urxe_dev *dev, const struct urxe_frame *frame,
		     const struct urxe_packet *p)
{
	return is_in_place(dev, frame, p) && urxe_icrc_is(p, crc_of_headers(p));
}

bool lent_take_trusted(struct urxe_dev *dev, const struct urxe_frame *frame)
{
	struct taking t = taking_of(dev, frame);

	return guarded(dev, copy, &t) && lent_stands(frame);
}

bool lent_stands(const struct urxe_frame *frame)
{
	atomic_thread_fence(memory_order_acquire);
	return __atomic_load_n(frame->recalls, __ATOMIC_RELAXED) == frame->recalled;
}
