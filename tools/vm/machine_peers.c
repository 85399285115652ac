/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/machine_peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"

/* The way to the memory of a process. */
struct machine_route {
	uint8_t mac[6]; /* of its queue pairs */
	struct vnic_outbox *outbox;
	struct peer *peer;
};

/* A number from a guest may have more than 24 bits. */
static uint32_t process_of(uint32_t qpn)
{
	return VNIC_PROCESS(qpn) % VNIC_PROCESSES;
}

static bool is_known(const struct machine_peers *p, const uint8_t mac[6], uint32_t qpn)
{
	const struct machine_route *route = p->routes[process_of(qpn)];

	return route && !memcmp(route->mac, mac, sizeof(route->mac)) &&
	       !vnic_outbox_closed(route->outbox);
}

/* While urxed captures frames, it allows no copies. */
bool machine_peers_has(const struct machine_peers *p, const uint8_t mac[6], uint32_t qpn)
{
	const struct vnic_driver *nic = p->session->nic;

	return nic && vnic_driver_direct_allowed(nic) && is_known(p, mac, qpn);
}

static struct peer *find_peer(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	const struct machine_peers *p = ctx;

	return machine_peers_has(p, mac, qpn) ? p->routes[process_of(qpn)]->peer : NULL;
}

static void log_exclusion(void *ctx, int32_t pid)
{
	(void)ctx;
	log_line("process %d marks a copy in the machine's memory and makes none: it gets packets",
		 pid);
}

/* Packets go by the switch, so they are slower than copies even to a process that polls. */
static bool is_awake(void *ctx, uint64_t now)
{
	(void)ctx, (void)now;
	return false;
}

void machine_peers_open(struct machine_peers *p, struct vm_session *session)
{
	static const struct peers_ops ops = {.find = find_peer, .excluded = log_exclusion};
	int rc;

	p->session = session;
	p->direct = peers_direct_ops;
	p->direct.awake = is_awake;
	peers_init(&p->peers, &ops, p);
	rc = vm_session_make_inbox(session, &p->inbox);
	if (rc) {
		log_line("no copies of the machine's memory: %s", strerror(-rc));
		return;
	}
	p->table = peers_publish(&p->peers, vnic_inbox_published(p->inbox),
				 VNIC_PROCESS(session->welcome.qpn_first));
	peers_publish_thread(&p->peers);
	rc = vnic_inbox_publish(p->inbox);
	if (rc)
		log_line("peers cannot copy to the machine's memory: %s", strerror(-rc));
}

static void close_route(struct machine_peers *p, uint32_t process)
{
	struct machine_route *route = p->routes[process];

	p->routes[process] = NULL;
	if (!route)
		return;
	peer_close(route->peer);
	free(route);
}

void machine_peers_close(struct machine_peers *p)
{
	for (uint32_t i = 0; i < VNIC_PROCESSES; i++)
		close_route(p, i);
	if (p->inbox)
		peers_done(&p->peers);
	vnic_inbox_destroy(p->inbox);
	p->inbox = NULL;
}

/* --- Introductions */

/* Frees the memory of processes that have ended. */
static void close_ended(struct machine_peers *p)
{
	for (uint32_t i = 0; i < VNIC_PROCESSES; i++)
		if (p->routes[i] && vnic_outbox_closed(p->routes[i]->outbox))
			close_route(p, i);
}

static int add_route(struct machine_peers *p, const uint8_t mac[6], uint32_t qpn,
		     const int fds[VNIC_INBOX_FDS])
{
	const struct vnic_attach_welcome *welcome = &p->session->welcome;
	struct machine_route *route = calloc(1, sizeof(*route));
	struct vnic_outbox *outbox;
	int rc = vnic_outbox_open(fds, welcome->mtu, VNIC_PROCESS(welcome->qpn_first), &outbox);

	if (rc) {
		free(route);
		return rc;
	}
	if (route)
		route->peer = peer_open(&p->peers, outbox, process_of(qpn));
	if (!route || !route->peer) {
		vnic_outbox_close(outbox);
		free(route);
		return -ENOMEM;
	}
	route->outbox = outbox;
	memcpy(route->mac, mac, sizeof(route->mac));
	close_route(p, process_of(qpn));
	p->routes[process_of(qpn)] = route;
	return 0;
}

/* Queue pairs of one machine reach each other within the device. */
static bool may_be_here(const struct machine_peers *p, const uint8_t mac[6])
{
	const struct vm_session *s = p->session;

	if (!p->table || !s->nic || mac[0] & 1 || !memcmp(mac, s->mac, sizeof(s->mac)))
		return false;
	return s->welcome.port.machines || !memcmp(mac, s->welcome.mac, sizeof(s->welcome.mac));
}

void machine_peers_meet(struct machine_peers *p, const uint8_t mac[6], uint32_t qpn)
{
	int fds[VNIC_INBOX_FDS], rc;

	if (!may_be_here(p, mac) || is_known(p, mac, qpn))
		return;
	close_ended(p);
	rc = vnic_driver_introduce(p->session->nic, mac, qpn, fds);
	if (!rc)
		rc = add_route(p, mac, qpn, fds);
	/* Another host's, another user's, or a process without memory to share. */
	if (rc && rc != -ENOENT && rc != -EPERM)
		log_line("messages to QP %#x go in packets: %s", qpn, strerror(-rc));
}
