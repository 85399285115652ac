/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Recording of the engine for urxe capture --state: the daemon asks for it while a capture runs.
 * Callers hold adapter.lock, except in a forked child.
 */
#ifndef URXE_VERBS_DAEMON_RECORDING_H
#define URXE_VERBS_DAEMON_RECORDING_H

/*
 * Starts a recording into the ring (vnic/record_ring.h) behind the descriptor `ring`, and closes
 * the descriptor. If the engine's state cannot be saved, the reader of the ring finds the error in
 * struct vnic_record_process. While a peer copies to or from this process's memory, or the program
 * unmaps memory, the function waits, for at most about 1 s, and releases adapter.lock meanwhile.
 */
void recording_start(int ring);
/* Ends the recording, if one runs. Callers do so before they destroy the engine or replace the NIC
 * by that of another daemon. */
void recording_stop(void);
/* In a forked child, whose only thread needs no lock: from now on the child does not write to the
 * parent's ring. */
void recording_isolate(void);
/* In a forked child, at once or after recording_isolate: frees the recording, without an end mark.
 */
void recording_abandon(void);

#endif
