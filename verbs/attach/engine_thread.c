/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "attach/engine_thread.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "adapter/adapter.h"
#include "attach/main_thread.h"
#include "daemon/adapter_hca.h"
#include "daemon/adapter_uplink.h"
#include "daemon/introduction.h"
#include "daemon/port_attributes.h"
#include "daemon/reconnect.h"
#include "daemon/recording.h"
#include "daemon/state_json.h"
#include "daemon/uplink_qpns.h"
#include "engine/clock.h"
#include "objects/comp_channel.h"
#include "poll/busy_poll.h"
#include "poll/due_events.h"
#include "poll/engine_run.h"
#include "poll/engine_wake.h"
#include "poll/polling.h"
#include "poll/thread_sleep.h"
#include "process/high_fd.h"
#include "queues/publish.h"
#include <hca/hca.h>
#include <samehost/peer.h>
#include <session/sched_slice.h>

#define US 1000u

/* Maximum of runs of the engine in one round (run_round); then the thread polls its descriptors. */
#define RUNS 4
/* If frames come after a sleep shorter than this, in ns, the thread expects the next ones as soon,
 * and busy-polls for them. */
#define SOON (100 * US)

static struct engine_thread *const self = &adapter_thread;
static struct polling *const polling = &adapter_polling;

/* --- The thread's work; with the lock. */

static bool must_leave(void)
{
	return polling->state == POLL_PROGRAM || self->stop;
}

/* Lets the program's threads that wait for the lock take it once before this thread takes it again.
 */
static void offer_lock(void)
{
	adapter_unlock();
	adapter_claim();
}

/* Whether a peer asks for a busy poll, because it sends a stream of requests: it has raised the
 * inbox's interrupt and sent no frame (samehost/peer_poll.h). If so, sets polling->heard_at to now.
 * `heard_before`: polling->heard_at before the engine ran. */
static bool asks_for_busy_poll(bool by_inbox, uint64_t heard_before)
{
	if (!by_inbox || polling->heard_at != heard_before)
		return false;
	polling->heard_at = clock_now();
	return true;
}

/*
 * Runs the engine until the rings are empty and the interrupts unmasked, or until a thread of the
 * program takes the poll grant. `stream`: the next frames come soon, so the thread busy-polls;
 * `by_inbox`: the inbox's interrupt woke the thread. False: more frames wait, but the thread has
 * other work to do first.
 */
static bool empty_rings(bool stream, bool by_inbox)
{
	uint64_t heard_before = polling->heard_at;
	unsigned int runs = 0;

	polling_event(POLL_WAKE);
	if (tx_delays_ack(&adapter.tx))
		delayed_ack_missed(&polling->delayed_ack, true);
	do {
		if (runs++ == RUNS)
			return false;
		engine_run(clock_now());
		if (must_leave())
			return true;
		stream |= runs == 1 && asks_for_busy_poll(by_inbox, heard_before);
		offer_lock();
		if (must_leave())
			return true;
		if (stream)
			busy_poll();
	} while (!must_leave() && polling_event(POLL_DRAINED));
	return true;
}

/* Tries to attach to the next daemon, and after success runs the engine. False: frames wait, so the
 * next round follows at once. Returns `idle` if there is no new daemon yet. */
static bool look_for_daemon(bool idle)
{
	reconnect_try();
	if (adapter.dead)
		polling_event(POLL_LOST);
	if (!adapter_connected())
		return idle;
	polling_event(POLL_ATTACHED);
	return empty_rings(false, false);
}

static void handle_notice(void)
{
	struct vnic_attach_port now;
	int question, ring, fds[VNIC_INBOX_FDS];
	uint32_t qpn;

	if (vnic_driver_notice(adapter.nic, &now, &question))
		port_changed(&now);
	if (question >= 0)
		state_json_send(question);
	if (vnic_driver_introduction(adapter.nic, &qpn, fds))
		adapter_add_inbox(qpn, fds);
	if (!vnic_driver_record(adapter.nic, &ring))
		return;
	if (ring >= 0)
		recording_start(ring);
	else
		recording_stop();
}

static void go_on_after_stop(void)
{
	if (!atomic_load_explicit(&adapter.stop_abandoned, memory_order_relaxed) ||
	    !atomic_exchange(&adapter.stop_abandoned, false))
		return;
	urxe_copy_rights_publish(adapter.dev);
	adapter_hca_abandon(TAKER_QUIESCE);
	engine_transmit(clock_now());
	adapter_publish();
}

static void handle_hca(void)
{
	adapter_hca_finish();
	hca_handle_events(adapter.hca.hca);
	engine_transmit(clock_now());
	adapter_publish();
}

/*
 * One round: runs the engine, talks to the daemon, and flushes full event channels. False: frames
 * wait, so the next round follows at once.
 */
static bool run_round(const struct thread_sleep *woken, bool stream)
{
	bool idle = true;

	go_on_after_stop();
	if (woken->notice && adapter_connected())
		handle_notice();
	if (adapter.hca.hca && (woken->hca || adapter.hca.qps_stopped))
		handle_hca();
	if (polling->grant_until <= clock_now())
		idle = empty_rings(stream, woken->inbox);
	if (self->stop)
		return idle;
	if (adapter_connected() && (woken->hangup || vnic_driver_broken(adapter.nic))) {
		adapter_disconnected();
		/* With a direct uplink the next round follows at once: it sends the answers to the
		 * last frames of the switch, which adapter_disconnected() has received. */
		idle = !adapter_running();
	}
	if (adapter.reconnecting)
		idle = look_for_daemon(idle);
	if (adapter_connected() && adapter_uplink_stale()) {
		adapter_renew_uplink();
		/* The next round sends the answers to the last frames of the old sockets, which
		 * adapter_renew_uplink() has received. */
		idle = false;
	}
	if (adapter_hca_stale())
		adapter_hca_renew();
	if (adapter.uplink_qpns_late)
		uplink_qpns_update();
	comp_channels_flush();
	return idle;
}

/* --- The thread. */

/* Posted by the engine thread when it has published its number. engine_thread_start() waits for
 * that, so that peers can see that this process lives. */
static sem_t started;

/*
 * Raises the priority of this thread by 1 under a real-time policy, which it inherits from the
 * program. The program may spin on its memory, on the one processor that both threads have, and
 * then only a thread with a higher priority runs. If the kernel refuses, the priority stays.
 */
static void raise_priority(void)
{
	struct sched_param param;
	int policy = sched_getscheduler(0);

	if ((policy != SCHED_FIFO && policy != SCHED_RR) || sched_getparam(0, &param))
		return;
	param.sched_priority++;
	pthread_setschedparam(pthread_self(), policy, &param);
}

static void *run_thread(void *unused)
{
	struct thread_sleep sleep = {0};
	bool idle, stream = false; /* `stream`: frames came less than SOON after a sleep began */
	uint64_t since;

	(void)unused;
	prctl(PR_SET_NAME, "urxe");
	prctl(PR_SET_TIMERSLACK, 1);
	sched_request_short_slice();
	raise_priority();
	adapter_claim();
	peers_publish_thread(&adapter_peers);
	sem_post(&started);
	while (!self->stop) {
		self->wake_at = 0;
		idle = run_round(&sleep, stream);
		if (self->stop)
			break;
		since = clock_now();
		thread_sleep_prepare(&sleep, since, idle);
		adapter_unlock();
		thread_sleep_wait(&sleep, since);
		main_thread_end_process_if_last();
		stream = (sleep.interrupt || !idle) && clock_now() - since < SOON;
		adapter_claim();
	}
	adapter_unlock();
	return NULL;
}

/* Closes the eventfd. First clears wake_fd: the hook of close() refuses to close the eventfd as
 * long as wake_fd has its number. */
static void close_wake_fd(void)
{
	int fd = atomic_exchange(&self->wake_fd, -1);

	if (fd >= 0)
		close(fd);
}

int engine_thread_start(void)
{
	sigset_t all, old;
	int rc;

	*self = (struct engine_thread){.wake_fd = high_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
				       .look = POLL_GRANT_NS};
	*polling = (struct polling){.state = POLL_ASLEEP,
				    .grant_ns = POLL_GRANT_NS,
				    .delayed_ack.wanted = DELAYED_ACK_FIRST};
	if (self->wake_fd < 0)
		return -errno;
	main_thread_watch();
	adapter.due_events.unlock_and_send = due_events_unlock_and_send;
	/* Signals are for the program's own threads. SIGSYS stays as the program has it: if a
	 * filter of seccomp traps a system call by SIGSYS, and the thread blocks that signal, the
	 * kernel kills the process. */
	sigfillset(&all);
	sigdelset(&all, SIGSYS);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	/* A child that a signal handler has forked needs no thread. */
	rc = adapter.lock.orphaned ? ECANCELED
				   : pthread_create(&self->thread, NULL, run_thread, NULL);
	/* Waits before signals are unblocked: a handler could fork, and its child would wait for a
	 * thread that it lacks. */
	if (!rc)
		sem_wait(&started);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		close_wake_fd();
	return -rc;
}

void engine_thread_stop(void)
{
	adapter_lock();
	self->stop = true;
	engine_wake();
	adapter_unlock();
	/* No adapter: this is a child that a signal handler has forked, without an engine thread.
	 */
	if (!adapter.dev)
		return;
	pthread_join(self->thread, NULL);
	close_wake_fd();
}

void engine_thread_abandon(void)
{
	if (!adapter.dev)
		return;
	close_wake_fd();
}
