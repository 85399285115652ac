/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who drives the engine, and when.
 *
 * Posting a send transmits in the caller. Polling an empty completion queue
 * receives in the caller, and leases progress for a millisecond, or longer where programs wait for
 * their core: the interrupt is masked and the engine thread sleeps, so that a polling application
 * has its core for itself. A program that is always back at once is given its completions first,
 * and acknowledgements leave when it is. A lease that is not renewed ends, and the thread takes
 * over. A poll of a queue that is armed for an event leases nothing: it is the last look before the
 * application sleeps. All functions but those marked want the port's lock.
 */
#ifndef URXE_VERBS_ENGINE_ENGINE_THREAD_H
#define URXE_VERBS_ENGINE_ENGINE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/poll_detect.h"

struct uverbs_file;

struct progress {
	pthread_t thread;
	int wake_fd;
	bool stop;
	bool irq_on;
	/* The thread reads the one and writes the other without the lock, too. */
	_Atomic uint64_t lease_until; /* 0 = no lease */
	_Atomic uint64_t wake_at;     /* when the thread wakes up by itself; 0 = it is awake */
	uint32_t leases;              /* taken so far */
	uint64_t heard_at;            /* when frames last came */
	bool vigil;                   /* the thread stays awake for more of them */
	uint64_t busy_from;           /* when it may do so again */
	uint64_t pause;               /* between two of these */
	struct poll_detect absence;   /* of the application, after completions */
};

/* Without the lock: starts and ends the engine thread. */
int progress_start(void);
void progress_stop(void);
/* In a forked child: closes what was inherited. */
void progress_abandon(void);

/* Sends what the engine has to send. */
void progress_transmit(uint64_t now);
/* The engine has new deadlines or work: wakes the thread up if it would sleep too long. */
void progress_schedule(void);

/* The daemon has gone, or the NIC cannot be trusted. */
void progress_disconnected(void);

/* Without the lock: the application enters; learns how long it was away. */
void progress_entered(uint64_t now);
/*
 * Without the lock: a poll of the CQ with that handle found nothing. False: there
 * is no use in polling again.
 */
bool progress_poll(const struct uverbs_file *file, uint32_t handle, uint64_t now);
/* Without the lock: a poll found something. */
void progress_found(uint64_t now);
/* Receives and sends; also for commands that look for completions. */
void progress_run(uint64_t now);

#endif
