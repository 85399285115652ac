/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of file descriptors that belong to this library. For the interposed libc functions. */
#ifndef URXE_VERBS_PROCESS_OWN_FD_H
#define URXE_VERBS_PROCESS_OWN_FD_H

#include <stdatomic.h>
#include <stdbool.h>

enum fd_kind { FD_UVERBS, FD_CHANNEL, FD_RDMACM };

/*
 * The object behind a descriptor. Its memory is never freed, only reused: a descriptor that one
 * thread closes while another thread uses it leads to an error, not to a crash.
 */
struct fd_object {
	enum fd_kind kind;
	atomic_uint fds;                           /* descriptors that refer to it */
	void (*release)(struct fd_object *object); /* the last descriptor is closed */
};

extern atomic_uint fd_ours __attribute__((visibility("hidden"))); /* descriptors in the table */

struct fd_object *fd_find(int fd);

/* Whether the table has any descriptor: the fast check of each interposed call. */
static inline bool fd_any(void)
{
	return __builtin_expect(atomic_load_explicit(&fd_ours, memory_order_relaxed) != 0, 0);
}

/* NULL if fd is not in the table; lock-free. */
static inline struct fd_object *fd_lookup(int fd)
{
	return fd_any() ? fd_find(fd) : 0;
}

/* The first descriptor of the table at or after fd, or -1. */
int fd_next(int fd);

/* 0, or -EMFILE or -ENOMEM. */
int fd_install(int fd, struct fd_object *object);
/* fd is about to be closed or replaced. */
void fd_remove(int fd);
/* Descriptors first to last are about to be closed. */
void fd_remove_range(unsigned int first, unsigned int last);
/* new_fd is a duplicate of old_fd now. */
void fd_duplicated(int old_fd, int new_fd);

/*
 * Makes this process the owner of the table: a vfork child shares the table but must not change it.
 */
void fd_set_owner(void);
bool fd_is_owner(void);

#endif
