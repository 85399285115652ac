/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs the engine of the port: takes received frames to it, and sends its frames. All functions
 * need the lock of the port.
 */
#ifndef URXE_VERBS_ENGINE_ENGINE_RUN_H
#define URXE_VERBS_ENGINE_ENGINE_RUN_H

#include <stdint.h>

/* Sends all frames that the engine has, up to the room of the receivers. */
void engine_transmit(uint64_t now);
/* Receives and sends some bursts, and shows the program its completions. */
void engine_run(uint64_t now);
/*
 * The same for a poll of a program that replies at once. If the engine has nothing to send but one
 * ACK, the ACK leaves with the next engine_transmit or engine_run: by the direct uplink in the same
 * system call, by the switch with the same wake-up of the daemon.
 */
void engine_poll(uint64_t now);
/* Receives all frames that are in the ring of the direct uplink now. */
void engine_receive_uplink(uint64_t now);
/* Receives the frames that the daemon delivered before it ended. */
void engine_receive_last(uint64_t now);
/* Time of the engine's next work, also of frames that wait to be sent; 0: at once. */
uint64_t engine_deadline(void);

#endif
