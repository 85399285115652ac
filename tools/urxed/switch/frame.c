/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/frame.h"

#include <string.h>

struct switch_frame switch_frame_whole(const uint8_t *data, uint32_t len)
{
	return (struct switch_frame){.parts = {{(void *)(uintptr_t)data, len}}, .n = 1, .len = len};
}

struct switch_frame switch_frame_of_process(const struct frame_class *s,
					    const struct vnic_tx_frame *f)
{
	const uint8_t *rest = f->data + s->head_len;

	return (struct switch_frame){
		.parts = {{(void *)(uintptr_t)s->head, s->head_len},
			  {(void *)(uintptr_t)rest, f->len - s->head_len}},
		.n = f->len > s->head_len ? 2 : 1,
		.len = f->len,
		.flow = s->kind == FRAME_ROCE ? s->dest_qpn : 0,
		.from_host = true,
	};
}

void switch_frame_copy(uint8_t *to, const struct switch_frame *f)
{
	uint32_t i;

	for (i = 0; i < f->n; i++) {
		memcpy(to, f->parts[i].iov_base, f->parts[i].iov_len);
		to += f->parts[i].iov_len;
	}
}
