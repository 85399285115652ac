/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory that goes from a region, which keeps the rest. */
#include <errno.h>
#include <stdlib.h>

#include "direct.h"
#include "mr.h"

/* The pieces that are left; without `to` they are only counted. */
struct cut {
	struct mr_piece *to;
	uint32_t n;
	bool behind_hole;
};

static void keep(struct cut *cut, uint64_t offset, uint8_t *addr)
{
	if (!addr && cut->behind_hole)
		return;
	cut->behind_hole = !addr;
	if (cut->to)
		cut->to[cut->n] = (struct mr_piece){offset, addr};
	cut->n++;
}

/* True: some of the piece goes. */
static bool cut_piece(struct cut *cut, const struct mr_piece *piece, uintptr_t first,
		      uintptr_t last)
{
	uintptr_t at = (uintptr_t)piece->addr, end = at + (piece[1].offset - piece->offset) - 1;

	if (!at || at > last || end < first) {
		keep(cut, piece->offset, piece->addr);
		return false;
	}
	if (at < first)
		keep(cut, piece->offset, piece->addr);
	keep(cut, piece->offset + (at < first ? first - at : 0), NULL);
	if (end > last)
		keep(cut, piece->offset + (last + 1 - at), piece->addr + (last + 1 - at));
	return true;
}

static bool cut_pieces(struct cut *cut, const struct urxe_mr *mr, const struct urxe_extent *bytes)
{
	uintptr_t first = (uintptr_t)bytes->addr;
	bool some = false;

	for (uint32_t i = 0; i < mr->n_pieces; i++)
		some |= cut_piece(cut, &mr->pieces[i], first, first + (bytes->length - 1));
	return some;
}

static void replace_pieces(struct urxe_mr *mr, struct mr_piece *pieces, uint32_t n)
{
	pieces[n] = (struct mr_piece){mr->length, NULL};
	if (mr->pieces != mr->at_first)
		free(mr->pieces);
	mr->pieces = pieces;
	mr->n_pieces = n;
	direct_withdraw_all(mr);
}

int urxe_mr_unmap(struct urxe_mr *mr, const struct urxe_extent *bytes)
{
	struct cut cut = {0};

	if (!bytes->length || !cut_pieces(&cut, mr, bytes))
		return 0;
	cut.to = malloc((cut.n + (size_t)1) * sizeof(*cut.to));
	if (!cut.to)
		return -ENOMEM;
	cut.n = 0;
	cut.behind_hole = false;
	cut_pieces(&cut, mr, bytes);
	replace_pieces(mr, cut.to, cut.n);
	return 0;
}

void urxe_mr_unmap_all(struct urxe_mr *mr)
{
	if (!mr->length)
		return;
	mr->at_first[0] = (struct mr_piece){0, NULL};
	replace_pieces(mr, mr->at_first, 1);
}
