/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "daemon/state_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "daemon/adapter_uplink.h"
#include "objects/uverbs_file.h"
#include "objects/verbs_mr.h"
#include "queues/verbs_qp.h"
#include <hca/way.h>
#include <rxe/offload.h>
#include <session/state_document.h>

/* --- With the lock of the adapter */

/* Whether frames to the peer go to its inbox, as tx.c routes them; also true while the inbox is
 * full and frames go by the switch. */
static bool reaches_inbox(const struct urxe_qp_attr *attr)
{
	return tx_peer(&adapter.tx, attr->path.dmac, attr->dest_qpn);
}

static const char *reason_text(const struct qp *qp)
{
	bool goes_with_device = qp->limits.qp_type == URXE_QPT_UD || qp->srq;

	return way_reason_text(goes_with_device ? WAY_OF_DEVICE : qp->way_reason);
}

/* Sets sends_by and receives_by: the direct uplink's sockets by which packets of the connection
 * leave now, and by which the last one came. No effect without a direct uplink, and for a UD queue
 * pair, whose datagrams have several destinations and leave by several sockets. */
static void copy_members(struct state_qp *entry, const struct qp *qp)
{
	const struct urxe_qp_attr *attr = &entry->attr;
	const struct urxe_path *path = &attr->path;
	struct urxe_gid source;

	if (!entry->uplink || entry->init.type == URXE_QPT_UD)
		return;
	memcpy(source.raw, adapter.welcome.port.gids[path->sgid_index % VNIC_ATTACH_GIDS].raw,
	       sizeof(source.raw));
	entry->sends_by =
		(uint8_t)(1 + tx_uplink_member(&adapter.tx, attr->dest_qpn, &source, &path->dgid));
	entry->receives_by = qp->receives_by;
}

static void copy_qp(struct state_qp *entry, const struct qp *of)
{
	const struct urxe_qp_attr *attr = &entry->attr;
	const struct urxe_qp *qp = of->qp;

	state_document_fill_qp(entry, qp);
	entry->hca = urxe_qp_offloaded(qp);
	entry->way_reason = adapter.hca.hca ? reason_text(of) : NULL;
	entry->inbox = reaches_inbox(attr);
	entry->uplink = tx_by_uplink(&adapter.tx, attr->path.dmac);
	copy_members(entry, of);
	entry->memory = reaches_inbox(attr) && state_document_copies(entry, qp);
}

static int copy_qps(struct state_document *state)
{
	const struct qp *of;
	uint32_t at = 0;

	state->qps = calloc(adapter.leases.used + adapter.leases.unleased + 1, sizeof(*state->qps));
	if (!state->qps)
		return -ENOMEM;
	while ((of = leases_next(&adapter.leases, &at)))
		copy_qp(&state->qps[state->n_qps++], of);
	return 0;
}

/* Returns the number of regions of the process; copies their attributes to mrs, unless that is
 * NULL. */
static size_t each_mr(struct urxe_mr_attr *mrs)
{
	const struct uverbs_file *file;
	size_t n = 0;

	LIST_FOREACH(file, &adapter.files, link)
	{
		const struct object *object;
		uint32_t handle = 0;

		while ((object = handle_next(&file->handles, OBJECT_MR, &handle))) {
			if (mrs)
				urxe_mr_query(((const struct mr *)object)->mr, &mrs[n]);
			n++;
		}
	}
	return n;
}

static int copy_mrs(struct state_document *state)
{
	state->mrs = calloc(each_mr(NULL) + 1, sizeof(*state->mrs));
	if (!state->mrs)
		return -ENOMEM;
	state->n_mrs = each_mr(state->mrs);
	return 0;
}

static void copy_counters(struct state_document *state,
			  struct state_counter counters[VNIC_BYPASS_COUNT])
{
	adapter_count_missed();
	state->engine_counters = *urxe_dev_counters(adapter.dev);
	for (int i = 0; i < VNIC_BYPASS_COUNT; i++)
		counters[i] = (struct state_counter){
			vnic_bypass_counter_name((enum vnic_bypass_counter)i),
			adapter_counter((enum vnic_bypass_counter)i)};
	state->more_counters = counters;
	state->n_counters = VNIC_BYPASS_COUNT;
}

void state_json_send(int socket)
{
	struct state_counter counters[VNIC_BYPASS_COUNT];
	struct state_document state = {.socket = socket, .dead = adapter.dead};
	bool complete;

	state_document_begin(socket);
	copy_counters(&state, counters);
	complete = !copy_qps(&state) && !copy_mrs(&state);
	adapter_unlock();
	snprintf(state.program, sizeof(state.program), "%s", program_invocation_short_name);
	state_document_send(&state, complete);
	free(state.qps);
	free(state.mrs);
	adapter_claim();
}
