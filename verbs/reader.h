/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program's thread that waits for a completion event by a blocking read of its channel, as
 * ibv_get_cq_event does. It waits for the inbox's interrupt itself, in the place of the engine's
 * thread (progress.h), and drives the engine when that comes: so whoever sends to a program that
 * sleeps wakes one thread, and not one that has to wake the other.
 *
 * One thread of a process at a time has that place; others read their channels. It sleeps in a read
 * of an eventfd, of that vector of the inbox's which is for readers, and so is interrupted,
 * restarted and cancelled as one that reads its channel. What comes by the NIC wakes the engine's
 * thread, as ever. All functions but those marked want the port's lock.
 */
#ifndef URXE_VERBS_READER_H
#define URXE_VERBS_READER_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/inbox.h>

struct channel;
struct channel_event;

struct reader {
	const void *thread;      /* who has the place; NULL: nobody */
	struct channel *channel; /* of which it waits for an event */
	uint32_t queued;         /* events of it that were to be read before, all in all */
	bool asleep;
	uint32_t prompt;  /* times in a row that one had soon what it waited for */
	const void *last; /* who that was */
	int fd;           /* to sleep by; -1: there is no inbox */
};

enum reader_end {
	READER_TAKEN,       /* the event is there */
	READER_LOOK,        /* there may be one to be read */
	READER_INTERRUPTED, /* a signal came */
	READER_ELSEWHERE,   /* this is no place to wait: another one has it, or there is no inbox */
};

/* With the port. */
void reader_start(void);
void reader_stop(void);
/* In a forked child: closes what was inherited. */
void reader_abandon(void);

/*
 * Without the lock: waits for an event of that channel, of which there was none to be read when so
 * many were queued in it.
 */
enum reader_end reader_wait(struct channel *channel, uint32_t queued, struct channel_event *event);
/* Whether anyone has the place; and is awake in it, and so drives the engine. */
bool reader_waits(void);
bool reader_drives(void);
/* Whether the caller, who is that one, has what it waits for, or the place no more. */
bool reader_served(void);
/* An event of that channel is to be read. */
void reader_tell(const struct channel *channel);
/* Who has the place loses it, and looks for events elsewhere. */
void reader_dismiss(void);
/*
 * Whether the caller will most likely wait here when it has looked at its queues for the last time:
 * until then nobody need be woken. And a lease has ended in which it did not.
 */
bool reader_expected(void);
void reader_missed(void);
/* Whom the inbox's interrupt is to wake. */
enum vnic_inbox_vector reader_vector(void);

#endif
