/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "link.h"

#include <stdlib.h>

#include <rxe/packet.h>

#include "require.h"

void link_init(struct link *link, uint64_t seed)
{
	*link = (struct link){.rand = {seed}, .delay_ns = 1000, .reorder_ns = 20000};
}

void link_free(struct link *link)
{
	for (uint32_t i = 0; i < link->n; i++)
		free(link->heap[i].data);
	free(link->heap);
}

static bool earlier(const struct link_frame *a, const struct link_frame *b)
{
	return a->due < b->due || (a->due == b->due && a->serial < b->serial);
}

static void heap_push(struct link *link, struct link_frame frame)
{
	uint32_t i = link->n++;

	if (link->n > link->room) {
		link->room = link->room ? 2 * link->room : 64;
		link->heap = realloc(link->heap, link->room * sizeof(*link->heap));
		require(link->heap);
	}
	for (; i && earlier(&frame, &link->heap[(i - 1) / 2]); i = (i - 1) / 2)
		link->heap[i] = link->heap[(i - 1) / 2];
	link->heap[i] = frame;
}

static struct link_frame heap_pop(struct link *link)
{
	struct link_frame top = link->heap[0];
	struct link_frame last = link->heap[--link->n];
	uint32_t i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= link->n)
			break;
		if (child + 1 < link->n && earlier(&link->heap[child + 1], &link->heap[child]))
			child++;
		if (!earlier(&link->heap[child], &last))
			break;
		link->heap[i] = link->heap[child];
		i = child;
	}
	link->heap[i] = last;
	return top;
}

/* Whether this packet may be lost once more; if so, counts the loss. */
static bool may_lose(struct link *link, const uint8_t *data, uint32_t len)
{
	struct urxe_packet p;
	uint8_t *losses;

	if (!link->faults.max_losses || urxe_packet_parse(&p, data, len))
		return true;
	losses = &link->losses[(p.dest_qpn * 0x9e3779b1u ^ p.psn) % LINK_LOSSES];
	if (*losses >= link->faults.max_losses)
		return false;
	++*losses;
	return true;
}

static bool lose(struct link *link, const uint8_t *data, uint32_t len)
{
	if (!rand_chance(&link->rand, link->faults.drop) || !may_lose(link, data, len))
		return false;
	link->dropped++;
	return true;
}

/* Flips a bit; counts as a loss. */
static void corrupt(struct link *link, uint8_t *data, uint32_t len)
{
	uint32_t bit;

	if (!rand_chance(&link->rand, link->faults.corrupt) || !may_lose(link, data, len))
		return;
	bit = rand_below(&link->rand, len * 8);
	data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	link->corrupted++;
}

static void fly(struct link *link, uint64_t now, const uint8_t *data, uint32_t len)
{
	struct link_frame frame = {now + link->delay_ns, link->serial++, len, malloc(len)};

	require(frame.data);
	memcpy(frame.data, data, len);
	if (rand_chance(&link->rand, link->faults.reorder)) {
		frame.due += 1 + rand_below(&link->rand, (uint32_t)link->reorder_ns);
		link->reordered++;
	}
	corrupt(link, frame.data, len);
	heap_push(link, frame);
}

void link_send(struct link *link, uint64_t now, const uint8_t *data, uint32_t len)
{
	link->sent++;
	if (link->filter && !link->filter(link->filter_arg, now, (uint8_t *)data, len)) {
		link->dropped++;
		return;
	}
	if (lose(link, data, len))
		return;
	fly(link, now, data, len);
	if (rand_chance(&link->rand, link->faults.duplicate)) {
		link->duplicated++;
		fly(link, now, data, len);
	}
}

uint64_t link_next(const struct link *link)
{
	return link->n ? link->heap[0].due : UINT64_MAX;
}

bool link_recv(struct link *link, uint64_t now, struct link_frame *frame)
{
	if (link_next(link) > now)
		return false;
	*frame = heap_pop(link);
	return true;
}

bool link_lose_one(void *loss, uint64_t now, uint8_t *data, uint32_t len)
{
	struct link_loss *l = loss;

	(void)now, (void)data, (void)len;
	return l->seen++ != l->first;
}
