/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The vhost-user port of a process that does nothing else (urxed/vhost/ in tools/). A part of the
 * library with DPDK.
 *
 * A malformed message or memory that the machine truncates kills the process that runs DPDK's
 * vhost library, so a process with other duties must not open such a port.
 */
#ifndef URXE_NETDEV_VHOST_H
#define URXE_NETDEV_VHOST_H

#include <netdev/netdev.h>
#include <stddef.h>

#define NETDEV_VHOST_PATH 108 /* bytes, as in struct sockaddr_un */

struct netdev_vhost_spec {
	char path[NETDEV_VHOST_PATH]; /* absolute */
	bool connects; /* the port connects to the machine's socket; else it listens */
};

/*
 * Parses vhost:PATH[,connect]. Without `connect`, checks that the socket can be created, and
 * removes the socket of a process that has died. Starts nothing. 0, or a negative errno value, and
 * `error` gets one sentence.
 */
int netdev_vhost_parse(const char *text, struct netdev_vhost_spec *spec, char *error,
		       uint32_t error_size);

/* Starts the EAL in such a process: without huge pages or telemetry, and without files that stay
 * after the process. 0, or a negative errno value, and `error` gets one sentence. */
int netdev_vhost_start(char *error, uint32_t error_size);

/*
 * Opens the port, with its packet buffers in the `size` bytes at `memory`, which the caller keeps
 * until netdev_close. Call netdev_vhost_start before. netdev_is_up: a machine is connected. 0, or a
 * negative errno value, and `error` gets one sentence.
 */
int netdev_vhost_open(const struct netdev_vhost_spec *spec, uint32_t mtu, void *memory, size_t size,
		      struct netdev **port, char *error, uint32_t error_size);
/*
 * Takes the frames of the last netdev_rx out of the port, and stores a pointer for each of them in
 * `buffers`, in order. A frame is valid until the caller passes its pointer to netdev_vhost_free.
 */
void netdev_vhost_hold(struct netdev *port, void **buffers);
void netdev_vhost_free(void **buffers, uint32_t n);

#endif
