/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The front end of the vhost-user protocol, in a few calls that check nothing: for vhost_master.c,
 * which plays a hostile virtual machine.
 */
#ifndef URXE_SMOKE_VHOST_MASTER_H
#define URXE_SMOKE_VHOST_MASTER_H

#include <stddef.h>
#include <stdint.h>

/* Requests: docs/interop/vhost-user.rst of QEMU. */
enum {
	VHOST_GET_FEATURES = 1,
	VHOST_SET_FEATURES,
	VHOST_SET_OWNER,
	VHOST_RESET_OWNER,
	VHOST_SET_MEM_TABLE,
	VHOST_SET_LOG_BASE,
	VHOST_SET_LOG_FD,
	VHOST_SET_VRING_NUM,
	VHOST_SET_VRING_ADDR,
	VHOST_SET_VRING_BASE,
	VHOST_GET_VRING_BASE,
	VHOST_SET_VRING_KICK,
	VHOST_SET_VRING_CALL,
	VHOST_SET_VRING_ERR,
	VHOST_GET_PROTOCOL_FEATURES,
	VHOST_SET_PROTOCOL_FEATURES,
	VHOST_GET_QUEUE_NUM,
	VHOST_SET_VRING_ENABLE,
	VHOST_REQUESTS = 45, /* further ones have greater numbers */
};

#define MASTER_FDS    16
#define MASTER_QUEUES 2
#define MASTER_SIZE   256 /* entries of a queue */
/* One region: the queues, then buffers. */
#define MASTER_MEMORY (1u << 20)
#define MASTER_GPA    0x100000000ull /* guest's address of the region */

struct vring_desc {
	uint64_t addr;
	uint32_t len;
	uint16_t flags, next;
};

/* A split ring (VIRTIO 1.1, 2.6) as it lies in the region. */
struct master_queue {
	struct vring_desc desc[MASTER_SIZE];
	struct {
		uint16_t flags, idx, ring[MASTER_SIZE], event;
	} avail;
	struct {
		uint16_t flags, idx;
		struct {
			uint32_t id, len;
		} ring[MASTER_SIZE];
		uint16_t event;
	} used __attribute__((aligned(8)));
} __attribute__((aligned(64)));

struct master {
	int fd;                      /* the connection; -1 = none */
	int memory;                  /* memfd of the region */
	struct master_queue *queues; /* MASTER_QUEUES, at the start of the region */
	int kick[MASTER_QUEUES], call[MASTER_QUEUES]; /* eventfds; -1 = none */
};

/* Connects, and makes the memory. -1: nobody listens. */
int master_open(struct master *m, const char *path);
void master_close(struct master *m);

/* Sends a message; `size` is what the header says, `sent` how many bytes follow. -1: hung up. */
int master_send_raw(struct master *m, uint32_t request, uint32_t size, const void *payload,
		    size_t sent, const int *fds, int n_fds);
int master_send(struct master *m, uint32_t request, const void *payload, size_t size,
		const int *fds, int n_fds);
/* Waits up to a second for an answer of 8 bytes. -1: none came. */
int master_receive(struct master *m, uint64_t *value);

/* The messages of an honest start. */
int master_negotiate(struct master *m);
int master_send_table(struct master *m, uint64_t size, uint64_t mmap_offset, int memory);
int master_start_queue(struct master *m, uint32_t index);
/* Addresses of the rings as the master's process has them. */
int master_send_addresses(struct master *m, uint32_t index, uint64_t desc, uint64_t used,
			  uint64_t avail);
/* All of the above; -1: hung up. */
int master_start(struct master *m);

#endif
