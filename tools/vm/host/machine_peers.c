/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/host/machine_peers.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include <vnic/regs.h>

#include "common/clock.h"
#include "common/log.h"

/* Pause before the next request for a process whose user urxed does not know yet. */
#define UNKNOWN_PAUSE_NS (100 * NS_PER_MS)

/* Returns the block of a QPN (VNIC_BLOCK), which is the index of the route to its process in
 * `routes`. A QPN from a guest, or from a peer's reference, may have more than 24 bits. */
static uint32_t process_of(uint32_t qpn)
{
	return VNIC_BLOCK(qpn) % VNIC_BLOCKS;
}

static uint32_t own_number(const struct machine_peers *p)
{
	return VNIC_BLOCK(p->session->welcome.qpn_first);
}

bool machine_peers_knows(const struct machine_peers *p, const uint8_t mac[6], uint32_t qpn)
{
	const struct peer_route *route = p->routes[process_of(qpn)];

	return peer_route_leads_to(route, mac) && !peer_route_has_ended(route);
}

/* False also while urxed captures frames, because all have to pass the switch then. */
bool machine_peers_may_bypass(const struct machine_peers *p, const uint8_t mac[6], uint32_t qpn)
{
	const struct vnic_driver *nic = p->session->nic;

	return nic && vnic_driver_bypass_allowed(nic) && machine_peers_knows(p, mac, qpn);
}

static struct peer *find_peer(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	const struct machine_peers *p = ctx;

	return machine_peers_may_bypass(p, mac, qpn) ? p->routes[process_of(qpn)]->peer : NULL;
}

static void log_exclusion(void *ctx, int32_t pid)
{
	(void)ctx;
	log_line("process %d has announced a copy in the machine's memory and does not make it: "
		 "messages to and from it go in packets",
		 pid);
}

/* urxe_copy_ops.polls_or_wake. Always false: counts no peer as polling, because even if the peer
 * polls, a copy, for which the peer need not look at its inbox, is faster than a frame. */
static bool never_polls(void *ctx, uint64_t now)
{
	(void)ctx, (void)now;
	return false;
}

void machine_peers_open(struct machine_peers *p, struct vm_session *session)
{
	static const struct peers_ops ops = {.find = find_peer, .excluded = log_exclusion};
	int rc;

	p->session = session;
	p->copy_ops = peers_copy_ops;
	p->copy_ops.polls_or_wake = never_polls;
	peers_init(&p->peers, &ops, p);
	rc = vm_session_make_inbox(session, &p->inbox);
	if (rc) {
		log_line("all messages of the machine go in packets: %s", strerror(-rc));
		return;
	}
	p->table = peers_publish(&p->peers, vnic_inbox_published(p->inbox), own_number(p));
	peers_publish_thread(&p->peers);
	rc = vnic_inbox_publish(p->inbox);
	if (rc)
		log_line("peers cannot copy to the machine's memory: %s", strerror(-rc));
}

void machine_peers_end_service(struct machine_peers *p)
{
	if (!p->inbox || p->ended)
		return;
	p->ended = true;
	p->session->inbox = NULL;
	vnic_inbox_close(p->inbox);
}

void machine_peers_hold_senders(struct machine_peers *p)
{
	if (p->inbox && !p->ended)
		vnic_inbox_lock(p->inbox, own_number(p));
}

void machine_peers_admit_senders(struct machine_peers *p)
{
	if (p->inbox && !p->ended)
		vnic_inbox_unlock(p->inbox, own_number(p));
}

static void close_route(struct machine_peers *p, uint32_t process)
{
	struct peer_route *route = p->routes[process];

	p->routes[process] = NULL;
	if (route)
		peer_route_close(route);
}

void machine_peers_close(struct machine_peers *p)
{
	for (uint32_t i = 0; i < VNIC_BLOCKS; i++)
		close_route(p, i);
	if (p->inbox)
		peers_done(&p->peers);
	vnic_inbox_destroy(p->inbox);
	p->inbox = NULL;
}

/* --- Introductions */

/* Closes the routes to processes that have ended, which frees the memory that they published. */
static void close_ended(struct machine_peers *p)
{
	for (uint32_t i = 0; i < VNIC_BLOCKS; i++)
		if (p->routes[i] && peer_route_has_ended(p->routes[i]))
			close_route(p, i);
}

static int add_route(struct machine_peers *p, const uint8_t mac[6], uint32_t qpn,
		     const int fds[VNIC_INBOX_FDS])
{
	const uint32_t process = process_of(qpn);
	struct peer_route *route;
	struct vnic_outbox *outbox;
	int rc = vnic_outbox_open(fds, p->session->welcome.mtu, own_number(p), &outbox);

	if (rc)
		return rc;
	/* First, because the end of a peer takes back the access that the machine has granted to
	 * this process number. */
	close_route(p, process);
	route = peer_route_open(&p->peers, outbox, mac, process);
	if (!route)
		return -ENOMEM;
	p->routes[process] = route;
	return 0;
}

/* Whether a process of this host may have queue pairs with the MAC. For the machine's own MAC no
 * process is needed: queue pairs of one machine reach each other within the device. */
static bool may_be_here(const struct machine_peers *p, const uint8_t mac[6])
{
	const struct vm_session *s = p->session;

	if (!p->table || p->ended || !s->nic || mac[0] & 1 || !memcmp(mac, s->mac, sizeof(s->mac)))
		return false;
	return s->welcome.port.machines || !memcmp(mac, s->welcome.mac, sizeof(s->welcome.mac));
}

/* Notes the queue pair for machine_peers_tick. False: no room. */
static bool ask_again(struct machine_peers *p, const uint8_t mac[6], uint32_t qpn)
{
	struct machine_peers_unknown *unknown = &p->unknown[p->n_unknown];

	if (p->n_unknown == MACHINE_PEERS_UNKNOWN)
		return false;
	if (!p->n_unknown++)
		p->ask_at = now_ns() + UNKNOWN_PAUSE_NS;
	memcpy(unknown->mac, mac, sizeof(unknown->mac));
	unknown->qpn = qpn;
	return true;
}

uint64_t machine_peers_tick(struct machine_peers *p, uint64_t now)
{
	struct machine_peers_unknown unknown[MACHINE_PEERS_UNKNOWN];
	const uint32_t n = p->n_unknown;

	if (n && now >= p->ask_at) {
		memcpy(unknown, p->unknown, sizeof(unknown));
		p->n_unknown = 0;
		for (uint32_t i = 0; i < n; i++)
			machine_peers_request_introduction(p, unknown[i].mac, unknown[i].qpn);
	}
	return p->n_unknown ? p->ask_at : UINT64_MAX;
}

void machine_peers_request_introduction(struct machine_peers *p, const uint8_t mac[6], uint32_t qpn)
{
	int fds[VNIC_INBOX_FDS], rc;

	if (!may_be_here(p, mac) || machine_peers_knows(p, mac, qpn))
		return;
	close_ended(p);
	rc = vnic_driver_introduce(p->session->nic, mac, qpn, fds);
	if (!rc)
		rc = add_route(p, mac, qpn, fds);
	if (rc == -EBUSY && ask_again(p, mac, qpn))
		return;
	/* Normal: the QPN is another host's (-ENOENT) or user's (-EPERM), or has no inbox. */
	if (rc && rc != -ENOENT && rc != -EPERM)
		log_line("messages to QP %#x go in packets: %s", qpn, strerror(-rc));
}

/* --- References */

static struct peer_route *route_to(struct machine_peers *p, const uint8_t mac[6], uint32_t qpn)
{
	return machine_peers_may_bypass(p, mac, qpn) ? p->routes[process_of(qpn)] : NULL;
}

bool machine_peers_may_reference(struct machine_peers *p, const uint8_t mac[6], uint32_t qpn)
{
	const struct peer_route *route = route_to(p, mac, qpn);

	/* The switch carries no references. */
	return route && !route->detour_until && peer_pulls(route->peer);
}

/* --- Frames to inboxes */

static void count(struct machine_peers *p, enum vnic_bypass_counter counter, uint32_t n)
{
	p->counters[counter] += n;
}

uint32_t machine_peers_frame_max(const struct machine_peers *p)
{
	return p->inbox ? VNIC_FRAME_MAX(p->session->welcome.mtu) : UINT32_MAX;
}

/* Whether frames go to the inbox now: it is not closed, and no detour by the switch lasts. */
static bool is_open(const struct peer_route *route, uint64_t now)
{
	return now >= route->detour_until && !vnic_outbox_closed(route->outbox);
}

/* Returns the route by which the frame goes to an inbox; NULL: the frame goes by the switch. */
static struct peer_route *route_of(struct machine_peers *p, uint64_t now,
				   const struct urxe_frame *frame)
{
	struct peer_route *route = route_to(p, frame->data, frame->dest_qpn);

	if (!route || frame->len - URXE_ICRC_LEN > machine_peers_frame_max(p) ||
	    !is_open(route, now))
		return NULL;
	route->detour_until = 0;
	return route;
}

static void count_by_switch(struct machine_peers *p, const struct urxe_frame *frame)
{
	if (!machine_peers_knows(p, frame->data, frame->dest_qpn))
		return;
	count(p,
	      machine_peers_may_bypass(p, frame->data, frame->dest_qpn) ? VNIC_BYPASS_FULL
									: VNIC_BYPASS_OFF,
	      1);
}

static uint32_t count_references(const struct urxe_frame *frames, uint32_t n)
{
	uint32_t references = 0;

	for (uint32_t i = 0; i < n; i++)
		references += frames[i].reference.length != 0;
	return references;
}

/* Sends n frames, at most MACHINE_PEERS_BURST, without their ICRCs. Returns how many the inbox
 * took; fewer: the next frame has to wait, or is_open() is false now. */
static uint32_t send_to_inbox(struct peer_route *route, uint64_t now,
			      const struct urxe_frame *frames, uint32_t n)
{
	struct vnic_frame out[MACHINE_PEERS_BURST];
	enum vnic_outbox_status status;
	uint32_t sent;

	for (uint32_t i = 0; i < n; i++)
		out[i] = (struct vnic_frame){.data = frames[i].data,
					     .len = frames[i].len - URXE_ICRC_LEN,
					     .reference = peer_route_reference(&frames[i])};
	sent = vnic_outbox_send(route->outbox, out, n, &status);
	if (sent)
		route->stuck_since = 0;
	if (sent < n)
		peer_route_stalls(route, now);
	return sent;
}

uint32_t machine_peers_send(struct machine_peers *p, uint64_t now, const struct urxe_frame *frames,
			    uint32_t n, bool *waits)
{
	struct peer_route *route = route_of(p, now, &frames[0]);
	uint32_t row = 1, sent;

	*waits = false;
	if (!route) {
		count_by_switch(p, &frames[0]);
		return 0;
	}
	while (row < n && row < MACHINE_PEERS_BURST && route_of(p, now, &frames[row]) == route)
		row++;
	sent = send_to_inbox(route, now, frames, row);
	count(p, VNIC_BYPASS_SENT, sent);
	count(p, VNIC_BYPASS_REFERRED, count_references(frames, sent));
	*waits = sent < row && is_open(route, now);
	return sent;
}

/* --- Frames from the inbox */

uint32_t machine_peers_receive(struct machine_peers *p, struct urxe_frame *frames, uint32_t max,
			       uint32_t *taken)
{
	struct vnic_frame buffers[MACHINE_PEERS_BURST];
	uint32_t n = 0;

	*taken = p->inbox ? vnic_inbox_rx(p->inbox, buffers,
					  max < MACHINE_PEERS_BURST ? max : MACHINE_PEERS_BURST)
			  : 0;
	for (uint32_t i = 0; i < *taken; i++)
		n += peer_route_convert(p->routes[process_of(buffers[i].reference.qpn)],
					&buffers[i], true, &frames[n]);
	count(p, VNIC_BYPASS_RECEIVED, *taken);
	count(p, VNIC_BYPASS_PULLED, count_references(frames, n));
	count(p, VNIC_BYPASS_UNREACHED, *taken - n);
	return n;
}

void machine_peers_release(struct machine_peers *p, uint32_t taken)
{
	if (taken)
		vnic_inbox_rx_release(p->inbox, taken);
	if (p->inbox && !p->ended && vnic_inbox_broken(p->inbox) &&
	    !p->counters[VNIC_BYPASS_BROKEN]) {
		count(p, VNIC_BYPASS_BROKEN, 1);
		log_line("a process wrote to the machine's inbox against its protocol: packets "
			 "go by the switch");
	}
}

/* --- The inbox's interrupt */

int machine_peers_fd(const struct machine_peers *p)
{
	return p->inbox ? vnic_inbox_irq_fd(p->inbox) : -1;
}

void machine_peers_event(const struct machine_peers *p)
{
	eventfd_t count;

	/* The descriptor does not block. */
	(void)!eventfd_read(machine_peers_fd(p), &count);
}

bool machine_peers_arm(struct machine_peers *p)
{
	p->armed = p->inbox;
	return p->inbox && vnic_inbox_irq_unmask(p->inbox);
}

void machine_peers_disarm(struct machine_peers *p)
{
	if (p->armed)
		vnic_inbox_irq_mask(p->inbox);
	p->armed = false;
}
