/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "engine/port.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "engine/clock.h"
#include "engine/crc.h"
#include "interpose/path_redirect.h"
#include "memory/mr_index.h"
#include "memory/sigbus_guard.h"
#include "queues/srq.h"
#include "report/log.h"
#include "samehost/peer.h"

struct port port;

/* Attaching, detaching and `opens`; taken before port.lock. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int opens;
static bool parent_attached; /* this process is a fork of a process that was attached */

/* Who asks for more queue pair numbers; taken before port.lock, and not with open_lock. */
static pthread_mutex_t lease_lock = PTHREAD_MUTEX_INITIALIZER;

bool port_gid_valid(uint32_t index)
{
	bool valid;

	port_lock();
	valid = index < VNIC_ATTACH_GIDS && port.who.port.gids[index].valid;
	port_unlock();
	return valid;
}

void port_guid(uint8_t guid[8])
{
	const uint8_t *mac = port.who.mac;
	const uint8_t eui[8] = {mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};

	memcpy(guid, eui, sizeof(eui));
}

enum urxe_mtu port_mtu(void)
{
	const uint32_t overhead = URXE_MAX_OVERHEAD - 14 - 4; /* of the Ethernet payload */
	enum urxe_mtu mtu = URXE_MTU_4096;

	while (mtu > URXE_MTU_256 && (128u << mtu) + overhead > port.who.port.link_mtu)
		mtu--;
	return mtu;
}

/* How soon to look again, and after how many looks the program is told. */
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

static void refill(void *ctx)
{
	struct object *object = ctx;

	recv_queue_refill(object->type == OBJECT_SRQ ? &((struct srq *)object)->recv
						     : &((struct qp *)object)->recv);
}

static void async_event(void *dev_ctx, enum urxe_async event, void *ctx)
{
	struct object *object = ctx;

	(void)dev_ctx;
	if (object->type == OBJECT_QP) {
		((struct qp *)object)->async_events++;
		qp_failed((struct qp *)object);
	} else if (object->type == OBJECT_CQ) {
		((struct cq *)object)->async_events++;
	} else {
		((struct srq *)object)->async_events++;
	}
	file_event(object->file, object->user_handle, event);
}

static bool may_reference(void *dev_ctx, const struct urxe_path *path, uint32_t qpn)
{
	(void)dev_ctx;
	return egress_may_reference(&port.egress, path->dmac, qpn);
}

static const struct urxe_ops ops = {
	.complete = cq_add,
	.comp_event = cq_comp_event,
	.refill = refill,
	.async_event = async_event,
	.guard = fault_guard,
	.copy_crc = crc_copy,
	.may_reference = may_reference,
	.pull = peer_pull,
};

/* Rings before completions: who sees a completion may post at once. */
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

static int set_gid(uint32_t index, const struct vnic_attach_gid *entry)
{
	struct urxe_gid gid;
	int rc;

	if (!entry->valid)
		return urxe_gid_set(port.dev, index, NULL, false);
	memcpy(gid.raw, entry->raw, sizeof(gid.raw));
	rc = urxe_gid_set(port.dev, index, &gid, entry->v1);
	return rc ? rc : urxe_gid_set_vlan(port.dev, index, entry->vlan);
}

/* What is the same as before keeps its place in the engine. */
static int set_gids(const struct vnic_attach_gid *now, const struct vnic_attach_gid *before)
{
	int rc = 0;

	for (uint32_t i = 0; i < VNIC_ATTACH_GIDS && !rc; i++)
		if (memcmp(&now[i], &before[i], sizeof(now[i])))
			rc = set_gid(i, &now[i]);
	return rc;
}

static int set_port(const struct vnic_attach_port *now, const struct vnic_attach_port *before)
{
	int rc = urxe_link_mtu_set(port.dev, now->link_mtu);

	return rc ? rc : set_gids(now->gids, before->gids);
}

static void tell_all(enum ibv_event_type event)
{
	struct uverbs_file *file;

	LIST_FOREACH(file, &port.files, link)
	file_event(file, 1, event);
}

/*
 * A queue pair whose source address has gone stays as it is, as the kernel's do: what it
 * sends has a source that nobody answers, and it ends by its own timeouts.
 */
void port_changed(const struct vnic_attach_port *now)
{
	const struct vnic_attach_port before = port.who.port;
	int rc = set_port(now, &before);

	if (rc)
		log_error("cannot follow the port: %s", strerror(-rc));
	port.who.port = *now;
	if (memcmp(now->gids, before.gids, sizeof(before.gids)))
		tell_all(IBV_EVENT_GID_CHANGE);
	if (now->up != before.up)
		tell_all(now->up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

static int set_pkeys(void)
{
	int rc = 0;

	for (uint32_t i = 0; i < VNIC_ATTACH_PKEYS && !rc; i++)
		rc = urxe_pkey_set(port.dev, i, port.who.pkeys[i]);
	return rc;
}

static uint64_t random_seed(void)
{
	uint64_t seed;

	/* Early at boot, or without the call: keys may then be guessed, not wrong. */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
		seed = clock_now();
	return seed;
}

static int make_engine(struct urxe_direct_table *table)
{
	const struct urxe_dev_attr attr = {
		.ops = &ops,
		.mac = {port.who.mac[0], port.who.mac[1], port.who.mac[2], port.who.mac[3],
			port.who.mac[4], port.who.mac[5]},
		.mtu = port.who.mtu,
		.seed = random_seed(),
		/* The engine thread wakes for each such deadline while no application polls. */
		.probe_ns = 10000000,
		.direct = table ? &peer_ops : NULL,
		.direct_table = table,
	};
	static const struct vnic_attach_port none;
	int rc = urxe_dev_create(&attr, &port.dev);

	if (!rc)
		rc = set_pkeys();
	return rc ? rc : set_port(&port.who.port, &none);
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

/*
 * The thread that forks has both locks, so that the child finds no half-made
 * change and no port that is half attached.
 */
static void before_fork(void)
{
	pthread_mutex_lock(&open_lock);
	port_lock();
}

static void after_fork(void)
{
	port_unlock();
	pthread_mutex_unlock(&open_lock);
}

/*
 * The child has the parent's rings and NIC mapped, but they are the parent's.
 * Engine memory is left as it is: nothing in it is the child's to end.
 */
static void in_child(void)
{
	struct uverbs_file *file;

	LIST_FOREACH(file, &port.files, link)
	file->live = false;
	if (port.nic) {
		vnic_driver_abandon(port.nic);
		parent_attached = true;
	}
	peer_in_child();
	vnic_inbox_abandon(port.inbox);
	egress_done(&port.egress);
	progress_abandon();
	fault_in_child();
	registered_forget();
	port = (struct port){0};
	clock_go();
	pthread_mutex_init(&open_lock, NULL);
	pthread_mutex_init(&lease_lock, NULL);
	opens = 0;
	fd_owner_is_me();
}

static void init_once(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
	fd_owner_is_me();
}

/* Without an inbox all comes by the switch, which costs time and nothing else. */
static struct urxe_direct_table *make_inbox(void)
{
	int rc = vnic_inbox_create(port.who.mtu, &port.inbox);

	if (!rc)
		return peer_init(vnic_inbox_published(port.inbox), port.egress.process);
	log_info("no inbox: %s", strerror(-rc));
	return NULL;
}

static void give_inbox(void)
{
	int rc = port.inbox ? vnic_driver_set_inbox(port.nic, port.inbox) : 0;

	if (rc)
		log_info("nobody gets our inbox: %s", strerror(-rc));
}

void port_inbox_broken(void)
{
	log_warning("a process completes in our inbox what it was not given: all comes by the "
		    "switch now");
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

	pthread_once(&once, init_once);
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
		rc = make_engine(make_inbox());
	if (!rc)
		rc = fault_install();
	if (!rc) {
		give_inbox();
		rc = progress_start();
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

	pthread_mutex_lock(&open_lock);
	if (!opens)
		rc = attach();
	if (!rc)
		opens++;
	pthread_mutex_unlock(&open_lock);
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
	pthread_mutex_lock(&open_lock);
	if (--opens == 0) {
		progress_stop();
		detach();
	}
	pthread_mutex_unlock(&open_lock);
}

/* --- Another daemon. */

/*
 * Whatever stands in packets and in registers must be what it was. It may have leased a block more
 * than this process has heard of.
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
	if (set_pkeys())
		log_error("cannot follow the P_Key table");
	port_changed(&now->port);
	port_groups_changed();
	port.daemons++;
	remote_register_all(nic);
	/* Others have it already; this daemon is to look after it, and to introduce more. */
	if (port.inbox && vnic_driver_set_inbox(nic, port.inbox))
		log_info("the new daemon does not take the inbox");
}

int port_attach_again(void)
{
	struct vnic_attach_welcome now;
	struct vnic_driver *nic;
	int rc;

	/* Somebody still waits for an answer by the old NIC, or the port is being closed. */
	if (port.nic_users || pthread_mutex_trylock(&open_lock))
		return -EBUSY;
	port_unlock();
	rc = vnic_driver_claim(path_run_dir(), &port.who, &now, &nic);
	if (!rc) {
		rc = same_host(&now) ? 0 : -ESTALE;
		if (rc)
			vnic_driver_detach(nic);
	}
	port_claim();
	pthread_mutex_unlock(&open_lock);
	if (!rc)
		replace_nic(nic, &now);
	return rc;
}

void port_tell_waiting(void)
{
	lock_tell(&port.back);
}

/* --- What is asked of the daemon. */

/* The NIC of an open context, once there is a daemon; NULL: there is none any more. */
static struct vnic_driver *borrow_nic(void)
{
	struct vnic_driver *nic = NULL;
	bool open;

	pthread_mutex_lock(&open_lock);
	open = opens > 0;
	opens += open;
	pthread_mutex_unlock(&open_lock);
	if (!open)
		return NULL;
	port_lock();
	while (port.outage.on)
		lock_await(&port.lock, &port.back);
	if (!port.gone) {
		nic = port.nic;
		port.nic_users++;
	}
	port_unlock();
	if (!nic)
		port_close();
	return nic;
}

/* True: the daemon has gone, and another one may be asked the same. */
static bool return_nic(int rc)
{
	bool again = rc == -ECONNRESET || rc == -EPIPE;

	port_lock();
	port.nic_users--;
	/* The engine's thread may not have heard of it yet. */
	if (again && port_connected())
		progress_disconnected();
	again = again && !port.gone;
	port_unlock();
	port_close();
	return again;
}

/* Asks the daemon, and where it goes meanwhile the next one. -EIO: there is none any more. */
typedef int ask_fn(struct vnic_driver *nic, void *question);

static int ask_daemon(ask_fn *ask, void *question)
{
	struct vnic_driver *nic;
	int rc;

	do {
		nic = borrow_nic();
		if (!nic)
			return -EIO;
		rc = ask(nic, question);
	} while (return_nic(rc));
	return rc;
}

struct next_hop_question {
	uint8_t sgid_index;
	const uint8_t *dgid;
	struct vnic_next_hop *hop;
};

static int ask_next_hop(struct vnic_driver *nic, void *question)
{
	const struct next_hop_question *q = question;

	return vnic_driver_resolve(nic, q->sgid_index, q->dgid, q->hop);
}

/* True: the destination is this host, of which the port says enough. */
static bool is_here(uint8_t sgid_index, const uint8_t dgid[16], struct vnic_next_hop *hop)
{
	const struct vnic_attach_gid *gids = port.who.port.gids;
	bool here = false;

	port_lock();
	if (!port.gone && sgid_index < VNIC_ATTACH_GIDS && gids[sgid_index].valid)
		for (int i = 0; i < VNIC_ATTACH_GIDS && !here; i++)
			here = gids[i].valid && !memcmp(gids[i].raw, dgid, sizeof(gids[i].raw));
	if (here) {
		*hop = (struct vnic_next_hop){.hop_limit = 0};
		memcpy(hop->mac, port.who.mac, sizeof(hop->mac));
	}
	port_unlock();
	return here;
}

int port_resolve(uint8_t sgid_index, const uint8_t dgid[16], struct vnic_next_hop *hop)
{
	struct next_hop_question question = {sgid_index, dgid, hop};

	return is_here(sgid_index, dgid, hop) ? 0 : ask_daemon(ask_next_hop, &question);
}

/* 0: a block is wanted; 1: there are free numbers. */
static int check_lease(void)
{
	int rc = 0;

	port_lock();
	if (!leases_full(&port.leases))
		rc = 1;
	else if (port.leases.n == VNIC_LEASES_MAX)
		rc = -EINVAL;
	port_unlock();
	return rc;
}

/* Gets another block of numbers; with lease_lock. */
static int extend(struct vnic_driver *nic)
{
	struct lease_block *block;
	int rc = check_lease();

	if (rc)
		return rc < 0 ? rc : 0;
	block = calloc(1, sizeof(*block));
	if (!block)
		return -ENOMEM;
	rc = vnic_driver_lease(nic, &block->qpn_first);
	if (rc) {
		free(block);
		return rc;
	}
	log_info("QPNs %#x to %#x", block->qpn_first, block->qpn_first + VNIC_LEASE_QPNS - 1);
	port_lock();
	leases_add(&port.leases, block);
	port_unlock();
	return 0;
}

static int ask_lease(struct vnic_driver *nic, void *unused)
{
	int rc;

	(void)unused;
	pthread_mutex_lock(&lease_lock);
	rc = extend(nic);
	pthread_mutex_unlock(&lease_lock);
	return rc;
}

int port_lease(void)
{
	int rc = ask_daemon(ask_lease, NULL);

	if (rc)
		log_info("no more queue pairs: %s", strerror(-rc));
	return rc;
}

static int ask_register(struct vnic_driver *nic, void *question)
{
	struct remote *remote = question;

	remote->daemon = port.daemons;
	return vnic_driver_register(nic, remote->dgid, remote->qpn);
}

static int ask_unregister(struct vnic_driver *nic, void *question)
{
	struct remote *remote = question;

	/* What an earlier daemon knew has gone with it. */
	if (remote->daemon != port.daemons)
		return 0;
	return vnic_driver_unregister(nic, remote->dgid, remote->qpn);
}

int port_register(struct remote *remote, bool connected)
{
	return ask_daemon(connected ? ask_register : ask_unregister, remote);
}

/* Without the lock; who is introduced to us may send as well. */
static void expect_frames(void)
{
	if (port.inbox && !atomic_exchange(&port.inbox_met, true))
		vnic_inbox_populate(port.inbox);
}

/* Gets the inbox of the process that has a QPN. */
static int ask_introduction(struct vnic_driver *nic, void *question)
{
	uint32_t qpn = *(const uint32_t *)question;
	int fds[VNIC_INBOX_FDS];
	int rc = vnic_driver_introduce(nic, qpn, fds);

	if (rc)
		return rc;
	port_lock();
	rc = egress_add(&port.egress, qpn, fds);
	port_unlock();
	expect_frames();
	return rc;
}

static bool is_known(uint32_t qpn)
{
	bool known;

	port_lock();
	known = port.dev && egress_knows(&port.egress, qpn);
	port_unlock();
	return known;
}

void port_meet(uint32_t qpn)
{
	int rc = is_known(qpn) ? 0 : ask_daemon(ask_introduction, &qpn);

	if (rc && rc != -EIO)
		log_info("frames to qp %#x go by the switch: %s", qpn, strerror(-rc));
}

void port_met(uint32_t qpn, const int fds[VNIC_INBOX_FDS])
{
	int rc;

	/* Its frames may have gone by the switch while the inbox was full. */
	if (egress_knows(&port.egress, qpn)) {
		for (int i = 0; i < VNIC_INBOX_FDS; i++)
			close(fds[i]);
		return;
	}
	rc = egress_add(&port.egress, qpn, fds);
	if (rc)
		log_info("frames to qp %#x go by the switch: %s", qpn, strerror(-rc));
	port_unlock();
	expect_frames();
	port_claim();
}
