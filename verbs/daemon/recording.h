/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Recording of the engine for urxe capture --state: the daemon asks for it while a capture runs.
 * The caller holds the lock of the adapter, except in a forked child.
 */
#ifndef URXE_VERBS_DAEMON_RECORDING_H
#define URXE_VERBS_DAEMON_RECORDING_H

/*
 * Starts a recording into the ring of the descriptor, and closes the descriptor. The reader of the
 * ring gets an error in struct vnic_record_process. While a peer still copies to or from this
 * process's memory, the function releases the lock and waits, for at most 1 s.
 */
void recording_start(int ring);
/* Ends the recording, if one runs. Callers: before they destroy the engine or change its daemon. */
void recording_stop(void);
/* In a forked child, whose only thread needs no lock: from now on the child does not write to the
 * parent's ring. */
void recording_isolate(void);
/* In a forked child, at once or after recording_isolate: frees the recording, without an end mark.
 */
void recording_abandon(void);

#endif
