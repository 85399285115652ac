/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Notes for each QP by which member of the direct uplink (interface of a bond, or the only
 * interface) its last packet arrived, for `urxe show qp`. The peer or the network chooses it, so it
 * may be another member than that by which this process sends. Packets by the switch are not noted.
 * engine_run.c calls this file for frames of the direct uplink. Functions need adapter.lock.
 */
#ifndef URXE_VERBS_POLL_RECEIVING_MEMBER_H
#define URXE_VERBS_POLL_RECEIVING_MEMBER_H

#include <stdint.h>

#include <rxe/rxe.h>

/* Notes that n frames to this process came by one member of the direct uplink. */
void receiving_member_note(const struct urxe_frame *frames, uint32_t n, uint32_t member);
/* Forgets the members of all QPs, because the process has other packet sockets from now on. */
void receiving_member_forget(void);

#endif
