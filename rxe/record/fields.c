/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "record/fields.h"

void path_fields(struct state_stream *s, struct urxe_path *path)
{
	state_bytes(s, path->dgid.raw, sizeof(path->dgid.raw));
	state_bytes(s, path->dmac, sizeof(path->dmac));
	state_u8s(s, &path->sgid_index, &path->traffic_class, &path->hop_limit, &path->sl);
	state_u32(s, &path->flow_label);
}

void segment_fields(struct state_stream *s, struct urxe_seg *seg)
{
	state_u64(s, &seg->addr);
	state_u32s(s, &seg->length, &seg->lkey);
}

void bind_fields(struct state_stream *s, struct urxe_mw_bind *bind)
{
	state_u32(s, &bind->mw_key);
	state_u8(s, &bind->tag);
	state_u32s(s, &bind->mr_key, &bind->access);
	state_u64s(s, &bind->addr, &bind->length);
}

void fast_reg_fields(struct state_stream *s, struct urxe_fast_reg *reg)
{
	state_u32s(s, &reg->key, &reg->access);
	state_u64s(s, &reg->iova, &reg->length, &reg->page_list);
	state_u32s(s, &reg->n_pages, &reg->page_shift);
}
