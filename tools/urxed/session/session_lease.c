/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * QPN leases of sessions: new ones within quotas, and those that processes claim after a restart of
 * the daemon (session.h). The answer to the process's HELLO, the welcome, carries its first lease.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "urxed/session/process_info.h"
#include "urxed/session/quota.h"
#include "urxed/session/session.h"
#include "urxed/session/session_uplink.h"
#include "urxed/switch/forward.h"

/*
 * Interval of checks whether the processes that may claim leases still live, while another process
 * waits for its welcome. It is also the time from the loss of a connection to the first check of
 * the connection's process.
 */
#define CLAIM_CHECK_NS 50000000u
/* Interval of further checks of programs that may claim late: whether they live and are frozen. */
#define LATE_CHECK_NS 1000000000ull

static_assert(VNIC_BLOCKS == LEASE_BLOCKS, "processes name each other by block number");

static bool is_leased_process(const struct sessions *sessions, uint32_t number)
{
	const struct switch_port *port = lease_owner(&sessions->sw->leases, number << LEASE_SHIFT);

	return port && port->remotes.process == number;
}

static bool may_claim(const struct sessions *sessions, uint32_t number)
{
	return number < LEASE_BLOCKS && sessions->lease_store->claimable[number];
}

void session_free_dead_lock(const struct sessions *sessions, struct session *s)
{
	uint32_t holder = vnic_server_inbox_holder(s->conn);

	if (holder && !lease_store_prune_claims(sessions->lease_store) &&
	    !is_leased_process(sessions, holder) && !may_claim(sessions, holder) &&
	    !lease_store_lives_without_claim(sessions->lease_store, holder))
		vnic_server_inbox_unlock(s->conn, holder);
}

static void free_dead_locks(struct sessions *sessions)
{
	struct session *s;

	for (s = sessions->list; s; s = s->next)
		session_free_dead_lock(sessions, s);
}

/* Drops restored remote QPs of processes that can no longer claim them. */
static void forget_lost_remotes(struct sessions *sessions)
{
	uint32_t process;

	for (process = 0; process < LEASE_BLOCKS; process++)
		if (!sessions->lease_store->claimable[process])
			remote_qp_acl_forget(&sessions->sw->remotes, process);
}

/* Whether the block cannot be leased because processes have added QPNs in it. */
static bool is_block_of_added(const struct vswitch *sw, uint32_t block)
{
	return block && block != LEASE_BLOCKS - 1 && sw->added.in_block[block] &&
	       !sw->leases.owner[block];
}

/* Whether a process may claim the block that it had in an earlier connection to this daemon. */
static bool is_lost_block(const struct sessions *sessions, uint32_t block)
{
	const struct lease_store *store = sessions->lease_store;

	return store->claimable[block] && store->claim_until[block];
}

/*
 * Whether the user's quota permits one more block, for a lease or for the first QPN added in a
 * block. Blocks of lost connections count, because a process could lose any number of connections.
 */
static bool may_have_block(const struct sessions *sessions, uid_t user)
{
	uint32_t own = 0, total = 0;

	for (const struct session *s = sessions->list; s; s = s->next) {
		total += s->blocks;
		if (vnic_server_uid(s->conn) == user)
			own += s->blocks;
	}
	for (uint32_t block = 0; block < LEASE_BLOCKS; block++) {
		if (is_lost_block(sessions, block)) {
			total++;
			own += sessions->lease_store->past[block].user == 1ull + user;
		} else if (is_block_of_added(sessions->sw, block)) {
			total++;
			own += sessions->adders[block] == 1ull + user;
		}
	}
	return quota_allows(user, own, total, LEASE_BLOCKS - 2);
}

/* Returns 0, or -ENOSPC if the process has VNIC_LEASES_MAX blocks, or its user as many as the quota
 * permits. */
static int check_quota(const struct sessions *sessions, const struct session *s)
{
	return s->blocks < VNIC_LEASES_MAX && may_have_block(sessions, vnic_server_uid(s->conn))
		       ? 0
		       : -ENOSPC;
}

typedef int lease_fn(struct vswitch *sw, struct switch_port *port, uint64_t now, uint32_t *qpn);

static bool is_quiet(const struct sessions *sessions, const struct session *s, uint32_t block)
{
	return lease_is_quiet(&sessions->sw->leases, block, vnic_server_uid(s->conn),
			      sessions->now);
}

/*
 * Returns 0 if the process may have the block that it demands, in order to restore queue pairs with
 * their QPNs. Otherwise returns an error of lease_check_demand, or -EACCES if the block is quiet
 * (lease_is_quiet).
 */
static int check_demand(const struct sessions *sessions, const struct session *s, uint32_t qpn)
{
	int rc;

	/* Drops claims of ended processes: the saved process may have ended before it claimed the
	 * block. */
	lease_store_prune_claims(sessions->lease_store);
	rc = lease_check_demand(&sessions->sw->leases, qpn);
	if (rc)
		return rc;
	return is_quiet(sessions, s, lease_block(qpn)) ? -EACCES : 0;
}

int session_add_qpn(struct sessions *sessions, struct session *s, uint32_t qpn, uint32_t flags)
{
	const struct vswitch *sw = sessions->sw;
	uid_t user = vnic_server_uid(s->conn);
	uint32_t block = lease_block(qpn);
	bool is_first;
	int rc;

	/* The first QPN in the block, or the first since the restart: blocks of an earlier daemon's
	 * processes have no adder yet. */
	is_first = !sw->leases.owner[block] &&
		   (!sw->added.in_block[block] || !sessions->adders[block]);
	if (!sw->leases.owner[block] && is_quiet(sessions, s, block))
		return -EACCES;
	if (is_first && block && block != LEASE_BLOCKS - 1 && !may_have_block(sessions, user))
		return -ENOSPC;
	rc = switch_add_qpn(sessions->sw, &s->port, qpn, flags);
	if (!rc && is_first)
		sessions->adders[block] = 1ull + user;
	return rc;
}

static const char *refusal_text(int rc)
{
	switch (rc) {
	case -EPERM: return "the QPNs that it claims: their lease has ended";
	case -EEXIST: return "the QPNs that it demands: another process has them";
	case -EACCES: return "the QPNs that it demands: another user's process had them";
	case -EINVAL: return "the QPNs that it demands: they are not one whole block";
	default: return "more QPNs";
	}
}

/* How a process gets a block of QPNs. */
enum lease_way {
	LEASE_ANY,
	LEASE_CLAIM, /* a block that the process had before, as its token proves */
	LEASE_DEMAND /* a block that the process names by its first QPN */
};

static int check_lease(struct sessions *sessions, const struct session *s, uint32_t qpn,
		       enum lease_way way)
{
	int rc;

	if (way == LEASE_CLAIM)
		return lease_store_claim(sessions->lease_store, qpn, s->token,
					 vnic_server_pid(s->conn), vnic_server_uid(s->conn));
	rc = check_quota(sessions, s);
	return !rc && way == LEASE_DEMAND ? check_demand(sessions, s, qpn) : rc;
}

static int lease_block_to_session(struct sessions *sessions, struct session *s, uint32_t *qpn,
				  enum lease_way way, lease_fn *lease)
{
	pid_t pid = vnic_server_pid(s->conn);
	bool claims = way == LEASE_CLAIM;
	int rc = check_lease(sessions, s, *qpn, way);

	/*
	 * Before the lease, because a process that can no longer claim the block may have left
	 * restored remote QPs under the block's number, which must not become those of the new
	 * process.
	 */
	if (!rc && !claims)
		forget_lost_remotes(sessions);
	if (!rc)
		rc = lease(sessions->sw, &s->port, sessions->now, qpn);
	if (rc) {
		log_ratelimited(&sessions->log, sessions->now, "process %d is refused %s", pid,
				refusal_text(rc));
		return rc;
	}
	s->blocks++;
	if (!claims)
		s->token = lease_store_add(sessions->lease_store, *qpn, pid,
					   vnic_server_uid(s->conn), s->token);
	session_add_uplink_block(sessions, s, *qpn);
	return 0;
}

/* When a process has claimed one block, leases all its other blocks to it at once, because the
 * process itself might claim them too late. Returns 0 or an error. */
static int reclaim_other_blocks(struct sessions *sessions, struct session *s)
{
	pid_t pid = vnic_server_pid(s->conn);
	uint32_t qpn;
	int rc = 0;

	while (!rc && (qpn = lease_store_claimable_qpn(sessions->lease_store, s->token, pid)))
		rc = lease_block_to_session(sessions, s, &qpn, LEASE_CLAIM, switch_lease);
	return rc;
}

/* Returns how the process gets its first lease; qpn: the first QPN of the block, 0 = any block. */
static enum lease_way first_way(const struct session *s, uint32_t qpn)
{
	if (s->demands)
		return LEASE_DEMAND;
	return qpn ? LEASE_CLAIM : LEASE_ANY;
}

static int lease_and_join(struct sessions *sessions, struct session *s, uint32_t *qpn)
{
	enum lease_way way = first_way(s, *qpn);
	int rc;

	/* Before the lease, because a dead process may have left a lock with the number that this
	 * process gets. */
	free_dead_locks(sessions);
	process_name(vnic_server_pid(s->conn), s->port.name);
	s->port.remotes.user = vnic_server_uid(s->conn);
	rc = lease_block_to_session(sessions, s, qpn, way, switch_join);
	if (rc)
		return rc;
	s->joined = true;
	if (way == LEASE_CLAIM) {
		remote_qp_acl_reclaim(&sessions->sw->remotes, &s->port.remotes);
		rc = reclaim_other_blocks(sessions, s);
	}
	return rc;
}

int session_lease_more(void *ctx, struct vnic_server_client *conn, uint32_t *qpn)
{
	struct sessions *sessions = ctx;

	return lease_block_to_session(sessions, sessions_find_conn(sessions, conn), qpn,
				      *qpn ? LEASE_DEMAND : LEASE_ANY, switch_lease);
}

static void fill_welcome(const struct sessions *sessions, const struct session *s, uint32_t qpn,
			 struct vnic_attach_welcome *w)
{
	w->qpn_first = qpn;
	w->qpn_count = LEASE_QPNS;
	w->leases = s->blocks;
	w->token = s->token;
	memcpy(w->mac, sessions->host->mac, ETHER_MAC_LEN);
	w->mtu = HOST_MTU;
	host_fill_port(sessions->host, &w->port);
	memcpy(w->pkeys, sessions->host->pkeys, sizeof(w->pkeys));
}

/* Returns the session of process pid whose blocks have that token; NULL: there is none. */
static struct session *find_holder(struct sessions *sessions, uint64_t token, pid_t pid)
{
	struct session *s = sessions->list;

	while (s && (!s->joined || s->token != token || vnic_server_pid(s->conn) != pid))
		s = s->next;
	return s;
}

/*
 * Ends the earlier connection of a claiming process, which has given that connection up, if the
 * daemon has not noticed its end yet. Returns 0 if there is no such connection. Returns -EBUSY if
 * the connection is ending, or if its frames wait; the process then tries again.
 */
static int end_earlier_connection(struct sessions *sessions, const struct session *s,
				  uint64_t token)
{
	struct session *earlier = find_holder(sessions, token, vnic_server_pid(s->conn));
	const uint64_t now = sessions->now;

	if (!earlier)
		return 0;
	if (!earlier->closed) {
		if (!session_forward_frames(sessions, now, earlier) ||
		    !session_may_end(sessions, now, earlier))
			return -EBUSY;
		switch_send_last(sessions->sw, now, &earlier->port);
	}
	earlier->closed = earlier->lost = true;
	return -EBUSY;
}

int session_welcome(void *ctx, struct vnic_server_client *conn,
		    const struct vnic_attach_hello *hello, struct vnic_attach_welcome *w)
{
	struct sessions *sessions = ctx;
	struct session *s = sessions_find_conn(sessions, conn);
	uint32_t qpn = hello->qpn_first;
	int rc;

	s->demands = hello->demands;
	/* A demand does not wait for claims. If a survivor may claim the block, the daemon refuses
	 * the demand at once. */
	s->awaits_welcome = !qpn && !s->demands && lease_store_prune_claims(sessions->lease_store);
	if (s->awaits_welcome)
		return -EINPROGRESS;
	s->claims = qpn && !s->demands;
	s->token = s->claims ? hello->token : 0;
	rc = s->claims ? end_earlier_connection(sessions, s, hello->token) : 0;
	if (!rc)
		rc = lease_and_join(sessions, s, &qpn);
	if (!rc)
		fill_welcome(sessions, s, qpn, w);
	return rc;
}

static void welcome_late(struct sessions *sessions, struct session *s)
{
	struct vnic_attach_welcome w = {0};
	uint32_t qpn = 0;
	int rc = lease_and_join(sessions, s, &qpn);

	s->awaits_welcome = false;
	if (!rc)
		fill_welcome(sessions, s, qpn, &w);
	if (vnic_server_welcome(s->conn, rc, &w))
		s->closed = true;
}

/* Ends claims (lease_store_end_claims), and drops what the daemon has kept for processes that can
 * no longer claim. */
static void end_claims(struct sessions *sessions)
{
	struct lease_store *store = sessions->lease_store;

	lease_store_end_claims(store, sessions->now, sessions->is_frozen, sessions->is_frozen_ctx);
	if (sessions->claims_ended && store->n_claimable == sessions->n_late)
		return;
	sessions->claims_ended = true;
	sessions->n_late = store->n_claimable;
	remote_qp_acl_end_restore(&sessions->sw->remotes, store->claimable);
	qpn_table_end_restore(&sessions->sw->added, store->claimable);
	free_dead_locks(sessions);
	sessions_update_uplink(sessions);
}

/* Ends claims when their time is over. Returns the time of the next call in ns, UINT64_MAX: no
 * timer runs. */
static uint64_t tick_claims(struct sessions *sessions, uint64_t now)
{
	uint64_t due = sessions->claims_ended ? sessions->late_check : sessions->claims_until;

	if (now < due)
		return due;
	/* Repeats each LATE_CHECK_NS while programs may claim late. The last call drops all that
	 * the daemon has kept for frozen programs. */
	if (!sessions->claims_ended || sessions->n_late) {
		end_claims(sessions);
		sessions->late_check = now + LATE_CHECK_NS;
	}
	return sessions->n_late ? sessions->late_check : UINT64_MAX;
}

static bool any_awaits_welcome(const struct sessions *sessions)
{
	const struct session *s = sessions->list;

	while (s && (!s->awaits_welcome || s->closed))
		s = s->next;
	return s;
}

/*
 * Ends claims, and welcomes the processes that waited for the claims of others. Returns as
 * tick_claims.
 */
static uint64_t tick_welcomes(struct sessions *sessions, uint64_t now)
{
	const struct lease_store *store = sessions->lease_store;
	const uint64_t next = tick_claims(sessions, now);
	/* Checks all claimants in /proc only while a process waits for its welcome, because that is
	 * slow. */
	if (!any_awaits_welcome(sessions))
		return (store->n_claimable && !store->claims_ended) || sessions->n_late
			       ? next
			       : UINT64_MAX;
	if (lease_store_prune_claims(sessions->lease_store))
		return earlier(next, now + CLAIM_CHECK_NS);
	for (struct session *s = sessions->list; s; s = s->next)
		if (s->awaits_welcome && !s->closed)
			welcome_late(sessions, s);
	return sessions->n_late ? next : UINT64_MAX;
}

uint64_t sessions_tick(struct sessions *sessions, uint64_t now)
{
	uint64_t next;

	sessions->now = now;
	next = tick_welcomes(sessions, now);
	next = earlier(next, sessions_tick_ends(sessions, now));
	return earlier(next, sessions_resend_port(sessions));
}

bool session_is_lost(const struct sessions *sessions, const struct session *s, int rc)
{
	bool waits = rc == -EPIPE || s->resolving;

	if (!s->joined || !(s->claims ? waits || !vnic_server_confirmed(s->conn)
				      : waits && vnic_server_device(s->conn)))
		return false;
	return lease_store_is_alive(sessions->lease_store, s->port.remotes.process << LEASE_SHIFT);
}

static void end_lease(struct sessions *sessions, const struct session *s, uint32_t qpn)
{
	const uint64_t soon = sessions->now + CLAIM_CHECK_NS;
	struct lease_store *store = sessions->lease_store;

	if (!s->lost) {
		lease_store_remove(store, qpn);
		return;
	}
	lease_store_lose(store, qpn, sessions->now + SESSION_LOST_NS);
	if (sessions->claims_ended) {
		/*
		 * The process may just be ending, because a killed process closes its connection
		 * shortly before its end. sessions_tick soon checks whether it lives, and otherwise
		 * ends the claim.
		 */
		if (!sessions->n_late || soon < sessions->late_check)
			sessions->late_check = soon;
		sessions->n_late++;
	}
}

void session_end_leases(struct sessions *sessions, struct session *s)
{
	uint32_t block;

	for (block = 0; block < LEASE_BLOCKS; block++)
		if (sessions->sw->leases.owner[block] == &s->port)
			end_lease(sessions, s, block << LEASE_SHIFT);
	switch_leave(sessions->sw, &s->port);
}
