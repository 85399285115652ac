/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "channel.h"
#include "clock.h"
#include "port.h"
#include "progress.h"
#include "real.h"
#include "signals.h"

/* Waits of less than PROGRESS_SOON in a row, for the next one to be expected to be so, too. */
#define PROMPT_TIMES 8

static struct reader *const reader = &port.progress.reader;

/*
 * What pthread_cleanup_push was in glibc before NPTL, which has kept it but for its declaration:
 * other than its successor it runs what was pushed also where a handler leaves by longjmp.
 */
void _pthread_cleanup_push(struct _pthread_cleanup_buffer *buffer, void (*routine)(void *),
			   void *arg);
void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *buffer, int execute);

/* Its address tells threads apart. */
static __thread char self;

static bool in_place(void)
{
	return reader->thread == &self;
}

enum vnic_inbox_vector reader_vector(void)
{
	return reader->thread ? VNIC_INBOX_READER : VNIC_INBOX_THREAD;
}

bool reader_waits(void)
{
	return reader->thread;
}

bool reader_drives(void)
{
	return reader->thread && !reader->asleep;
}

/* --- What it sleeps by. */

static void wake(void)
{
	eventfd_write(reader->fd, 1);
}

/* A duplicate, that the inbox may go before a reader has. */
void reader_start(void)
{
	int fd = port.inbox ? vnic_inbox_irq_fd(port.inbox, VNIC_INBOX_READER) : -1;

	*reader = (struct reader){.fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0)};
}

/*
 * A thread that is about to sleep must not come to read what has that number by then: it closes the
 * descriptor itself.
 */
void reader_stop(void)
{
	reader->thread = NULL;
	if (reader->asleep)
		wake();
	else
		reader_abandon();
	reader->fd = -1;
}

void reader_abandon(void)
{
	if (reader->fd >= 0)
		close(reader->fd);
}

/* --- The place. */

static void leave(void)
{
	if (!in_place())
		return;
	reader->thread = NULL;
	if (!port.progress.lease_until)
		progress_unmask();
}

bool reader_expected(void)
{
	return reader->prompt >= PROMPT_TIMES && reader->last == &self;
}

/* With its event. One that waits again soon has nothing to tell the engine's thread. */
static void leave_for(uint64_t waited)
{
	if (!in_place())
		return;
	reader->prompt = waited < PROGRESS_SOON ? reader->prompt + 1 : 0;
	reader->last = &self;
	if (reader_expected() && !port.progress.lease_until)
		progress_lease(clock_now());
	leave();
}

static bool enter(struct channel *channel, uint32_t queued)
{
	if (!port.dev || !port_connected() || reader->fd < 0 || reader->thread)
		return false;
	/* One that was dismissed has not come back yet. */
	if (channel->taker)
		return false;
	reader->thread = &self;
	reader->channel = channel;
	reader->queued = queued;
	reader->asleep = false;
	return true;
}

void reader_missed(void)
{
	reader->prompt = 0;
}

void reader_dismiss(void)
{
	if (!reader->thread)
		return;
	reader->thread = NULL;
	wake();
}

void reader_tell(const struct channel *channel)
{
	if (reader->thread && reader->channel == channel && reader->asleep)
		wake();
}

bool reader_served(void)
{
	return !in_place() || !reader->channel->taker || reader->channel->queued != reader->queued;
}

/* --- Waiting. */

/* The event is written to where it is wanted, past the channel's socket. */
static enum reader_end drive(struct channel *channel, struct channel_event *event, bool stream,
			     bool by_inbox)
{
	channel->taker = event;
	/* A lease ends: it was the caller's, or somebody takes the next one who polls. */
	while (!progress_take_over(stream, by_inbox, true) && !signals_wait())
		by_inbox = false;
	if (!channel->taker)
		return READER_TAKEN;
	channel->taker = NULL;
	return READER_LOOK;
}

struct sleep {
	struct channel *channel;
	int fd;
};

static void awoken(const struct sleep *sleep)
{
	if (sleep->fd != reader->fd)
		close(sleep->fd);
	else if (in_place() || !reader->thread)
		reader->asleep = false;
}

/* Of a thread that does not come back from there: it was cancelled, or a handler has left it. */
static void give_up(void *arg)
{
	struct sleep *sleep = arg;

	signals_hold();
	port_lock();
	awoken(sleep);
	leave();
	/* Once: as signals are let, another handler may leave this in turn. */
	if (sleep->channel)
		channel_put(sleep->channel);
	sleep->channel = NULL;
	port_unlock();
	signals_let();
}

/* As a read of the channel would. 0, or why it was no sleep. Signals are held behind it. */
static int sleep_by(struct sleep *sleep)
{
	struct _pthread_cleanup_buffer cleanup;
	int rc = EINTR;
	uint64_t count;

	_pthread_cleanup_push(&cleanup, give_up, sleep);
	if (!signals_let())
		rc = REAL(read)(sleep->fd, &count, sizeof(count)) < 0 ? errno : 0;
	signals_hold();
	_pthread_cleanup_pop(&cleanup, 0);
	return rc;
}

/* With the lock, which is free meanwhile. */
static int sleep_in_place(struct channel *channel)
{
	struct sleep sleep = {channel, reader->fd};
	int rc;

	reader->asleep = true;
	progress_schedule();
	port_unlock();
	rc = sleep_by(&sleep);
	port_lock();
	awoken(&sleep);
	return rc;
}

static bool must_wait(const struct channel *channel, enum reader_end end)
{
	return end == READER_LOOK && in_place() && channel->queued == reader->queued;
}

static enum reader_end sleep_and_drive(struct channel *channel, struct channel_event *event)
{
	uint64_t since = clock_now();
	int rc = sleep_in_place(channel);

	if (!in_place())
		return READER_LOOK;
	if (rc)
		return rc == EINTR ? READER_INTERRUPTED : READER_ELSEWHERE;
	return drive(channel, event, clock_now() - since < PROGRESS_SOON, true);
}

static enum reader_end wait_in_place(struct channel *channel, struct channel_event *event)
{
	enum reader_end end = drive(channel, event, reader->prompt, false);

	while (must_wait(channel, end)) {
		/* They have kept it from its work: behind them it goes on. */
		if (signals_wait())
			wake();
		end = sleep_and_drive(channel, event);
	}
	return end;
}

enum reader_end reader_wait(struct channel *channel, uint32_t queued, struct channel_event *event)
{
	enum reader_end end = READER_ELSEWHERE;
	uint64_t since = clock_now();

	signals_hold();
	port_lock();
	if (enter(channel, queued)) {
		channel_use(channel);
		end = wait_in_place(channel, event);
		leave_for(clock_now() - since);
		channel_put(channel);
	}
	port_unlock();
	return signals_let() && end != READER_TAKEN ? READER_INTERRUPTED : end;
}
