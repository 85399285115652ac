/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/daemon_state.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <session/sched_slice.h>

#include "common/clock.h"
#include "common/log.h"
#include "urxed/bond/bond_host.h"
#include "urxed/privilege/fd_guard.h"
#include "urxed/session/session_uplink.h"
#include "urxed/switch/forward.h"

/*
 * Maximum number of events that one epoll_pwait2() returns. The batch is small: before the daemon
 * handles a message of a process, it may forward a ring of the process's frames, and all other work
 * waits until the batch is done.
 */
#define EVENTS 16
/*
 * While frames flow, the daemon looks at sockets, signals, QP1 and timers only after ROUNDS calls
 * of switch_run, or once ROUNDS_NS have passed: one call takes long if a thousand processes send.
 */
#define ROUNDS    32
#define ROUNDS_NS 1000000u
/* A private daemon ends after this time without a client. */
#define PRIVATE_IDLE_NS (5 * NS_PER_SEC)

/* --- Events */

static void log_counters(const struct daemon *d)
{
	monitor_log_counters(&d->monitor);
	if (fd_guard_count())
		log_line("connections closed because programs sent descriptors: %llu",
			 (unsigned long long)fd_guard_count());
}

static void handle_signal(struct daemon *d)
{
	struct signalfd_siginfo info;

	while (read(d->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGUSR1)
			log_counters(d);
		else
			d->stop = true;
	}
}

/*
 * Publishes a change of struct host; `before`: its earlier contents. Writes the sysfs files before
 * it tells programs of the change, because programs then read the files.
 */
static void publish_change(struct daemon *d, const struct host *before)
{
	struct vnic_attach_port was, is;
	char error[UPLINK_ERROR];

	device_files_update(&d->files, &d->host, now_ns());
	lease_store_put_addresses(&d->lease_store, &d->host);
	bond_host_tick(&d->sw, now_ns());
	direct_uplink_fill(&d->direct_uplink, &d->host);
	sessions_update_uplink(&d->sessions);
	neigh_host_changed(&d->neigh);
	gsi_host_changed(&d->rdmacm.gsi);
	if (uplink_set_watch(&d->uplinks, d->epoll_fd, error))
		log_line("%s", error);
	host_fill_port(before, &was);
	host_fill_port(&d->host, &is);
	if (memcmp(&was, &is, sizeof(is)))
		sessions_send_port(&d->sessions);
}

static void handle_kernel_change(struct daemon *d)
{
	const struct host before = d->host;

	if (kernel_sync_update(&d->kernel))
		publish_change(d, &before);
	if (kernel_sync_take_notice(&d->kernel) && switch_host_returned(&d->sw, now_ns()))
		log_line("an interface announces itself anew: programs ask for lost packets");
}

static void handle_ibdevs_change(struct daemon *d, uint64_t now)
{
	if (!host_ibdevs_changed(&d->ibdevs))
		return;
	daemon_link_ibdevs(d);
	hca_monitor_report(&d->hca, now);
}

/*
 * Scans the host for HCAs if a scan is due. Returns whether another HCA backs the device now, or
 * its properties have changed. A scan finds HCAs by the names of the uplinks' interfaces, so the
 * daemon first reads the kernel's reports of renames.
 */
static bool scan_hcas(struct daemon *d, uint64_t now)
{
	if (now < hca_monitor_deadline(&d->hca))
		return false;
	if (kernel_sync_fd(&d->kernel) >= 0)
		handle_kernel_change(d);
	daemon_name_uplinks(d);
	return hca_monitor_update(&d->hca, now);
}

/*
 * Scans for HCAs, and publishes a change. If the daemon serves a nested `urxe run`, the HCA may be
 * the device of the outer urxed. The outer urxed's tree sends no uevents, so this function also
 * links that device for programs.
 */
static void follow_hca(struct daemon *d, uint64_t now)
{
	const struct hca_port *p;
	struct host before;

	if (!scan_hcas(d, now))
		return;
	before = d->host;
	if (d->hca.polls)
		daemon_link_ibdevs(d);
	hca_monitor_fill(&d->hca, &d->host.hca);
	hca_monitor_fill_table(&d->hca, &d->host.hca_table);
	d->host.hca_rate = hca_monitor_rate(&d->hca);
	if (!d->options.n_uplinks)
		d->host.up = !d->host.hca.down;
	p = hca_monitor_chosen(&d->hca);
	if (p)
		lease_avoid_hca(&d->sw.leases);
	if (p && !d->options.n_uplinks)
		daemon_take_hca_addresses(d, p);
	publish_change(d, &before);
}

/* Closes tap: uplinks whose interface is gone, and publishes the host's new link state. kernel_sync
 * does the same for uplinks of other kernel interfaces. */
static void follow_taps(struct daemon *d)
{
	struct host before;

	if (!uplink_set_close_lost_taps(&d->uplinks))
		return;
	before = d->host;
	d->host.up = false;
	for (uint32_t i = 0; i < d->options.n_uplinks; i++)
		d->host.up |= d->uplinks.at[i].up;
	publish_change(d, &before);
}

static void handle_session(struct daemon *d, uint64_t now, struct session *s)
{
	session_event(&d->sessions, now, s);
	if (!d->hears_multicast && session_wants_multicast(s)) {
		d->hears_multicast = true;
		uplink_set_hear_multicast(&d->uplinks);
	}
}

static void dispatch_event(struct daemon *d, uint64_t now, void *what)
{
	if (what == &d->signal_fd)
		handle_signal(d);
	else if (what == &d->kernel)
		handle_kernel_change(d);
	else if (what == &d->ibdevs)
		handle_ibdevs_change(d, now);
	else if (what == &d->hca)
		hca_monitor_report(&d->hca, now);
	else if (what == &d->uplinks)
		uplink_set_event(&d->uplinks, now);
	else if (what == &d->vm_ports)
		vm_port_set_event(&d->vm_ports, now);
	else if (what == &d->checks_inboxes)
		sessions_take_inboxes(&d->sessions);
	else if (what == &d->listener)
		listener_event(&d->listener, now);
	else if (what == &d->monitor)
		control_event(&d->monitor.control, now);
	else if (what == &d->rdmacm)
		ucma_input(&d->rdmacm.ucma, now);
	else if (what)
		handle_session(d, now, what);
}

static void wait_events(struct daemon *d, uint64_t timeout_ns)
{
	struct timespec ts = {(time_t)(timeout_ns / NS_PER_SEC), (long)(timeout_ns % NS_PER_SEC)};
	struct epoll_event events[EVENTS];
	int i, n;
	uint64_t now;

	n = epoll_pwait2(d->epoll_fd, events, EVENTS, timeout_ns == UINT64_MAX ? NULL : &ts, NULL);
	now = d->looked_at = now_ns();
	for (i = 0; i < n; i++)
		dispatch_event(d, now, events[i].data.ptr);
	/* After a full batch more events may wait. Serves rdma_cm before them, so that its programs
	 * do not wait until the daemon has served up to a thousand sessions. */
	if (n == EVENTS)
		ucma_input(&d->rdmacm.ucma, now);
	sessions_reap(&d->sessions);
}

/* --- Idle private daemons */

/*
 * Returns when a private daemon without clients ends, in ns; UINT64_MAX: it has a client, or is not
 * private.
 */
static uint64_t idle_deadline(struct daemon *d, uint64_t now)
{
	if (!d->options.private || d->sessions.n || d->vm_ports.n || d->rdmacm.ucma.n) {
		d->idle = false;
		return UINT64_MAX;
	}
	if (!d->idle)
		d->idle_since = now;
	d->idle = true;
	return d->idle_since + PRIVATE_IDLE_NS;
}

/*
 * Runs the bond's timers; returns when to call again, in ns. If another member becomes the active
 * one, tells processes that they need new packet sockets. In mode balance, tells them which members
 * carry frames.
 */
static uint64_t tick_bond(struct daemon *d, uint64_t now)
{
	uint64_t next;

	if (sessions_have_sockets(&d->sessions))
		bond_host_count_frames(&d->sw, now);
	next = bond_host_tick(&d->sw, now);
	if (!direct_uplink_fill(&d->direct_uplink, &d->host))
		return next;
	sessions_update_uplink(&d->sessions);
	sessions_send_port(&d->sessions);
	return next;
}

/* --- The loop */

/* Handles expired timers; returns the time of the next one in ns. */
static uint64_t tick_all(struct daemon *d, uint64_t now)
{
	uint64_t next, due;

	if (now >= kernel_sync_deadline(&d->kernel))
		handle_kernel_change(d);
	follow_hca(d, now);
	follow_taps(d);
	neigh_tick(&d->neigh, now);
	next = sessions_tick(&d->sessions, now);
	next = earlier(next, listener_tick(&d->listener, now));
	next = earlier(next, rdmacm_tick(&d->rdmacm, now));
	next = earlier(next, control_tick(&d->monitor.control, now));
	next = earlier(next, vm_port_set_tick(&d->vm_ports, now));
	next = earlier(next, uplink_set_tick(&d->uplinks, now));
	next = earlier(next, tick_bond(d, now));
	next = earlier(next, device_files_tick(&d->files, &d->host, now));
	next = earlier(next, hca_monitor_deadline(&d->hca));
	next = earlier(next, kernel_sync_deadline(&d->kernel));
	/* Asks again after neigh_tick, because rdma_cm's MADs may have started address resolutions
	 * since. */
	next = earlier(next, neigh_deadline(&d->neigh));
	/* Asks again, because since sessions_tick the bond or a port may have sent notices to
	 * processes that failed. */
	next = earlier(next, sessions_resend_port(&d->sessions));
	due = idle_deadline(d, now);
	if (due <= now)
		d->stop |= listener_retire(&d->listener, now);
	else
		next = earlier(next, due);
	return next;
}

/* Sleeps until a doorbell, a socket, an uplink or a timer wakes the thread. */
static void sleep_until_event(struct daemon *d)
{
	uint64_t now, next, due;

	switch_set_sleeping(&d->sw, true);
	now = now_ns();
	next = tick_all(d, now);
	/* A process that posted before it saw the sleeping flag did not ring the doorbell: poll
	 * once more. */
	if (!switch_run(&d->sw, now) && !d->stop) {
		due = switch_deadline(&d->sw, now);
		/* If sessions_reap has more to free, the thread does not sleep, but first handles
		 * the events that wait. */
		if (sessions_reap(&d->sessions))
			due = now;
		next = earlier(next, due);
		wait_events(d, next == UINT64_MAX ? next : next > now ? next - now : 0);
	}
	switch_set_sleeping(&d->sw, false);
}

int daemon_run(struct daemon *d)
{
	uint32_t round = 0;
	uint64_t now;

	sched_request_short_slice();
	now = now_ns();
	sessions_begin_claims(&d->sessions, now);
	ucma_begin_claims(&d->rdmacm.ucma, now);
	while (!d->stop) {
		now = now_ns();
		if (!switch_run(&d->sw, now)) {
			sleep_until_event(d);
		} else if (++round % ROUNDS == 0 || now - d->looked_at >= ROUNDS_NS) {
			wait_events(d, 0);
			tick_all(d, now_ns());
		}
	}
	log_counters(d);
	return 0;
}
