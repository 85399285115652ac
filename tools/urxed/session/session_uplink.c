/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/session/session_uplink.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "urxed/session/quota.h"

static_assert(PACKET_GROUP_MAX == VNIC_UPLINK_SOCKETS, "all sockets fit the message");
static_assert(BOND_MEMBERS <= PACKET_GROUP_MAX, "a socket for each member");
static_assert(PACKET_PORT_QPN_SHIFT == LEASE_SHIFT, "a lease is a block of a packet port's filter");

/*
 * Time that a process has to close its sockets before the switch delivers packets that the sockets
 * may also receive, ns. It is longer than a process waits for a processor, and shorter than a
 * requester's retries take (8 timeouts of 67 ms).
 */
#define CLOSE_NS (200 * UINT64_C(1000000))

/* Blocks of QPNs, in the form that netdev/packet_port.h takes. */
struct blocks {
	uint16_t at[PACKET_PORT_QPN_BLOCKS_MAX];
	uint32_t n; /* may exceed PACKET_PORT_QPN_BLOCKS_MAX: then `at` lacks the last ones */
};

static void add_block(struct blocks *blocks, uint32_t block)
{
	if (blocks->n < PACKET_PORT_QPN_BLOCKS_MAX)
		blocks->at[blocks->n] = (uint16_t)block;
	blocks->n++;
}

static struct session *session_of(struct switch_port *port)
{
	return (struct session *)((char *)port - offsetof(struct session, port));
}

/* Whether the process's sockets are on the uplinks that now carry frames, and not on a former
 * active member of a bond. */
static bool socket_is_on_carriers(const struct sessions *sessions, const struct session *s)
{
	return s->has_uplink_socket &&
	       s->uplink_members == direct_uplink_find(sessions->direct_uplink);
}

/*
 * Whether a process receives packets to the block by a packet socket of its own. This may be a
 * socket from an earlier daemon, or from before the uplink was opened again, until the process has
 * asked for a new one.
 */
static bool is_direct_block(const struct sessions *sessions, uint32_t block)
{
	struct switch_port *owner = sessions->sw->leases.owner[block];
	const struct session *s = owner ? session_of(owner) : NULL;

	if (s && s->has_uplink_socket)
		return socket_is_on_carriers(sessions, s);
	return sessions->lease_store->entries[block].direct_uplink &&
	       (s ? !s->uplink_asked : sessions->lease_store->claimable[block]);
}

static void find_direct_blocks(const struct sessions *sessions, struct blocks *blocks)
{
	blocks->n = 0;
	for (uint32_t block = 0; block < LEASE_BLOCKS; block++)
		if (is_direct_block(sessions, block))
			add_block(blocks, block);
}

/* Whether packet sockets of processes now receive the packets that the switch receives. */
static bool sockets_receive(const struct sessions *sessions)
{
	return direct_uplink_generation(sessions->direct_uplink) &&
	       !(sessions->indirect && direct_uplink_redirects(sessions->direct_uplink));
}

/* Marks the ports of processes with packet sockets. The switch then does not deliver frames to
 * these processes that their sockets receive, too (comes_by_socket in forward.c). */
static void mark_ports(struct sessions *sessions, uint32_t members, const struct blocks *blocks)
{
	const uint32_t sockets = sockets_receive(sessions) ? members : 0;
	struct switch_port *owner;
	struct session *s;

	for (s = sessions->list; s; s = s->next)
		s->port.sockets = socket_is_on_carriers(sessions, s) ? sockets : 0;
	for (uint32_t i = 0; i < blocks->n && i < PACKET_PORT_QPN_BLOCKS_MAX; i++) {
		owner = sessions->sw->leases.owner[blocks->at[i]];
		if (owner)
			owner->sockets = sockets;
	}
}

/* Whether the uplinks have this filter already. An uplink that was opened again has no filter, and
 * another generation. */
static bool is_excluded(const struct session_exclusion *now, uint32_t members, uint32_t generation,
			const struct blocks *blocks)
{
	return now->members == members && now->generation == generation && now->n == blocks->n &&
	       !memcmp(now->blocks, blocks->at, blocks->n * sizeof(blocks->at[0]));
}

/*
 * Removes the filter of uplinks on which processes no longer have packet sockets, so that the
 * switch receives all their frames again. `members`: bit mask of these uplinks. Leaves out the
 * HCA's uplink, where the HCA's filter has replaced this one.
 */
static void stop_excluding(const struct sessions *sessions, uint32_t members)
{
	const struct uplink_set *set = sessions->direct_uplink->uplinks;

	for (uint32_t i = 0; i < set->n; i++) {
		const struct uplink *u = &set->at[i];

		if (members >> i & 1 && u != sessions->admission.uplink && u->port &&
		    netdev_can_exclude_qpns(u->port))
			netdev_exclude_qpns(u->port, NULL, 0);
	}
}

/*
 * Keeps packets to these blocks from the switch, on the uplinks `members`. Sets the filter only if
 * it changes, because the comparison takes much less time. Returns 0, -ENOSPC if there are too many
 * blocks, or an error of direct_uplink_exclude.
 */
static int exclude_blocks(struct sessions *sessions, uint32_t members, const struct blocks *blocks)
{
	const uint32_t generation = direct_uplink_generation(sessions->direct_uplink);
	struct session_exclusion *now = &sessions->exclusion;
	int rc;

	if (blocks->n > PACKET_PORT_QPN_BLOCKS_MAX)
		return -ENOSPC;
	if (is_excluded(now, members, generation, blocks))
		return 0;
	stop_excluding(sessions, now->members & ~members);
	rc = direct_uplink_exclude(sessions->direct_uplink, blocks->at, blocks->n);
	*now = (struct session_exclusion){
		.members = rc ? 0 : members, .generation = generation, .n = blocks->n};
	memcpy(now->blocks, blocks->at, blocks->n * sizeof(blocks->at[0]));
	return rc;
}

/* Stores in the lease store, for the blocks of session s, whether its process has a packet socket;
 * if s is NULL, for all leased blocks. */
static void store_direct_blocks(struct sessions *sessions, const struct session *s,
				bool direct_uplink)
{
	const struct switch_port *owner;

	for (uint32_t block = 0; block < LEASE_BLOCKS; block++) {
		owner = sessions->sw->leases.owner[block];
		if (s ? owner == &s->port : owner != NULL)
			lease_store_set_direct_uplink(sessions->lease_store, block << LEASE_SHIFT,
						      direct_uplink);
	}
}

/* Notes that the process has to close its sockets, and that until it has, its sockets may receive
 * packets that the switch receives, too. */
static void await_close(const struct sessions *sessions, struct switch_port *port)
{
	if (!port->sockets)
		return;
	port->closing_sockets = direct_uplink_find_copied(sessions->direct_uplink, port->sockets);
	port->closing_until = now_ns() + CLOSE_NS;
}

/*
 * Notes that no process has packet sockets any more. While no uplink permits any, processes close
 * theirs, and later they ask for new ones. The switch now receives their packets. It delivers them
 * when the process has said that its sockets are closed (session_give_uplink), or after CLOSE_NS.
 */
static void forget_sockets(struct sessions *sessions)
{
	for (struct session *s = sessions->list; s; s = s->next) {
		await_close(sessions, &s->port);
		if (s->has_uplink_socket)
			sessions->direct_uplink->revocations++;
		s->has_uplink_socket = false;
	}
	store_direct_blocks(sessions, NULL, false);
	stop_excluding(sessions, sessions->exclusion.members);
	sessions->exclusion.members = 0;
}

/*
 * Sets the filter and the ports' marks for the present packet sockets of processes. Returns as
 * exclude_blocks.
 */
static int exclude_direct_blocks(struct sessions *sessions)
{
	const uint32_t members = direct_uplink_find(sessions->direct_uplink);
	struct blocks blocks = {.n = 0};

	if (members)
		find_direct_blocks(sessions, &blocks);
	else if (sessions->direct_uplink)
		forget_sockets(sessions);
	mark_ports(sessions, members, &blocks);
	if (!members)
		return 0;
	if (sessions->indirect)
		blocks.n = 0;
	return exclude_blocks(sessions, members, &blocks);
}

/* --- Packets to the HCA */

/*
 * Collects the blocks whose packets the uplink must receive while an HCA backs the device: leased
 * blocks, and those with QPNs of the HCA that the engine executes (VNIC_QPN_UPLINK). The switch
 * need not see other packets, which are for the HCA, except those to QP1: the uplink receives these
 * with any filter, because urxed may have made connections before the HCA came.
 */
static void find_own_blocks(const struct sessions *sessions, struct blocks *blocks)
{
	const struct vswitch *sw = sessions->sw;

	blocks->n = 0;
	for (uint32_t block = 0; block < LEASE_BLOCKS; block++)
		if (sw->leases.owner[block] || qpn_table_needs_uplink(&sw->added, block))
			add_block(blocks, block);
}

static bool is_admitted(const struct session_admission *now, const struct uplink *u,
			const struct blocks *blocks)
{
	return now->uplink == u && now->generation == u->generation && now->n == blocks->n &&
	       !memcmp(now->blocks, blocks->at, blocks->n * sizeof(blocks->at[0]));
}

/*
 * Makes the uplink that has the filter receive all packets again, because the HCA has gone,
 * because the filter would have too many blocks, or because it could not be set. Returns 0 or an
 * error of netdev_exclude_qpns.
 */
static int admit_all(struct session_admission *now)
{
	struct uplink *u = now->uplink;

	now->uplink = NULL;
	return u && u->port && netdev_can_exclude_qpns(u->port)
		       ? netdev_exclude_qpns(u->port, NULL, 0)
		       : 0;
}

static int admit_own_blocks(struct sessions *sessions)
{
	struct uplink *u = direct_uplink_of_hca(sessions->direct_uplink);
	struct session_admission *now = &sessions->admission;
	struct blocks blocks;
	int rc = 0;

	if (!u && !now->uplink)
		return 0;
	if (u)
		find_own_blocks(sessions, &blocks);
	if (!u || blocks.n > PACKET_PORT_QPN_BLOCKS_MAX)
		return admit_all(now);
	if (is_admitted(now, u, &blocks))
		return 0;
	rc = netdev_admit_qpns(u->port, blocks.at, blocks.n);
	*now = (struct session_admission){.uplink = u, .generation = u->generation, .n = blocks.n};
	memcpy(now->blocks, blocks.at, blocks.n * sizeof(blocks.at[0]));
	/* After the error the port may still have its old filter, which drops packets to the new
	 * blocks. */
	if (rc)
		admit_all(now);
	return rc;
}

void sessions_update_admission(struct sessions *sessions)
{
	int rc = admit_own_blocks(sessions);

	if (rc)
		log_ratelimited(&sessions->log, sessions->now,
				"cannot set which packets the uplink leaves to the HCA: %s",
				strerror(-rc));
}

void sessions_update_uplink(struct sessions *sessions)
{
	int rc;

	/* Before the filter for direct uplinks, because the removal of an HCA's filter would remove
	 * that one, too. */
	sessions_update_admission(sessions);
	rc = exclude_direct_blocks(sessions);
	if (rc)
		log_ratelimited(&sessions->log, sessions->now,
				"cannot set which packets the uplink leaves to direct uplinks: %s",
				strerror(-rc));
}

bool sessions_have_sockets(const struct sessions *sessions)
{
	const struct session *s = sessions->list;

	while (s && !s->has_uplink_socket)
		s = s->next;
	return s;
}

void session_add_uplink_block(struct sessions *sessions, const struct session *s, uint32_t qpn)
{
	if (socket_is_on_carriers(sessions, s))
		lease_store_set_direct_uplink(sessions->lease_store, qpn, true);
	sessions_update_uplink(sessions);
}

/* --- Sockets */

/* Whether the daemon's limit and the user's quota permit sockets for `asker`. Does not count the
 * sockets that `asker` has, because the new ones replace them. */
static bool has_room(const struct sessions *sessions, const struct session *asker)
{
	uid_t user = vnic_server_uid(asker->conn);
	uint32_t own = 0, total = 0;
	const struct session *s;

	for (s = sessions->list; s; s = s->next) {
		if (s == asker || !s->has_uplink_socket)
			continue;
		total++;
		own += vnic_server_uid(s->conn) == user;
	}
	return total < DIRECT_UPLINK_SOCKETS &&
	       quota_allows(user, own, total, DIRECT_UPLINK_SOCKETS);
}

static int check_request(const struct sessions *sessions, const struct session *s)
{
	const struct direct_uplink *direct = sessions->direct_uplink;

	if (!direct_uplink_generation(direct))
		return -ENODEV;
	if (!direct_uplink_trusts(&direct->trust, vnic_server_fd(s->conn)))
		return -EPERM;
	return has_room(sessions, s) ? 0 : -ENOSPC;
}

/* Notes that the process has no socket, or cannot use it, so that the switch receives the process's
 * packets. Returns rc. */
static int refuse_socket(struct sessions *sessions, struct session *s, int rc)
{
	s->has_uplink_socket = false;
	store_direct_blocks(sessions, s, false);
	sessions_update_uplink(sessions);
	return rc;
}

/* As refuse_socket, for a process that may not have closed its old sockets yet. */
static int refuse_new_sockets(struct sessions *sessions, struct session *s, int rc)
{
	await_close(sessions, &s->port);
	return refuse_socket(sessions, s, rc);
}

static void log_refusal(struct sessions *sessions, const struct session *s, int rc)
{
	log_ratelimited(&sessions->log, sessions->now, "process %d has no direct uplink: %s",
			vnic_server_pid(s->conn), strerror(-rc));
}

/* Logs, once, that the kernel limits the sockets' queues. */
static void check_queue(struct sessions *sessions, int fd)
{
	if (sessions->told_short_queue || !packet_port_queue_is_short(fd))
		return;
	sessions->told_short_queue = true;
	log_line("net.core.rmem_max limits the queue of direct uplinks for UDP GSO packets, which "
		 "may be lost: set it to 2097152 on the host");
}

static void close_sockets(const int *fds, int n)
{
	for (int i = 0; i < n; i++)
		close(fds[i]);
}

int session_give_uplink(void *ctx, struct vnic_server_client *conn,
			struct vnic_attach_uplink *answer, int fds[VNIC_UPLINK_SOCKETS])
{
	struct sessions *sessions = ctx;
	struct session *s = sessions_find_conn(sessions, conn);
	struct packet_port_ring ring;
	int rc, n;

	if (answer->status) {
		s->port.closing_sockets = 0;
		return refuse_socket(sessions, s, -ECANCELED);
	}
	rc = check_request(sessions, s);
	s->uplink_asked = true;
	if (rc == -ENODEV && sessions->direct_uplink)
		sessions->direct_uplink->revocations++;
	if (rc)
		return refuse_new_sockets(sessions, s, rc);
	n = direct_uplink_create(sessions->direct_uplink, &ring, fds);
	if (n < 0) {
		log_refusal(sessions, s, n);
		return refuse_new_sockets(sessions, s, n);
	}
	check_queue(sessions, fds[0]);
	answer->frame_size = ring.frame_size;
	answer->blocks = ring.blocks;
	s->has_uplink_socket = true;
	s->port.closing_sockets = 0;
	s->uplink_members = direct_uplink_find(sessions->direct_uplink);
	store_direct_blocks(sessions, s, true);
	remote_qp_acl_hear_always(&sessions->sw->remotes, &s->port.remotes);
	rc = exclude_direct_blocks(sessions);
	if (!rc)
		return n;
	close_sockets(fds, n);
	return refuse_socket(sessions, s, rc);
}
