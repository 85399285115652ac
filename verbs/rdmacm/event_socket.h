/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets of the event socket (cm/attach.h): which one is the next event. With file->lock. */
#ifndef URXE_VERBS_RDMACM_EVENT_SOCKET_H
#define URXE_VERBS_RDMACM_EVENT_SOCKET_H

#include "rdmacm/rdmacm_file.h"

struct rdmacm_event_packet {
	struct cm_attach_event head;
	uint8_t bytes[CM_ATTACH_BYTES + CM_ATTACH_CACHED];
};

/* -EAGAIN: no event; -EIO: no events any more. */
int rdmacm_event_receive(struct rdmacm_file *file, struct rdmacm_event_packet *packet);
/*
 * Handles the cancelled and withdrawn events of a reply. A packet to be skipped is never the first
 * one of the socket, so that the socket is readable only if there is an event.
 */
void rdmacm_events_take_back(struct rdmacm_file *file, const struct cm_attach_reply *reply);

#endif
