/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A daemon that a test plays for /dev/infiniband/rdma_cm. */
#ifndef URXE_TEST_VERBS_RDMACM_DAEMON_H
#define URXE_TEST_VERBS_RDMACM_DAEMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include <cm/attach_protocol.h>
#include <rdma/rdma_user_cm.h>

#include "send_fds.h"

#define QUEUE  8 /* connections that the daemon has not accepted, and one more */
#define NUMBER 7 /* of each ID that the daemon creates */
#define UID    0x1234
#define TOKEN  0x777
#define GUID   0x1122334455667788ull /* in cached replies; 0 in others */

static char dir[] = "/tmp/urxe-test-rdmacm-XXXXXX";
static int listener;
static atomic_int served;        /* the daemon's end of the last connection */
static atomic_int event_socket;  /* the daemon's end, of the device that was opened last */
static atomic_uint confirmed;    /* commands GET_EVENT, which confirm fetched events */
static _Atomic uint64_t fetched; /* sequence number of the last fetched event that a command told */
static uint32_t excess;          /* added to the length in the header of a cached reply */
static atomic_bool silent;       /* the daemon answers nothing */

static inline int setup(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void)state;
	if (!mkdtemp(dir) || setenv("URXE_DIR", dir, 1))
		return -1;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/" CM_ATTACH_SOCKET_NAME, dir);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	return bind(listener, (const struct sockaddr *)&address, sizeof(address)) ||
	       listen(listener, QUEUE);
}

static inline int teardown(void **state)
{
	char path[sizeof(dir) + sizeof(CM_ATTACH_SOCKET_NAME)];

	(void)state;
	close(listener);
	snprintf(path, sizeof(path), "%s/" CM_ATTACH_SOCKET_NAME, dir);
	return unlink(path) || rmdir(dir);
}

/* Sends both ends of the event socket, and keeps its own. */
static inline void send_welcome(int socket)
{
	const struct cm_attach_welcome w = {.token = TOKEN};
	int ends[CM_ATTACH_FDS];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		abort();
	/* Before the welcome: the program's thread reads it as soon as the device is open. */
	atomic_store(&event_socket, ends[CM_ATTACH_EVENT_WRITER]);
	if (send_fds(socket, &w, sizeof(w), ends, CM_ATTACH_FDS) != sizeof(w))
		abort();
	close(ends[CM_ATTACH_EVENTS]);
}

static inline void take_hello(int socket)
{
	struct cm_attach_hello hello;

	if (recv(socket, &hello, sizeof(hello), 0) != sizeof(hello))
		abort();
	send_welcome(socket);
}

struct cached_reply {
	struct cm_attach_cached head;
	struct rdma_ucm_query_addr_resp resp;
};

#define MULTICAST_JOIN 12 /* of enum rdma_cm_event_type */

static uint32_t event_type; /* of send_event */

static inline void send_event(uint64_t sequence, uint32_t confirm)
{
	struct {
		struct cm_attach_event head;
		struct rdma_ucm_event_resp event;
		struct cached_reply cached;
	} __attribute__((packed)) packet = {
		.head = {.sequence = sequence,
			 .out = sizeof(packet.event),
			 .cached = sizeof(packet.cached),
			 .confirm = confirm},
		.event = {.id = NUMBER, .uid = UID, .event = event_type},
		.cached = {.head = {.command = RDMA_USER_CM_CMD_QUERY,
				    .option = RDMA_USER_CM_QUERY_ADDR,
				    .out = sizeof(packet.cached.resp) + excess},
			   .resp = {.node_guid = GUID}},
	};

	assert_int_equal(send(atomic_load(&event_socket), &packet, sizeof(packet), MSG_NOSIGNAL),
			 sizeof(packet));
}

static inline void await_voice(void)
{
	while (atomic_load(&silent))
		usleep(1000);
}

/* Serves one connection: replies to QUERY with GUID 0, and to other commands with an ID. */
static inline void *serve(void *arg)
{
	struct {
		struct cm_attach_reply reply;
		struct rdma_ucm_create_id_resp resp;
	} __attribute__((packed))
	answer = {.reply = {.out = sizeof(answer.resp)}, .resp = {.id = NUMBER}};
	struct {
		struct cm_attach_reply reply;
		struct rdma_ucm_query_addr_resp resp;
	} __attribute__((packed)) asked = {.reply = {.out = sizeof(asked.resp)}};
	struct {
		struct cm_attach_command command;
		uint8_t in[CM_ATTACH_BYTES];
	} packet;
	int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	await_voice();
	take_hello(socket);
	atomic_store(&served, socket);
	while (recv(socket, &packet, sizeof(packet), 0) > 0) {
		await_voice();
		atomic_store(&fetched, packet.command.fetched);
		if (packet.command.command == RDMA_USER_CM_CMD_GET_EVENT)
			atomic_fetch_add(&confirmed, 1);
		if (packet.command.command == RDMA_USER_CM_CMD_QUERY)
			send(socket, &asked, sizeof(asked), MSG_NOSIGNAL);
		else
			send(socket, &answer, sizeof(answer), MSG_NOSIGNAL);
	}
	close(socket);
	return arg;
}

#endif
