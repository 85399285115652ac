/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writes and reads the device's registers, the shared region, the rings of events, and what all
 * rings have: their pages and the device's index. */
#include <stdlib.h>

#include "queues/event_ring.h"
#include "state/pvrdma_records.h"

uint32_t pv_pages_record(struct pv_state *st, const struct pv_ring *ring, struct pv_pages *pages)
{
	struct state_stream *s = &st->stream;
	const uint32_t n = state_count(s, ring->indices ? pages->n : 0, sizeof(uint64_t));

	if (s->restoring && n) {
		*pages = (struct pv_pages){calloc(n, sizeof(*pages->page)), n};
		if (!pages->page)
			state_fail(s, -ENOMEM);
	}
	for (uint32_t i = 0; i < n && !s->error; i++)
		pv_page_record(st, &pages->page[i]);
	return n;
}

void pv_ring_index_record(struct pv_state *st, struct pv_ring *ring)
{
	state_u32_max(&st->stream, &ring->index, ring->slots ? 2 * ring->slots - 1 : 0);
}

static void pv_event_ring_record(struct pv_state *st, struct pv_event_ring *events,
				 uint32_t element)
{
	struct state_stream *s = &st->stream;
	/* A ring whose memory is gone is saved without pages: nothing is reported to it. */
	const uint32_t n = pv_pages_record(st, &events->ring, &events->pages);

	if (s->restoring && !s->error && n) {
		state_require(s, n >= 2 && n <= PV_EVENT_RING_PAGES);
		if (!s->error)
			pv_event_ring_lay_out(st->dev, events, element);
	}
	if (n)
		pv_ring_index_record(st, &events->ring);
	state_bool(s, &events->due);
}

/* Fails unless the saved device has the MAC and RoCE version of this one. */
static void identity_record(struct pv_state *st)
{
	struct state_stream *s = &st->stream;
	const struct pvrdma_attr *attr = &st->dev->attr;
	bool roce_v1 = attr->roce_v1;
	uint8_t mac[6];

	memcpy(mac, attr->mac, sizeof(mac));
	state_bytes(s, mac, sizeof(mac));
	state_bool(s, &roce_v1);
	if (memcmp(mac, attr->mac, sizeof(mac)) || roce_v1 != attr->roce_v1)
		state_fail(s, -EINVAL);
}

static void registers_record(struct pv_state *st)
{
	struct state_stream *s = &st->stream;
	struct pvrdma *dev = st->dev;

	state_u32s(s, &dev->dsr_low, &dev->err, &dev->icr, &dev->imr);
	state_u32_max(s, &dev->masked_causes, (1u << PV_VECTORS) - 1);
	state_bools(s, &dev->believed_down, &dev->no_master);
	state_u64(s, &dev->activations);
	state_u32_max(s, &dev->uar_pages, PVRDMA_UAR_PAGES);
	state_require(s, dev->uar_pages);
	state_u32(s, &dev->gids);
	state_u32_max(s, &dev->qpn_generation, UINT8_MAX);
}

void pv_device_record(struct pv_state *st)
{
	struct state_stream *s = &st->stream;
	struct pvrdma *dev = st->dev;

	identity_record(st);
	registers_record(st);
	state_bool(s, &dev->slots.loaded);
	state_u64s(s, &dev->slots.request, &dev->slots.response, &dev->slots.uar_pfn);
	pv_source_record(st);
	pv_event_ring_record(st, &dev->async, sizeof(struct pv_eqe));
	pv_event_ring_record(st, &dev->cq_notify, sizeof(struct pv_cqne));
}
