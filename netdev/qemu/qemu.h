/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Common parts of stream.c and dgram.c, the ports for QEMU's -netdev stream and dgram. */
#ifndef URXE_NETDEV_QEMU_QEMU_H
#define URXE_NETDEV_QEMU_QEMU_H

#include <sys/stat.h>
#include <sys/un.h>

#include "netdev_ops.h"

/* Frames per system call. */
#define QEMU_BURST 64

/*
 * Reads of the socket in one netdev_rx. A peer whose frames are all dropped must not keep the
 * daemon's loop in one call.
 */
#define QEMU_ROUNDS 8

struct qemu_spec {
	bool connect;
	bool dgram;
	uint32_t mtu;     /* bytes; 0 = the default */
	uint32_t mtu_max; /* upper limit of the option mtu= */
	struct sockaddr_un path;
	struct sockaddr_un remote; /* AF_UNSPEC: not specified */
};

struct qemu_port {
	struct netdev netdev;
	uint32_t mtu;
	uint32_t frame_max; /* bytes, with the Ethernet header and one tag */
	int socket;         /* bound to `path`; -1 = none */
	struct sockaddr_un path;
	struct stat file; /* of the socket, to remove no other file at `path` */
	uint64_t counters[NETDEV_COUNTER_COUNT];
};

void qemu_set_mtu(struct qemu_port *port, uint32_t mtu);
/* Binds a socket of mode 0600 to the path. 0, or a negative errno value, and `error` gets the end
 * of a sentence. */
int qemu_bind(struct qemu_port *port, const struct sockaddr_un *path, int type, char *error,
	      uint32_t error_size);
/*
 * Returns a stream socket that is connected to the path, or a negative errno value. Connects by the
 * function of netdev_qemu_set_files, if one is set.
 */
int qemu_connect(const struct sockaddr_un *path);
/* Closes the socket and removes its file, if that is still at the path. */
void qemu_unbind(struct qemu_port *port);

/* Number of frames, from the first on, before one that is too long for the port; at most
 * QEMU_BURST. */
uint32_t qemu_count_fitting(const struct qemu_port *port, const struct netdev_frame *frames,
			    uint32_t n);

/* Operations (netdev_ops.h) of both kinds of ports. */
uint32_t qemu_mtu(const struct netdev *port);
void qemu_counters(struct netdev *port, uint64_t counters[NETDEV_COUNTER_COUNT]);

int qemu_stream_open(const struct qemu_spec *spec, struct netdev **port, char *error,
		     uint32_t error_size);
int qemu_dgram_open(const struct qemu_spec *spec, struct netdev **port, char *error,
		    uint32_t error_size);

#endif
