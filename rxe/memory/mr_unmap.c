/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unmapping: the program unmaps memory of a region, and the region keeps the rest. */
#include <errno.h>
#include <stdlib.h>

#include "memory/mr.h"
#include "memory/mw.h"
#include "objects/copy_table.h"
#include "objects/references.h"

/* The pieces of a region after an unmap. If `to` is NULL, the functions only count them. */
struct cut {
	struct mr_piece *to;
	struct mr_held *held;
	uint32_t n;
	bool behind_unmapped;
};

static void keep_piece(struct cut *cut, uint64_t offset, uint8_t *addr, struct mr_held held)
{
	bool unmapped = !addr && !held.addr;

	if (unmapped && cut->behind_unmapped)
		return;
	cut->behind_unmapped = unmapped;
	if (cut->to) {
		cut->to[cut->n] = (struct mr_piece){offset, addr};
		cut->held[cut->n] = held;
	}
	cut->n++;
}

/* Keeps the bytes of a piece from offset `from` in the piece on. */
static void keep_piece_from(struct cut *cut, const struct mr_piece *piece, struct mr_held held,
			    uint64_t from)
{
	if (held.addr)
		held.addr += from;
	keep_piece(cut, piece->offset + from, piece->addr ? piece->addr + from : NULL, held);
}

static struct mr_held held_of(const struct urxe_mr *mr, uint32_t i)
{
	return mr->held ? mr->held[i] : (struct mr_held){0};
}

/* Adds piece i to `cut`; its bytes from address `first` to `last` become a piece of their own,
 * which the unmapping call holds. True: the piece has such bytes. */
static bool cut_piece(struct cut *cut, const struct urxe_mr *mr, uint32_t i, uintptr_t first,
		      uintptr_t last)
{
	const struct mr_piece *piece = &mr->pieces[i];
	struct mr_held held = held_of(mr, i);
	uint8_t *addr = piece->addr ? piece->addr : held.addr;
	uintptr_t at = (uintptr_t)addr, end = at + (piece[1].offset - piece->offset) - 1;
	uint64_t from = at < first ? first - at : 0;

	if (!at || at > last || end < first) {
		keep_piece_from(cut, piece, held, 0);
		return false;
	}
	if (from)
		keep_piece_from(cut, piece, held, 0);
	keep_piece(cut, piece->offset + from, NULL, (struct mr_held){addr + from, held.calls + 1});
	if (end > last)
		keep_piece_from(cut, piece, held, last + 1 - at);
	return true;
}

static bool cut_pieces(struct cut *cut, const struct urxe_mr *mr, const struct urxe_extent *bytes)
{
	uintptr_t first = (uintptr_t)bytes->addr;
	bool some = false;

	for (uint32_t i = 0; i < mr->n_pieces; i++)
		some |= cut_piece(cut, mr, i, first, first + (bytes->length - 1));
	return some;
}

/* Withdraws the rights of the region's key and of the keys of its windows, and ends references. */
static void withdraw_all(const struct urxe_mr *mr)
{
	const struct urxe_mw *mw;
	uint32_t at = 0;

	copy_table_withdraw_key(mr->dev, mr->key);
	end_references_by_key(mr->dev, mr->key);
	while (mr->windows && (mw = idmap_next(&mr->dev->mws, &at)))
		if (mw->mr == mr)
			copy_table_withdraw_key(mr->dev, mw->key);
}

static void publish_all(const struct urxe_mr *mr)
{
	const struct urxe_mw *mw;
	uint32_t at = 0;

	mr_publish(mr);
	while (mr->windows && (mw = idmap_next(&mr->dev->mws, &at)))
		if (mw->mr == mr)
			mw_publish(mw);
}

static void replace_pieces(struct urxe_mr *mr, const struct cut *cut)
{
	cut->to[cut->n] = (struct mr_piece){mr->length, NULL};
	if (mr->pieces != mr->at_first)
		free(mr->pieces);
	mr->pieces = cut->to;
	mr->held = cut->held;
	mr->n_pieces = cut->n;
	withdraw_all(mr);
}

int urxe_mr_unmap(struct urxe_mr *mr, const struct urxe_extent *bytes)
{
	struct cut cut = {0};

	RECORD_ENTRY(mr->dev, MR_UNMAP, .key = mr->key, .bytes = *bytes);
	if (!bytes->length || !cut_pieces(&cut, mr, bytes))
		return 0;
	/* One block: the pieces, their end mark, and one mr_held per piece. */
	cut.to = malloc((cut.n + (size_t)1) * sizeof(*cut.to) + cut.n * sizeof(*cut.held));
	if (!cut.to)
		return -ENOMEM;
	cut.held = (struct mr_held *)(cut.to + cut.n + 1);
	cut.n = 0;
	cut.behind_unmapped = false;
	cut_pieces(&cut, mr, bytes);
	replace_pieces(mr, &cut);
	return 0;
}

/* Settles a held piece within the bytes after an unmapping call. `done`: the call has succeeded,
 * and the piece is unmapped. If the last such call has failed, the piece is mapped again. Each
 * piece is within the bytes or outside, because pieces were cut at the ends of the bytes. */
static void settle_piece(struct urxe_mr *mr, uint32_t i, const struct urxe_extent *bytes, bool done)
{
	struct mr_held *held = &mr->held[i];

	if (!held->addr || (uintptr_t)held->addr - (uintptr_t)bytes->addr >= bytes->length)
		return;
	if (!done && --held->calls)
		return;
	if (!done)
		mr->pieces[i].addr = held->addr;
	*held = (struct mr_held){0};
}

/* Whether a piece begins in memory where the piece before it ends. */
static bool continues_piece(const struct urxe_mr *mr, uint32_t before, uint32_t i)
{
	const struct mr_piece *first = &mr->pieces[before], *piece = &mr->pieces[i];

	if (mr->held[before].addr || mr->held[i].addr || !first->addr != !piece->addr)
		return false;
	return !piece->addr || first->addr + (piece->offset - first->offset) == piece->addr;
}

/* Joins adjacent pieces that were cut. */
static void join_pieces(struct urxe_mr *mr)
{
	uint32_t n = 1;

	for (uint32_t i = 1; i < mr->n_pieces; i++) {
		if (continues_piece(mr, n - 1, i))
			continue;
		mr->pieces[n] = mr->pieces[i];
		mr->held[n++] = mr->held[i];
	}
	mr->pieces[n] = mr->pieces[mr->n_pieces];
	mr->n_pieces = n;
}

/* Gives the memory of `held` back if no piece is held any more. */
static void drop_held(struct urxe_mr *mr)
{
	struct mr_piece *pieces;

	for (uint32_t i = 0; i < mr->n_pieces; i++)
		if (mr->held[i].addr)
			return;
	mr->held = NULL;
	/* One block has the pieces, their end mark, and then the mr_held entries, which are
	 * freed. */
	pieces = realloc(mr->pieces, (mr->n_pieces + (size_t)1) * sizeof(*pieces));
	if (pieces)
		mr->pieces = pieces;
}

void urxe_mr_unmapped(struct urxe_mr *mr, const struct urxe_extent *bytes, bool done)
{
	RECORD_ENTRY(mr->dev, MR_UNMAPPED, .key = mr->key, .flag = done, .bytes = *bytes);
	if (!mr->held)
		return;
	for (uint32_t i = 0; i < mr->n_pieces; i++)
		settle_piece(mr, i, bytes, done);
	join_pieces(mr);
	drop_held(mr);
	publish_all(mr);
}

void urxe_mr_unmap_all(struct urxe_mr *mr)
{
	RECORD_ENTRY(mr->dev, MR_UNMAP_ALL, .key = mr->key);
	if (!mr->length)
		return;
	mr->at_first[0] = (struct mr_piece){0, NULL};
	replace_pieces(mr, &(struct cut){.to = mr->at_first, .n = 1});
}
