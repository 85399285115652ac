/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/session/session.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "urxed/privilege/fd_guard.h"
#include "urxed/privilege/namespace_query.h"
#include "urxed/session/quota.h"
#include "urxed/session/session_uplink.h"
#include "urxed/switch/forward.h"

/* Time between two attempts to send the state of the port, ns. */
#define RESEND_NS 100000000u

static const struct vnic_server_ops ops;

struct session *sessions_find_conn(struct sessions *sessions, const struct vnic_server_client *conn)
{
	struct session *s;

	for (s = sessions->list; s->conn != conn; s = s->next)
		;
	return s;
}

static void resolve_address(void *ctx, struct vnic_server_client *conn,
			    const struct vnic_attach_resolve *r)
{
	struct sessions *sessions = ctx;
	struct session *s = sessions_find_conn(sessions, conn);
	struct vnic_next_hop hop;
	int rc;

	if (s->resolving) {
		s->closed = true; /* an error: a process may resolve one address at a time */
		return;
	}
	rc = neigh_resolve(sessions->neigh, sessions->now, vnic_server_uid(conn), r->sgid_index,
			   r->dgid, &s->waiter, &hop);
	s->resolving = rc == -EINPROGRESS;
	if (!s->resolving && vnic_server_resolved(conn, rc, &hop)) {
		s->closed = true;
		s->lost = session_is_lost(sessions, s, -EPIPE);
	}
}

static struct vnic_server_client *conn_of(const struct switch_port *port)
{
	return ((const struct session *)((const char *)port - offsetof(struct session, port)))
		->conn;
}

/* The callback for INTRODUCE: returns the connection of the process that has the QPN. NULL: no
 * process has the QPN, or the process that sent INTRODUCE has no token left. */
static struct vnic_server_client *qpn_owner(void *ctx, uint32_t qpn)
{
	struct sessions *sessions = ctx;
	const struct switch_port *port = lease_owner(&sessions->sw->leases, qpn);

	if (!port || !token_bucket_take(&sessions->speaking->introductions, sessions->now,
					SESSION_INTRODUCTIONS, SESSION_INTRODUCTION_NS))
		return NULL;
	return conn_of(port);
}

bool sessions_hold_qpn(const struct sessions *sessions, pid_t pid, uid_t user, uint32_t qpn)
{
	const struct switch_port *port = lease_owner(&sessions->sw->leases, qpn);

	return port && vnic_server_pid(conn_of(port)) == pid &&
	       vnic_server_uid(conn_of(port)) == user;
}

int session_introduce(struct switch_port *from, struct switch_port *to, uint32_t qpn)
{
	return vnic_server_introduce(conn_of(from), conn_of(to), qpn, &ops, NULL);
}

void session_resolved(struct neigh_waiter *w, int status, const struct vnic_next_hop *hop)
{
	struct session *s = (struct session *)((char *)w - offsetof(struct session, waiter));

	s->resolving = false;
	/*
	 * Ignores an error: if the process does not read its answers, its socket reports that next.
	 */
	vnic_server_resolved(s->conn, status, hop);
}

static void send_port(struct sessions *sessions, struct session *s)
{
	struct epoll_event ev = {.events = EPOLLOUT | EPOLLET, .data.ptr = s};
	struct vnic_attach_port port;
	int fd = vnic_server_notice_fd(s->conn), rc;

	host_fill_port(sessions->host, &port);
	rc = vnic_server_notice(s->conn, &port);
	s->port_unsent = rc;
	/* The kernel lacks memory for the notice. epoll does not report when there is memory again,
	 * so the daemon tries again after a while. */
	if (rc && rc != -EAGAIN)
		sessions->resend_at = sessions->now + RESEND_NS;
	/* The socket of notices is full. Its watch is edge-triggered and stays, so epoll reports
	 * when it drains, also if it was watched before (EEXIST). */
	if (rc == -EAGAIN && epoll_ctl(sessions->epoll_fd, EPOLL_CTL_ADD, fd, &ev) &&
	    errno != EEXIST)
		s->closed = true;
}

void sessions_send_port(struct sessions *sessions)
{
	struct session *s;

	for (s = sessions->list; s; s = s->next)
		if (!s->closed)
			send_port(sessions, s);
}

uint64_t sessions_resend_port(struct sessions *sessions)
{
	if (!sessions->resend_at)
		return UINT64_MAX;
	if (sessions->now >= sessions->resend_at) {
		sessions->resend_at = 0;
		for (struct session *s = sessions->list; s; s = s->next)
			if (s->port_unsent && !s->closed)
				send_port(sessions, s);
	}
	return sessions->resend_at ? sessions->resend_at : UINT64_MAX;
}

void sessions_allow_bypass(struct sessions *sessions, bool on)
{
	struct session *s;

	sessions->indirect = !on;
	for (s = sessions->list; s; s = s->next)
		if (s->port.dev)
			vnic_server_allow_bypass(s->conn, on);
	sessions_update_uplink(sessions);
}

/* Returns the number of remote QPs of all processes of a user; sets *total to that of all users. */
static uint32_t count_remotes(const struct sessions *sessions, uid_t user, uint32_t *total)
{
	const struct session *s;
	uint32_t own = 0;

	*total = 0;
	for (s = sessions->list; s; s = s->next) {
		*total += s->port.remotes.n;
		if (vnic_server_uid(s->conn) == user)
			own += s->port.remotes.n;
	}
	return own;
}

static int register_remote(struct sessions *sessions, struct session *s,
			   const struct vnic_attach_remote *r)
{
	uid_t user = vnic_server_uid(s->conn);
	uint32_t total, own = count_remotes(sessions, user, &total);

	if (!quota_allows(user, own, total, REMOTE_QP_MAX))
		return -ENOSPC;
	return switch_add_remote(sessions->sw, &s->port, r->local_qpn, r->dgid, r->qpn);
}

static int set_remote(void *ctx, struct vnic_server_client *conn,
		      const struct vnic_attach_remote *r)
{
	struct sessions *sessions = ctx;
	struct session *s = sessions_find_conn(sessions, conn);
	int rc;

	if (r->type == VNIC_ATTACH_UNREGISTER)
		return switch_remove_remote(sessions->sw, &s->port, r->local_qpn, r->dgid, r->qpn);
	rc = register_remote(sessions, s, r);
	if (rc)
		log_ratelimited(&sessions->log, sessions->now,
				"%s may not connect QP %#x to remote QP %#x: %s", s->port.name,
				r->local_qpn, r->qpn, strerror(-rc));
	return rc;
}

/* --- Added QPNs (qpn_table.h) */

/* Returns the number of added QPNs of all processes of a user; sets *total to that of all users. */
static uint32_t count_added(const struct sessions *sessions, uid_t user, uint32_t *total)
{
	uint32_t own = 0;

	*total = 0;
	for (const struct session *s = sessions->list; s; s = s->next) {
		*total += s->port.added.n;
		if (vnic_server_uid(s->conn) == user)
			own += s->port.added.n;
	}
	return own;
}

static int add_qpn(struct sessions *sessions, struct session *s, const struct vnic_attach_qpn *r)
{
	uid_t user = vnic_server_uid(s->conn);
	uint32_t total, own = count_added(sessions, user, &total);
	int rc;

	rc = quota_allows(user, own, total, QPN_TABLE_MAX)
		     ? session_add_qpn(sessions, s, r->qpn, r->flags)
		     : -ENOSPC;
	if (rc)
		log_ratelimited(&sessions->log, sessions->now, "%s may not have QPN %#x: %s",
				s->port.name, r->qpn, strerror(-rc));
	return rc;
}

/*
 * Answers QPN_QUERY. Returns 0 if the process reaches the peer's QPN by the switch or an inbox
 * instead of the HCA; -EBUSY if the daemon cannot tell at the moment; else -ENOENT. 0 requires that
 * r->dgid is this host's, and that the process which has added the QPN is of the same user, has set
 * VNIC_QPN_REACHABLE and uses the host's MAC. The user matters, because a process can add any QPN
 * that no other has added, even that of another process's queue pair of the HCA, and must not get
 * what other users send to that queue pair.
 */
static int query_qpn(struct sessions *sessions, const struct session *s,
		     const struct vnic_attach_qpn *r)
{
	const struct qpn_entry *e = qpn_table_find(&sessions->sw->added, r->qpn);
	const struct vnic_server_client *owner = e ? conn_of(e->holder->owner) : NULL;
	int rc;

	if (!e || !(e->flags & VNIC_QPN_REACHABLE) || !host_find_address(sessions->host, r->dgid) ||
	    !ether_same(vnic_server_qp_mac(owner), sessions->host->mac))
		return -ENOENT;
	rc = vnic_server_compare_users(s->conn, owner, &ops, sessions);
	return rc == -EPERM ? -ENOENT : rc;
}

/* Handles QPN_ADD, QPN_SET and QPN_REMOVE; each may change the blocks whose packets the uplink must
 * receive. Returns the status for the answer. */
static int change_qpn(struct sessions *sessions, struct session *s, const struct vnic_attach_qpn *r)
{
	if (r->type == VNIC_ATTACH_QPN_REMOVE)
		return qpn_table_remove(&sessions->sw->added, &s->port.added, r->qpn);
	if (r->flags & ~VNIC_QPN_FLAGS)
		return -EINVAL;
	return r->type == VNIC_ATTACH_QPN_ADD
		       ? add_qpn(sessions, s, r)
		       : qpn_table_set(&sessions->sw->added, &s->port.added, r->qpn, r->flags);
}

static bool needs_uplink(const struct sessions *sessions, uint32_t qpn)
{
	return qpn < 1u << 24 && qpn_table_needs_uplink(&sessions->sw->added, VNIC_BLOCK(qpn));
}

static int handle_qpn(void *ctx, struct vnic_server_client *conn, const struct vnic_attach_qpn *r)
{
	struct sessions *sessions = ctx;
	struct session *s = sessions_find_conn(sessions, conn);
	bool needed;
	int rc;

	if (r->type == VNIC_ATTACH_QPN_QUERY)
		return query_qpn(sessions, s, r);
	needed = needs_uplink(sessions, r->qpn);
	rc = change_qpn(sessions, s, r);
	if (sessions->host->hca.name[0] && needs_uplink(sessions, r->qpn) != needed)
		sessions_update_admission(sessions);
	return rc;
}

static int check_inbox(void *ctx, struct vnic_server_client *conn)
{
	struct sessions *sessions = ctx;
	struct session *s = sessions_find_conn(sessions, conn);

	s->inbox_check = ++sessions->inbox_checks;
	return fd_guard_check_inbox(s->inbox_check, vnic_server_uid(conn));
}

static const struct vnic_server_ops ops = {.welcome = session_welcome,
					   .resolve = resolve_address,
					   .owner = qpn_owner,
					   .remote = set_remote,
					   .qpn = handle_qpn,
					   .lease = session_lease_more,
					   .uplink = session_give_uplink,
					   .check_inbox = check_inbox,
					   .share_user_namespace = namespace_query};

static void give_inbox(struct sessions *sessions, uint64_t check, const int fds[VNIC_INBOX_FDS])
{
	struct session *s = sessions->list;

	while (s && s->inbox_check != check)
		s = s->next;
	if (s) {
		if (!vnic_server_take_inbox(s->conn, fds))
			session_free_dead_lock(sessions, s);
		return;
	}
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		close(fds[i]);
}

void sessions_take_inboxes(struct sessions *sessions)
{
	int fds[VNIC_INBOX_FDS];
	uint64_t check;

	while (fd_guard_next_inbox(&check, fds))
		give_inbox(sessions, check, fds);
}

static void store_remote(void *ctx, uint32_t place, const struct remote_qp_record *record)
{
	lease_store_put_remote(((struct sessions *)ctx)->lease_store, place, record);
}

static void restore_remotes(struct sessions *sessions)
{
	struct remote_qp_acl *remotes = &sessions->sw->remotes;
	struct remote_qp_record record;
	uint32_t place;
	int rc = 0;

	for (place = 0; place < REMOTE_QP_MAX && rc != -ENODATA; place++) {
		rc = lease_store_get_remote(sessions->lease_store, place, &record);
		if (!rc)
			remote_qp_acl_restore(remotes, place, &record);
	}
	remotes->store = store_remote;
	remotes->store_ctx = sessions;
}

static void store_qpn(void *ctx, uint32_t place, const struct qpn_record *record)
{
	lease_store_put_qpn(((struct sessions *)ctx)->lease_store, place, record);
}

/* Number of QPNs that are read from the file at a time. */
#define RESTORE_QPNS 512

static void restore_qpns(struct sessions *sessions)
{
	struct qpn_table *added = &sessions->sw->added;
	struct qpn_record records[RESTORE_QPNS];
	uint32_t place = 0, n = RESTORE_QPNS;

	for (; sessions->lease_store->n_claimable && n == RESTORE_QPNS; place += n) {
		n = lease_store_get_qpns(sessions->lease_store, place, records, RESTORE_QPNS);
		for (uint32_t i = 0; i < n; i++)
			if (records[i].process)
				(void)qpn_table_restore(added, place + i, &records[i]);
	}
	added->store = store_qpn;
	added->store_ctx = sessions;
}

void sessions_start(struct sessions *sessions)
{
	sessions->claims_until = UINT64_MAX;
	sessions->limit = quota_connections(LEASE_BLOCKS);
	restore_remotes(sessions);
	restore_qpns(sessions);
	/*
	 * lease_take leases blocks of ended processes last, because peers may still send to them.
	 */
	sessions->sw->leases.last = sessions->lease_store->last;
	sessions->sw->leases.past = sessions->lease_store->past;
	sessions->sw->leases.claimable = sessions->lease_store->claimable;
	if (sessions->host->hca.name[0])
		lease_avoid_hca(&sessions->sw->leases);
	sessions_update_uplink(sessions);
}

void sessions_begin_claims(struct sessions *sessions, uint64_t now)
{
	sessions->claims_until = now + SESSION_CLAIM_NS;
}

static bool may_connect(struct sessions *sessions, const struct vnic_server_client *conn)
{
	uid_t user = vnic_server_uid(conn);
	const struct session *s;
	uint32_t own = 0;

	for (s = sessions->list; s; s = s->next)
		own += vnic_server_uid(s->conn) == user;
	if (quota_allows(user, own, sessions->n, sessions->limit))
		return true;
	log_ratelimited(&sessions->log, sessions->now,
			"process %d may not connect: user %u has %u connections",
			vnic_server_pid(conn), user, own);
	return false;
}

/* Adds a session to the epoll set and the list. Returns 0, after which the list owns the session,
 * or a negative errno value. */
static int add_session(struct sessions *sessions, struct session *s)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = s};

	if (epoll_ctl(sessions->epoll_fd, EPOLL_CTL_ADD, vnic_server_fd(s->conn), &ev))
		return -errno;
	s->next = sessions->list;
	sessions->list = s;
	sessions->n++;
	return 0;
}

static int open_session(struct sessions *sessions, int socket)
{
	struct session *s = calloc(1, sizeof(*s));
	int rc = s ? vnic_server_open(socket, &s->conn) : -ENOMEM;

	if (rc) {
		fd_guard_close(socket);
		free(s);
		return rc;
	}
	if (may_connect(sessions, s->conn)) {
		rc = add_session(sessions, s);
		if (!rc)
			return 0;
	}
	fd_guard_close(vnic_server_close(s->conn));
	free(s);
	return rc;
}

int session_accept(struct sessions *sessions, int listen_fd)
{
	int socket = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	return socket < 0 ? -errno : open_session(sessions, socket);
}

/* Begins to serve a process's new NIC. The epoll event of the NIC's doorbell has no handler,
 * because it only has to wake the daemon. Returns 0 or a negative errno value. */
static int attach_nic(struct sessions *sessions, struct session *s)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	s->port.dev = vnic_server_device(s->conn);
	if (sessions->indirect)
		vnic_server_allow_bypass(s->conn, false);
	if (epoll_ctl(sessions->epoll_fd, EPOLL_CTL_ADD, vnic_server_doorbell_fd(s->conn), &ev))
		return -errno;
	log_ratelimited(&sessions->log, sessions->now, "process %d attached",
			vnic_server_pid(s->conn));
	if (sessions->attached)
		sessions->attached(sessions->attached_ctx, s);
	return 0;
}

/*
 * A message of an ending program comes after the acknowledgements for which peers wait, so the
 * frames go first. Before each message it forwards at most one ring of frames, in one call or
 * several, because the process may go on posting.
 */
bool session_forward_frames(struct sessions *sessions, uint64_t now, struct session *s)
{
	uint32_t n = switch_drain(sessions->sw, now, &s->port);

	s->drained += n;
	if (n == SWITCH_RUN_FRAMES && s->drained < VMXNET3_RING_MAX_SIZE)
		return false;
	s->drained = 0;
	return true;
}

bool session_may_end(struct sessions *sessions, uint64_t now, struct session *s)
{
	if (!s->port.waiting)
		return true;
	if (!s->ends_at)
		s->ends_at = now;
	if (now - s->ends_at < SESSION_END_NS)
		return false;
	s->port.ending = true;
	switch_drain(sessions->sw, now, &s->port);
	return true;
}

/*
 * Ends or resumes epoll's watch of the process's socket. While a message or hang-up waits until the
 * frames before it are forwarded, epoll would report the socket again and again. So epoll does not
 * watch it then, and sessions_tick_ends looks at it instead.
 */
static void set_unwatched(struct sessions *sessions, struct session *s, bool unwatched)
{
	struct epoll_event ev = {.events = unwatched ? EPOLLET : EPOLLIN, .data.ptr = s};

	if (s->unwatched != unwatched &&
	    !epoll_ctl(sessions->epoll_fd, EPOLL_CTL_MOD, vnic_server_fd(s->conn), &ev)) {
		s->unwatched = unwatched;
		if (unwatched)
			sessions->n_unwatched++;
		else
			sessions->n_unwatched--;
	}
}

bool session_wants_multicast(const struct session *s)
{
	return s->port.dev && vnic_device_wants_multicast(s->port.dev);
}

void session_event(struct sessions *sessions, uint64_t now, struct session *s)
{
	int rc;

	if (s->closed)
		return;
	sessions->now = now;
	if (s->port_unsent)
		send_port(sessions, s);
	/* First forwards the frames that the process posted before the message. If frames are left,
	 * the message stays in the socket, and epoll or sessions_tick_ends reports it again. */
	if (!session_forward_frames(sessions, now, s))
		return;
	if (s->port.waiting && vnic_server_ends(s->conn) && !session_may_end(sessions, now, s)) {
		set_unwatched(sessions, s, true);
		return;
	}
	set_unwatched(sessions, s, false);
	sessions->speaking = s;
	rc = vnic_server_event(s->conn, &ops, sessions);
	if (!rc && !s->port.dev && vnic_server_device(s->conn))
		rc = attach_nic(sessions, s);
	if (!rc) {
		session_free_dead_lock(sessions, s);
		return;
	}
	switch_send_last(sessions->sw, now, &s->port);
	s->closed = true;
	s->lost = session_is_lost(sessions, s, rc);
	if (rc != -ECONNRESET && rc != -EPIPE)
		log_ratelimited(&sessions->log, sessions->now, "process %d is disconnected: %s",
				vnic_server_pid(s->conn), strerror(-rc));
}

uint64_t sessions_tick_ends(struct sessions *sessions, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (!sessions->n_unwatched)
		return next;
	for (struct session *s = sessions->list; s; s = s->next) {
		if (s->unwatched)
			session_event(sessions, now, s);
		if (s->unwatched && !s->closed && s->ends_at + SESSION_END_NS < next)
			next = s->ends_at + SESSION_END_NS;
	}
	return next;
}

static void add_nic_counters(const struct session *s, uint64_t sums[VNIC_COUNTER_COUNT])
{
	const uint64_t *counters;
	int i;

	if (!s->port.dev)
		return;
	counters = vnic_device_counters(s->port.dev);
	for (i = 0; i < VNIC_COUNTER_COUNT; i++)
		sums[i] += counters[i];
}

void sessions_counters(const struct sessions *sessions, uint64_t sums[VNIC_COUNTER_COUNT])
{
	const struct session *s;

	memcpy(sums, sessions->counters, sizeof(sessions->counters));
	for (s = sessions->list; s; s = s->next)
		add_nic_counters(s, sums);
}

static void destroy_session(struct sessions *sessions, struct session *s)
{
	add_nic_counters(s, sessions->counters);
	if (s->joined) {
		session_end_leases(sessions, s);
		sessions_update_uplink(sessions);
	}
	sessions->n_unwatched -= s->unwatched;
	if (s->resolving)
		neigh_cancel(sessions->neigh, &s->waiter);
	/* Removes the doorbell from the epoll set; closing it would not, because the process has a
	 * copy. */
	if (s->port.dev)
		epoll_ctl(sessions->epoll_fd, EPOLL_CTL_DEL, vnic_server_doorbell_fd(s->conn),
			  NULL);
	epoll_ctl(sessions->epoll_fd, EPOLL_CTL_DEL, vnic_server_fd(s->conn), NULL);
	/* Removes the descriptor from the epoll set; closing it might not, because a newly forked
	 * helper of fd_guard may have a copy for a moment. ENOENT: send_port() has not added it. */
	epoll_ctl(sessions->epoll_fd, EPOLL_CTL_DEL, vnic_server_notice_fd(s->conn), NULL);
	if (s->port.dev)
		log_ratelimited(&sessions->log, sessions->now, "process %d detached",
				vnic_server_pid(s->conn));
	fd_guard_close(vnic_server_close(s->conn));
	free(s);
	sessions->n--;
}

/*
 * Frees what other processes would otherwise wait for in vain after the end of the session's
 * process: room in its inbox, and locks that it held on other inboxes. The end of the connection
 * counts as the process's end, unless the session is lost: then the process still uses them.
 */
static void release_inboxes(struct sessions *sessions, const struct session *dead)
{
	uint32_t process = vnic_server_process(dead->conn);
	struct session *s;

	if (dead->lost)
		return;
	vnic_server_inbox_revoke(dead->conn);
	for (s = sessions->list; process && s; s = s->next)
		vnic_server_inbox_unlock(s->conn, process);
}

/* Closes the session if its NIC is broken. The process learns that from the end of its connection,
 * when sessions_reap frees the session. */
static void close_if_broken(struct sessions *sessions, struct session *s)
{
	if (s->closed || !s->port.dev || vnic_device_state(s->port.dev) != VNIC_DEVICE_BROKEN)
		return;
	log_ratelimited(&sessions->log, sessions->now,
			"process %d is disconnected: its NIC has a malformed descriptor",
			vnic_server_pid(s->conn));
	s->closed = true;
}

/*
 * The cost of freeing a session without QPNs, in the units of work that SESSIONS_REAP_STEP limits.
 */
#define SESSION_COST 32

/*
 * Removes remote and added QPNs of a closed session, as many as *room has units, and subtracts the
 * units from *room. Returns true if none is left, after it has released the inboxes. Returns false
 * if the next call has to continue.
 */
static bool release_some(struct sessions *sessions, struct session *s, uint32_t *room)
{
	*room -= remote_qp_acl_remove_some(&sessions->sw->remotes, &s->port.remotes, *room);
	*room -= qpn_table_remove_some(&sessions->sw->added, &s->port.added, *room);
	if (s->port.remotes.n || s->port.added.n)
		return false;
	*room -= *room < SESSION_COST ? *room : SESSION_COST;
	release_inboxes(sessions, s);
	return true;
}

bool sessions_reap(struct sessions *sessions)
{
	struct session **link = &sessions->list, *s;
	uint32_t room = SESSIONS_REAP_STEP;
	bool any = false;

	while (room && (s = *link)) {
		close_if_broken(sessions, s);
		if (!s->closed) {
			link = &s->next;
			continue;
		}
		any = true;
		if (!release_some(sessions, s, &room))
			break;
		*link = s->next;
		destroy_session(sessions, s);
	}
	return any;
}

void sessions_close_all(struct sessions *sessions)
{
	struct session *s;

	sessions->direct_uplink = NULL;
	sessions->admission.uplink = NULL;
	while ((s = sessions->list)) {
		sessions->list = s->next;
		destroy_session(sessions, s);
	}
}
