/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receives the daemon's events from the event socket (cm/attach_protocol.h), and skips those that
 * are cancelled or came before. With file->lock. */
#ifndef URXE_VERBS_RDMACM_EVENT_SOCKET_H
#define URXE_VERBS_RDMACM_EVENT_SOCKET_H

#include "rdmacm/rdmacm_file.h"

struct rdmacm_event_packet {
	struct cm_attach_event head;
	uint8_t bytes[CM_ATTACH_BYTES + CM_ATTACH_CACHED];
};

/* Receives the next event. 0; -EAGAIN: there is none now; -EIO: none comes any more, or the daemon
 * has broken the protocol. Never blocks. */
int rdmacm_event_receive(struct rdmacm_file *file, struct rdmacm_event_packet *packet);
/*
 * Call it for each reply of the daemon: discards the events that the daemon has withdrawn, and
 * notes those that it has cancelled, to skip them. After the call the first packet of the socket is
 * none of these, so the socket is readable only if there is an event, or a packet of
 * rdmacm_event_wake().
 */
void rdmacm_events_take_back(struct rdmacm_file *file, const struct cm_attach_reply *reply);
/* Wakes the file->n_waiting threads that wait for a packet, by packets without an event, which
 * rdmacm_event_receive() skips. */
void rdmacm_event_wake(struct rdmacm_file *file);

#endif
