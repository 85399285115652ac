/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Guards the daemon against descriptors that programs send to it. Closing an unknown descriptor may
 * block for as long as its sender wants (vnic/peer_socket.h). So the daemon receives and closes
 * only descriptors that a helper process has checked. The helper also closes the sockets whose
 * queues hold descriptors, and receives and checks the descriptors of inboxes that survive a
 * restart of the daemon. The daemon has one such helper. If the helper has ended, the next call
 * that needs it starts another one, but not within 1 s of the last start.
 */
#ifndef URXE_URXED_PRIVILEGE_FD_GUARD_H
#define URXE_URXED_PRIVILEGE_FD_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <vnic/inbox.h>

/* Starts the helper, before the daemon has threads. Returns 0 or a negative errno value. */
int fd_guard_start(void);
/* Ends the helper without waiting for it; the helper's copies of sockets close then. */
void fd_guard_stop(void);

/*
 * Closes a socket that accept(2) returned and that the caller has removed from its epoll set. Never
 * waits: if descriptors are in the socket's queue, the helper closes the socket later. The peer
 * sees the end of the connection at once.
 */
void fd_guard_close(int socket);
/* Closes a listening socket, and the connections that wait to be accepted. */
void fd_guard_close_listener(int socket);

/*
 * Begins the check of an inbox of a program of `user`. Returns a socket, which the caller sends to
 * the program and closes, or a negative errno value. The helper holds the other end, at which it
 * receives the inbox's descriptors (vnic_driver_set_inbox). If they are those of an inbox,
 * fd_guard_next_inbox later returns them with `token`; otherwise the helper closes them.
 */
int fd_guard_check_inbox(uint64_t token, uid_t user);
/* Returns an epoll set that is readable when fd_guard_next_inbox has something to do; -1: not
 * started. */
int fd_guard_fd(void);
/*
 * Sets *token and fds to those of the next inbox that the helper has checked; the caller then owns
 * the descriptors, which are memfds and an eventfd. Returns false if no checked inbox waits, or if
 * the daemon had no free descriptor numbers for the inbox, which is then lost.
 */
bool fd_guard_next_inbox(uint64_t *token, int fds[VNIC_INBOX_FDS]);

/* Returns how many sockets fd_guard_close has left to the helper because programs had sent
 * descriptors. */
uint64_t fd_guard_count(void);

#endif
