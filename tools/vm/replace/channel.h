/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connection between a device process and the process that replaces it: packets on a
 * SOCK_SEQPACKET socket beside the sockets of the functions. Both processes belong to one user.
 *
 *   new process   request
 *   old process   offer with a memfd, which holds the stream of a struct bundle, then the bundle's
 *                 descriptors, two in a packet
 *   new process   answer, when it has made the machine's device
 *   old process   go: from now on the new process serves the machine, and the old one ends
 *
 * The old process goes on with the machine if a packet has another status than 0, the connection
 * ends or a packet does not come in time. All calls wait. Functions return 0 or a negative errno
 * value, if their comment says nothing else.
 */
#ifndef URXE_VM_REPLACE_CHANNEL_H
#define URXE_VM_REPLACE_CHANNEL_H

#include "vm/replace/bundle.h"

/*
 * How long the old process waits for a packet of the new one. The machine's device stands still
 * meanwhile, and its peers use up retries. With the local ACK timeout 14 and 7 retries, as perftest
 * has them, connections of a peer that runs urxe survive 1.4 s (docs/state.md), more than this
 * wait. Those of a peer with the shortest timeout that IBA 9.7.6.1.3 allows survive only 0.47 s.
 */
#define CHANNEL_OLD_MS 800
/* How long the new process waits for a packet: the old process may have to wait for peers and for
 * the hypervisor before it sends one. */
#define CHANNEL_NEW_MS 5000

/*
 * Connects to the process that serves at `path`. Returns the socket, or a negative errno value;
 * -EPERM: the process is neither this user's nor root's.
 */
int channel_connect(const char *path);
/* Accepts a connection; returns as channel_connect. */
int channel_accept(int listener);

/* Sends request, answer or go. `status`: 0, or a negative errno value if the sender gives up. */
int channel_send(int fd, int status);
/*
 * Receives a packet of channel_send. Returns the status that was sent; -EPROTO: no such packet, or
 * one of another version; -ECONNRESET: the other process has ended; -EAGAIN: none came in time.
 */
int channel_receive(int fd);

/* Sends the offer and the descriptors, which stay the caller's. */
int channel_send_bundle(int fd, const struct bundle *b);
/* Errors are those of bundle_decode and channel_receive. After 0 the caller calls bundle_close. */
int channel_receive_bundle(int fd, struct bundle *b);

#endif
