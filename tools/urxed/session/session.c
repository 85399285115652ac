/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/session/session.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/log.h"
#include "urxed/session/process_info.h"
#include "urxed/session/quota.h"
#include "urxed/switch/forward.h"

/* While newcomers wait, how often to look whether those that may claim are still there. */
#define CLAIM_LOOK_NS 50000000u

static_assert(VNIC_PROCESSES == LEASE_BLOCKS, "a block is what processes know each other by");

static struct client *find(struct clients *all, const struct vnic_server_client *conn)
{
	struct client *c;

	for (c = all->list; c->conn != conn; c = c->next)
		;
	return c;
}

static bool is_process(const struct clients *all, uint32_t number)
{
	const struct switch_port *port = lease_owner(&all->sw->leases, number << LEASE_SHIFT);

	return port && port->remotes.process == number;
}

/*
 * Frees the inbox's lock where a process has it that died while there was no daemon: one
 * without a lease, once nobody may claim his any more.
 */
static void check_lock(const struct clients *all, struct client *c)
{
	uint32_t holder = vnic_server_inbox_holder(c->conn);

	if (holder && !record_awaited(all->record) && !is_process(all, holder))
		vnic_server_inbox_unlock(c->conn, holder);
}

static void check_locks(struct clients *all)
{
	struct client *c;

	for (c = all->list; c; c = c->next)
		check_lock(all, c);
}

/* What is recalled of processes that are not awaited any more is free. */
static void check_remotes(struct clients *all)
{
	uint32_t process;

	for (process = 0; process < LEASE_BLOCKS; process++)
		if (!all->record->waits[process])
			remote_forget(&all->sw->remotes, process);
}

/* Whether the client may have another block: one process has so many, and a user his share. */
static int may_lease(const struct clients *all, const struct client *c)
{
	uid_t user = vnic_server_uid(c->conn);
	uint32_t own = 0, total = 0;
	const struct client *other;

	for (other = all->list; other; other = other->next) {
		total += other->blocks;
		if (vnic_server_uid(other->conn) == user)
			own += other->blocks;
	}
	return c->blocks < VNIC_LEASES_MAX && share_allows(user, own, total, LEASE_BLOCKS - 2)
		       ? 0
		       : -ENOSPC;
}

typedef int take_fn(struct vswitch *sw, struct switch_port *port, uint32_t *qpn);

/* Gives the client a block of queue pair numbers, or the one that it claims, by its token. */
static int lease_block_to(struct clients *all, struct client *c, uint32_t *qpn, take_fn *take)
{
	pid_t pid = vnic_server_pid(c->conn);
	bool claims = *qpn;
	int rc = claims ? record_claim(all->record, *qpn, c->token, pid) : may_lease(all, c);

	if (!rc)
		rc = take(all->sw, &c->port, qpn);
	if (rc) {
		log_rated(&all->log, all->now, "process %d is refused %s", pid,
			  rc == -EPERM ? "what it claims: its lease has ended"
				       : "queue pair numbers");
		return rc;
	}
	c->blocks++;
	if (!claims)
		c->token = record_lease(all->record, *qpn, pid, c->token);
	return 0;
}

/* All else that a process had is its own at once: it may be slow to ask for it. */
static int claim_others(struct clients *all, struct client *c)
{
	pid_t pid = vnic_server_pid(c->conn);
	uint32_t qpn;
	int rc = 0;

	while (!rc && (qpn = record_awaited_with(all->record, c->token, pid)))
		rc = lease_block_to(all, c, &qpn, switch_lease);
	return rc;
}

static int join(struct clients *all, struct client *c, uint32_t *qpn)
{
	bool claims = *qpn;
	int rc;

	/* Before a number is leased again that a dead process may have left in a lock. */
	check_locks(all);
	process_name(vnic_server_pid(c->conn), c->port.name);
	rc = lease_block_to(all, c, qpn, switch_join);
	if (rc)
		return rc;
	c->joined = true;
	if (claims) {
		remote_return(&all->sw->remotes, &c->port.remotes);
		rc = claim_others(all, c);
	}
	check_remotes(all);
	return rc;
}

static int lease_more(void *ctx, struct vnic_server_client *conn, uint32_t *qpn)
{
	struct clients *all = ctx;

	*qpn = 0;
	return lease_block_to(all, find(all, conn), qpn, switch_lease);
}

static void fill_welcome(const struct clients *all, const struct client *c, uint32_t qpn,
			 struct vnic_attach_welcome *w)
{
	w->qpn_first = qpn;
	w->qpn_count = LEASE_QPNS;
	w->leases = c->blocks;
	w->token = c->token;
	memcpy(w->mac, all->host->mac, ETHER_MAC_LEN);
	w->mtu = HOST_MTU;
	host_port(all->host, &w->port);
	memcpy(w->pkeys, all->host->pkeys, sizeof(w->pkeys));
}

static int welcome(void *ctx, struct vnic_server_client *conn,
		   const struct vnic_attach_hello *hello, struct vnic_attach_welcome *w)
{
	struct clients *all = ctx;
	struct client *c = find(all, conn);
	uint32_t qpn = hello->qpn_first;
	int rc;

	c->greeting = !hello->qpn_first && record_awaited(all->record);
	if (c->greeting)
		return -EINPROGRESS;
	c->token = qpn ? hello->token : 0;
	rc = join(all, c, &qpn);
	if (!rc)
		fill_welcome(all, c, qpn, w);
	return rc;
}

static void welcome_late(struct clients *all, struct client *c)
{
	struct vnic_attach_welcome w = {0};
	uint32_t qpn = 0;
	int rc = join(all, c, &qpn);

	c->greeting = false;
	if (!rc)
		fill_welcome(all, c, qpn, &w);
	if (vnic_server_welcome(c->conn, rc, &w))
		c->gone = true;
}

uint64_t client_tick(struct clients *all, uint64_t now)
{
	uint64_t again = now + CLAIM_LOOK_NS;
	struct client *c;
	bool any = false;

	if (now >= all->claims_until && !all->settled) {
		all->settled = true;
		record_give_up(all->record);
		remote_settle(&all->sw->remotes);
		check_locks(all);
	}
	for (c = all->list; c; c = c->next)
		any |= c->greeting && !c->gone;
	if (!any)
		return record_awaited(all->record) ? all->claims_until : UINT64_MAX;
	if (record_awaited(all->record))
		return again < all->claims_until ? again : all->claims_until;
	for (c = all->list; c; c = c->next)
		if (c->greeting && !c->gone)
			welcome_late(all, c);
	return UINT64_MAX;
}

static void resolve(void *ctx, struct vnic_server_client *conn, const struct vnic_attach_resolve *r)
{
	struct clients *all = ctx;
	struct client *c = find(all, conn);
	struct vnic_next_hop hop;
	int rc;

	if (c->waiting) {
		c->gone = true; /* it may ask for one at a time */
		return;
	}
	rc = neigh_resolve(all->neigh, all->now, r->sgid_index, r->dgid, &c->waiter, &hop);
	c->waiting = rc == -EINPROGRESS;
	if (!c->waiting && vnic_server_resolved(conn, rc, &hop))
		c->gone = true;
}

static struct vnic_server_client *conn_of(const struct switch_port *port)
{
	return ((const struct client *)((const char *)port - offsetof(struct client, port)))->conn;
}

static struct vnic_server_client *owner(void *ctx, uint32_t qpn)
{
	const struct clients *all = ctx;
	const struct switch_port *port = lease_owner(&all->sw->leases, qpn);

	return port ? conn_of(port) : NULL;
}

bool client_holds(const struct clients *all, pid_t pid, uint32_t qpn)
{
	const struct switch_port *port = lease_owner(&all->sw->leases, qpn);

	return port && vnic_server_pid(conn_of(port)) == pid;
}

/* Once: whoever may not meet, or does not listen, goes on by the switch. */
void client_meet(struct switch_port *from, struct switch_port *to, uint32_t qpn)
{
	(void)vnic_server_meet(conn_of(from), conn_of(to), qpn);
}

void client_answer(struct neigh_waiter *w, int status, const struct vnic_next_hop *hop)
{
	struct client *c = (struct client *)((char *)w - offsetof(struct client, waiter));

	c->waiting = false;
	/* If it does not read its answers, its socket says so next. */
	vnic_server_resolved(c->conn, status, hop);
}

static void notice(struct clients *all, struct client *c)
{
	struct epoll_event ev = {.events = EPOLLOUT | EPOLLET, .data.ptr = c};
	struct vnic_attach_port port;
	int fd = vnic_server_notice_fd(c->conn);

	host_port(all->host, &port);
	c->stale = vnic_server_notice(c->conn, &port) == -EAGAIN;
	/* Where it is watched already, it stays so: there is an event for each time it drains. */
	if (c->stale && epoll_ctl(all->epoll_fd, EPOLL_CTL_ADD, fd, &ev) && errno != EEXIST)
		c->gone = true;
}

void client_notice(struct clients *all)
{
	struct client *c;

	for (c = all->list; c; c = c->next)
		if (!c->gone)
			notice(all, c);
}

void client_set_direct(struct clients *all, bool on)
{
	struct client *c;

	all->indirect = !on;
	for (c = all->list; c; c = c->next)
		if (c->port.dev)
			vnic_server_set_direct(c->conn, on);
}

void client_ask(struct clients *all, int socket)
{
	struct client *c;

	for (c = all->list; c; c = c->next)
		c->asked = !c->gone && !vnic_server_ask(c->conn, socket);
}

/* How many remote queue pairs a user is connected to by all his processes, and how many all are. */
static uint32_t count_remotes(const struct clients *all, uid_t user, uint32_t *total)
{
	const struct client *c;
	uint32_t own = 0;

	*total = 0;
	for (c = all->list; c; c = c->next) {
		*total += c->port.remotes.n;
		if (vnic_server_uid(c->conn) == user)
			own += c->port.remotes.n;
	}
	return own;
}

static int connect_to(struct clients *all, struct client *c, const uint8_t dgid[16], uint32_t qpn)
{
	uid_t user = vnic_server_uid(c->conn);
	uint32_t total, own = count_remotes(all, user, &total);

	if (!share_allows(user, own, total, REMOTE_MAX))
		return -ENOSPC;
	return switch_register(all->sw, &c->port, dgid, qpn);
}

static int remote(void *ctx, struct vnic_server_client *conn, bool connected,
		  const uint8_t dgid[16], uint32_t qpn)
{
	struct clients *all = ctx;
	struct client *c = find(all, conn);
	int rc;

	if (!connected)
		return switch_unregister(all->sw, &c->port, dgid, qpn);
	rc = connect_to(all, c, dgid, qpn);
	if (rc == -EADDRINUSE)
		log_rated(&all->log, all->now,
			  "%s may not connect to QP %#x: another process is connected to it",
			  c->port.name, qpn);
	return rc;
}

static const struct vnic_server_ops ops = {.welcome = welcome,
					   .resolve = resolve,
					   .owner = owner,
					   .remote = remote,
					   .lease = lease_more};

static void note_remote(void *ctx, uint32_t place, const struct remote_key *key, uint32_t process)
{
	record_remote(((struct clients *)ctx)->record, place, key, process);
}

static void recall_remotes(struct clients *all)
{
	struct remote_table *remotes = &all->sw->remotes;
	uint32_t place, process;
	struct remote_key key;
	int rc = 0;

	for (place = 0; place < REMOTE_MAX && rc != -ENODATA; place++) {
		rc = record_remote_at(all->record, place, &key, &process);
		if (!rc)
			remote_recall(remotes, place, &key, process);
	}
	remotes->note = note_remote;
	remotes->note_ctx = all;
}

void client_begin(struct clients *all, uint64_t now)
{
	all->claims_until = now + CLIENT_CLAIM_NS;
	all->limit = share_connections(LEASE_BLOCKS);
	recall_remotes(all);
	/* Survivors may still send to processes that ended while there was no daemon. */
	all->sw->leases.last = all->record->last;
	all->sw->leases.awaited = all->record->waits;
}

static bool may_come(struct clients *all, const struct vnic_server_client *conn)
{
	uid_t user = vnic_server_uid(conn);
	const struct client *c;
	uint32_t own = 0;

	for (c = all->list; c; c = c->next)
		own += vnic_server_uid(c->conn) == user;
	if (share_allows(user, own, all->n, all->limit))
		return true;
	log_rated(&all->log, all->now, "process %d is refused: user %u has %u connections",
		  vnic_server_pid(conn), user, own);
	return false;
}

/* The connection is the list's from now on. */
static int enlist(struct clients *all, struct client *c)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};

	if (epoll_ctl(all->epoll_fd, EPOLL_CTL_ADD, vnic_server_fd(c->conn), &ev))
		return -errno;
	c->next = all->list;
	all->list = c;
	all->n++;
	return 0;
}

int client_accept(struct clients *all, int listen_fd)
{
	struct client *c = calloc(1, sizeof(*c));
	int rc = c ? vnic_server_accept(listen_fd, &c->conn) : -ENOMEM;

	if (rc) {
		free(c);
		return rc;
	}
	if (may_come(all, c->conn)) {
		rc = enlist(all, c);
		if (!rc)
			return 0;
	}
	vnic_server_close(c->conn);
	free(c);
	return rc;
}

/* The NIC exists from now on: its doorbell wakes the daemon, and needs no other handling. */
static int plug_in(struct clients *all, struct client *c)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	c->port.dev = vnic_server_device(c->conn);
	if (all->indirect)
		vnic_server_set_direct(c->conn, false);
	if (epoll_ctl(all->epoll_fd, EPOLL_CTL_ADD, vnic_server_doorbell_fd(c->conn), &ev))
		return -errno;
	log_rated(&all->log, all->now, "process %d attached", vnic_server_pid(c->conn));
	return 0;
}

void client_event(struct clients *all, uint64_t now, struct client *c)
{
	int rc;

	if (c->gone)
		return;
	all->now = now;
	if (c->stale)
		notice(all, c);
	/*
	 * What it posted before it spoke or hung up goes first: the last
	 * acknowledgements of a program that ends are what its peer waits for.
	 */
	switch_drain(all->sw, now, &c->port);
	rc = vnic_server_event(c->conn, &ops, all);
	if (!rc && !c->port.dev && vnic_server_device(c->conn))
		rc = plug_in(all, c);
	if (!rc) {
		check_lock(all, c);
		return;
	}
	c->gone = true;
	if (rc != -ECONNRESET)
		log_rated(&all->log, all->now, "process %d is disconnected: %s",
			  vnic_server_pid(c->conn), strerror(-rc));
}

static void add_counters(const struct client *c, uint64_t sums[VNIC_COUNTER_COUNT])
{
	const uint64_t *counters;
	int i;

	if (!c->port.dev)
		return;
	counters = vnic_device_counters(c->port.dev);
	for (i = 0; i < VNIC_COUNTER_COUNT; i++)
		sums[i] += counters[i];
}

void client_counters(const struct clients *all, uint64_t sums[VNIC_COUNTER_COUNT])
{
	const struct client *c;

	memcpy(sums, all->counters, sizeof(all->counters));
	for (c = all->list; c; c = c->next)
		add_counters(c, sums);
}

static void leave(struct clients *all, struct client *c)
{
	uint32_t block;

	for (block = 0; block < LEASE_BLOCKS; block++)
		if (all->sw->leases.owner[block] == &c->port)
			record_drop(all->record, block << LEASE_SHIFT);
	switch_leave(all->sw, &c->port);
}

static void destroy(struct clients *all, struct client *c)
{
	add_counters(c, all->counters);
	if (c->joined)
		leave(all, c);
	if (c->waiting)
		neigh_forget(all->neigh, &c->waiter);
	/* The process has the doorbell too, so closing it here would not take it out of the set. */
	if (c->port.dev)
		epoll_ctl(all->epoll_fd, EPOLL_CTL_DEL, vnic_server_doorbell_fd(c->conn), NULL);
	epoll_ctl(all->epoll_fd, EPOLL_CTL_DEL, vnic_server_fd(c->conn), NULL);
	if (c->port.dev)
		log_rated(&all->log, all->now, "process %d detached", vnic_server_pid(c->conn));
	vnic_server_close(c->conn);
	free(c);
	all->n--;
}

/*
 * Nobody waits for a process that has died: neither for room in its inbox nor for the
 * lock of another's.
 */
static void bury(struct clients *all, const struct client *dead)
{
	uint32_t process = vnic_server_process(dead->conn);
	struct client *c;

	vnic_server_inbox_revoke(dead->conn);
	for (c = all->list; process && c; c = c->next)
		vnic_server_inbox_unlock(c->conn, process);
}

/* A process whose NIC is broken hears of it by the end of its connection. */
static bool has_gone(struct clients *all, const struct client *c)
{
	if (c->gone || !c->port.dev || vnic_device_state(c->port.dev) != VNIC_DEVICE_BROKEN)
		return c->gone;
	log_rated(&all->log, all->now,
		  "process %d is disconnected: its NIC has a malformed descriptor",
		  vnic_server_pid(c->conn));
	return true;
}

bool client_reap(struct clients *all)
{
	struct client **link = &all->list, *c;
	bool any = false;

	while ((c = *link)) {
		if (!has_gone(all, c)) {
			link = &c->next;
			continue;
		}
		any = true;
		*link = c->next;
		bury(all, c);
		destroy(all, c);
	}
	return any;
}

void client_close_all(struct clients *all)
{
	struct client *c;

	while ((c = all->list)) {
		all->list = c->next;
		destroy(all, c);
	}
}
