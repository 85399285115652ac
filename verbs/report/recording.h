/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Recording of the engine for urxe capture --state: the daemon asks for it while a capture runs.
 * All functions need the lock of the port.
 */
#ifndef URXE_VERBS_REPORT_RECORDING_H
#define URXE_VERBS_REPORT_RECORDING_H

/*
 * Starts a recording into the ring of the descriptor, which the function closes. The lock is free
 * meanwhile, if a peer still copies to or from this process's memory.
 */
void recording_start(int ring);
/* Ends the recording, if there is one. Before the engine is destroyed, or has another daemon. */
void recording_stop(void);
/* In a forked child. */
void recording_isolate(void);
void recording_abandon(void);

#endif
