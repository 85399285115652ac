/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "region.h"

#include <err.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "draw.h"

#define MEMORY      (1u << 20) /* bytes */
#define HALF        (MEMORY / 2)
#define LONGEST     (REGION_LEAST + 80000)
#define UNKNOWN_KEY 0xdead

/* --- Memory. */

void region_map_memory(struct side *side)
{
	side->memory =
		mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (side->memory == MAP_FAILED)
		err(1, "mmap");
	side->own.memory = (uintptr_t)side->memory;
	region_fill_memory(side);
}

void region_fill_memory(struct side *side)
{
	for (uint32_t i = 0; i < MEMORY; i++)
		side->memory[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + (uint32_t)side->number * 101);
}

uint64_t region_hash_memory(const struct side *side)
{
	uint64_t hash = 0, word;

	for (uint32_t i = 0; i < MEMORY; i += sizeof(word)) {
		memcpy(&word, side->memory + i, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	return hash;
}

/* --- Regions. */

static struct region draw_region(const struct side *side, int i)
{
	uint32_t at = draw_below(HALF - LONGEST);

	if (draw_one_in(2))
		at &= ~4095u;
	return (struct region){
		.addr = side->own.memory + (i < HALF_REGIONS ? 0 : HALF) + at,
		.length = REGION_LEAST + draw_below(LONGEST - REGION_LEAST),
		/* Each half has a region in the other PD. */
		.pd = i % HALF_REGIONS == 1,
		.access = REGION_ALL_RIGHTS,
	};
}

/* In sequences with errors, sometimes with other rights, another length, another PD. */
static struct region draw_changed_region(const struct side *side, int i)
{
	struct region drawn = draw_region(side, i);

	if (!side->errors)
		return drawn;
	drawn.pd = (int)draw_below(PDS);
	if (draw_one_in(3))
		drawn.access = (int)draw_below(REGION_ALL_RIGHTS + 1);
	if (draw_one_in(4))
		drawn.length = draw_length();
	return drawn;
}

/* In error-free sequences the regions of posted receives stay. */
static int draw_index(const struct side *side)
{
	return (int)draw_below(side->errors ? FIXED_REGION : HALF_REGIONS);
}

/* Returns an errno value. */
static int register_region(struct side *side, int i, const struct region *drawn)
{
	struct ibv_mr *mr;

	mr = ibv_reg_mr(side->pds[drawn->pd], (void *)(uintptr_t)drawn->addr, drawn->length,
			drawn->access);
	side->mrs[i] = mr;
	if (!mr)
		return errno;
	side->own.regions[i] = *drawn;
	side->own.regions[i].valid = true;
	side->own.regions[i].lkey = mr->lkey;
	side->own.regions[i].rkey = mr->rkey;
	return 0;
}

void region_register_all(struct side *side)
{
	for (int i = 0; i < REGIONS; i++) {
		struct region drawn = draw_region(side, i);

		if (i >= FIXED_REGION) {
			drawn.addr = side->own.memory + HALF;
			drawn.length = HALF;
			drawn.pd = i - FIXED_REGION;
		}
		errno = register_region(side, i, &drawn);
		if (errno)
			err(1, "ibv_reg_mr");
	}
}

void region_register(struct side *side)
{
	int i = draw_index(side), rc = 0;
	struct region drawn = draw_changed_region(side, i);

	if (side->mrs[i]) {
		rc = ibv_dereg_mr(side->mrs[i]);
		side_log(side, "ibv_dereg_mr region %d: %d", i, rc);
	}
	if (rc)
		return;
	side->own.regions[i].valid = false;
	rc = register_region(side, i, &drawn);
	side_log(side, "ibv_reg_mr region %d: pd %d, offset %u, %u bytes, access %#x: %d", i,
		 drawn.pd, (uint32_t)(drawn.addr - side->own.memory), drawn.length, drawn.access,
		 rc);
}

/* --- Windows. */

static void free_window(struct side *side, int i)
{
	int rc = ibv_dealloc_mw(side->mws[i]);

	side_log(side, "ibv_dealloc_mw window %d: %d", i, rc);
	if (rc)
		return;
	side->mws[i] = NULL;
	side->own.windows[i] = (struct window){0};
}

static void allocate_window(struct side *side, int i)
{
	enum ibv_mw_type type = draw_one_in(3) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
	int pd = draw_one_in(4);
	struct ibv_mw *mw = ibv_alloc_mw(side->pds[pd], type);

	side_log(side, "ibv_alloc_mw window %d of type %d, pd %d: %d", i, type, pd, mw ? 0 : errno);
	if (!mw)
		return;
	side->mws[i] = mw;
	side->own.windows[i] = (struct window){.valid = true, .rkey = mw->rkey};
}

void region_unbind_windows(struct side *side, int qp)
{
	for (int i = 0; i < WINDOWS; i++)
		side->own.windows[i].bound &= side->own.windows[i].qp != qp;
}

void region_invalidate_window(struct side *side, uint32_t rkey)
{
	for (int i = 0; i < WINDOWS; i++)
		side->own.windows[i].bound &= side->own.windows[i].rkey != rkey;
}

void region_window(struct side *side)
{
	int i = (int)draw_below(WINDOWS);

	if (side->mws[i] && draw_one_in(4))
		free_window(side, i);
	else if (!side->mws[i])
		allocate_window(side, i);
}

/* --- Scatter/gather lists. */

/* A damaged request needs a region of which one property is wrong. */
static bool fits(const struct region *region, const struct need *need)
{
	bool has_right = !need->right || region->access & need->right;

	return region->valid && (region->pd == need->pd) == (need->damage != OTHER_PD) &&
	       (region->length >= need->length) == (need->damage != TOO_SHORT) &&
	       has_right == (need->damage != NO_RIGHT || !need->right);
}

const struct region *region_find(const struct view *view, const struct need *need)
{
	uint32_t first = draw_below(HALF_REGIONS);

	for (uint32_t i = 0; i < HALF_REGIONS; i++) {
		const struct region *region =
			&view->regions[(first + i) % HALF_REGIONS +
				       (need->half == DESTINATIONS ? HALF_REGIONS : 0)];

		if (fits(region, need))
			return region;
	}
	return NULL;
}

static struct ibv_sge segment(struct side *side, const struct need *need)
{
	const struct region *region = region_find(&side->own, need);
	uint32_t at = draw_below(1000);
	struct ibv_sge sge = {side->own.memory, need->length, UNKNOWN_KEY};

	if (!region)
		return sge;
	if (region->length <= need->length + at)
		at = 0;
	sge.addr = region->addr + at;
	sge.lkey = region->lkey;
	if (need->damage == WRONG_KEY)
		sge.lkey ^= 1u << draw_below(8);
	if (need->damage == WRONG_ADDRESS)
		sge.addr = region->addr + region->length - need->length + 1;
	return sge;
}

int region_segments(struct side *side, struct ibv_sge *sges, const struct need *need)
{
	int n = need->length ? 1 + (int)draw_below(3) : (int)draw_below(2);
	struct need part = *need;
	uint32_t rest = need->length;

	for (int i = 0; i < n; i++) {
		part.length = i == n - 1 ? rest : draw_below(rest + 1);
		rest -= part.length;
		sges[i] = segment(side, &part);
	}
	return n;
}
