/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's rdma_cm without a daemon. The host sends its messages to itself; loop_run delivers
 * them. Each program is a pair of sockets in this process.
 */
#ifndef URXE_TEST_UCMA_LOOP_H
#define URXE_TEST_UCMA_LOOP_H

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/rundir.h"
#include "common/unix_packet.h"
#include "require.h"
#include "urxed/cm/ucma.h"

#define LOOP_QPN       0x1000u /* the first leased QPN of the programs */
#define LOOP_QPNS      0x1000u
#define LOOP_FLYING    1024
#define LOOP_CANCELLED 256
#define LOOP_RESTART   1000000 /* duration of a restart, ns */

struct loop {
	char dir[32];
	struct host host;
	struct neigh neigh;
	struct ucma ucma;
	uint64_t now;
	uint16_t mtu_to_peer;      /* ucma_ops.mtu_to_peer */
	bool has_claimable_leases; /* an earlier daemon's QPN leases that programs may still claim
				    */
	uint32_t removed_qpn;      /* that the programs have no longer; 0: none */
	bool crowded;              /* no room for messages */
	bool again;                /* cm_attach_command.again of the programs */
	uint64_t cancelled[LOOP_CANCELLED]; /* sequence numbers of events whose packets the programs
					       skip */
	uint32_t n_cancelled;
	uint32_t n;
	struct {
		struct cm_path path;
		uint8_t mad[CM_MAD_LEN];
	} flying[LOOP_FLYING];
};

/* A program that has the device open. */
struct loop_program {
	int fd;           /* commands and replies */
	int event_fd;     /* events */
	int event_writer; /* the other end of event_fd */
	uint64_t token;
	uint64_t fetched; /* the sequence number of the last event */
};

struct loop_answer {
	struct cm_attach_reply reply;
	uint8_t out[CM_ATTACH_BYTES];
};

struct loop_event {
	struct cm_attach_event head;
	uint8_t bytes[sizeof(struct rdma_ucm_event_resp) + CM_ATTACH_CACHED];
};

static void loop_send(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_LEN])
{
	struct loop *l = ctx;

	if (l->n == LOOP_FLYING)
		return;
	l->flying[l->n].path = *path;
	memcpy(l->flying[l->n].path.sgid, path->dgid, sizeof(path->dgid));
	memcpy(l->flying[l->n].path.dgid, path->sgid, sizeof(path->sgid));
	l->flying[l->n].path.known = true;
	l->flying[l->n].path.local = true;
	memcpy(l->flying[l->n++].mad, mad, CM_MAD_LEN);
}

static bool loop_has_room(void *ctx)
{
	const struct loop *l = ctx;

	return !l->crowded;
}

static uint16_t loop_mtu_to_peer(void *ctx, const struct cma_id *id)
{
	const struct loop *l = ctx;

	(void)id;
	return l->mtu_to_peer;
}

static bool loop_may_name_qpn(void *ctx, pid_t pid, uid_t user, uint32_t qpn)
{
	const struct loop *l = ctx;

	(void)user;
	return pid == getpid() && qpn >= LOOP_QPN && qpn < LOOP_QPN + LOOP_QPNS &&
	       qpn != l->removed_qpn;
}

static bool loop_has_claimable_leases(void *ctx, pid_t pid)
{
	const struct loop *l = ctx;

	(void)pid;
	return l->has_claimable_leases;
}

static void loop_arp(void *ctx, int uplink, const uint8_t *frame, uint32_t len)
{
	(void)ctx;
	(void)uplink;
	(void)frame;
	(void)len;
}

static const uint8_t *loop_mac(void *ctx, int uplink)
{
	const struct loop *l = ctx;

	(void)uplink;
	return l->host.mac;
}

/* Starts the rdma_cm of a daemon, which reads the records of the daemon before it. */
static void loop_begin(struct loop *l)
{
	static const struct ucma_ops ops = {
		{loop_send, loop_has_room, loop_mtu_to_peer, ucma_on_event, ucma_on_request},
		loop_may_name_qpn,
		loop_has_claimable_leases};
	static const struct neigh_ops neigh_ops = {.send = loop_arp, .mac = loop_mac};

	neigh_init(&l->neigh, &l->host, &neigh_ops, l);
	memset(&l->ucma, 0, sizeof(l->ucma));
	require(!ucma_open(&l->ucma, l->dir, l->now, &l->host, &l->neigh, &ops, l));
	ucma_begin_claims(&l->ucma, l->now);
}

static inline void loop_restart(struct loop *l)
{
	ucma_close(&l->ucma, l->dir);
	neigh_fini(&l->neigh);
	l->n = 0;
	l->now += LOOP_RESTART;
	loop_begin(l);
}

static void loop_open(struct loop *l)
{
	memset(l, 0, sizeof(*l));
	strcpy(l->dir, "/tmp/ucma-XXXXXX");
	require(mkdtemp(l->dir));
	host_init(&l->host);
	require(!host_add_generated(&l->host));
	require(!host_add_pkey(&l->host, "0xffff"));
	l->mtu_to_peer = l->host.mtu;
	l->now = 1;
	loop_begin(l);
}

static inline void loop_close(struct loop *l)
{
	ucma_close(&l->ucma, l->dir);
	neigh_fini(&l->neigh);
	require(!rmdir(l->dir));
}

/* Runs the timers, and delivers the messages in flight, then the replies and events that they
 * cause. */
static void loop_run(struct loop *l)
{
	ucma_tick(&l->ucma, l->now);
	for (uint32_t i = 0; i < l->n; i++)
		cma_input(&l->ucma.cma, l->now, &l->flying[i].path, l->flying[i].mad);
	l->n = 0;
	(void)ucma_flush(&l->ucma);
}

/* Time passes, and nothing but the timers wakes the daemon. */
static void loop_pass(struct loop *l, uint64_t ns)
{
	uint64_t end = l->now + ns, due;

	while ((due = ucma_tick(&l->ucma, l->now)) <= end)
		l->now = due > l->now ? due : l->now;
	l->now = end;
}

/* Connects to the daemon, which has not accepted the connection yet. */
static int loop_connect(struct loop *l)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;

	require(!unix_packet_address(&address, l->dir, CM_ATTACH_SOCKET_NAME));
	require(!connect(fd, (const struct sockaddr *)&address, sizeof(address)));
	return fd;
}

/* Sends the hello message. A token claims the state of an earlier daemon. */
static void loop_hello(struct loop *l, struct loop_program *p)
{
	const struct cm_attach_hello hello = {
		.version = CM_ATTACH_VERSION, .token = p->token, .fetched = p->fetched};

	p->event_fd = p->event_writer = -1;
	ucma_input(&l->ucma, l->now);
	require(!unix_packet_send(p->fd, &hello, sizeof(hello), NULL, 0));
	ucma_input(&l->ucma, l->now);
}

/* Receives the daemon's reply to the hello, with the event socket; returns its status. */
static int loop_welcome(struct loop_program *p)
{
	struct unix_packet_extras extras;
	struct cm_attach_welcome w;

	require(unix_packet_recv(p->fd, &w, sizeof(w), &extras) == sizeof(w));
	require(!w.status == (extras.fds[CM_ATTACH_EVENT_WRITER] >= 0));
	p->event_fd = extras.fds[CM_ATTACH_EVENTS];
	p->event_writer = extras.fds[CM_ATTACH_EVENT_WRITER];
	p->token = w.token;
	return w.status;
}

static inline void loop_close_events(const struct loop_program *p)
{
	if (p->event_fd >= 0)
		close(p->event_fd);
	if (p->event_writer >= 0)
		close(p->event_writer);
}

static struct loop_program loop_start_on(struct loop *l, int fd)
{
	struct loop_program p = {.fd = fd};

	loop_hello(l, &p);
	require(!loop_welcome(&p));
	return p;
}

static struct loop_program loop_start(struct loop *l)
{
	return loop_start_on(l, loop_connect(l));
}

/* Closes the sockets, as the kernel does for a killed program. */
static inline void loop_end(struct loop *l, const struct loop_program *p)
{
	close(p->fd);
	loop_close_events(p);
	ucma_input(&l->ucma, l->now);
	while (l->ucma.n_ended)
		ucma_tick(&l->ucma, l->now);
}

/* Sends a command. Returns a negative errno value, or 0 with the answer. */
static int loop_command(struct loop *l, const struct loop_program *p, uint32_t command,
			const void *in, uint32_t in_size, uint32_t out, struct loop_answer *answer)
{
	struct {
		struct cm_attach_command command;
		uint8_t in[CM_ATTACH_BYTES];
	} request = {.command = {.command = command,
				 .in = in_size,
				 .out = out,
				 .again = l->again,
				 .fetched = p->fetched}};
	uint32_t len = (uint32_t)sizeof(request.command) + in_size;
	struct unix_packet_extras extras;

	if (command == RDMA_USER_CM_CMD_MIGRATE_ID)
		request.command.token = p->token;
	if (in_size)
		memcpy(request.in, in, in_size);
	require(!unix_packet_send(p->fd, &request, len, NULL, 0));
	ucma_input(&l->ucma, l->now);
	require(unix_packet_recv(p->fd, answer, sizeof(*answer), &extras) >=
		(int)sizeof(answer->reply));
	require(l->n_cancelled + answer->reply.n_cancelled <= LOOP_CANCELLED);
	for (uint32_t i = 0; i < answer->reply.n_cancelled; i++)
		l->cancelled[l->n_cancelled++] = answer->reply.cancelled[i];
	return answer->reply.status;
}

/* Saves all of the program, and kills it. */
static inline void loop_depart(struct loop *l, const struct loop_program *p)
{
	struct loop_answer answer;

	require(!loop_command(l, p, CM_ATTACH_FREEZE, NULL, 0, 0, &answer));
	do
		require(!loop_command(l, p, CM_ATTACH_SAVE, NULL, 0, CM_ATTACH_BYTES, &answer));
	while (answer.reply.out);
	loop_end(l, p);
}

static inline bool loop_is_cancelled(const struct loop *l, uint64_t sequence)
{
	for (uint32_t i = 0; i < l->n_cancelled; i++)
		if (l->cancelled[i] == sequence)
			return true;
	return false;
}

/* Fetches the next event. False: no event is pending. */
static inline bool loop_fetch(struct loop *l, struct loop_program *p, struct loop_event *event)
{
	ssize_t n;

	ucma_input(&l->ucma, l->now);
	do
		n = recv(p->event_fd, event, sizeof(*event), MSG_DONTWAIT);
	while (n > 0 && loop_is_cancelled(l, event->head.sequence));
	if (n < 0)
		return false;
	require(n >= (ssize_t)sizeof(event->head));
	require(event->head.out == sizeof(struct rdma_ucm_event_resp));
	require(n - (ssize_t)sizeof(event->head) == event->head.out + event->head.cached);
	require(event->head.sequence > p->fetched);
	p->fetched = event->head.sequence;
	return true;
}

/* Receives and drops n event messages that the daemon has withdrawn. */
static inline void loop_take_back(const struct loop_program *p, uint32_t n)
{
	uint8_t byte;

	while (n--)
		require(recv(p->event_fd, &byte, sizeof(byte), MSG_DONTWAIT) == sizeof(byte));
}

#endif
