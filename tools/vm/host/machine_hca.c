/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/host/machine_hca.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <rxe/offload.h>

#include "common/clock.h"
#include "common/epoll_readable.h"
#include "common/log.h"

/* --- The way of a connection */

/*
 * Whether the engines of both ends execute the connection, and not an HCA; the peer must decide
 * alike. They do if the peer is a queue pair of this machine, or if it is one of another machine of
 * this host with a QPN from urxed, which no HCA has. Programs of this host reach the machine's
 * address by the HCA only.
 */
static bool is_on_this_host(const struct machine_hca *h, const struct urxe_qp_attr *attr)
{
	const uint8_t *mac = attr->path.dmac;
	const struct vm_session *s = h->session;

	if (!memcmp(mac, s->mac, sizeof(s->mac)))
		return true;
	return memcmp(mac, s->welcome.mac, sizeof(s->welcome.mac)) &&
	       machine_peers_knows(h->peers, mac, attr->dest_qpn);
}

static bool takes_connection(void *ctx, void *qp_ctx, const struct urxe_qp_attr *attr)
{
	const struct machine_hca *h = ctx;

	(void)qp_ctx;
	return h->way == HCA_WAY_HCA || !is_on_this_host(h, attr);
}

static enum way_reason connection_reason(const struct machine_hca *h,
					 const struct urxe_qp_attr *attr)
{
	if (!hca_has_gid(h->hca, attr->path.sgid_index) || !hca_has_mtu(h->hca, attr->path_mtu))
		return WAY_ADDRESS;
	return h->way != HCA_WAY_HCA && is_on_this_host(h, attr) ? WAY_SAME_HOST : WAY_REGION;
}

static enum way_reason find_reason(const struct machine_hca *h, const struct urxe_qp *qp)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	urxe_qp_query(qp, &attr, &init);
	if (!pvrdma_qp_is_of_program(init.ctx))
		return WAY_KERNEL;
	if (!pvrdma_has_hca(h->dev))
		return WAY_ADDRESS;
	if (!urxe_offload_has_qp(qp))
		return WAY_NO_HCA;
	if (init.type == URXE_QPT_UD || init.srq)
		return WAY_OF_DEVICE;
	if (!urxe_qp_offloaded(qp))
		return connection_reason(h, &attr);
	return h->way == HCA_WAY_HCA ? WAY_FORCED : WAY_OTHER_HOST;
}

const char *machine_hca_reason(const struct machine_hca *h, const struct urxe_qp *qp)
{
	return h->hca ? way_reason_text(find_reason(h, qp)) : NULL;
}

/* --- The HCA of the device */

static void set_gid(void *ctx, uint32_t index, const struct urxe_gid *gid, bool v1)
{
	const struct machine_hca *h = ctx;

	hca_set_gid(h->hca, index, gid, v1, 0);
	if (gid)
		hca_read_gids(h->hca);
}

static bool has_gid(void *ctx, uint32_t index)
{
	return hca_has_gid(((struct machine_hca *)ctx)->hca, index);
}

static int prepare_path(void *ctx, uint32_t pd, const struct urxe_path *path, bool connects)
{
	struct machine_hca *h = ctx;

	return address_handles_get(&h->handles, h->hca, pd, path, connects, now_ns());
}

static void attach_machine_hca(void *ctx, struct urxe_dev *engine)
{
	const struct machine_hca *h = ctx;

	hca_attach(h->hca, engine);
	log_line("%s executes queue pairs of the machine's programs", h->wanted.name);
}

static void detach(void *ctx)
{
	hca_detach(((struct machine_hca *)ctx)->hca);
}

static uint32_t at_least_one(uint32_t n)
{
	return n ? n : 1;
}

static void give_to_device(struct machine_hca *h)
{
	struct hca_limits limits;

	hca_limits(h->hca, &limits);
	h->of_device = (struct pvrdma_hca){
		.set_gid = set_gid,
		.has_gid = has_gid,
		.prepare = prepare_path,
		.attach = attach_machine_hca,
		.detach = detach,
		.ctx = h,
		.max_qp_wr = at_least_one(limits.max_qp_wr),
		.max_sge = at_least_one(limits.max_sge),
		.max_srq_wr = at_least_one(limits.max_srq_wr),
		.max_srq_sge = at_least_one(limits.max_srq_sge),
		.max_rd_atomic = at_least_one(limits.max_rd_atomic),
		.max_init_rd_atomic = at_least_one(limits.max_init_rd_atomic),
		.atomics = limits.atomics,
	};
	pvrdma_set_hca(h->dev, &h->of_device);
}

/* --- Opening and closing the HCA */

static void close_hca(struct machine_hca *h)
{
	if (!h->hca)
		return;
	epoll_remove(h->epoll_fd, hca_comp_fd(h->hca));
	epoll_remove(h->epoll_fd, hca_async_fd(h->hca));
	hca_close(h->hca);
	h->hca = NULL;
}

static void open_hca(struct machine_hca *h, uint64_t now)
{
	/* The P_Keys of the device: PVRDMA has the default partition only. */
	static const uint16_t pkeys[] = {URXE_DEFAULT_PKEY};
	int rc = hca_load_and_open(h->wanted.name, h->wanted.port, &h->owner, &h->hca);

	if (!rc)
		rc = epoll_add_readable(h->epoll_fd, hca_comp_fd(h->hca))
			     ?: epoll_add_readable(h->epoll_fd, hca_async_fd(h->hca));
	/* Logs only the first of several attempts to open the same HCA. */
	if (rc && !h->retry.pause)
		log_line("cannot open %s: %s", h->wanted.name, strerror(-rc));
	hca_retry_note(&h->retry, rc, now);
	if (rc) {
		close_hca(h);
		return;
	}
	h->completions = hca_completions(h->hca);
	hca_set_pkeys(h->hca, pkeys, 1);
	give_to_device(h);
}

static void lose_hca(struct machine_hca *h)
{
	if (!h->hca)
		return;
	if (pvrdma_has_hca(h->dev))
		log_line("%s has gone; queue pairs that it executed fail", h->wanted.name);
	pvrdma_set_hca(h->dev, NULL);
	close_hca(h);
}

static bool is_same_port(const struct vnic_attach_hca *a, const struct vnic_attach_hca *b)
{
	return a->port == b->port && !strcmp(a->name, b->name);
}

/* Whether urxed has named another HCA, or none, since the last call. A later urxed counts
 * generations anew: then an HCA with the same name and port is the same one. */
static bool has_changed(struct machine_hca *h)
{
	const struct vm_session *s = h->session;
	const struct vnic_attach_hca *now = &s->welcome.port.hca;
	const bool later_daemon = s->attachments != h->attachment;

	if (!s->attachments)
		return false;
	h->attachment = s->attachments;
	if (later_daemon && is_same_port(now, &h->wanted)) {
		h->wanted = *now;
		return false;
	}
	return later_daemon || now->generation != h->wanted.generation;
}

static void renew_hca(struct machine_hca *h, uint64_t now)
{
	const bool changed = has_changed(h);

	if (changed || (h->hca && hca_is_dead(h->hca)))
		lose_hca(h);
	if (changed) {
		h->wanted = h->session->welcome.port.hca;
		h->retry = (struct hca_retry){0};
	} else if (machine_hca_deadline(h) > now) {
		/* A dead HCA is opened again only when urxed names it with another generation. */
		return;
	}
	if (h->wanted.name[0] && h->way != HCA_WAY_ENGINE)
		open_hca(h, now);
}

void machine_hca_follow(struct machine_hca *h, uint64_t now)
{
	renew_hca(h, now);
	if (h->hca)
		hca_set_port_down(h->hca, h->session->welcome.port.hca.down);
}

int machine_hca_open(struct machine_hca *h, struct pvrdma *dev, const struct vm_session *session,
		     const struct machine_peers *peers, enum hca_way way)
{
	int rc;

	*h = (struct machine_hca){
		.dev = dev,
		.session = session,
		.peers = peers,
		.way = way,
		.owner = {.takes = takes_connection, .ctx = h},
	};
	rc = address_handles_open(&h->handles);
	h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (h->epoll_fd < 0)
		return -errno;
	if (!rc)
		rc = epoll_add_readable(h->epoll_fd, h->handles.fds[0]);
	if (!rc)
		machine_hca_follow(h, now_ns());
	return rc;
}

void machine_hca_close(struct machine_hca *h)
{
	if (!h->dev)
		return;
	pvrdma_set_hca(h->dev, NULL);
	close_hca(h);
	address_handles_close(&h->handles);
	if (h->epoll_fd >= 0)
		close(h->epoll_fd);
	h->dev = NULL;
}

/* --- Completions */

bool machine_hca_poll(struct machine_hca *h, uint64_t now)
{
	bool more;

	if (!h->hca || !pvrdma_has_hca(h->dev))
		return false;
	/* The count also shows completions that machine_hca_event has taken since. */
	more = hca_poll(h->hca) || hca_completions(h->hca) != h->completions;
	h->completions = hca_completions(h->hca);
	if (more)
		pvrdma_hca_polled(h->dev, now);
	if (h->has_prepared) {
		h->has_prepared = false;
		pvrdma_hca_prepared(h->dev, now);
		more = true;
	}
	return more;
}

bool machine_hca_arm(struct machine_hca *h, uint64_t now)
{
	if (!h->hca || !pvrdma_has_hca(h->dev))
		return false;
	if (!hca_arm(h->hca))
		return hca_is_dead(h->hca);
	pvrdma_hca_polled(h->dev, now);
	return true;
}

void machine_hca_event(struct machine_hca *h)
{
	h->has_prepared |= address_handles_event(&h->handles, now_ns());
	if (!h->hca)
		return;
	hca_handle_events(h->hca);
	pvrdma_hca_gids_changed(h->dev);
}
