/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/host/machine_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/offload.h>
#include <session/state_document.h>

static uint32_t count_qps(const struct pvrdma *dev)
{
	uint32_t at = 0, n = 0;

	while (pvrdma_next_qp(dev, &at))
		n++;
	return n;
}

static uint32_t count_mrs(const struct pvrdma *dev)
{
	uint32_t at = 0, n = 0;

	while (pvrdma_next_mr(dev, &at))
		n++;
	return n;
}

/* Whether packets of the connection go to the peer's inbox, or stay within the device, as those
 * between queue pairs of the machine do. */
static bool reaches_inbox(const struct machine_peers *peers, const struct urxe_qp_attr *attr)
{
	return !memcmp(attr->path.dmac, peers->session->mac, sizeof(peers->session->mac)) ||
	       machine_peers_may_bypass(peers, attr->path.dmac, attr->dest_qpn);
}

static void copy_qp(const struct machine_peers *peers, const struct machine_hca *hca,
		    const struct urxe_qp *qp, struct state_qp *entry)
{
	state_document_fill_qp(entry, qp);
	entry->hca = urxe_qp_offloaded(qp);
	entry->way_reason = machine_hca_reason(hca, qp);
	entry->inbox = reaches_inbox(peers, &entry->attr);
	entry->memory =
		state_document_copies(entry, qp) &&
		machine_peers_may_bypass(peers, entry->attr.path.dmac, entry->attr.dest_qpn);
}

static bool copy_objects(const struct pvrdma *dev, const struct machine_peers *peers,
			 const struct machine_hca *hca, struct state_document *state)
{
	const struct urxe_qp *qp;
	const struct urxe_mr *mr;
	uint32_t at;

	state->qps = calloc(count_qps(dev) + 1, sizeof(*state->qps));
	state->mrs = calloc(count_mrs(dev) + 1, sizeof(*state->mrs));
	if (!state->qps || !state->mrs)
		return false;
	for (at = 0; (qp = pvrdma_next_qp(dev, &at));)
		copy_qp(peers, hca, qp, &state->qps[state->n_qps++]);
	for (at = 0; (mr = pvrdma_next_mr(dev, &at));)
		urxe_mr_query(mr, &state->mrs[state->n_mrs++]);
	return true;
}

#define COUNT(member, name, text) +1
enum { LINK_COUNTERS = 0 SWITCH_LINK_COUNTER_LIST(COUNT) };
#undef COUNT
#define COUNTERS (PVRDMA_COUNTERS + VNIC_BYPASS_COUNT + LINK_COUNTERS)

static void copy_counters(const struct pvrdma *dev, const struct machine_peers *peers,
			  const struct switch_link *link, struct state_counter counters[COUNTERS])
{
	uint32_t n = 0;

	for (int i = 0; i < PVRDMA_COUNTERS; i++)
		counters[n++] = (struct state_counter){pvrdma_counter_name((enum pvrdma_counter)i),
						       pvrdma_counters(dev)[i]};
	for (int i = 0; i < VNIC_BYPASS_COUNT; i++)
		counters[n++] = (struct state_counter){
			vnic_bypass_counter_name((enum vnic_bypass_counter)i), peers->counters[i]};
#define COPY(member, name, text) counters[n++] = (struct state_counter){name, link->member};
	SWITCH_LINK_COUNTER_LIST(COPY)
#undef COPY
}

void vm_state_send(const struct pvrdma *dev, const struct machine_peers *peers,
		   const struct machine_hca *hca, const struct switch_link *link, const char *name,
		   int socket)
{
	struct state_counter counters[COUNTERS];
	struct state_document state = {.socket = socket,
				       .engine_counters = *pvrdma_engine_counters(dev),
				       .more_counters = counters,
				       .n_counters = COUNTERS};
	bool complete;

	state_document_begin(socket);
	snprintf(state.program, sizeof(state.program), "%s", name);
	copy_counters(dev, peers, link, counters);
	complete = copy_objects(dev, peers, hca, &state);
	state_document_send(&state, complete);
	free(state.qps);
	free(state.mrs);
}
