/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs the engine of the adapter: passes received frames to it, and sends its frames. All functions
 * need adapter.lock; `now` is clock_now().
 */
#ifndef URXE_VERBS_POLL_ENGINE_RUN_H
#define URXE_VERBS_POLL_ENGINE_RUN_H

#include <stdint.h>

struct qp;

/* Sends the engine's frames until none is due or one has to wait, and then the kept ACK. */
void engine_transmit(uint64_t now);
/* Receives and sends some bursts, passes the HCA's completions to the engine, and shows the program
 * all completions. */
void engine_run(uint64_t now);
/*
 * Runs the engine for a poll of a program that replies at once (poll/delayed_ack.h). If no receive
 * ring may have more frames, the HCA has no more completions, and the only frame to send is an ACK
 * for the direct uplink or the switch, engine_poll keeps the ACK; otherwise it does what engine_run
 * does. The next
 * engine_transmit or engine_run sends the ACK together with the program's reply: by the direct
 * uplink in one system call, or by the switch with one wake-up of the daemon.
 */
void engine_poll(uint64_t now);
/* For a poll while the HCA executes all queue pairs: passes the HCA's completions to the engine,
 * and shows the program all completions. If the HCA may have more completions, calls engine_run. */
void engine_poll_hca(uint64_t now);
/*
 * Call it before the QP is destroyed, reset or moved to the error state: sends its delayed
 * acknowledgements. Without them, the peer would not learn that its last message arrived. Meanwhile
 * the QP may go to the error state, with an event.
 */
void engine_flush_acks(struct qp *qp);
/* Passes to the engine all frames that are in the rings of the direct uplink now, and shows the
 * program its completions. Sends nothing. For the last frames of a socket that is replaced. */
void engine_receive_uplink(uint64_t now);
/* Passes to the engine all frames that are in the receive rings now, and shows the program its
 * completions. Sends nothing. For the last frames of a daemon that has ended, and for the frames
 * before a recording. */
void engine_receive_last(uint64_t now);
/* The time (clock_now()) of the engine's next work, or, while frames wait to be sent, of the next
 * attempt to send them. 0: at once; URXE_NEVER: no work, or the engine may not send now
 * (adapter_running()). */
uint64_t engine_deadline(void);

#endif
