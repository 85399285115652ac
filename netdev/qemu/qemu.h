/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ports to QEMU's -netdev stream and dgram: what the two kinds share. */
#ifndef URXE_NETDEV_QEMU_QEMU_H
#define URXE_NETDEV_QEMU_QEMU_H

#include <sys/stat.h>
#include <sys/un.h>

#include "port.h"

/* Frames that one system call takes or gives. */
#define QEMU_BURST 64

/*
 * Looks at a socket in one call of netdev_rx. A peer that sends nothing but what is
 * dropped must not keep its receiver from everything else.
 */
#define QEMU_ROUNDS 8

struct qemu_spec {
	bool connect;
	bool dgram;
	uint32_t mtu; /* 0 = the caller's */
	struct sockaddr_un path;
	struct sockaddr_un remote; /* of no family: not said */
};

struct qemu_port {
	struct netdev netdev;
	uint32_t mtu;
	uint32_t frame_max;
	int socket; /* at the port's path, -1 = none */
	struct sockaddr_un path;
	struct stat file; /* of the path */
	uint64_t counters[NETDEV_COUNTER_COUNT];
};

void qemu_set_mtu(struct qemu_port *port, uint32_t mtu);
/* Takes the path and makes it of no use to other users. On error `why` gets the end of a sentence.
 */
int qemu_bind(struct qemu_port *port, const struct sockaddr_un *path, int type, char *why,
	      uint32_t why_size);
/* Closes the socket and removes its file. */
void qemu_unbind(struct qemu_port *port);

/* How many of the first frames go in one call: QEMU_BURST at most, and none that is too long. */
uint32_t qemu_fitting(const struct qemu_port *port, const struct netdev_frame *frames, uint32_t n);

/* What both put into their tables. */
uint32_t qemu_mtu(const struct netdev *port);
void qemu_counters(struct netdev *port, uint64_t counters[NETDEV_COUNTER_COUNT]);

int qemu_stream_open(const struct qemu_spec *spec, struct netdev **port, char *why,
		     uint32_t why_size);
int qemu_dgram_open(const struct qemu_spec *spec, struct netdev **port, char *why,
		    uint32_t why_size);

#endif
