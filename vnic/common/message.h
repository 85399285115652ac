/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages and shared memory of the attach socket (attach_protocol.h), for the driver and the
 * daemon. */
#ifndef URXE_VNIC_MESSAGE_H
#define URXE_VNIC_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/attach_protocol.h>

/*
 * Our driver needs 12 MB at the largest MTU; the limit keeps a client from using up the daemon's
 * address space.
 */
#define VNIC_MEMORY_MAX (UINT64_C(64) << 20)

union vnic_message {
	uint32_t type;
	/* The first words of each answer except that to REG. */
	struct {
		uint32_t type;
		int32_t status;
	} answer;
	struct vnic_attach_hello hello;
	struct vnic_attach_welcome welcome;
	struct vnic_attach_memory memory;
	struct vnic_attach_reg reg;
	struct vnic_attach_resolve resolve;
	struct vnic_attach_inbox inbox;
	struct vnic_attach_introduce introduce;
	struct vnic_attach_lease lease;
	struct vnic_attach_uplink uplink;
	struct vnic_attach_qpn qpn;
	struct vnic_attach_remote remote;
	struct vnic_attach_notice notice;
	struct vnic_attach_introduction introduction;
	struct vnic_attach_state_query question;
	struct vnic_attach_record record;
};

/*
 * Sends a message, and waits for room; -EAGAIN: there is none, and the socket is non-blocking or
 * its time limit is over. 0 or a negative errno value. No function here raises SIGPIPE. -EINTR,
 * also of vnic_message_recv: this is a child that a signal handler has forked during the call.
 */
int vnic_message_send(int fd, const void *message, uint32_t len, const int *fds, uint32_t fd_count);
/* As vnic_message_send without descriptors, but never waits: -EAGAIN if the socket is full. */
int vnic_message_try_send(int fd, const void *message, uint32_t len);
/*
 * Returns the message's length; 0 is the end of the connection. *fd_count is the number of
 * descriptors that the caller accepts, then the number received; the kernel closes any others. The
 * caller owns the descriptors also after an error. -EPROTO: the message is longer than *message, or
 * has more descriptors; -EMFILE: the process is at its limit of descriptors, and *message is
 * complete.
 */
int vnic_message_recv(int fd, union vnic_message *message, int *fds, uint32_t *fd_count);
/* Closes the descriptors, except those that are -1. */
void vnic_close_fds(const int *fds, uint32_t n);

/*
 * Returns the status in a daemon's answer to HELLO, whatever version the daemon speaks: 0 or a
 * negative errno value. `len`: the result of vnic_message_recv, which is returned if negative.
 * -ECONNRESET: `len` is 0; -EPROTO: the message is no answer to HELLO.
 */
int vnic_message_check_welcome(const union vnic_message *message, int len);

/* Zeroed memory for two processes, sealed at its size. Returns a descriptor. */
int vnic_memory_create(const char *name, uint64_t size);
/*
 * Maps another process's memory of exactly `size` bytes. -EINVAL: it has another size, or more than
 * VNIC_MEMORY_MAX. -EPERM: the owner could shrink it, and an access behind its end would raise
 * SIGBUS; or the owner could enlarge it, or has more than VNIC_MEMORY_MAX bytes of pages in it, and
 * the last close would take long; or the descriptor is no writable memory of this kind. Or an error
 * of mmap.
 */
int vnic_memory_map(int fd, uint64_t size, void **memory);
/* Checks that the descriptor is memory for vnic_memory_map: 0; -EPERM: it is not; -EINVAL: larger
 * than VNIC_MEMORY_MAX. */
int vnic_memory_check(int fd);
/*
 * These four functions are for memory that only one process writes. The process creates it, maps it
 * with vnic_memory_map, then publishes it: from then on no process can map it for writing, and
 * other processes map it with vnic_memory_map_published. Needs Linux 5.1.
 */
int vnic_memory_create_unpublished(const char *name, uint64_t size);
int vnic_memory_publish(int fd);
bool vnic_memory_is_published(int fd);
int vnic_memory_map_published(int fd, uint64_t size, const void **memory);
/* Replaces a mapping of vnic_memory_map or vnic_memory_map_published by zeroed private memory, at
 * the same address. Async-signal-safe. */
void vnic_memory_isolate(const void *memory, uint64_t size);

#endif
