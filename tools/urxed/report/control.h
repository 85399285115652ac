/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's second socket, by which people look into it: SOCK_SEQPACKET, in the
 * run directory, for root and the daemon's own user.
 *
 * One packet is a request, one the answer; then the daemon hangs up. What is told
 * comes in memory (memfd), so that nobody's reading or not reading holds up the
 * daemon. Integers are in host byte order.
 */
#ifndef URXE_URXED_REPORT_CONTROL_H
#define URXE_URXED_REPORT_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#define CONTROL_SOCKET_NAME "urxed.ctl"
#define CONTROL_VERSION     2
#define CONTROL_PORT        64 /* bytes of a port's name, with its NUL */
/* Connections that may be open at a time; another one ends the oldest. */
#define CONTROL_PEERS 16

enum control_type { CONTROL_SHOW = 1, CONTROL_CAPTURE };

struct control_request {
	uint32_t version;
	uint32_t type;           /* enum control_type */
	uint32_t ask;            /* SHOW: 1 = the processes, too, are asked what they have */
	char port[CONTROL_PORT]; /* CAPTURE: name or number of the only one; "" = all */
};

/*
 * After CAPTURE the connection stays, and lasts as long as the capture. With status 0 comes
 * the ring's memory (capture_ring.h); packets of one byte wake its reader.
 *
 * After SHOW, with status 0 comes the memfd with the report (report.h), and where processes were
 * asked the socket on which they answer (struct vnic_attach_state; SO_PASSCRED says who does).
 */
struct control_reply {
	uint32_t version;
	int32_t status; /* 0, or a negative errno value; -EPROTO: not a request of this version */
};

/* --- The daemon's end. No call blocks. */

struct control_ops {
	/*
	 * Makes a sealed memfd with what there is to tell; returns it, or a negative errno
	 * value. `socket` is for processes to answer on, -1 where they are not to be asked.
	 */
	int (*show)(void *ctx, int socket);
	/*
	 * Starts a capture that lasts until `socket` hangs up, which is the callee's from then
	 * on; returns the ring's memory, or a negative errno value.
	 */
	int (*capture)(void *ctx, int socket, const char *port);
	/* A socket says something, or has hung up: ends its capture; false: there is none. */
	bool (*capture_end)(void *ctx, int socket);
};

struct control {
	const struct control_ops *ops;
	void *ctx;
	int epoll_fd; /* readable when control_event has something to do; -1 = closed */
	int listen_fd;
	int peers[CONTROL_PEERS]; /* a ring; -1 = none */
	uint32_t next;            /* its oldest */
};

/* Listens in run_dir; replaces a socket that a dead daemon left. 0 or a negative errno value. */
int control_open(struct control *c, const char *run_dir, const struct control_ops *ops, void *ctx);
/* Takes connections and answers requests. */
void control_event(struct control *c);
/* Hangs up and removes the socket; nothing where control_open has failed. */
void control_close(struct control *c, const char *run_dir);

#endif
