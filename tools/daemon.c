/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "captures.h"
#include "client.h"
#include "control.h"
#include "kernel.h"
#include "log.h"
#include "probe.h"
#include "report.h"
#include "rundir.h"
#include "slice.h"
#include "switch_run.h"
#include "sysfs.h"
#include "telemetry.h"

#define EVENTS 64
/* Rounds of the switch between two looks at sockets and signals while frames flow. */
#define ROUNDS 32
#define NS     1000000000ull
/* How long a private daemon waits for another client. */
#define PRIVATE_IDLE_NS (5 * NS)
/* When accept failed for want of descriptors: how long not to ask again. */
#define ACCEPT_PAUSE_NS (NS / 10)

#define DEFAULT_PKEY "0xffff" /* IBA 10.9.1.2 */

#define SOCKET_ASIDE VNIC_SOCKET_NAME ".leaving"

struct daemon {
	struct daemon_options options;
	int lock_fd;
	bool own_dir; /* goes when the daemon goes */
	bool made_sysfs;
	int epoll_fd;
	int signal_fd;
	int listen_fd;
	struct control control;
	struct captures captures;
	uint64_t started;
	bool stop;
	bool idle;             /* there is no client, */
	uint64_t idle_since;   /* since then */
	uint64_t accept_after; /* 0 = the listening socket is watched */
	struct host host;
	struct kernel kernel;
	struct neigh neigh;
	struct vswitch sw;
	struct record record;
	struct clients clients;
	uint32_t n_uplinks;
	struct uplink uplinks[DAEMON_UPLINKS];
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS + (uint64_t)ts.tv_nsec;
}

/* --- Neighbours' way out */

static void neigh_send(void *ctx, int uplink, const uint8_t *frame, uint32_t len)
{
	struct daemon *d = ctx;

	switch_send(&d->sw, uplink, frame, len);
}

static const uint8_t *neigh_mac(void *ctx, int uplink)
{
	struct daemon *d = ctx;

	return d->uplinks[uplink].mac;
}

static void neigh_answer(void *ctx, struct neigh_waiter *w, int status,
			 const struct vnic_next_hop *hop)
{
	(void)ctx;
	client_answer(w, status, hop);
}

static const struct neigh_ops neigh_ops = {neigh_send, neigh_mac, neigh_answer};

/* --- Start */

static int open_uplinks(struct daemon *d, char why[DAEMON_WHY])
{
	char text[UPLINK_WHY];
	int rc;

	if (d->options.fault.asked && !d->options.n_uplinks) {
		snprintf(why, DAEMON_WHY, "faults are those of an uplink, and there is none");
		return -EINVAL;
	}
	for (; d->n_uplinks < d->options.n_uplinks; d->n_uplinks++) {
		const char *spec = d->options.uplinks[d->n_uplinks];

		rc = uplink_open(&d->uplinks[d->n_uplinks], spec, &d->options.fault, text);
		if (rc) {
			snprintf(why, DAEMON_WHY, "%s", text);
			return rc;
		}
	}
	return 0;
}

/* The host is, to its peers, what its first uplink is. */
static int take_uplinks(struct daemon *d, char why[DAEMON_WHY])
{
	struct host *h = &d->host;
	char text[KERNEL_WHY];
	int rc;

	memcpy(h->mac, d->uplinks[0].mac, ETHER_MAC_LEN);
	if (d->uplinks[0].ifname[0])
		snprintf(h->ndev, sizeof(h->ndev), "%s", d->uplinks[0].ifname);
	if (!d->uplinks[0].kernel)
		host_add_link_local(h, 0);
	rc = kernel_start(&d->kernel, h, d->uplinks, d->n_uplinks, text);
	if (rc)
		snprintf(why, DAEMON_WHY, "%s", text);
	return rc;
}

/* As the uplinks are now; if one carries less later, clients hear of it. */
static int check_mtu(const struct daemon *d, char why[DAEMON_WHY])
{
	uint32_t i, wanted = d->options.mtu ? d->options.mtu : HOST_MTU_LEAST;

	for (i = 0; i < d->n_uplinks; i++) {
		if (d->uplinks[i].mtu >= wanted)
			continue;
		snprintf(why, DAEMON_WHY, "%s carries %u bytes, less than %s %u",
			 d->uplinks[i].spec, d->uplinks[i].mtu,
			 d->options.mtu ? "the mtu of" : "RoCE's least,", wanted);
		return -EMSGSIZE;
	}
	return 0;
}

static int set_up_host(struct daemon *d, char why[DAEMON_WHY])
{
	int uplink = d->n_uplinks ? 0 : HOST_NO_UPLINK, rc;
	uint32_t i;

	host_init(&d->host);
	record_recall(&d->record, &d->host);
	if (d->options.mtu)
		d->host.mtu = d->host.mtu_limit = d->options.mtu;
	rc = d->n_uplinks ? take_uplinks(d, why) : host_add_invented(&d->host);
	if (!rc)
		rc = check_mtu(d, why);
	for (i = 0; i < d->options.n_addresses && !rc; i++) {
		rc = host_add_text(&d->host, d->options.addresses[i], uplink);
		if (rc)
			snprintf(why, DAEMON_WHY, "address %s is one too many: a host has %d",
				 d->options.addresses[i], HOST_ADDRESSES);
	}
	return rc;
}

/* Cannot fail: each was tried before, and the table has room for as many as there may be. */
static void set_up_pkeys(struct daemon *d)
{
	uint32_t i;

	if (!d->options.n_pkeys)
		host_add_pkey(&d->host, DEFAULT_PKEY);
	for (i = 0; i < d->options.n_pkeys; i++)
		host_add_pkey(&d->host, d->options.pkeys[i]);
}

/* Where programs have survived another daemon, the addresses were theirs a moment ago. */
static int check_addresses(struct daemon *d, char why[DAEMON_WHY])
{
	char text[PROBE_WHY];
	int rc = record_awaited(&d->record) ? 0 : probe_addresses(&d->host, d->uplinks, text);

	if (rc)
		snprintf(why, DAEMON_WHY, "%s", text);
	return rc;
}

static int watch(struct daemon *d, int fd, void *what, char why[DAEMON_WHY])
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = what};

	if (!epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, fd, &ev))
		return 0;
	snprintf(why, DAEMON_WHY, "epoll: %s", strerror(errno));
	return -errno;
}

/* Also one that is watched already. */
static int watch_uplink(struct daemon *d, struct uplink *u, char why[DAEMON_WHY])
{
	int fd = u->port ? netdev_wait_fd(u->port) : -1, rc;

	rc = fd < 0 ? 0 : watch(d, fd, NULL, why);
	return rc == -EEXIST ? 0 : rc;
}

static int watch_all(struct daemon *d, char why[DAEMON_WHY])
{
	sigset_t set;
	uint32_t i;
	int rc;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	d->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (d->epoll_fd < 0 || d->signal_fd < 0) {
		snprintf(why, DAEMON_WHY, "epoll or signalfd: %s", strerror(errno));
		return -errno;
	}
	rc = watch(d, d->signal_fd, &d->signal_fd, why);
	/* Uplinks and doorbells only wake: the switch looks at all of them in any case. */
	for (i = 0; i < d->n_uplinks && !rc; i++)
		rc = watch_uplink(d, &d->uplinks[i], why);
	if (!rc && kernel_fd(&d->kernel) >= 0)
		rc = watch(d, kernel_fd(&d->kernel), &d->kernel, why);
	return rc;
}

static int claim_dir(struct daemon *d, char why[DAEMON_WHY])
{
	char text[RUNDIR_WHY];
	int rc = rundir_create(d->options.run_dir, text);

	/* What is there already before a private one is what a killed one has left. */
	d->own_dir = rc > 0 || d->options.own_dir || d->options.private;
	if (rc >= 0)
		rc = d->lock_fd = rundir_lock(d->options.run_dir, text);
	if (rc < 0) {
		snprintf(why, DAEMON_WHY, "%s", text);
		return rc;
	}
	telemetry_prepare(d->options.run_dir);
	return 0;
}

static int open_record(struct daemon *d, char why[DAEMON_WHY])
{
	int rc = record_open(&d->record, d->options.run_dir);

	if (rc)
		snprintf(why, DAEMON_WHY, "cannot use " RECORD_NAME " in %s: %s",
			 d->options.run_dir, strerror(-rc));
	return rc;
}

static int publish(struct daemon *d, char why[DAEMON_WHY])
{
	int rc = sysfs_create(d->options.run_dir, &d->host);
	char text[RUNDIR_WHY];

	record_addresses(&d->record, &d->host);
	if (rc) {
		snprintf(why, DAEMON_WHY, "cannot write to %s: %s", d->options.run_dir,
			 strerror(-rc));
		return rc;
	}
	d->made_sysfs = true;
	rundir_remove(d->options.run_dir, SOCKET_ASIDE);
	d->listen_fd = vnic_server_listen(d->options.run_dir);
	if (d->listen_fd < 0) {
		snprintf(why, DAEMON_WHY, "cannot listen in %s: %s", d->options.run_dir,
			 strerror(-d->listen_fd));
		return d->listen_fd;
	}
	rc = d->options.group
		     ? rundir_share(d->options.run_dir, VNIC_SOCKET_NAME, d->options.group, text)
		     : 0;
	if (rc) {
		snprintf(why, DAEMON_WHY, "%s", text);
		return rc;
	}
	return watch(d, d->listen_fd, &d->listen_fd, why);
}

/* --- Who looks in */

static int show(void *ctx, int socket)
{
	struct daemon *d = ctx;
	const struct report report = {.run_dir = d->options.run_dir,
				      .private = d->options.private,
				      .uptime_ns = now_ns() - d->started,
				      .captures = d->captures.n,
				      .clients = &d->clients};

	if (socket >= 0)
		client_ask(&d->clients, socket);
	return report_make(&report);
}

static int capture(void *ctx, int socket, const char *port)
{
	struct daemon *d = ctx;

	return captures_start(&d->captures, socket, port);
}

static bool capture_end(void *ctx, int socket)
{
	struct daemon *d = ctx;

	return captures_end(&d->captures, socket);
}

static const struct control_ops control_ops = {show, capture, capture_end};

static int open_control(struct daemon *d, char why[DAEMON_WHY])
{
	int rc = control_open(&d->control, d->options.run_dir, &control_ops, d);

	if (!rc && telemetry_start())
		log_line("DPDK does not take telemetry's commands");
	if (!rc)
		return watch(d, d->control.epoll_fd, &d->control, why);
	snprintf(why, DAEMON_WHY, "cannot listen in %s: %s", d->options.run_dir, strerror(-rc));
	return rc;
}

/* Who is behind a VM's NIC hears by the uplinks what is for it. */
static int hear_for_vms(struct daemon *d, char why[DAEMON_WHY])
{
	char text[UPLINK_WHY];
	uint32_t i;
	int rc = 0;

	d->neigh.vms = d->sw.vms;
	for (i = 0; d->sw.vms && i < d->n_uplinks && !rc; i++) {
		/* The kernel keeps the answers that come by such a one. */
		if (!strncmp(d->uplinks[i].spec, "af_xdp:", 7))
			d->neigh.vms = false;
		rc = uplink_hear_all(&d->uplinks[i], text);
	}
	if (rc)
		snprintf(why, DAEMON_WHY, "%s", text);
	return rc;
}

static int pin_macs(struct daemon *d, char why[DAEMON_WHY])
{
	char text[SWITCH_WHY];
	uint32_t i;
	int rc = 0;

	for (i = 0; i < d->options.n_fdb && !rc; i++)
		rc = switch_pin(&d->sw, d->options.fdb[i], text);
	if (rc)
		snprintf(why, DAEMON_WHY, "%s", text);
	return rc;
}

/* Uplinks come first: DPDK, once it is up, takes no PCI device that was not named before. */
static int set_up_switch(struct daemon *d, char why[DAEMON_WHY])
{
	int rc = netdev_dpdk_start(why, DAEMON_WHY);

	if (rc)
		return rc;
	neigh_init(&d->neigh, &d->host, &neigh_ops, d);
	kernel_serve(&d->kernel, &d->neigh);
	rc = switch_init(&d->sw, &d->host, &d->neigh, d->uplinks, d->n_uplinks);
	if (rc)
		snprintf(why, DAEMON_WHY, "cannot make the switch's tables: %s", strerror(-rc));
	if (!rc)
		rc = pin_macs(d, why);
	return rc ? rc : hear_for_vms(d, why);
}

int daemon_start(const struct daemon_options *options, struct daemon **daemon, char why[DAEMON_WHY])
{
	struct daemon *d = calloc(1, sizeof(*d));
	int rc;

	if (!d) {
		snprintf(why, DAEMON_WHY, "no memory");
		return -ENOMEM;
	}
	d->options = *options;
	d->started = now_ns();
	d->lock_fd = d->epoll_fd = d->signal_fd = d->listen_fd = d->control.epoll_fd = -1;
	d->record.fd = -1;
	captures_init(&d->captures, &d->clients);
	rc = claim_dir(d, why);
	if (!rc)
		rc = open_record(d, why);
	if (!rc)
		rc = open_uplinks(d, why);
	if (!rc)
		rc = set_up_host(d, why);
	if (!rc)
		rc = check_addresses(d, why);
	if (!rc)
		rc = watch_all(d, why);
	if (!rc)
		rc = set_up_switch(d, why);
	if (!rc) {
		set_up_pkeys(d);
		d->sw.meet = client_meet;
		d->clients = (struct clients){.epoll_fd = d->epoll_fd,
					      .host = &d->host,
					      .sw = &d->sw,
					      .neigh = &d->neigh,
					      .record = &d->record};
		client_begin(&d->clients, now_ns());
		rc = open_control(d, why);
	}
	if (!rc)
		rc = publish(d, why);
	if (rc) {
		daemon_stop(d);
		return rc;
	}
	*daemon = d;
	return 0;
}

void daemon_stop(struct daemon *d)
{
	uint32_t i;

	/* First, so that those that are still here keep their leases for the next daemon. */
	record_close(&d->record, d->options.run_dir);
	captures_end_all(&d->captures);
	client_close_all(&d->clients);
	if (d->listen_fd >= 0) {
		rundir_remove(d->options.run_dir, VNIC_SOCKET_NAME);
		rundir_remove(d->options.run_dir, SOCKET_ASIDE);
		close(d->listen_fd);
	}
	control_close(&d->control, d->options.run_dir);
	if (d->made_sysfs)
		sysfs_remove(d->options.run_dir);
	switch_fini(&d->sw);
	kernel_stop(&d->kernel);
	for (i = 0; i < d->n_uplinks; i++)
		uplink_close(&d->uplinks[i]);
	if (d->signal_fd >= 0)
		close(d->signal_fd);
	if (d->epoll_fd >= 0)
		close(d->epoll_fd);
	if (d->lock_fd >= 0) {
		rundir_remove(d->options.run_dir, TELEMETRY_DIR);
		rundir_release(d->options.run_dir, d->lock_fd, d->own_dir);
	}
	free(d);
}

/* --- Events */

static void print_counters(struct daemon *d)
{
	uint64_t nics[VNIC_COUNTER_COUNT];
	struct switch_stats all;
	uint32_t i;

	client_counters(&d->clients, nics);
	switch_totals(&d->sw, &all);
	for (i = 0; i < VNIC_COUNTER_COUNT; i++)
		if (nics[i])
			log_line("vnic %s: %llu", vnic_counter_name(i),
				 (unsigned long long)nics[i]);
	for (i = 0; i < SWITCH_DROP_COUNT; i++)
		if (all.drops[i])
			log_line("dropped %s: %llu", switch_drop_name(i),
				 (unsigned long long)all.drops[i]);
	for (i = 0; i < d->n_uplinks; i++)
		uplink_log_faults(&d->uplinks[i]);
	log_line("%u clients", d->clients.n);
}

static void take_signal(struct daemon *d)
{
	struct signalfd_siginfo info;

	while (read(d->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGUSR1)
			print_counters(d);
		else
			d->stop = true;
	}
}

static void watch_listener(struct daemon *d, bool on)
{
	struct epoll_event ev = {.events = on ? EPOLLIN : 0, .data.ptr = &d->listen_fd};

	epoll_ctl(d->epoll_fd, EPOLL_CTL_MOD, d->listen_fd, &ev);
}

static void accept_all(struct daemon *d, uint64_t now)
{
	int rc;

	do
		rc = client_accept(&d->clients, d->listen_fd);
	while (!rc || rc == -ECONNABORTED || rc == -EINTR);
	if (rc == -EAGAIN)
		return;
	/* The connection stays in the backlog, and epoll would report it without end. */
	log_line("cannot accept a client: %s", strerror(-rc));
	watch_listener(d, false);
	d->accept_after = now + ACCEPT_PAUSE_NS;
}

/* Files first: a program that hears of a change reads them. */
static void follow_kernel(struct daemon *d)
{
	const struct host before = d->host;
	struct vnic_attach_port was, is;
	char why[DAEMON_WHY];
	uint32_t i;
	int rc;

	if (!kernel_follow(&d->kernel))
		return;
	rc = sysfs_update(d->options.run_dir, &d->host, &before);
	if (rc)
		log_line("cannot write to %s: %s", d->options.run_dir, strerror(-rc));
	record_addresses(&d->record, &d->host);
	neigh_host_changed(&d->neigh);
	for (i = 0; i < d->n_uplinks; i++)
		if (watch_uplink(d, &d->uplinks[i], why))
			log_line("%s", why);
	host_port(&before, &was);
	host_port(&d->host, &is);
	if (memcmp(&was, &is, sizeof(is)))
		client_notice(&d->clients);
}

static void dispatch(struct daemon *d, uint64_t now, void *what)
{
	if (what == &d->signal_fd)
		take_signal(d);
	else if (what == &d->kernel)
		follow_kernel(d);
	else if (what == &d->listen_fd)
		accept_all(d, now);
	else if (what == &d->control)
		control_event(&d->control);
	else if (what)
		client_event(&d->clients, now, what);
}

static void wait_events(struct daemon *d, uint64_t timeout_ns)
{
	struct timespec ts = {(time_t)(timeout_ns / NS), (long)(timeout_ns % NS)};
	struct epoll_event events[EVENTS];
	int i, n;
	uint64_t now;

	n = epoll_pwait2(d->epoll_fd, events, EVENTS, timeout_ns == UINT64_MAX ? NULL : &ts, NULL);
	now = now_ns();
	for (i = 0; i < n; i++)
		dispatch(d, now, events[i].data.ptr);
	client_reap(&d->clients);
}

/* --- A private daemon's end */

static uint64_t idle_deadline(struct daemon *d, uint64_t now)
{
	if (!d->options.private || d->clients.n) {
		d->idle = false;
		return UINT64_MAX;
	}
	if (!d->idle)
		d->idle_since = now;
	d->idle = true;
	return d->idle_since + PRIVATE_IDLE_NS;
}

/*
 * Somebody may be connecting right now. With the socket out of sight nobody new can;
 * if one came just before, the daemon stays, and so does the socket.
 */
static void leave_if_alone(struct daemon *d, uint64_t now)
{
	char name[RUNDIR_MAX + 32], aside[RUNDIR_MAX + 32];

	snprintf(name, sizeof(name), "%s/" VNIC_SOCKET_NAME, d->options.run_dir);
	snprintf(aside, sizeof(aside), "%s/" SOCKET_ASIDE, d->options.run_dir);
	rename(name, aside);
	accept_all(d, now);
	d->stop = !d->clients.n;
	if (!d->stop)
		rename(aside, name);
}

/* --- The loop */

/* Does what time has made due; returns when it wants to be called next. */
static uint64_t tick(struct daemon *d, uint64_t now)
{
	uint64_t next = neigh_tick(&d->neigh, now), due = client_tick(&d->clients, now);

	if (due < next)
		next = due;
	if (d->accept_after && d->accept_after <= now) {
		d->accept_after = 0;
		watch_listener(d, true);
	}
	if (d->accept_after && d->accept_after < next)
		next = d->accept_after;
	due = idle_deadline(d, now);
	if (due <= now)
		leave_if_alone(d, now);
	else if (due < next)
		next = due;
	return next;
}

/* Sleeps until a doorbell, a socket, an uplink or the clock has something. */
static void nap(struct daemon *d)
{
	uint64_t now, next, due;

	switch_sleeping(&d->sw, true);
	now = now_ns();
	next = tick(d, now);
	/* Who posted before the word was out did not ring: look once more. */
	if (!switch_run(&d->sw, now) && !client_reap(&d->clients) && !d->stop) {
		due = switch_deadline(&d->sw, now);
		if (due < next)
			next = due;
		wait_events(d, next == UINT64_MAX ? next : next > now ? next - now : 0);
	}
	switch_sleeping(&d->sw, false);
}

int daemon_run(struct daemon *d)
{
	uint32_t round = 0;

	ask_short_slice();
	while (!d->stop) {
		if (!switch_run(&d->sw, now_ns())) {
			nap(d);
		} else if (++round % ROUNDS == 0) {
			wait_events(d, 0);
			tick(d, now_ns());
		}
	}
	print_counters(d);
	return 0;
}
