/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The member of a bond by which the packets of each QP arrive, for `urxe show qp`: the peer chooses
 * it. engine_run.c notes the member of received frames. With the lock of the adapter.
 */
#ifndef URXE_VERBS_POLL_RECEIVING_MEMBER_H
#define URXE_VERBS_POLL_RECEIVING_MEMBER_H

#include <stdint.h>

#include <rxe/rxe.h>

/* Notes that n frames to this process came by one member of the direct uplink. */
void receiving_member_note(const struct urxe_frame *frames, uint32_t n, uint32_t member);
/* Forgets the members of all QPs: the process has other sockets from now on. */
void receiving_member_forget(void);

#endif
