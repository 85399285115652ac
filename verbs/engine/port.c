/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attaches the process to its daemon, detaches it, and attaches it to the next daemon. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

#include "engine/clock.h"
#include "engine/crc.h"
#include "engine/port_private.h"
#include "interpose/path_redirect.h"
#include "memory/sigbus_guard.h"
#include "report/log.h"
#include "samehost/peer.h"

struct port port;

/* Of this kind, a fork in a signal handler finds that its own thread holds the lock. */
pthread_mutex_t port_open_lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
pthread_mutex_t port_lease_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int opens;   /* users of the port; under port_open_lock */
static bool parent_attached; /* this process is a fork of a process that was attached */

bool port_hold(void)
{
	bool open;

	pthread_mutex_lock(&port_open_lock);
	open = opens > 0;
	opens += open;
	pthread_mutex_unlock(&port_open_lock);
	return open;
}

void port_forget_users(void)
{
	parent_attached |= port.nic != NULL;
	port_open_lock = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
	port_lease_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	opens = 0;
}

/* How soon to look again, and after how many looks to warn. */
#define SETTLE_PAUSE_NS 50000
#define SETTLE_PATIENCE 20000

void port_unlock_settled(void)
{
	const struct timespec pause = {.tv_nsec = SETTLE_PAUSE_NS};

	for (uint32_t looks = 0; !peer_settled(); looks++) {
		port_unlock();
		if (looks == SETTLE_PATIENCE)
			log_warning("a peer has copied to or from our memory for long: the "
				    "memory cannot be given back yet");
		nanosleep(&pause, NULL);
		port_lock();
	}
	mr_settled();
	port_unlock();
}

/* Rings before completions: a program that sees a completion may post at once. */
void port_publish(void)
{
	struct qp *qp;
	struct cq *cq;

	while ((qp = TAILQ_FIRST(&port.dirty_qps)))
		qp_publish(qp);
	while ((cq = TAILQ_FIRST(&port.dirty_cqs)))
		cq_publish(cq);
}

void port_lost(const char *why)
{
	struct uverbs_file *file;
	uint32_t at = 0;
	struct qp *qp;

	log_warning("%s: the device is dead", why);
	port.gone = true;
	while ((qp = leases_next(&port.leases, &at)))
		qp_abort(qp);
	port_publish();
	LIST_FOREACH(file, &port.files, link)
	file_event(file, 0, IBV_EVENT_DEVICE_FATAL);
}

uint64_t port_counter(enum vnic_direct_counter counter)
{
	switch (counter) {
	case VNIC_DIRECT_LOCK_WAITS: return port.lock.waits;
	case VNIC_DIRECT_LOCK_WAIT_US: return port.lock.waited_ns / 1000;
	default: return port.egress.counters[counter];
	}
}

static void log_counters(void)
{
	const struct urxe_counters *counters = urxe_dev_counters(port.dev);

	for (int i = 0; i < VNIC_DIRECT_COUNT; i++)
		if (port_counter(i))
			log_info("%s: %" PRIu64, vnic_direct_counter_name(i), port_counter(i));
	for (int i = 1; i < URXE_DROP_COUNT; i++)
		if (counters->drop[i])
			log_info("dropped for %s: %" PRIu64, urxe_drop_name((enum urxe_drop)i),
				 counters->drop[i]);
	for (int i = 0; i < URXE_EVENT_COUNT; i++)
		if (counters->event[i])
			log_info("%s: %" PRIu64, urxe_event_name((enum urxe_event)i),
				 counters->event[i]);
}

static void detach(void)
{
	port_lock();
	if (port.dev) {
		log_counters();
		urxe_dev_destroy(port.dev);
	}
	port.dev = NULL;
	port.outage.on = false;
	clock_go();
	leases_clear(&port.leases);
	remote_forget_released();
	egress_done(&port.egress);
	peer_done();
	vnic_inbox_destroy(port.inbox);
	port.inbox = NULL;
	vnic_driver_detach(port.nic);
	port.nic = NULL;
	port_unlock();
}

/* NULL: without an inbox, all frames come by the switch, which is slower. */
static struct urxe_direct_table *make_inbox(void)
{
	int rc = vnic_driver_make_inbox(port.nic, port.who.mtu, &port.inbox);

	if (!rc)
		return peer_init(vnic_inbox_published(port.inbox), port.egress.process);
	log_info("no inbox: %s", strerror(-rc));
	return NULL;
}

/* From now on the daemon introduces the process to its peers. */
static void give_inbox(void)
{
	int rc = port.inbox ? vnic_inbox_publish(port.inbox) : 0;

	if (rc)
		log_info("peers do not get this process's inbox: %s", strerror(-rc));
}

void port_inbox_broken(void)
{
	log_warning("a peer has written to the inbox of this process against its protocol: all "
		    "frames come by the switch now");
	egress_count(&port.egress, VNIC_DIRECT_BROKEN, 1);
	port.inbox_broken = true;
}

/* The block of numbers that came with the welcome. */
static int first_lease(void)
{
	struct lease_block *block = calloc(1, sizeof(*block));

	if (!block)
		return -ENOMEM;
	block->qpn_first = port.who.qpn_first;
	leases_add(&port.leases, block);
	return 0;
}

static bool is_no_daemon(int rc)
{
	return rc == -ECONNREFUSED || rc == -ENOENT;
}

static void log_attach_error(int rc)
{
	log_error("cannot attach to urxed in %s: %s", path_run_dir(),
		  rc == -EPROTO ? "it is of another version than this liburxe" : strerror(-rc));
}

static int attach(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const char *dir = path_run_dir();
	int rc;

	pthread_once(&once, port_handle_fork);
	if (!dir)
		return -ENODEV;
	TAILQ_INIT(&port.dirty_cqs);
	TAILQ_INIT(&port.dirty_qps);
	LIST_INIT(&port.flushing_qps);
	LIST_INIT(&port.remotes);
	LIST_INIT(&port.released_remotes);
	LIST_INIT(&port.released_mrs);
	port.gone = false;
	port.inbox_broken = false;
	port.inbox_met = false;
	rc = crc_load();
	if (rc)
		return rc;
	rc = vnic_driver_attach(dir, &port.who, &port.nic);
	if (rc) {
		if (!is_no_daemon(rc))
			log_attach_error(rc);
		return rc;
	}
	rc = egress_init(&port.egress, port.nic, &port.who);
	if (!rc)
		rc = first_lease();
	if (!rc)
		rc = port_make_engine(make_inbox());
	if (!rc)
		rc = fault_install();
	if (!rc) {
		give_inbox();
		rc = engine_thread_start();
	}
	if (rc) {
		log_error("cannot start the engine: %s", strerror(-rc));
		detach();
		return rc;
	}
	log_info("attached to %s: QPNs %#x to %#x", dir, port.who.qpn_first,
		 port.who.qpn_first + port.who.qpn_count - 1);
	return 0;
}

static int try_open(void)
{
	int rc = 0;

	pthread_mutex_lock(&port_open_lock);
	if (!opens)
		rc = attach();
	if (!rc)
		opens++;
	pthread_mutex_unlock(&port_open_lock);
	return rc;
}

/*
 * A forked child of a process that was attached waits for the next daemon as long as its parent
 * does. The child takes no lock while it waits.
 */
int port_open(void)
{
	const struct timespec pause = {.tv_nsec = OUTAGE_LOOK};
	uint64_t until = parent_attached ? clock_monotonic() + outage_patience() : 0;
	int rc = try_open();

	while (is_no_daemon(rc) && clock_monotonic() < until) {
		nanosleep(&pause, NULL);
		rc = try_open();
	}
	if (is_no_daemon(rc))
		log_attach_error(rc);
	return rc;
}

void port_close(void)
{
	pthread_mutex_lock(&port_open_lock);
	if (--opens == 0) {
		engine_thread_stop();
		detach();
	}
	pthread_mutex_unlock(&port_open_lock);
}

/* --- Another daemon. */

/*
 * Addresses and numbers that stand in packets must be the same as before. The daemon may have
 * leased one more block than this process has received.
 */
static bool same_host(const struct vnic_attach_welcome *now)
{
	return now->qpn_first == port.who.qpn_first && now->leases >= port.leases.n &&
	       now->qpn_count == port.who.qpn_count && now->mtu == port.who.mtu &&
	       !memcmp(now->mac, port.who.mac, sizeof(now->mac));
}

static void replace_nic(struct vnic_driver *nic, const struct vnic_attach_welcome *now)
{
	const struct vnic_attach_port before = port.who.port;

	egress_set_nic(&port.egress, nic);
	vnic_driver_abandon(port.nic);
	port.nic = nic;
	port.who = *now;
	port.who.port = before;
	if (port_set_pkeys())
		log_error("cannot follow the P_Key table");
	port_changed(&now->port);
	port_groups_changed();
	port.daemons++;
	remote_register_all(nic);
	/* Peers have the inbox already; the new daemon introduces further peers. */
	if (port.inbox && vnic_driver_set_inbox(nic, port.inbox))
		log_info("the new daemon does not take the inbox");
}

int port_attach_again(void)
{
	struct vnic_attach_welcome now;
	struct vnic_driver *nic;
	int rc;

	/* A thread still waits for an answer by the old NIC, or the port is being closed. */
	if (port.nic_users || pthread_mutex_trylock(&port_open_lock))
		return -EBUSY;
	port_unlock();
	rc = vnic_driver_claim(path_run_dir(), &port.who, &now, &nic);
	if (!rc) {
		rc = same_host(&now) ? 0 : -ESTALE;
		if (rc)
			vnic_driver_detach(nic);
	}
	port_claim();
	pthread_mutex_unlock(&port_open_lock);
	if (!rc)
		replace_nic(nic, &now);
	return rc;
}

void port_tell_waiting(void)
{
	lock_tell(&port.back);
}
