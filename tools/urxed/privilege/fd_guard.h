/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Descriptors that programs send to the daemon (vnic/peer_socket.h): the daemon receives and closes
 * none of them. A helper process closes the sockets whose queues have descriptors, and receives and
 * checks the descriptors of inboxes that survive a restart of the daemon. The daemon has one such
 * helper; when the helper has ended, the next call of this file starts
 * another one.
 */
#ifndef URXE_URXED_PRIVILEGE_FD_GUARD_H
#define URXE_URXED_PRIVILEGE_FD_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <vnic/inbox.h>

/* Starts the helper, before the daemon has threads. Returns 0 or a negative errno value. */
int fd_guard_start(void);
/* The helper closes the sockets that it has, and ends. */
void fd_guard_stop(void);

/*
 * Closes a socket from accept(2), which is in no epoll set any more. Never waits. The peer sees the
 * end of the connection at once.
 */
void fd_guard_close(int socket);
/* Closes a listening socket with the connections that it has not accepted. */
void fd_guard_close_listener(int socket);
/* Closes a socket that other processes still use: the helper closes this copy. */
void fd_guard_release(int socket);

/*
 * Returns one end of a socket for the program, of that user, that has an inbox; the helper has the
 * other end (vnic_driver_set_inbox). fd_guard_next_inbox returns the inbox with the same token
 * later, if the descriptors are an inbox's. Or a negative errno value.
 */
int fd_guard_check_inbox(uint64_t token, uid_t user);
/* An epoll set that is readable when fd_guard_next_inbox has something to do; -1: not started. */
int fd_guard_fd(void);
/* False: no more. The caller owns the descriptors: memfds and an eventfd. */
bool fd_guard_next_inbox(uint64_t *token, int fds[VNIC_INBOX_FDS]);

/* Number of connections that the helper was given to close. */
uint64_t fd_guard_count(void);

#endif
