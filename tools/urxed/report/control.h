/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's control socket, for `urxe show`, `urxe capture` and telemetry: a SOCK_SEQPACKET
 * socket in the run directory, for root and the daemon's own user. monitor.c calls the daemon's
 * end.
 *
 * A client sends one request and gets one reply, before which packets with sockets may come (struct
 * control_processes). Then the daemon closes the connection, unless the request was a capture. Data
 * comes in a memfd, so that a slow reader cannot delay the daemon. Integers are in host byte order.
 */
#ifndef URXE_URXED_REPORT_CONTROL_H
#define URXE_URXED_REPORT_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/unix_packet.h"
#include "urxed/accept_pause.h"

#define CONTROL_SOCKET_NAME "urxed.ctl"
#define CONTROL_VERSION     6
#define CONTROL_PORT        64 /* bytes of a port's name, with its NUL */
/* Limit of the connections that have sent no request yet; one more closes the oldest. */
#define CONTROL_PEERS 16

enum control_type { CONTROL_SHOW = 1, CONTROL_CAPTURE };

struct control_request {
	uint32_t version;
	uint32_t type;           /* enum control_type */
	uint32_t ask;            /* SHOW: 1 = the daemon also asks all processes for their state */
	uint32_t record;         /* CAPTURE: 1 = the processes of the ports record their engines */
	char port[CONTROL_PORT]; /* CAPTURE: name or number of one port; "" = all ports */
};

/*
 * After CAPTURE the connection stays open for as long as the capture runs. With status 0, the reply
 * carries the memory of the capture ring (capture_ring.h); packets of one byte wake the reader.
 * With `record`, further packets (struct control_recording) have the rings (vnic/record_ring.h) of
 * processes, also of processes that attach later. Then capture_ring.listed is set, after the
 * packets of the processes that ran at the start.
 *
 * After SHOW with status 0, the reply carries the memfd with the report (report.h). With `ask`,
 * packets (struct control_processes) come before the reply, with one socket for each attached
 * process. The process answers there (struct vnic_attach_state) if the daemon could ask it: `asked`
 * in the report.
 */
struct control_reply {
	uint32_t version;
	int32_t status; /* 0, or a negative errno value; -EPROTO: not a request of this version */
};

/*
 * From the daemon to a client that asks processes, with n descriptors of sockets. On socket i the
 * client receives the answer of the process whose port has the number ports[i].
 */
struct control_processes {
	uint32_t version;
	uint32_t n;
	uint32_t ports[UNIX_PACKET_FDS_MAX]; /* numbers as in the report */
};

/*
 * From the daemon to a client that captures with `record`, with the descriptor of a ring: the
 * process of the port records its engine there (vnic/record_ring.h).
 */
struct control_recording {
	uint32_t version;
	uint32_t reserved;
	char port[CONTROL_PORT]; /* name of the process's port */
};

/* --- The daemon's end. No call blocks. */

struct control_ops {
	/*
	 * Returns a sealed memfd with the report, or a negative errno value. `client`: the
	 * connection that gets the sockets for the answers of processes, which are asked first; -1:
	 * no process is asked.
	 */
	int (*show)(void *ctx, int client);
	/*
	 * Starts a capture that runs until the peer closes `socket`. Returns the memory of the
	 * capture ring, or an error of capture_taps_start.
	 */
	int (*capture)(void *ctx, int socket, const char *port, bool record);
	/*
	 * Called after the reply to a request with `record`: sends the descriptors of the rings of
	 * processes on `socket`.
	 */
	void (*record)(void *ctx, int socket);
	/*
	 * Called when `socket` is readable or closed: ends its capture; the caller closes the
	 * socket. False: no capture has this socket.
	 */
	bool (*capture_end)(void *ctx, int socket);
};

struct control {
	const struct control_ops *ops;
	void *ctx;
	int epoll_fd; /* readable when control_event has something to do; -1 = closed */
	int listen_fd;
	struct accept_pause pause;
	int peers[CONTROL_PEERS]; /* ring of connections without a request yet; -1 = free */
	uint32_t next;            /* counts up; modulo CONTROL_PEERS the oldest peer */
};

/*
 * Listens in run_dir and replaces the socket of a dead daemon. Returns 0 or a negative errno value.
 */
int control_open(struct control *c, const char *run_dir, const struct control_ops *ops, void *ctx);
/* Accepts connections and answers requests. */
void control_event(struct control *c, uint64_t now);
/* Accepts connections again after a pause (accept_pause.h); result as of accept_pause_tick. */
uint64_t control_tick(struct control *c, uint64_t now);
/* Closes all connections and removes the socket. Does nothing after control_open has failed. */
void control_close(struct control *c, const char *run_dir);

#endif
