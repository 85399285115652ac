/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's control socket, for `urxe show`, `urxe capture` and telemetry: a SOCK_SEQPACKET
 * socket in the run directory, for root and the daemon's own user. This file declares the protocol
 * and the daemon's end, which monitor.c uses.
 *
 * A client sends one request and gets one reply; packets with sockets may come before the reply
 * (struct control_processes). Then the daemon closes the connection, unless the request was a
 * capture. Data comes in a memfd, so that a slow reader cannot delay the daemon. Integers are in
 * host byte order.
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
/*
 * Connections without a request at most. If there are so many, the daemon accepts no further one
 * until one of them has sent its request or is closed. The daemon closes each connection that has
 * been silent for CONTROL_SILENT_NS.
 */
#define CONTROL_PEERS     64
#define CONTROL_SILENT_NS 2000000000ull /* less than a client waits (CONTROL_CLIENT_SECONDS) */

enum control_type { CONTROL_SHOW = 1, CONTROL_CAPTURE };

struct control_request {
	uint32_t version;
	uint32_t type;           /* enum control_type */
	uint32_t ask;            /* SHOW: 1 = the daemon also asks all processes for their state */
	uint32_t record;         /* CAPTURE: 1 = the processes of the ports record their engines */
	char port[CONTROL_PORT]; /* CAPTURE: name or number of one port; "" = all ports */
};

/*
 * After CAPTURE the connection stays open as long as the capture runs. With status 0, the reply
 * carries the memory of the capture ring (capture_ring.h); later packets of one byte wake the
 * reader. With `record`, further packets (struct control_recording) carry the rings
 * (vnic/record_ring.h) of the processes, also of processes that attach later. When the packets of
 * the processes that ran at the start have been sent, capture_ring.listed is set.
 *
 * After SHOW with status 0, the reply carries the memfd with the report (report.h). With `ask`,
 * packets (struct control_processes) with one socket for each attached process come before the
 * reply. On that socket the process itself answers (struct vnic_attach_state), if the daemon could
 * ask it: `asked` in the report.
 */
struct control_reply {
	uint32_t version;
	int32_t status; /* 0, or a negative errno value; -EPROTO: not a request of this version */
};

/* From the daemon to a client that has set `ask`, with n sockets. On socket i the client receives
 * the answer of the process whose port has the number ports[i]. */
struct control_processes {
	uint32_t version;
	uint32_t n;
	uint32_t ports[UNIX_PACKET_FDS_MAX]; /* numbers as in the report */
};

/* From the daemon to a client that captures with `record`. The packet carries a ring, in which the
 * process of the port records its engine (vnic/record_ring.h). */
struct control_recording {
	uint32_t version;
	uint32_t reserved;
	char port[CONTROL_PORT]; /* name of the process's port */
};

/* --- The daemon's end. No call blocks. */

struct control_ops {
	/*
	 * Returns a sealed memfd with the report, or a negative errno value. First asks processes
	 * for their state, and sends the sockets on which they answer to the connection `client`;
	 * -1: asks no process.
	 */
	int (*show)(void *ctx, int client);
	/*
	 * Starts a capture that runs until the peer closes `socket`. Returns the memory of the
	 * capture ring, or an error of capture_taps_start.
	 */
	int (*capture)(void *ctx, int socket, const char *port, bool record);
	/* Called after the reply to a capture request with `record`: sends the rings of the
	 * processes on `socket`. */
	void (*record)(void *ctx, int socket);
	/* Called when `socket` is readable or closed: ends the socket's capture; the caller closes
	 * the socket. Returns false if no capture has this socket. */
	bool (*capture_end)(void *ctx, int socket);
};

struct control_peer {
	int fd;         /* -1 = free */
	uint64_t since; /* time of accept(2), ns */
};

struct control {
	const struct control_ops *ops;
	void *ctx;
	int epoll_fd; /* readable when control_event has something to do; -1 = closed */
	int listen_fd;
	struct accept_pause pause;
	struct control_peer peers[CONTROL_PEERS]; /* connections that have sent no request yet */
};

/* Listens in run_dir, where it replaces the socket of a daemon that has ended. Returns 0 or a
 * negative errno value. */
int control_open(struct control *c, const char *run_dir, const struct control_ops *ops, void *ctx);
/* Accepts connections and answers requests. */
void control_event(struct control *c, uint64_t now);
/* Closes silent connections, and accepts connections again after a pause (accept_pause.h). Returns
 * the time of the next call in ns; UINT64_MAX = none needed. */
uint64_t control_tick(struct control *c, uint64_t now);
/* Closes the connections that have sent no request, and removes the socket. Does nothing after
 * control_open has failed. */
void control_close(struct control *c, const char *run_dir);

#endif
