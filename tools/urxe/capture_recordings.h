/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The recordings of processes during urxe capture --state: from their rings to the file. */
#ifndef URXE_URXE_CAPTURE_RECORDINGS_H
#define URXE_URXE_CAPTURE_RECORDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/pcapng.h"

/* How long urxe capture waits for a process's answer. A process that cannot begin to record within
 * 1 s, for example because peers copy, answers that. */
#define CAPTURE_ANSWER_NS UINT64_C(5000000000)

struct capture_recording;

struct capture_recordings {
	bool on;     /* the capture has --state */
	bool listed; /* the daemon has set `listed` (capture_ring.h), and its rings were added */
	struct capture_recording *list;
	uint32_t n;
	uint32_t n_written; /* processes in the file */
};

/* Adds the process at that port of the switch; `ring` is the descriptor of its ring, which this
 * function closes. Logs an error; then the process is not in the file. */
void capture_recordings_add(struct capture_recordings *all, int ring, const char *port);
/*
 * Whether the caller has to wait for recordings: `listed` is not set yet, or a process that was
 * added at most CAPTURE_ANSWER_NS ago has not answered.
 */
bool capture_recordings_wait(const struct capture_recordings *all);
/*
 * Writes what the processes have recorded since the last call. Returns 0, or a negative errno value
 * of the write.
 */
int capture_recordings_write(struct capture_recordings *all, struct pcapng *to);
/* Logs which processes have not answered, and the number of those whose rings urxed could not send;
 * frees everything. */
void capture_recordings_end(struct capture_recordings *all, uint32_t unrecorded);

#endif
