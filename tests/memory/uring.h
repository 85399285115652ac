/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* io_uring by its three system calls. Functions return -1 and errno where the kernel refuses. */
#ifndef URXE_TEST_MEMORY_URING_H
#define URXE_TEST_MEMORY_URING_H

#include <stdbool.h>
#include <stddef.h>

struct io_uring_sqe;
struct io_uring_cqe;

struct uring {
	int fd;          /* -1: closed */
	bool registered; /* system calls name the ring by its index, not by its descriptor */
	unsigned int index;
	unsigned int *sq_tail, *sq_mask, *sq_array;
	unsigned int *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

int uring_open(struct uring *ring);
int uring_register_buffer(struct uring *ring, void *bytes, size_t size);

#endif
