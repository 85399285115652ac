/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "port/port_hca.h"

#include <string.h>

#include <hca/hca_verbs.h>
#include <session/env.h>

#include "daemon/local_qp.h"
#include "engine/clock.h"
#include "engine/engine_run.h"
#include "poll/recv_hook.h"
#include "port/port_private.h"
#include "queues/qp.h"
#include "report/log.h"

enum hca_way port_hca_way(void)
{
	const char *way = env_get("WAY");

	if (way && !strcmp(way, "hca"))
		return HCA_WAY_HCA;
	return way && !strcmp(way, "engine") ? HCA_WAY_ENGINE : HCA_WAY_AUTO;
}

static bool takes(void *qp_ctx, const struct urxe_qp_attr *attr)
{
	(void)attr;
	return ((struct qp *)qp_ctx)->by_hca;
}

static const struct hca_owner owner = {.takes = takes};

bool port_hca_stale(void)
{
	const struct vnic_attach_hca *now = &port.welcome.port.hca;

	return now->generation != port.hca.generation ||
	       (port.hca.hca && hca_is_dead(port.hca.hca));
}

void port_hca_adopt(const struct vnic_attach_hca *before, const struct vnic_attach_hca *now)
{
	if (port.hca.generation == before->generation && before->port == now->port &&
	    !strcmp(before->name, now->name))
		port.hca.generation = now->generation;
	else if (port.hca.generation == now->generation)
		port.hca.generation = now->generation - 1;
}

void port_hca_set_gids(void)
{
	const struct vnic_attach_gid *gids = port.welcome.port.gids;

	if (!port.hca.hca)
		return;
	for (uint32_t i = 0; i < VNIC_ATTACH_GIDS; i++) {
		struct urxe_gid gid;

		memcpy(gid.raw, gids[i].raw, sizeof(gid.raw));
		hca_set_gid(port.hca.hca, i, gids[i].valid ? &gid : NULL, gids[i].v1);
	}
	hca_read_gids(port.hca.hca);
}

struct hca *port_hca_release(void)
{
	struct hca *hca = port.hca.hca;

	if (!hca)
		return NULL;
	port.hca.hca = NULL;
	hca_detach(hca);
	port_publish();
	return hca;
}

/* Queue pairs that exist already are the engine's, and the daemon has to know their numbers. */
static void tell_numbers(void)
{
	struct qp *qp;
	uint32_t at = 0;

	while ((qp = leases_next(&port.leases, &at)))
		if (!qp->local)
			qp->local = local_qp_add_locked(port.nic, qp->qpn);
}

static void attach_hca(struct hca *hca, const struct vnic_attach_hca *is)
{
	hca_attach(hca, port.dev);
	port.hca.hca = hca;
	port_hca_set_gids();
	tell_numbers();
	log_info("port %u of %s executes queue pairs", is->port, is->name);
}

/* The lock is free while libibverbs enumerates the devices. */
static void open_hca(const struct vnic_attach_hca *wanted)
{
	struct hca *hca = NULL;
	int rc;

	port_unlock();
	rc = hca_open(hca_verbs_load(), wanted->name, wanted->port, &owner, &hca);
	port_claim();
	if (rc) {
		log_warning("cannot open %s: %s", wanted->name, strerror(-rc));
		return;
	}
	/* Another HCA by now: the next look opens that one. */
	if (wanted->generation == port.welcome.port.hca.generation && !port.dead) {
		attach_hca(hca, wanted);
		return;
	}
	port_unlock();
	hca_close(hca);
	port_claim();
}

void port_hca_renew(void)
{
	const struct vnic_attach_hca wanted = port.welcome.port.hca;
	struct hca *old = port_hca_release();

	if (old) {
		log_info("the HCA has gone");
		port_unlock();
		hca_close(old);
		port_claim();
	}
	/* An HCA that reports its end is opened again when the daemon names it anew. */
	if (wanted.generation == port.hca.generation)
		return;
	port.hca.generation = wanted.generation;
	if (wanted.name[0] && port_hca_way() != HCA_WAY_ENGINE)
		open_hca(&wanted);
}

bool port_hca_poll(void)
{
	if (!port.hca.hca)
		return false;
	if (port.hca.unhooked)
		recv_hook_refill_all();
	return hca_poll(port.hca.hca);
}

/* With the lock. False: the HCA cannot have the connection. */
static bool is_possible(const struct urxe_qp_attr *attr, enum way_reason *reason)
{
	struct hca_limits limits;
	bool possible;

	*reason = WAY_NO_HCA;
	if (!port.hca.hca)
		return false;
	hca_limits(port.hca.hca, &limits);
	possible = hca_has_gid(port.hca.hca, attr->path.sgid_index) && attr->path_mtu <= limits.mtu;
	*reason = WAY_ADDRESS;
	return possible;
}

bool port_hca_chooses(const struct urxe_qp_attr *attr, bool number_taken, enum way_reason *reason)
{
	bool possible;

	port_lock();
	possible = is_possible(attr, reason);
	port_unlock();
	if (!possible)
		return false;
	*reason = number_taken ? WAY_NUMBER_TAKEN : WAY_FORCED;
	if (number_taken || port_hca_way() == HCA_WAY_HCA)
		return true;
	*reason = port_query_qpn(attr->path.dgid.raw, attr->dest_qpn) ? WAY_REMOTE : WAY_LOCAL;
	return *reason == WAY_REMOTE;
}
