/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/cm/rdmacm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/rundir.h"
#include "urxed/epoll_watch.h"
#include "urxed/switch/destination.h"
#include "urxed/switch/forward.h"

/* --- Callbacks between switch, gsi.h, ucma.h and sessions */

static bool has_room(void *ctx)
{
	struct rdmacm *r = ctx;

	return switch_has_room(r->sessions->sw, GSI_BURST);
}

static void send_frame(void *ctx, const uint8_t *frame, uint32_t len)
{
	struct rdmacm *r = ctx;

	switch_send_gsi(r->sessions->sw, frame, len);
}

static void receive_frame(void *ctx, uint64_t now, const uint8_t *frame, uint32_t len)
{
	struct rdmacm *r = ctx;

	gsi_input(&r->gsi, now, frame, len);
}

/* Whether the MAD begins a connection, or ends one that urxed does not have. urxed would answer
 * such a MAD, even if it is for the kernel. */
static bool is_of_no_connection(const struct rdmacm *r, const struct cm_path *path,
				const uint8_t bytes[CM_MAD_LEN])
{
	struct cm_mad mad;

	if (cm_mad_parse(&mad, bytes))
		return false;
	return mad.attr == CM_REQ || mad.attr == CM_SIDR_REQ ||
	       (mad.attr == CM_DREQ && !cm_knows_dreq(r->ucma.cma.cm, path, &mad.pair));
}

/*
 * Whether the kernel's connection manager also receives the sender's MAD, through the HCA, and
 * answers it. So it is if a station of the HCA's network has sent the MAD to an address that the
 * kernel has there; urxed then drops the MAD. MADs of virtual machines reach only urxed.
 */
static bool is_for_hca(const struct rdmacm *r, const struct cm_path *path)
{
	const struct vswitch *sw = r->sessions->sw;
	const struct host *host = r->sessions->host;
	const struct host_address *own = host_address_by_gid(host, path->sgid_index);
	const int uplink = direct_uplink_hca_index(r->sessions->direct_uplink);
	struct fdb_key key = {.vlan = own ? own->vlan : 0};
	int port;

	if (uplink < 0 || host->hca.down || path->local || !own || !own->kernel ||
	    own->uplink != uplink)
		return false;
	memcpy(key.mac, path->mac, sizeof(key.mac));
	port = fdb_find(&sw->fdb, sw->now, &key);
	return port < 0 || !(sw->vm_mask >> port & 1);
}

static void receive_mad(void *ctx, uint64_t now, const struct cm_path *path,
			const uint8_t mad[CM_MAD_LEN])
{
	struct rdmacm *r = ctx;

	if (is_of_no_connection(r, path, mad) && is_for_hca(r, path))
		r->gsi.drops[GSI_DROP_HCA]++;
	else
		cma_input(&r->ucma.cma, now, path, mad);
}

static void send_mad(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_LEN])
{
	struct rdmacm *r = ctx;

	gsi_send(&r->gsi, r->ucma.cma.now, path, mad);
}

static bool has_room_for_mads(void *ctx)
{
	const struct rdmacm *r = ctx;

	return gsi_has_room(&r->gsi, CM_TICK_MAX);
}

/* Returns the MTU to the ID's peer. As in Linux, a VLAN's MTU is at most that of the VLAN's
 * interface. */
static uint16_t mtu_to_peer(void *ctx, const struct cma_id *id)
{
	struct rdmacm *r = ctx;
	const struct host *host = r->sessions->host;
	const struct host_address *own = host_address_by_gid(host, id->sgid_index);
	struct fdb_key key = {.vlan = own ? own->vlan : 0};

	uint16_t mtu;

	memcpy(key.mac, id->next_hop, sizeof(key.mac));
	mtu = switch_mtu_to(r->sessions->sw, &key);
	return own && own->vlan_mtu && own->vlan_mtu < mtu ? (uint16_t)own->vlan_mtu : mtu;
}

/* Whether the device may be the HCA of another urxed, as its name is not the default (--device).
 * Then this daemon takes the place of the kernel's rdma_cm for the other urxed. */
static bool may_be_hca(const struct host *host)
{
	return strcmp(host->device, HOST_DEVICE) != 0;
}

/* Whether the QPN may belong to a process that has not come back yet after a restart of the daemon,
 * or may have belonged to another user's process until a short time ago. */
static bool is_reserved(const struct sessions *sessions, uid_t user, uint32_t qpn)
{
	const struct lease_table *leases = &sessions->sw->leases;

	return !lease_may_add(leases, sessions, qpn) ||
	       lease_is_quiet(leases, lease_block(qpn), user, sessions->now);
}

/*
 * Whether the process may name the QPN in a message. Any process may name a QPN of block 0, which
 * the daemon leases to no process, unless a queue pair of the HCA has it: programs that use rdma_cm
 * without a queue pair, such as rdma-core's cmtime, name such numbers. If another urxed may use
 * this device as its HCA, a process may also name other QPNs that no process has, because the other
 * urxed has leased them.
 */
static bool may_name_qpn(void *ctx, pid_t pid, uid_t user, uint32_t qpn)
{
	const struct rdmacm *r = ctx;
	const struct sessions *sessions = r->sessions;

	if (!lease_owner(&sessions->sw->leases, qpn) &&
	    (qpn < LEASE_QPNS || (may_be_hca(sessions->host) && !is_reserved(sessions, user, qpn))))
		return true;
	return sessions_hold_qpn(sessions, pid, user, qpn);
}

static bool has_claimable_leases(void *ctx, pid_t pid)
{
	const struct rdmacm *r = ctx;

	return lease_store_has_claimable(r->sessions->lease_store, pid);
}

static bool is_frozen(void *ctx, pid_t pid)
{
	const struct rdmacm *r = ctx;

	return ucma_has_frozen_file(&r->ucma, pid);
}

static const struct gsi_ops gsi_ops = {has_room, send_frame, receive_mad};
static const struct ucma_ops ucma_ops = {
	{send_mad, has_room_for_mads, mtu_to_peer, ucma_on_event, ucma_on_request},
	may_name_qpn,
	has_claimable_leases};

/* --- Opening and closing */

int rdmacm_open(struct rdmacm *r, const char *run_dir, gid_t group, uint64_t now,
		struct sessions *sessions, char error[RDMACM_ERROR])
{
	struct vswitch *sw = sessions->sw;
	int rc;

	r->run_dir = run_dir;
	r->sessions = sessions;
	rc = gsi_open(&r->gsi, sessions->host, sessions->neigh, &gsi_ops, r);
	if (!rc)
		rc = ucma_open(&r->ucma, run_dir, now, sessions->host, sessions->neigh, &ucma_ops,
			       r);
	if (rc) {
		snprintf(error, RDMACM_ERROR, "cannot start the connection manager in %s: %s",
			 run_dir, strerror(-rc));
		return rc;
	}
	sw->gsi = receive_frame;
	sw->gsi_ctx = r;
	sessions->is_frozen = is_frozen;
	sessions->is_frozen_ctx = r;
	rc = group ? rundir_grant_group(run_dir, CM_ATTACH_SOCKET_NAME, group, error) : 0;
	return rc ? rc : epoll_watch_add(sessions->epoll_fd, r->ucma.epoll_fd, r, error);
}

void rdmacm_close(struct rdmacm *r)
{
	if (!r->sessions)
		return;
	r->sessions->sw->gsi = NULL;
	r->sessions->is_frozen = NULL;
	/* ucma_close may queue MADs to peers, which gsi_close drops. */
	ucma_close(&r->ucma, r->run_dir);
	gsi_close(&r->gsi);
}

/*
 * gsi_run runs before the timers to deliver received MADs, and after them to send replies at once.
 * The second call also delivers MADs between two programs of this host, which start timers in turn.
 */
uint64_t rdmacm_tick(struct rdmacm *r, uint64_t now)
{
	uint64_t next;

	gsi_run(&r->gsi, now);
	next = ucma_tick(&r->ucma, now);
	gsi_run(&r->gsi, now);
	next = earlier(next, ucma_flush(&r->ucma));
	return earlier(next, cma_next_deadline(&r->ucma.cma));
}

void rdmacm_neigh_answer(struct rdmacm *r, struct neigh_waiter *w, int status,
			 const struct vnic_next_hop *hop)
{
	if (w->asker == NEIGH_FOR_CMA)
		cma_neigh_answer(w, status, hop);
	else
		gsi_neigh_answer(&r->gsi, w, status, hop);
}
