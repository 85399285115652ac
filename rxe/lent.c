/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lent.h"

#include <assert.h>
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

	if (frame->lent > LENT_PAYLOAD || here < behind || headers > LENT_HEADERS)
		return false;
	*whole = (struct urxe_frame){.data = payload - headers, .len = frame->len};
	memcpy(whole->data, frame->data, headers);
	memcpy(payload + frame->lent, frame->data + headers, behind);
	return true;
}

struct taking {
	const struct urxe_ops *ops;
	uint8_t *to;
	const uint8_t *from;
	uint64_t n;
	uint32_t crc;
};

static void take(void *arg)
{
	struct taking *t = arg;

	if (t->ops->take_crc) {
		t->crc = t->ops->take_crc(t->crc, t->to, t->from, t->n);
		return;
	}
	memcpy(t->to, t->from, t->n);
	t->crc = crc32_gzip_refl(t->crc, t->to, t->n);
}

static bool take_guarded(struct urxe_dev *dev, struct taking *t)
{
	const struct urxe_extent bytes = {(void *)(uintptr_t)t->from, t->n};

	if (dev->attr.ops->guard)
		return dev->attr.ops->guard(dev->attr.ctx, &bytes, take, t);
	take(t);
	return true;
}

bool lent_take(struct urxe_dev *dev, const struct urxe_frame *frame, const struct urxe_packet *p)
{
	struct taking t = {
		.ops = dev->attr.ops,
		.to = payload_place(dev),
		.from = frame->payload,
		.n = frame->lent,
	};

	if (p->payload != t.to || p->payload_len != frame->lent)
		return false;
	t.crc = urxe_icrc_headers(p->net, p->l3, p->bth, p->payload);
	return take_guarded(dev, &t) && urxe_icrc_ends(p, t.crc);
}
