/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "record/fields.h"

void path_fields(struct state_stream *s, struct urxe_path *path)
{
	state_bytes(s, path->dgid.raw, sizeof(path->dgid.raw));
	state_bytes(s, path->dmac, sizeof(path->dmac));
	state_u8(s, &path->sgid_index);
	state_u8(s, &path->traffic_class);
	state_u8(s, &path->hop_limit);
	state_u8(s, &path->sl);
	state_u32(s, &path->flow_label);
}

void segment_fields(struct state_stream *s, struct urxe_seg *seg)
{
	state_u64(s, &seg->addr);
	state_u32(s, &seg->length);
	state_u32(s, &seg->lkey);
}

void bind_fields(struct state_stream *s, struct urxe_mw_bind *bind)
{
	state_u32(s, &bind->mw_key);
	state_u8(s, &bind->tag);
	state_u32(s, &bind->mr_key);
	state_u32(s, &bind->access);
	state_u64(s, &bind->addr);
	state_u64(s, &bind->length);
}

void fast_reg_fields(struct state_stream *s, struct urxe_fast_reg *reg)
{
	state_u32(s, &reg->key);
	state_u32(s, &reg->access);
	state_u64(s, &reg->iova);
	state_u64(s, &reg->length);
	state_u64(s, &reg->page_list);
	state_u32(s, &reg->n_pages);
	state_u32(s, &reg->page_shift);
}
