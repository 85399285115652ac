/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/session/session_uplink.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"

static_assert(PACKET_PORT_QPN_SHIFT == LEASE_SHIFT, "a lease is a block of a packet port's filter");

/* Blocks of QPNs, in the form of netdev/packet_port.h. */
struct blocks {
	uint16_t at[PACKET_PORT_QPN_BLOCKS_MAX];
	uint32_t n; /* may exceed PACKET_PORT_QPN_BLOCKS_MAX: then the last ones are missing */
};

static void add_block(struct blocks *blocks, uint32_t block)
{
	if (blocks->n < PACKET_PORT_QPN_BLOCKS_MAX)
		blocks->at[blocks->n] = (uint16_t)block;
	blocks->n++;
}

static bool has_uplink(const struct sessions *sessions, const struct session *s)
{
	return s->uplink_fd >= 0 &&
	       s->uplink_generation == direct_uplink_generation(sessions->direct_uplink);
}

static struct session *session_of(struct switch_port *port)
{
	return (struct session *)((char *)port - offsetof(struct session, port));
}

static void find_session_blocks(const struct sessions *sessions, const struct session *s,
				struct blocks *blocks)
{
	blocks->n = 0;
	for (uint32_t block = 0; block < LEASE_BLOCKS; block++)
		if (sessions->sw->leases.owner[block] == &s->port)
			add_block(blocks, block);
}

/* Whether another socket than the switch's receives packets to a block. */
static bool is_direct_block(const struct sessions *sessions, uint32_t block)
{
	struct switch_port *owner = sessions->sw->leases.owner[block];
	const struct session *s = owner ? session_of(owner) : NULL;

	if (s && has_uplink(sessions, s))
		return true;
	/* The process still has its socket from an earlier daemon, until it has asked this one. */
	return sessions->lease_store->entries[block].direct &&
	       (s ? !s->uplink_asked : sessions->lease_store->claimable[block]);
}

static void find_direct_blocks(const struct sessions *sessions, struct blocks *blocks)
{
	blocks->n = 0;
	for (uint32_t block = 0; block < LEASE_BLOCKS; block++)
		if (is_direct_block(sessions, block))
			add_block(blocks, block);
}

/* An uplink that was opened again has another number, and excludes nothing. */
static bool is_excluded(const struct session_exclusion *now, uint8_t uplink,
			const struct blocks *blocks)
{
	return now->uplink == uplink && now->n == blocks->n &&
	       !memcmp(now->blocks, blocks->at, blocks->n * sizeof(blocks->at[0]));
}

/* To set the filter takes much longer than to find out that it need not change. */
static int exclude_direct_blocks(struct sessions *sessions)
{
	struct session_exclusion *now = &sessions->exclusion;
	uint8_t uplink = direct_uplink_generation(sessions->direct_uplink);
	struct blocks blocks = {.n = 0};
	int rc;

	if (!sessions->indirect)
		find_direct_blocks(sessions, &blocks);
	if (blocks.n > PACKET_PORT_QPN_BLOCKS_MAX)
		return -ENOSPC;
	if (is_excluded(now, uplink, &blocks))
		return 0;
	rc = direct_uplink_exclude(sessions->direct_uplink, blocks.at, blocks.n);
	*now = (struct session_exclusion){.uplink = rc ? 0 : uplink, .n = blocks.n};
	memcpy(now->blocks, blocks.at, blocks.n * sizeof(blocks.at[0]));
	return rc;
}

/*
 * The uplink may have been opened again for another MTU or MAC, on the same interface. Then the old
 * sockets would receive what the switch receives, until their processes ask for new ones.
 */
static void end_old_sockets(struct sessions *sessions)
{
	struct session *s;

	for (s = sessions->list; s; s = s->next) {
		if (s->uplink_fd < 0 || has_uplink(sessions, s))
			continue;
		(void)packet_port_accept(s->uplink_fd, NULL, 0);
		session_close_uplink(s);
	}
}

void sessions_update_uplink(struct sessions *sessions)
{
	int rc;

	end_old_sockets(sessions);
	rc = direct_uplink_generation(sessions->direct_uplink) ? exclude_direct_blocks(sessions)
							       : 0;
	if (rc)
		log_line("cannot set the filter of the uplink: %s", strerror(-rc));
}

/* The socket receives packets to the session's queue pairs, or none. */
static void set_socket_filter(const struct sessions *sessions, const struct session *s, bool on)
{
	struct blocks blocks = {.n = 0};
	int rc;

	if (on)
		find_session_blocks(sessions, s, &blocks);
	rc = packet_port_accept(s->uplink_fd, blocks.at, blocks.n);
	if (rc)
		log_line("cannot set the filter of a direct uplink: %s", strerror(-rc));
}

static void set_socket_filters(const struct sessions *sessions, bool on)
{
	const struct session *s;

	for (s = sessions->list; s; s = s->next)
		if (has_uplink(sessions, s))
			set_socket_filter(sessions, s, on);
}

/* Packets that come between the two steps are lost, not duplicated. */
void sessions_switch_uplink(struct sessions *sessions)
{
	if (sessions->indirect)
		set_socket_filters(sessions, false);
	sessions_update_uplink(sessions);
	if (!sessions->indirect)
		set_socket_filters(sessions, true);
}

void session_add_uplink_block(struct sessions *sessions, const struct session *s, uint32_t qpn)
{
	if (has_uplink(sessions, s))
		lease_store_set_direct(sessions->lease_store, qpn, true);
	sessions_update_uplink(sessions);
}

/* --- Sockets */

static uint32_t count_sockets(const struct sessions *sessions)
{
	const struct session *s;
	uint32_t n = 0;

	for (s = sessions->list; s; s = s->next)
		n += has_uplink(sessions, s);
	return n;
}

static int check_request(const struct sessions *sessions, const struct session *s)
{
	const struct direct_uplink *direct = sessions->direct_uplink;

	if (!direct_uplink_generation(direct))
		return -ENODEV;
	if (!direct_uplink_trusts(&direct->trust, vnic_server_fd(s->conn)))
		return -EPERM;
	if (has_uplink(sessions, s))
		return -EEXIST;
	return count_sockets(sessions) < DIRECT_UPLINK_SOCKETS ? 0 : -ENOSPC;
}

static int open_socket(struct sessions *sessions, struct session *s, struct packet_port_ring *ring)
{
	int fd = direct_uplink_create(sessions->direct_uplink, ring);

	if (fd < 0)
		return fd;
	session_close_uplink(s);
	s->uplink_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (s->uplink_fd >= 0)
		return fd;
	close(fd);
	return -EMFILE;
}

static void store_direct_blocks(struct sessions *sessions, const struct session *s, bool direct)
{
	for (uint32_t block = 0; block < LEASE_BLOCKS; block++)
		if (sessions->sw->leases.owner[block] == &s->port)
			lease_store_set_direct(sessions->lease_store, block << LEASE_SHIFT, direct);
}

/* The process has no socket, or cannot use it: the switch receives its packets. */
static int refuse_socket(struct sessions *sessions, struct session *s, int rc)
{
	session_close_uplink(s);
	store_direct_blocks(sessions, s, false);
	sessions_update_uplink(sessions);
	return rc;
}

int session_give_uplink(void *ctx, struct vnic_server_client *conn,
			struct vnic_attach_uplink *answer)
{
	struct sessions *sessions = ctx;
	struct session *s = sessions_find_conn(sessions, conn);
	struct packet_port_ring ring;
	int rc, fd;

	if (answer->status)
		return refuse_socket(sessions, s, -ECANCELED);
	rc = check_request(sessions, s);
	fd = rc ? rc : open_socket(sessions, s, &ring);
	if (rc == -EEXIST)
		return rc;
	s->uplink_asked = true;
	if (fd < 0)
		return refuse_socket(sessions, s, fd);
	answer->frame_size = ring.frame_size;
	answer->blocks = ring.blocks;
	s->uplink_generation = direct_uplink_generation(sessions->direct_uplink);
	store_direct_blocks(sessions, s, true);
	rc = exclude_direct_blocks(sessions);
	if (!rc)
		return fd;
	close(fd);
	return refuse_socket(sessions, s, rc);
}

void session_close_uplink(struct session *s)
{
	if (s->uplink_fd >= 0)
		close(s->uplink_fd);
	s->uplink_fd = -1;
}
