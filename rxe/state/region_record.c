/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions, and the keys of fast registrations. The stream has a region's extents as lengths
 * and addresses of the saving process. The addresses only tell the new owner which memory was
 * there.
 */
#include <errno.h>
#include <stdlib.h>

#include "memory/fast_mr.h"
#include "memory/mr.h"
#include "state/state_records.h"

/* Bytes of an extent in the stream. */
#define EXTENT_LEN 16

static void region_fields(struct state_stream *s, struct urxe_mr_attr *attr)
{
	state_u32s(s, &attr->key, &attr->pd, &attr->access);
	state_u64s(s, &attr->iova, &attr->length);
}

static void save_extents(struct state_stream *s, const struct urxe_mr *mr)
{
	state_count(s, mr->n_pieces, EXTENT_LEN);
	for (uint32_t i = 0; i < mr->n_pieces; i++) {
		uint64_t addr = (uintptr_t)mr->pieces[i].addr;
		uint64_t length = mr->pieces[i + 1].offset - mr->pieces[i].offset;

		state_u64s(s, &addr, &length);
	}
}

/* Restoring: the extents of the stream; NULL: an error has occurred. */
static struct urxe_extent *read_extents(struct state_stream *s, uint32_t *n)
{
	struct urxe_extent *extents;

	*n = state_count(s, 0, EXTENT_LEN);
	if (!state_ok(s))
		return NULL;
	extents = calloc(*n + (size_t)1, sizeof(*extents));
	if (!extents)
		state_fail(s, -ENOMEM);
	for (uint32_t i = 0; extents && i < *n; i++) {
		uint64_t addr;

		state_u64s(s, &addr, &extents[i].length);
		extents[i].addr = (void *)(uintptr_t)addr;
	}
	return extents;
}

static bool have_length(const struct urxe_extent *extents, uint32_t n, uint64_t length)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		if (__builtin_add_overflow(sum, extents[i].length, &sum))
			return false;
	return sum == length;
}

/* Asks the owner for the memory of the region, and sets attr->extents to the answer. Sets an error
 * in the stream if the owner refuses, if the saved extents or the owner's extents do not have the
 * region's length, or if the list exceeds the limit of memory (state_spend). */
static void find_memory(struct state_device *d, struct urxe_mr_attr *attr,
			const struct urxe_extent *saved, uint32_t n)
{
	const struct urxe_state_restore *how = d->restore;
	struct urxe_state_region region = {
		.key = attr->key,
		.access = attr->access,
		.length = attr->length,
		.extents = saved,
		.n_extents = n,
	};
	int rc;

	state_require(&d->stream, have_length(saved, n, attr->length));
	if (!state_ok(&d->stream))
		return;
	rc = how->memory ? how->memory(how->arg, &region) : -EINVAL;
	attr->extents = region.extents;
	attr->n_extents = region.n_extents;
	if (!rc && !have_length(attr->extents, attr->n_extents, attr->length))
		rc = -EINVAL;
	if (rc)
		state_fail(&d->stream, rc);
	state_spend(&d->stream, attr->n_extents, sizeof(struct mr_piece));
}

static void set_error(struct state_stream *s, int rc)
{
	/* The stream has a key twice, or rights that a region cannot have. */
	if (rc)
		state_fail(s, rc == -ENOMEM ? rc : rc == -EOPNOTSUPP ? -EINVAL : -EBADMSG);
}

void mr_record(struct state_device *d, struct urxe_mr *mr)
{
	struct state_stream *s = &d->stream;
	struct urxe_mr_attr attr = {0};
	struct urxe_extent *saved;

	if (mr)
		urxe_mr_query(mr, &attr);
	state_begin(s, STATE_RECORD_MR);
	region_fields(s, &attr);
	if (mr) {
		save_extents(s, mr);
	} else {
		saved = read_extents(s, &attr.n_extents);
		state_require(s, attr.key);
		if (state_ok(s))
			find_memory(d, &attr, saved, attr.n_extents);
		if (state_ok(s))
			set_error(s, urxe_mr_reg(d->dev, &attr, &mr));
		free(saved);
	}
	state_end(s);
	if (s->restoring && mr)
		object_restored(d, &(struct urxe_state_object){
					   .kind = URXE_STATE_MR, .id = attr.key, .mr = mr});
}

/* --- Fast registration. */

/* Restoring: makes room for n extents in the object's region. Unmapping may have cut the region
 * into more pieces than a registration may have. */
static void make_room(struct state_stream *s, struct urxe_fast_mr *fast, uint32_t n)
{
	struct urxe_mr *mr = n > fast->max_extents ? mr_allocate(n) : fast->mr;

	if (!mr) {
		state_fail(s, -ENOMEM);
	} else if (mr != fast->mr) {
		mr_free(fast->mr);
		fast->mr = mr;
	}
}

/* Restoring: registers the region, if one was registered. */
static void register_fast(struct state_device *d, struct urxe_fast_mr *fast,
			  struct urxe_mr_attr *attr)
{
	struct state_stream *s = &d->stream;
	struct urxe_extent *saved = read_extents(s, &attr->n_extents);

	if (state_ok(s))
		find_memory(d, attr, saved, attr->n_extents);
	state_require(s, attr->length);
	if (state_ok(s))
		set_error(s, mr_check_attr(d->dev, attr));
	if (state_ok(s))
		make_room(s, fast, attr->n_extents);
	if (state_ok(s)) {
		mr_fill(fast->mr, d->dev, attr);
		fast->registered = true;
	}
	free(saved);
}

static struct urxe_fast_mr *create_fast(struct state_device *d, uint32_t pd, uint32_t max_extents,
					uint32_t key)
{
	struct state_stream *s = &d->stream;
	struct urxe_fast_mr *fast = NULL;

	state_spend(s, max_extents, sizeof(struct mr_piece));
	state_require(s, key && !mr_index_taken(d->dev, key));
	if (state_ok(s))
		set_error(s, fast_mr_create(d->dev, pd, max_extents, key, &fast));
	return fast;
}

void fast_mr_record(struct state_device *d, struct urxe_fast_mr *fast)
{
	struct state_stream *s = &d->stream;
	struct urxe_mr_attr attr = {0};
	uint32_t max_extents = fast ? fast->max_extents : 0;
	bool registered = fast && fast->registered;

	if (registered)
		urxe_mr_query(fast->mr, &attr);
	if (fast) {
		attr.pd = fast->pd;
		attr.key = fast->key;
	}
	state_begin(s, STATE_RECORD_FAST_MR);
	region_fields(s, &attr);
	state_u32(s, &max_extents);
	state_bool(s, &registered);
	if (s->restoring)
		fast = create_fast(d, attr.pd, max_extents, attr.key);
	if (!fast)
		return;
	if (registered && s->restoring)
		register_fast(d, fast, &attr);
	else if (registered)
		save_extents(s, fast->mr);
	state_end(s);
	if (s->restoring)
		object_restored(d, &(struct urxe_state_object){.kind = URXE_STATE_FAST_MR,
							       .id = attr.key,
							       .fast_mr = fast});
}
