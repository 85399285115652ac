/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "engine/engine_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/clock.h"
#include "engine/port.h"
#include "report/log.h"
#include "report/state_json.h"
#include "samehost/peer.h"

#define US 1000u
#define MS 1000000u

#define BURST    EGRESS_BURST /* frames that are handled together */
#define ROUNDS   8            /* bursts, before others get a turn at the lock */
#define TURNS    4            /* at the lock, before the engine thread looks at its sockets */
#define CHANNELS 8            /* full event channels that the thread watches at a time */

/* Bursts that empty a receive ring, of whatever size vmxnet3 allows. */
#define LAST_ROUNDS 128

#define LEASE (1 * MS)
/* The engine thread that slept for less expects the next frames as soon. */
#define SOON (100 * US)
_Static_assert(POLL_DETECT_LOST_NS == LEASE / 2, "see absence.h");
/*
 * The engine thread busy-polls until no frame has come for VIGIL, about as long as it takes to
 * sleep and be woken; a burst gathers for GATHER. A look that takes longer than CROWDED shows that
 * others want the core. Then the next busy poll begins PAUSE_MIN to PAUSE_MAX later.
 */
#define VIGIL     (50 * US)
#define GATHER    1000u
#define CROWDED   (40 * US)
#define PAUSE_MIN (250 * US)
#define PAUSE_MAX (128 * MS)
/*
 * How often to look at channels that are not watched, and for transmit buffers: their
 * interrupt is due, and this is for a device that forgets it.
 */
#define STUCK (10 * MS)
/* How often receives are looked for that were posted to a QP in error, without a doorbell. */
#define FLUSH (100 * MS)

static struct progress *const progress = &port.progress;

/*
 * One frame first: buffers for a burst cost more to lay out than a small frame to send, and it is
 * read at the other end while we make those behind it.
 */
void progress_transmit(uint64_t now)
{
	struct urxe_frame frames[BURST];
	uint32_t wanted = 1;
	bool more;

	if (!port_connected())
		return;
	more = egress_flush(&port.egress, now);
	while (more && urxe_next_deadline(port.dev) <= now) {
		uint32_t room = egress_reserve(&port.egress, now, frames, wanted);
		uint32_t n = room ? urxe_output(port.dev, now, frames, room) : 0;

		more = egress_send(&port.egress, now, frames, n) && n && n == room;
		wanted = BURST;
	}
}

static void input(uint64_t now, const struct vnic_frame *buffers, uint32_t n)
{
	struct urxe_frame frames[BURST];
	uint32_t count = 0;

	if (!n)
		return;
	progress->heard_at = now;
	for (uint32_t i = 0; i < n; i++) {
		if (!egress_take_in(&port.egress, &buffers[i], &frames[count])) {
			egress_count(&port.egress, VNIC_DIRECT_UNREACHED, 1);
			continue;
		}
		if (frames[count].reference.length)
			egress_count(&port.egress, VNIC_DIRECT_PULLED, 1);
		count++;
	}
	urxe_input(port.dev, now, frames, count);
}

static uint32_t receive_from_switch(uint64_t now)
{
	struct vnic_frame buffers[BURST];
	uint32_t n = vnic_driver_rx(port.nic, buffers, BURST);

	input(now, buffers, n);
	vnic_driver_rx_release(port.nic, n);
	return n;
}

static uint32_t receive_from_inbox(uint64_t now)
{
	struct vnic_frame buffers[BURST];
	uint32_t n;

	if (!port.inbox)
		return 0;
	n = vnic_inbox_rx(port.inbox, buffers, BURST);
	input(now, buffers, n);
	vnic_inbox_rx_release(port.inbox, n);
	egress_count(&port.egress, VNIC_DIRECT_RECEIVED, n);
	if (vnic_inbox_broken(port.inbox) && !port.inbox_broken)
		port_inbox_broken();
	return n;
}

/* A burst of each. True: there may be more. */
static bool receive(uint64_t now)
{
	uint32_t of_switch = receive_from_switch(now), of_inbox = receive_from_inbox(now);

	if (progress->vigil)
		peer_polls();
	return of_inbox == BURST || of_switch == BURST;
}

/* When the engine or what waits to be sent wants a call; 0 = at once. */
static uint64_t next_deadline(void)
{
	uint64_t at = egress_deadline(&port.egress);

	/* While frames wait, the engine is not asked for more. */
	return at == URXE_NEVER ? urxe_next_deadline(port.dev) : at;
}

/* Receives posted to a QP in error have no doorbell: they are looked for here. */
static void flush(void)
{
	struct qp *qp;

	LIST_FOREACH(qp, &port.flushing_qps, flushing_link)
	qp_flush(qp);
}

/* Behind a first burst; `more`: there may be another one. */
static void serve(uint64_t now, bool more)
{
	uint32_t rounds = 0;

	progress_transmit(now);
	while (more && ++rounds < ROUNDS) {
		more = port_connected() && receive(now);
		progress_transmit(now);
	}
	flush();
	port_publish();
}

void progress_run(uint64_t now)
{
	serve(now, port_connected() && receive(now));
}

static void wake(void)
{
	const uint64_t one = 1;

	if (write(progress->wake_fd, &one, sizeof(one)) < 0)
		log_error("cannot wake the engine thread");
	progress->wake_at = 0;
}

void progress_schedule(void)
{
	bool at_once = !LIST_EMPTY(&port.waiting_channels) || vnic_driver_broken(port.nic);
	uint64_t deadline;

	/* The thread looks for a daemon anyhow, and time stands still. */
	if (port.outage.on)
		return;
	if (at_once && progress->wake_at > 0) {
		wake();
		return;
	}
	/* Under a lease the application looks after deadlines, or loses it. */
	if (progress->lease_until || !progress->wake_at)
		return;
	deadline = next_deadline();
	/* What is to be sent at once waits for transmit buffers, hence for the interrupt. */
	if (deadline && deadline < progress->wake_at)
		wake();
	else if (!LIST_EMPTY(&port.flushing_qps) && progress->wake_at > clock_now() + FLUSH)
		wake();
}

static void mask(void)
{
	vnic_driver_irq_mask(port.nic);
	if (port.inbox)
		vnic_inbox_irq_mask(port.inbox);
	progress->irq_on = false;
}

static void take_lease(uint64_t now)
{
	if (progress->irq_on)
		mask();
	progress->leases++;
	/* Most polls come here; that this is seen late does no harm. */
	atomic_store_explicit(&progress->lease_until, now + LEASE, memory_order_relaxed);
	if (progress->wake_at > now + LEASE)
		wake();
}

/* True: frames or buffers wait already, and no interrupt will tell of them. */
static bool unmask(void)
{
	bool waiting;

	if (!port_connected())
		return false;
	waiting = vnic_driver_irq_unmask(port.nic);
	if (port.inbox)
		waiting |= vnic_inbox_irq_unmask(port.inbox);
	progress->irq_on = true;
	if (waiting)
		mask();
	return waiting;
}

static void unmask_or_run(void)
{
	unsigned int rounds = 0;

	while (unmask()) {
		progress_run(clock_now());
		if (++rounds == ROUNDS) {
			wake();
			return;
		}
	}
	progress_schedule();
}

static void surrender_lease(void)
{
	progress->lease_until = 0;
	unmask_or_run();
}

void progress_entered(uint64_t now)
{
	poll_detect_end(&progress->absence, now);
}

/* The program has its completion, and will stay away for long. */
static void part(void)
{
	port_lock();
	if (port.dev && progress->lease_until)
		surrender_lease();
	port_unlock();
}

void progress_found(uint64_t now)
{
	if (poll_detect_expected(&progress->absence))
		part();
	/* The poll itself may have lost its core: that is no absence. */
	if (poll_detect_doubted(&progress->absence))
		now = clock_now();
	poll_detect_begin(&progress->absence, now);
}

/* The program arms a CQ, polls it once more, and then waits for the event. */
static bool is_last_look(const struct cq *cq)
{
	return cq && cq->armed;
}

bool progress_poll(const struct uverbs_file *file, uint32_t handle, uint64_t now)
{
	const struct cq *cq;

	progress_entered(now);
	/* Another thread drives the engine, or waits for the lock: the poll does not wait. */
	if (!port_trylock())
		return false;
	if (!port.dev || !port_connected()) {
		port_unlock();
		return false;
	}
	cq = (struct cq *)handle_find(&file->handles, OBJECT_CQ, handle);
	if (!is_last_look(cq))
		take_lease(now);
	progress_run(now);
	if (progress->lease_until && is_last_look(cq))
		surrender_lease();
	progress_schedule();
	port_unlock();
	return true;
}

static bool must_leave(void)
{
	return progress->lease_until || progress->stop;
}

/* Threads of the program that wait for the lock get it before the engine thread has it again. */
static void offer_lock(void)
{
	port_unlock();
	port_claim();
}

/* Lets frames gather: a burst costs the engine, and its acknowledgement the peer, as a frame. */
static void gather(uint64_t since)
{
	while (clock_monotonic() - since < GATHER)
		lock_relax();
}

/* One look for frames. False: another thread wants the core, or drives the engine. */
static bool look(void)
{
	uint64_t began_at = clock_monotonic(), heard_at = progress->heard_at;

	progress_run(clock_now());
	/* To handle a burst takes its time, too. */
	if (progress->heard_at != heard_at)
		progress->heard_at = clock_now();
	if (must_leave())
		return false;
	port_unlock();
	gather(began_at);
	port_claim();
	if (must_leave())
		return false;
	return progress->heard_at != heard_at || clock_monotonic() - began_at < CROWDED;
}

/* Busy polls that are of no use come ever more seldom. */
static void rate_busy_poll(bool useful)
{
	if (useful)
		progress->pause = 0;
	else if (!progress->pause)
		progress->pause = PAUSE_MIN;
	else if (progress->pause < PAUSE_MAX)
		progress->pause *= 2;
	progress->busy_from = clock_now() + progress->pause;
}

/*
 * A stream of packets to a program that makes no call keeps the engine thread awake: the next
 * frames come before the thread would have slept and been woken.
 */
static void busy_poll(void)
{
	uint64_t heard_at = progress->heard_at;
	bool alone = true;

	if (clock_now() < progress->busy_from)
		return;
	progress->vigil = true;
	while (alone && port_connected() && clock_now() - progress->heard_at < VIGIL)
		alone = look();
	progress->vigil = false;
	if (!must_leave())
		rate_busy_poll(alone && progress->heard_at != heard_at);
}

/*
 * The inbox woke us, and there was no frame: somebody who streams to us would have us awake for
 * what is to come (vigil.h).
 */
static bool is_call(bool by_inbox, uint64_t heard_before)
{
	if (!by_inbox || progress->heard_at != heard_before)
		return false;
	progress->heard_at = clock_now();
	return true;
}

/*
 * For the engine thread: drives the engine until nothing is left to do at once, and unmasks the
 * interrupt, or until a poller takes a lease. `stream`: the thread stays awake for the next frames;
 * `by_inbox`: the inbox's interrupt woke it. False: more frames wait, but the thread has other work
 * to do first.
 */
static bool take_over(bool stream, bool by_inbox)
{
	uint64_t heard_before = progress->heard_at;
	unsigned int turns = 0;

	progress->lease_until = 0;
	do {
		if (turns++ == TURNS)
			return false;
		progress_run(clock_now());
		if (must_leave())
			return true;
		stream |= turns == 1 && is_call(by_inbox, heard_before);
		offer_lock();
		if (must_leave())
			return true;
		if (stream)
			busy_poll();
	} while (!must_leave() && unmask());
	return true;
}

void progress_disconnected(void)
{
	uint64_t now = clock_now();
	uint32_t rounds = 0;

	progress->lease_until = 0;
	progress->irq_on = false;
	if (vnic_driver_broken(port.nic)) {
		port_lost("the NIC completes what it was not given");
		return;
	}
	/* What the daemon delivered before it went has arrived. */
	while (receive(now) && ++rounds < LAST_ROUNDS)
		;
	port_publish();
	outage_begin();
	wake();
}

static void look_for_daemon(void)
{
	outage_look();
	if (port_connected())
		take_over(false, false);
}

enum { WATCH_WAKE, WATCH_IRQ, WATCH_CTL, WATCH_NOTICE, WATCH_INBOX, WATCH_CHANNELS };

struct watch {
	struct pollfd fds[WATCH_CHANNELS + CHANNELS];
	nfds_t n;
};

static void watch_fill(struct watch *watch)
{
	struct channel *channel;

	watch->fds[WATCH_WAKE] = (struct pollfd){progress->wake_fd, POLLIN, 0};
	/* All hang up when the daemon goes. Once they have, they would do nothing else. */
	watch->fds[WATCH_IRQ] =
		(struct pollfd){port_connected() ? vnic_driver_irq_fd(port.nic) : -1, POLLIN, 0};
	watch->fds[WATCH_CTL] =
		(struct pollfd){port_connected() ? vnic_driver_ctl_fd(port.nic) : -1, POLLRDHUP, 0};
	watch->fds[WATCH_NOTICE] =
		(struct pollfd){port_connected() ? vnic_driver_notice_fd(port.nic) : -1, POLLIN, 0};
	watch->fds[WATCH_INBOX] =
		(struct pollfd){port.inbox ? vnic_inbox_irq_fd(port.inbox) : -1, POLLIN, 0};
	watch->n = WATCH_CHANNELS;
	LIST_FOREACH(channel, &port.waiting_channels, waiting_link)
	{
		if (watch->n == WATCH_CHANNELS + CHANNELS)
			break;
		watch->fds[watch->n++] = (struct pollfd){channel->writer, POLLOUT, 0};
	}
}

/* When to wake up next; the application's lease and the engine's deadlines decide. */
static uint64_t next_wake(uint64_t now, uint32_t *leases, const struct watch *watch)
{
	uint64_t at = next_deadline();

	if (port.outage.on)
		return now + OUTAGE_LOOK;
	if (progress->lease_until)
		return progress->lease_until;
	/* What the engine has to send at once waits for transmit buffers. */
	if (at <= now && egress_deadline(&port.egress) == URXE_NEVER)
		at = now + STUCK;
	/* One that came and went lately comes again: its lease must not cost a wake-up each. */
	if (*leases != progress->leases && at > now + LEASE)
		at = now + LEASE;
	*leases = progress->leases;
	/* There may be more channels than are watched. */
	if (watch->n == WATCH_CHANNELS + CHANNELS && at > now + STUCK)
		at = now + STUCK;
	if (!LIST_EMPTY(&port.flushing_qps) && at > now + FLUSH)
		at = now + FLUSH;
	return at;
}

static void drain(int fd)
{
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		log_error("cannot read an eventfd");
}

/* False: nothing has happened, but that the time is over. */
static bool sleep_until(uint64_t at, uint64_t now, struct watch *watch)
{
	uint64_t ns = at > now ? at - now : 0;
	const struct timespec timeout = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	int n = ppoll(watch->fds, watch->n, at == URXE_NEVER ? NULL : &timeout, NULL);

	if (watch->fds[WATCH_WAKE].revents)
		drain(watch->fds[WATCH_WAKE].fd);
	if (watch->fds[WATCH_IRQ].revents)
		drain(watch->fds[WATCH_IRQ].fd);
	if (watch->fds[WATCH_INBOX].revents)
		drain(watch->fds[WATCH_INBOX].fd);
	return n != 0;
}

/*
 * A poller renews its lease without end. That is looked at without the lock: the thread would only
 * be in its way. Who gives the lease back meanwhile either finds when the thread wakes up, or is
 * found here. True: an interrupt woke it.
 */
static bool sleep_through_leases(uint64_t at, uint64_t now, struct watch *watch)
{
	while (!sleep_until(at, now, watch)) {
		now = clock_now();
		at = progress->lease_until;
		/* Nobody tells of channels that are full and not watched. */
		if (at <= now || watch->n == WATCH_CHANNELS + CHANNELS)
			return false;
		progress->wake_at = at;
		if (!progress->lease_until)
			return false;
	}
	return watch->fds[WATCH_IRQ].revents || watch->fds[WATCH_INBOX].revents;
}

static void flush_channels(void)
{
	struct channel *channel = LIST_FIRST(&port.waiting_channels);

	while (channel) {
		struct channel *next = LIST_NEXT(channel, waiting_link);

		channel_flush(channel);
		channel = next;
	}
}

static void take_notice(void)
{
	struct vnic_attach_port now;
	int question, fds[VNIC_INBOX_FDS];
	uint32_t qpn;

	if (vnic_driver_notice(port.nic, &now, &question))
		port_changed(&now);
	if (question >= 0)
		inventory_send(question);
	if (vnic_driver_introduction(port.nic, &qpn, fds))
		port_met(qpn, fds);
}

/*
 * A short slice makes the scheduler run this thread at once where the
 * application spins on its core (Linux 6.12 and up; ignored before).
 */
static void ask_for_short_slice(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {.size = sizeof(attr), .nice = getpriority(PRIO_PROCESS, 0), .runtime = 100 * US};

	/* Whoever chose another policy for the program chose it for this thread too. */
	if (sched_getscheduler(0) != SCHED_OTHER)
		return;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* The engine thread runs, so that peers can see that this process lives. */
static sem_t started;

static void *engine_thread(void *unused)
{
	struct watch watch = {0};
	uint32_t leases = 0;
	bool heard, stream = false; /* frames came soon after they were waited for */

	(void)unused;
	prctl(PR_SET_NAME, "urxe");
	prctl(PR_SET_TIMERSLACK, 1);
	ask_for_short_slice();
	port_claim();
	peer_live();
	sem_post(&started);
	while (!progress->stop) {
		uint64_t now = clock_now();
		bool idle = true;
		uint64_t at;

		progress->wake_at = 0;
		if (watch.fds[WATCH_NOTICE].revents && port_connected())
			take_notice();
		if (progress->lease_until <= now)
			idle = take_over(stream, watch.fds[WATCH_INBOX].revents);
		if (progress->stop)
			break;
		if (port_connected() &&
		    (watch.fds[WATCH_CTL].revents || vnic_driver_broken(port.nic)))
			progress_disconnected();
		if (port.outage.on)
			look_for_daemon();
		flush_channels();
		now = clock_now();
		watch_fill(&watch);
		at = idle ? next_wake(now, &leases, &watch) : now;
		progress->wake_at = at;
		port_unlock();
		heard = sleep_through_leases(at, now, &watch);
		stream = (heard || !idle) && clock_now() - now < SOON;
		port_claim();
	}
	port_unlock();
	return NULL;
}

int progress_start(void)
{
	sigset_t all, old;
	int rc;

	*progress = (struct progress){.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	if (progress->wake_fd < 0)
		return -errno;
	/* The application's signals are the application's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&progress->thread, NULL, engine_thread, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc) {
		while (sem_wait(&started))
			; /* a signal */
		return 0;
	}
	close(progress->wake_fd);
	return -rc;
}

void progress_stop(void)
{
	port_lock();
	progress->stop = true;
	wake();
	port_unlock();
	pthread_join(progress->thread, NULL);
	close(progress->wake_fd);
}

void progress_abandon(void)
{
	if (!port.dev)
		return;
	close(progress->wake_fd);
}
