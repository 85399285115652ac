/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "poll/thread_sleep.h"

#include <errno.h>
#include <hca/hca.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "adapter/adapter.h"
#include "engine/clock.h"
#include "objects/comp_channel.h"
#include "poll/engine_run.h"
#include "poll/engine_wake.h"
#include "poll/polling.h"
#include "process/log.h"
#include "process/run_dir.h"

#define MS 1000000u

/*
 * Interval, in ns, at which the thread tries to send events of channels that it does not watch, and
 * checks for free transmit buffers in case that the device raises no interrupt for them.
 */
#define STUCK (10 * MS)
/* Interval, in ns, of checks for receive requests in rings of QPs in the error state: the program
 * posts them without a doorbell. */
#define FLUSH (100 * MS)
/* Interval, in ns, of checks whether a program without its main thread still has threads. */
#define LAST_THREAD (20 * MS)

/* While a program polls without end, the thread wakes up to check the poll grant. The delays of
 * these wake-ups may take at most 1/LOOK_COST of the time. LOOK_MAX: the longest interval, ns. */
#define LOOK_COST 32
#define LOOK_MAX  (8 * MS)

enum {
	WATCH_WAKE,
	WATCH_IRQ,
	WATCH_CTL,
	WATCH_NOTICE,
	WATCH_INBOX,
	WATCH_UPLINK,
	WATCH_HCA,
	WATCH_HCA_ASYNC,
	WATCH_CHANNELS
};

_Static_assert(THREAD_SLEEP_FDS == WATCH_CHANNELS + THREAD_SLEEP_CHANNELS, "places of `fds`");

static bool is_full(const struct thread_sleep *sleep)
{
	return sleep->n == THREAD_SLEEP_FDS;
}

/* Lists the descriptors that are to end the sleep: none of a daemon that has ended, which would end
 * each sleep at once. */
static void watch_descriptors(struct thread_sleep *sleep)
{
	bool connected = adapter_connected();
	struct comp_channel *channel;

	sleep->fds[WATCH_WAKE] = (struct pollfd){adapter_thread.wake_fd, POLLIN, 0};
	sleep->fds[WATCH_IRQ] =
		(struct pollfd){connected ? vnic_driver_irq_fd(adapter.nic) : -1, POLLIN, 0};
	sleep->fds[WATCH_CTL] =
		(struct pollfd){connected ? vnic_driver_ctl_fd(adapter.nic) : -1, POLLRDHUP, 0};
	sleep->fds[WATCH_NOTICE] =
		(struct pollfd){connected ? vnic_driver_notice_fd(adapter.nic) : -1, POLLIN, 0};
	sleep->fds[WATCH_INBOX] =
		(struct pollfd){adapter.inbox ? vnic_inbox_irq_fd(adapter.inbox) : -1, POLLIN, 0};
	sleep->fds[WATCH_UPLINK] = (struct pollfd){
		adapter.uplink ? packet_group_irq_fd(adapter.uplink) : -1, POLLIN, 0};
	sleep->fds[WATCH_HCA] =
		(struct pollfd){adapter.hca.hca ? hca_comp_fd(adapter.hca.hca) : -1, POLLIN, 0};
	sleep->fds[WATCH_HCA_ASYNC] =
		(struct pollfd){adapter.hca.hca ? hca_async_fd(adapter.hca.hca) : -1, POLLIN, 0};
	sleep->n = WATCH_CHANNELS;
	adapter.channel_waits = false;
	sleep->has_unwatched_channel = false;
	LIST_FOREACH(channel, &adapter.waiting_channels, waiting_link)
	{
		sleep->has_unwatched_channel |= is_full(sleep) || channel->lacks_memory;
		if (is_full(sleep) || channel->lacks_memory)
			continue;
		sleep->fds[sleep->n++] = (struct pollfd){channel->writer, POLLOUT, 0};
	}
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Returns the time of the engine thread's next run: the end of the poll grant; without a grant the
 * engine's next deadline, or an earlier check (STUCK, FLUSH, POLL_GRANT_NS). */
static uint64_t next_run(struct thread_sleep *sleep, uint64_t now)
{
	uint64_t at = engine_deadline();

	if (adapter_polling.state == POLL_PROGRAM)
		return adapter_polling.grant_until;
	/* No frame waits, so work that is due already needs free transmit buffers of the NIC. */
	if (at <= now && tx_deadline(&adapter.tx) == URXE_NEVER)
		at = now + STUCK;
	/* The program has polled since the last sleep, and probably polls again: with a longer
	 * sleep, each new grant would have to wake the thread (engine_wake_for_grant). */
	if (sleep->grants != adapter_polling.grants)
		at = sooner(at, now + POLL_GRANT_NS);
	sleep->grants = adapter_polling.grants;
	/* Some channel with waiting events is not among the watched descriptors. */
	if (sleep->has_unwatched_channel)
		at = sooner(at, now + STUCK);
	if (!LIST_EMPTY(&adapter.flushing_qps))
		at = sooner(at, now + FLUSH);
	return at;
}

static uint64_t next_attempt(struct thread_sleep *sleep, uint64_t now)
{
	uint64_t attempt = now + RECONNECT_INTERVAL_NS;

	if (!adapter.reconnecting)
		return next_run(sleep, now);
	return adapter.uplink ? sooner(next_run(sleep, now), attempt) : attempt;
}

static uint64_t next_wake(struct thread_sleep *sleep, uint64_t now)
{
	uint64_t at = next_attempt(sleep, now);

	if (adapter.hca.qps_stopped || adapter.uplink_qpns_late)
		return sooner(at, now + MS);
	if (adapter_connected()) {
		at = sooner(at, hca_retry_due(&adapter.hca.retry));
		if (adapter.uplink_retry_at)
			at = sooner(at, adapter.uplink_retry_at);
		if (adapter.uplink_look_at)
			at = sooner(at, adapter.uplink_look_at);
	}
	return adapter_main_thread_ended ? sooner(at, now + LAST_THREAD) : at;
}

/* Whether it is time to ask for the direct uplink again, to check its rings, or to open the HCA
 * again. The thread also asks while a program polls without end, because these must not wait until
 * the program's grant ends. */
static bool is_time_to_retry(uint64_t now)
{
	return (adapter.uplink_retry_at && adapter.uplink_retry_at <= now) ||
	       (adapter.uplink_look_at && adapter.uplink_look_at <= now) ||
	       hca_retry_due(&adapter.hca.retry) <= now;
}

/* Sets the interval at which the thread checks the grant back to POLL_GRANT_NS, and shortens a
 * longer grant to that. Long grants (polling_grant_is_long) keep the interval of the last sleep. */
static void begin_looks(uint64_t now)
{
	if (polling_grant_is_long())
		return;
	adapter_thread.look = POLL_GRANT_NS;
	polling_shorten_grant(now);
}

void thread_sleep_prepare(struct thread_sleep *sleep, uint64_t now, bool idle)
{
	begin_looks(now);
	watch_descriptors(sleep);
	sleep->until = idle ? next_wake(sleep, now) : now;
	adapter_thread.wake_at = sleep->until;
}

/* Whether poll(2) has found the descriptor closed, which only the program can have done. */
static bool is_closed(const struct pollfd *pfd)
{
	return pfd->revents & POLLNVAL;
}

static void drain_eventfd(const struct pollfd *pfd)
{
	uint64_t count;

	if (pfd->revents && !is_closed(pfd) && read(pfd->fd, &count, sizeof(count)) < 0 &&
	    errno != EAGAIN)
		log_error("cannot read an eventfd");
}

/*
 * Whether each ppoll(2) would return at once, because the program has closed a descriptor. False if
 * it has closed the connection to the daemon: then the daemon counts as ended, and its descriptors
 * are not watched any more.
 */
static bool watches_closed(const struct thread_sleep *sleep)
{
	if (is_closed(&sleep->fds[WATCH_CTL]))
		return false;
	for (nfds_t i = 0; i < sleep->n; i++)
		if (is_closed(&sleep->fds[i]))
			return true;
	return false;
}

/*
 * Takes the place of ppoll(2) if RLIMIT_NOFILE is less than the number of descriptors, so that
 * ppoll(2) refuses them, or if the program has closed some of them. After 1 ms at most each
 * descriptor counts as ready, also a closed one (POLLNVAL). The daemon's connection counts as ended
 * only if recv(2) finds its end. Returns the number of descriptors.
 */
static int sleep_without_watching(struct thread_sleep *sleep, uint64_t ns)
{
	const struct timespec timeout = {.tv_nsec = ns < MS ? (long)ns : MS};
	char byte;

	(void)ppoll(NULL, 0, &timeout, NULL);
	for (nfds_t i = 0; i < sleep->n; i++)
		if (!is_closed(&sleep->fds[i]))
			sleep->fds[i].revents = sleep->fds[i].fd < 0 ? 0 : sleep->fds[i].events;
	if (recv(sleep->fds[WATCH_CTL].fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT))
		sleep->fds[WATCH_CTL].revents = 0;
	return (int)sleep->n;
}

/* Sleeps until `at`, until a descriptor is ready, or until a signal. Resets the eventfds of
 * wake-ups and interrupts. False: the time is over, and no descriptor is ready. */
static bool sleep_until(struct thread_sleep *sleep, uint64_t at, uint64_t now)
{
	uint64_t ns = at > now ? at - now : 0;
	const struct timespec timeout = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	int n = ppoll(sleep->fds, sleep->n, at == URXE_NEVER ? NULL : &timeout, NULL);

	if ((n < 0 && errno == EINVAL) || watches_closed(sleep))
		n = sleep_without_watching(sleep, ns);
	drain_eventfd(&sleep->fds[WATCH_WAKE]);
	drain_eventfd(&sleep->fds[WATCH_IRQ]);
	drain_eventfd(&sleep->fds[WATCH_INBOX]);
	/* Only the engine thread replaces the adapter's uplink. */
	if (sleep->fds[WATCH_UPLINK].revents)
		packet_group_irq_read(adapter.uplink);
	return n != 0;
}

/*
 * Returns the interval, in ns, at which the thread checks the grant of a program that polls without
 * end: 1 ms, but up to 8 ms where the thread wakes up late, because such wake-ups often take time
 * of the program's processor. In an emulated machine an interval of 1 ms made a SEND 1.6 times
 * slower. `look`: the interval so far; `late`: delay of the last wake-up.
 */
static uint64_t next_look(uint64_t look, uint64_t late)
{
	uint64_t most = LOOK_COST * late < LOOK_MAX ? LOOK_COST * late : LOOK_MAX;

	look = 2 * look < most ? 2 * look : most;
	return look > POLL_GRANT_NS ? look : POLL_GRANT_NS;
}

/*
 * A program that polls renews its grant without end. The engine thread reads the grant's new end
 * without adapter.lock, for which it would compete with the program, and sleeps until then. If
 * another thread gives back the grant meanwhile, either that thread finds the new `wake_at` and
 * wakes the engine thread, or this function finds the grant gone.
 */
void thread_sleep_wait(struct thread_sleep *sleep, uint64_t now)
{
	uint64_t at = sleep->until;

	while (!sleep_until(sleep, at, now)) {
		uint64_t due = at, look;

		now = clock_now();
		at = adapter_polling.grant_until;
		/* The thread must run again to check what ends no sleep: channels that are not
		 * watched, stopped queue pairs, a socket to the daemon that has room again. */
		if (at <= now || sleep->has_unwatched_channel || adapter.reconnecting ||
		    adapter.hca.qps_stopped || adapter.uplink_qpns_late || is_time_to_retry(now))
			break;
		look = next_look(adapter_thread.look, now > due ? now - due : 0);
		at += look > adapter_polling.grant_ns ? look - adapter_polling.grant_ns : 0;
		adapter_thread.look = look;
		adapter_thread.wake_at = at;
		if (!adapter_polling.grant_until)
			break;
	}
	sleep->inbox = sleep->fds[WATCH_INBOX].revents;
	sleep->interrupt =
		sleep->fds[WATCH_IRQ].revents || sleep->inbox || sleep->fds[WATCH_UPLINK].revents;
	sleep->notice = sleep->fds[WATCH_NOTICE].revents;
	sleep->hangup = sleep->fds[WATCH_CTL].revents;
	sleep->hca = sleep->fds[WATCH_HCA].revents || sleep->fds[WATCH_HCA_ASYNC].revents;
}

void thread_sleep_shorten(void)
{
	uint64_t at = engine_deadline();

	/* `at` is 0 if the engine's work is due already, and waits for transmit buffers: their
	 * interrupt wakes the thread. */
	if (at && at < adapter_thread.wake_at)
		engine_wake();
	else if (!LIST_EMPTY(&adapter.flushing_qps) && adapter_thread.wake_at > clock_now() + FLUSH)
		engine_wake();
}
