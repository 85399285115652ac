/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The program's descriptors that this library emulates: uverbs devices, event channels and rdma_cm.
 * For the interposed libc functions. */
#ifndef URXE_VERBS_PROCESS_EMULATED_FD_H
#define URXE_VERBS_PROCESS_EMULATED_FD_H

#include <stdatomic.h>
#include <stdbool.h>

enum fd_kind { FD_UVERBS, FD_CHANNEL, FD_RDMACM };

/*
 * The object behind a descriptor. Its memory is never freed, only reused: a descriptor that one
 * thread closes while another thread uses it leads to an error, not to a crash.
 */
struct fd_object {
	enum fd_kind kind;
	/* Number of descriptors that refer to it. Only fd_install raises it from 0. */
	atomic_uint fds;
	/* Grows each time that fd_install adds the first descriptor. */
	atomic_uint generation;
	/* Called when the last descriptor leaves the table. */
	void (*release)(struct fd_object *object);
};

extern atomic_uint fd_emulated __attribute__((visibility("hidden"))); /* descriptors in the table */

/* The object of fd; NULL: fd is not in the table. Takes no lock; any thread. */
struct fd_object *fd_find(int fd);

/* Whether the table has any descriptor. Each interposed call makes this fast check first. */
static inline bool fd_any(void)
{
	return __builtin_expect(atomic_load_explicit(&fd_emulated, memory_order_relaxed) != 0, 0);
}

/* The same as fd_find, but faster while the table is empty. */
static inline struct fd_object *fd_lookup(int fd)
{
	return fd_any() ? fd_find(fd) : 0;
}

/* The smallest descriptor of the table that is >= fd; -1: there is none. */
int fd_next(int fd);

/* Adds fd to the table, for that object, in place of an earlier entry. 0; -EMFILE: the number is
 * too large for the table; -ENOMEM. */
int fd_install(int fd, struct fd_object *object);
/* Call it before fd is closed or replaced: removes fd from the table, if it is there and this
 * process owns the table. The object is released after its last descriptor. */
void fd_remove(int fd);
/* Does fd_remove for the descriptors first to last. */
void fd_remove_range(unsigned int first, unsigned int last);
/* Call it when new_fd has become a duplicate of old_fd: adds new_fd to the table, with the object
 * of old_fd. Not if another thread has closed old_fd meanwhile, or memory is lacking. */
void fd_duplicated(int old_fd, int new_fd);

/*
 * Makes this process the owner of the table. A vfork child shares the table with its parent, but
 * must not change it.
 */
void fd_set_owner(void);
/* Whether this process is the owner; false in a vfork child. */
bool fd_is_owner(void);

#endif
