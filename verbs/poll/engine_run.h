/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs the engine of the adapter: takes received frames to it, and sends its frames. All functions
 * need the lock of the adapter.
 */
#ifndef URXE_VERBS_POLL_ENGINE_RUN_H
#define URXE_VERBS_POLL_ENGINE_RUN_H

#include <stdint.h>

struct qp;

/* Sends the engine's frames until it has no more, or until a receiver has no free buffer. */
void engine_transmit(uint64_t now);
/* Receives and sends some bursts, and shows the program its completions. */
void engine_run(uint64_t now);
/*
 * Like engine_run, for a poll of a program that replies at once (poll/reply_detect.h). If the only
 * frame to send is one ACK, engine_poll keeps it. The next engine_transmit or engine_run sends it
 * together with the program's reply: by the direct uplink in one system call, or by the switch with
 * one wake-up of the daemon.
 */
void engine_poll(uint64_t now);
/*
 * Sends delayed acknowledgements before the QP is destroyed, reset or failed: without them, the
 * peer would not learn that its last message arrived. The engine may find the QP failed meanwhile,
 * with an event.
 */
void engine_flush_acks(struct qp *qp);
/* Receives all frames that are in the ring of the direct uplink now. */
void engine_receive_uplink(uint64_t now);
/* Receives the frames that the daemon delivered before it ended. */
void engine_receive_last(uint64_t now);
/* Time of the engine's next work, also of frames that wait to be sent; 0: at once. */
uint64_t engine_deadline(void);

#endif
