/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dirty_pages.h"

#include <stdlib.h>
#include <string.h>

void dirty_pages_clear(struct dirty_pages *pages)
{
	for (uint32_t i = 0; i < pages->n; i++)
		free(pages->chunks[i]);
	free(pages->chunks);
	*pages = (struct dirty_pages){0};
}

/* The index of the first chunk with at least this number. */
static uint32_t first_from(const struct dirty_pages *pages, uint64_t number)
{
	uint32_t low = 0, high = pages->n;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (pages->chunks[middle]->number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool make_chunk_room(struct dirty_pages *pages)
{
	const uint32_t room = pages->room ? 2 * pages->room : 16;
	struct dirty_chunk **grown;

	if (pages->n < pages->room)
		return true;
	grown = realloc(pages->chunks, room * sizeof(*grown));
	if (!grown)
		return false;
	pages->chunks = grown;
	pages->room = room;
	return true;
}

/* Returns the chunk with the number, which the function adds if it is missing. NULL: no memory. */
static struct dirty_chunk *get_chunk(struct dirty_pages *pages, uint64_t number)
{
	struct dirty_chunk *chunk = pages->n ? pages->chunks[pages->last] : NULL;
	uint32_t index;

	if (chunk && chunk->number == number)
		return chunk;
	index = first_from(pages, number);
	if (index == pages->n || pages->chunks[index]->number != number) {
		chunk = make_chunk_room(pages) ? calloc(1, sizeof(*chunk)) : NULL;
		if (!chunk)
			return NULL;
		chunk->number = number;
		memmove(&pages->chunks[index + 1], &pages->chunks[index],
			(pages->n - index) * sizeof(struct dirty_chunk *));
		pages->chunks[index] = chunk;
		pages->n++;
	}
	pages->last = index;
	return pages->chunks[index];
}

static void add_lost(struct dirty_pages *pages, uint64_t number)
{
	for (uint32_t i = 0; i < pages->n_lost; i++)
		if (pages->lost[i] == number)
			return;
	if (pages->n_lost < DIRTY_LOST)
		pages->lost[pages->n_lost++] = number;
	else
		pages->all = true;
}

/* Adds all pages of the chunks in `lost`. False: there is still no memory for one of them. */
static bool restore_lost(struct dirty_pages *pages)
{
	for (; pages->n_lost; pages->n_lost--) {
		struct dirty_chunk *chunk = get_chunk(pages, pages->lost[pages->n_lost - 1]);

		if (!chunk)
			return false;
		memset(chunk->bits, 0xff, sizeof(chunk->bits));
	}
	return true;
}

void dirty_pages_add(struct dirty_pages *pages, uint64_t addr, uint64_t size)
{
	const uint64_t last = (addr + (size - 1)) >> DIRTY_PAGE_SHIFT;

	for (uint64_t page = addr >> DIRTY_PAGE_SHIFT; page <= last; page++) {
		struct dirty_chunk *chunk = get_chunk(pages, page / DIRTY_CHUNK_PAGES);
		const uint32_t bit = (uint32_t)(page % DIRTY_CHUNK_PAGES);

		if (!chunk) {
			add_lost(pages, page / DIRTY_CHUNK_PAGES);
			page |= DIRTY_CHUNK_PAGES - 1; /* the last one of the chunk */
			continue;
		}
		chunk->bits[bit / 64] |= UINT64_C(1) << bit % 64;
	}
}

/* The range, and the bitmap that stands for it. */
struct report {
	uint64_t addr, last;
	uint64_t page_size;
	uint64_t *bitmap;
};

/* Sets the bits of the part of [from, to] that lies in the range. */
static void set_bits(const struct report *report, uint64_t from, uint64_t to)
{
	uint64_t bit, end;

	if (from < report->addr)
		from = report->addr;
	if (to > report->last)
		to = report->last;
	if (from > to)
		return;
	end = (to - report->addr) / report->page_size;
	for (bit = (from - report->addr) / report->page_size; bit <= end; bit++)
		report->bitmap[bit / 64] |= UINT64_C(1) << bit % 64;
}

static void take_word(const struct report *report, uint64_t *word, uint64_t first_page)
{
	for (uint64_t bits = *word; bits; bits &= bits - 1) {
		const unsigned bit = (unsigned)__builtin_ctzll(bits);
		const uint64_t addr = (first_page + bit) << DIRTY_PAGE_SHIFT;

		if (addr > report->last || addr + (DIRTY_PAGE - 1) < report->addr)
			continue;
		set_bits(report, addr, addr + (DIRTY_PAGE - 1));
		/* A page that the range has in part stays in the set for the other part. */
		if (addr >= report->addr && addr + (DIRTY_PAGE - 1) <= report->last)
			*word &= ~(UINT64_C(1) << bit);
	}
}

void dirty_pages_take(struct dirty_pages *pages, uint64_t addr, uint64_t size, uint64_t page_size,
		      uint64_t *bitmap)
{
	const struct report report = {addr, addr + (size - 1), page_size, bitmap};
	const uint64_t last = (report.last >> DIRTY_PAGE_SHIFT) / DIRTY_CHUNK_PAGES;

	if (!restore_lost(pages) || pages->all)
		set_bits(&report, report.addr, report.last);
	for (uint32_t i = first_from(pages, (addr >> DIRTY_PAGE_SHIFT) / DIRTY_CHUNK_PAGES);
	     i < pages->n && pages->chunks[i]->number <= last; i++) {
		struct dirty_chunk *chunk = pages->chunks[i];

		for (uint32_t j = 0; j < DIRTY_CHUNK_PAGES / 64; j++)
			if (chunk->bits[j])
				take_word(&report, &chunk->bits[j],
					  chunk->number * DIRTY_CHUNK_PAGES + j * UINT64_C(64));
	}
}
