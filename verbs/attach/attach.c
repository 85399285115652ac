/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "attach/attach.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hca/hca.h>
#include <samehost/peer.h>
#include <session/state_document.h>

#include "adapter/adapter.h"
#include "attach/attach_private.h"
#include "attach/engine_thread.h"
#include "attach/fork.h"
#include "daemon/adapter_hca.h"
#include "daemon/adapter_uplink.h"
#include "daemon/answer_limit.h"
#include "daemon/port_attributes.h"
#include "daemon/recording.h"
#include "daemon/uplink_qpns.h"
#include "engine/clock.h"
#include "engine/crc.h"
#include "memory/sigbus_guard.h"
#include "process/emulated_fd.h"
#include "process/high_fd.h"
#include "process/log.h"
#include "process/run_dir.h"
#include "process/settings.h"

static unsigned int opens;   /* users of the adapter; under adapter_open_lock */
static bool parent_attached; /* this process is a fork of a process that was attached */

/* Releases adapter_open_lock. In a child that a signal handler has forked while its thread held the
 * lock, forgets the parent's adapter instead, which initialises the lock. */
static void unlock_opens(void)
{
	if (adapter.lock.orphaned)
		adapter_unlock_orphaned();
	else
		pthread_mutex_unlock(&adapter_open_lock);
}

bool adapter_ref(uint32_t *generation)
{
	bool open;

	pthread_mutex_lock(&adapter_open_lock);
	open = opens > 0;
	opens += open;
	*generation = adapter_fork_generation;
	unlock_opens();
	return open;
}

void adapter_forget_users(void)
{
	parent_attached |= adapter.nic != NULL;
	adapter_open_lock = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
	adapter_lease_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	opens = 0;
	adapter_fork_generation++;
}

static void log_counters(void)
{
	const struct urxe_counters *counters = urxe_dev_counters(adapter.dev);

	for (int i = 0; i < VNIC_BYPASS_COUNT; i++)
		if (adapter_counter(i))
			log_info("%s: %" PRIu64, vnic_bypass_counter_name(i), adapter_counter(i));
	for (int i = 1; i < URXE_DROP_COUNT; i++)
		if (counters->drop[i])
			log_info("dropped for %s: %" PRIu64, urxe_drop_name((enum urxe_drop)i),
				 counters->drop[i]);
	for (int i = 0; i < URXE_EVENT_COUNT; i++)
		if (counters->event[i])
			log_info("%s: %" PRIu64, urxe_event_name((enum urxe_event)i),
				 counters->event[i]);
}

static void detach_adapter(void)
{
	struct hca *hca;

	adapter_lock();
	hca = adapter_hca_release();
	adapter.hca = (struct adapter_hca){0};
	recording_stop();
	if (adapter.dev) {
		adapter_count_missed();
		log_counters();
		urxe_dev_destroy(adapter.dev);
	}
	adapter.dev = NULL;
	adapter.reconnecting = false;
	clock_resume();
	leases_clear(&adapter.leases);
	told_qp_forget_released();
	tx_destroy(&adapter.tx);
	adapter_close_uplink();
	peers_done(&adapter_peers);
	vnic_inbox_destroy(adapter.inbox);
	adapter.inbox = NULL;
	vnic_driver_detach(adapter.nic);
	adapter.nic = NULL;
	adapter_unlock();
	if (hca)
		hca_close(hca);
}

/* Whether the error says that the daemon has closed the connection during the attachment: it has
 * ended, or refuses the process. False if its answer came too late (-ETIMEDOUT): another attempt
 * would wait for the same daemon as long. */
static bool is_closed_by_daemon(int rc)
{
	return rc == -ECONNRESET || rc == -EPIPE;
}

/*
 * Makes this process's inbox. *table becomes the copy table in it, for the engine; NULL: there is
 * no inbox, or the process takes part in no copies (peers_publish). 0, also without an inbox: then
 * all frames come by the switch, which is slower. -ECONNRESET, -EPIPE: the daemon has ended.
 */
static int make_inbox(struct urxe_copy_table **table)
{
	int rc = vnic_driver_make_inbox(adapter.nic, adapter.welcome.mtu, &adapter.inbox);

	*table = NULL;
	if (!rc)
		*table = peers_publish(&adapter_peers, vnic_inbox_published(adapter.inbox),
				       adapter.tx.process);
	else if (!is_closed_by_daemon(rc))
		log_warning("frames of processes of this host come by urxed, which is slower: no "
			    "inbox: %s",
			    strerror(-rc));
	return is_closed_by_daemon(rc) ? rc : 0;
}

static void request_uplink(void)
{
	adapter_lock();
	if (adapter_uplink_stale())
		adapter_renew_uplink();
	adapter_unlock();
}

/* Opens the HCA before the program creates objects, so that the HCA has all of them. */
static void open_hca(void)
{
	adapter_lock();
	if (adapter_hca_stale())
		adapter_hca_renew();
	adapter_unlock();
}

/* Publishes the inbox: from now on the daemon introduces the process to its peers. */
static void give_inbox(void)
{
	int rc = adapter.inbox ? vnic_inbox_publish(adapter.inbox) : 0;

	if (rc)
		log_info("peers do not get this process's inbox: %s", strerror(-rc));
}

static bool is_no_daemon(int rc)
{
	return rc == -ECONNREFUSED || rc == -ENOENT || is_closed_by_daemon(rc);
}

static const char *attach_error_text(int rc)
{
	switch (-rc) {
	case EPROTO: return "it is of another version than this liburxe";
	case ENOENT:
	case ECONNREFUSED: return "it does not run: start programs by 'urxe run'";
	case ECONNRESET:
	case EPIPE:
		return "it closes the connection; its log (urxed.log there, or the journal) says "
		       "why";
	case EFBIG:
		return "the limit of file sizes with which urxed was started is too small; "
		       "start urxed, or the first 'urxe run', after 'ulimit -f unlimited'";
	default: return strerror(-rc);
	}
}

/* Logs the error once, because libibverbs does not tell the user why it cannot open the device, and
 * programs may try without end. */
static void log_attach_error(int rc)
{
	static atomic_bool written;

	if (!atomic_exchange(&written, true))
		log_write("cannot attach to urxed in %s: %s", run_dir_path(),
			  attach_error_text(rc));
}

static void log_start_error(const char *what, int rc)
{
	static atomic_bool written;

	if (!atomic_exchange(&written, true))
		log_write("cannot start %s: %s", what, strerror(-rc));
}

static void init_lists(void)
{
	TAILQ_INIT(&adapter.dirty_cqs);
	TAILQ_INIT(&adapter.dirty_qps);
	LIST_INIT(&adapter.flushing_qps);
	LIST_INIT(&adapter.remote_qps);
	LIST_INIT(&adapter.added_qps);
	LIST_INIT(&adapter.released_qps);
	LIST_INIT(&adapter.released_mrs);
	adapter.dead = false;
	adapter_note_death(false);
	adapter.inbox_broken = false;
	adapter.inbox_populated = false;
}

/* Longest time for which demand_first_block() repeats its request: the daemon has to free the QPNs
 * of a process that has ended, and the process that replaces it demands them at once. */
#define DEMAND_PATIENCE_NS UINT64_C(1000000000)
#define DEMAND_PAUSE_NS    50000000

static int demand_first_block(const char *dir, struct adapter_saved *saved)
{
	const struct timespec pause = {.tv_nsec = DEMAND_PAUSE_NS};
	uint64_t until = clock_monotonic() + DEMAND_PATIENCE_NS;
	int rc;

	saved->demanded = saved->blocks[0];
	while ((rc = vnic_driver_demand(dir, saved->demanded, &adapter.welcome, &adapter.nic)) ==
		       -EEXIST &&
	       clock_monotonic() < until)
		nanosleep(&pause, NULL);
	return rc;
}

/* Adds the first block of QPNs, which came with the welcome, and leases and adds the other blocks
 * of a saved process. saved NULL: a new process. 0 or a negative errno value. */
static int add_leases(struct adapter_saved *saved)
{
	int rc = leases_add_new(&adapter.leases, adapter.welcome.qpn_first);

	for (uint32_t i = 1; saved && !rc && i < saved->n_blocks; i++) {
		uint32_t qpn_first = saved->demanded = saved->blocks[i];

		rc = vnic_driver_lease(adapter.nic, &qpn_first);
		if (!rc)
			rc = leases_add_new(&adapter.leases, qpn_first);
	}
	return rc;
}

static int make_engine(const struct adapter_saved *saved)
{
	struct urxe_copy_table *table;
	int rc = make_inbox(&table);

	if (rc)
		return rc;
	return saved ? adapter_restore_engine(saved, table) : adapter_make_engine(table);
}

/* Makes the process the owner of the table of emulated descriptors. Has the vNIC's driver, the
 * packet sockets and the state documents move their descriptors by high_fd(). Called once. */
static void prepare_descriptors(void)
{
	fd_set_owner();
	vnic_driver_place_fds(high_fd);
	packet_port_place_fds(high_fd);
	state_document_place_fds(high_fd);
}

/* Attaches to the daemon, and makes the engine; no thread runs it yet. saved NULL: a new process.
 * 0, or a negative errno value; the process is detached then. */
static int begin_attachment(struct adapter_saved *saved)
{
	static pthread_once_t prepared = PTHREAD_ONCE_INIT;
	const char *dir = run_dir_path();
	int rc;

	adapter_enable_fork_handlers();
	pthread_once(&prepared, prepare_descriptors);
	if (!dir)
		return -ENODEV;
	init_lists();
	rc = crc_load();
	if (rc)
		return rc;
	rc = saved ? demand_first_block(dir, saved)
		   : vnic_driver_attach(dir, &adapter.welcome, &adapter.nic);
	if (rc) {
		if (!is_no_daemon(rc))
			log_attach_error(rc);
		return rc;
	}
	adapter_init_peers();
	rc = tx_init(&adapter.tx, adapter.nic, &adapter.uplink, &adapter_peers, &adapter.welcome);
	if (!rc)
		rc = add_leases(saved);
	if (!rc)
		rc = make_engine(saved);
	if (!rc)
		rc = sigbus_guard_install();
	if (rc) {
		/* Not logged: the error of a restoration, which the checkpointer gets, and the
		 * daemon's end, after which adapter_open() waits for the next daemon. */
		if (!saved && !is_closed_by_daemon(rc))
			log_start_error("the engine", rc);
		detach_adapter();
	}
	return rc;
}

/* Publishes the inbox, opens the direct uplink and the HCA, and starts the engine thread.
 * `generation` as for adapter_is_parents. 0; -EIO: this is a child that a signal handler has
 * forked, and the adapter is the parent's; or another negative errno value, after which the process
 * is detached. */
static int end_attachment(uint32_t generation)
{
	int rc;

	give_inbox();
	request_uplink();
	open_hca();
	rc = adapter_is_parents(generation) ? 0 : engine_thread_start();
	if (adapter_is_parents(generation))
		return -EIO;
	if (rc) {
		log_start_error("the engine thread", rc);
		detach_adapter();
		return rc;
	}
	answer_limit_extend();
	log_info("attached to %s: QPNs %#x to %#x", run_dir_path(), adapter.welcome.qpn_first,
		 adapter.welcome.qpn_first + adapter.welcome.qpn_count - 1);
	return 0;
}

static int attach_adapter(uint32_t generation)
{
	int rc = begin_attachment(NULL);

	return rc ? rc : end_attachment(generation);
}

static int open_once(uint32_t *generation)
{
	int rc = 0;

	pthread_mutex_lock(&adapter_open_lock);
	*generation = adapter_fork_generation;
	if (!opens)
		rc = attach_adapter(*generation);
	if (adapter_is_parents(*generation))
		rc = -EIO;
	if (!rc)
		opens++;
	unlock_opens();
	return rc;
}

/*
 * Waits for the next daemon, as long as an attached process does, in two cases: the daemon ends or
 * closes the connection while the process attaches, or the process is a forked child of one that
 * was attached. Holds no lock while it waits.
 */
int adapter_open(uint32_t *generation)
{
	const struct timespec pause = {.tv_nsec = RECONNECT_INTERVAL_NS};
	uint64_t now = clock_monotonic(), until;
	int rc;

	settings_read();
	rc = open_once(generation);
	until = parent_attached || is_closed_by_daemon(rc) ? now + settings_reconnect_ns() : 0;
	while (is_no_daemon(rc) && clock_monotonic() < until) {
		nanosleep(&pause, NULL);
		rc = open_once(generation);
	}
	if (is_no_daemon(rc))
		log_attach_error(rc);
	return rc;
}

void adapter_unref(uint32_t generation)
{
	pthread_mutex_lock(&adapter_open_lock);
	if (generation == adapter_fork_generation && !--opens) {
		engine_thread_stop();
		if (!adapter_is_parents(generation))
			detach_adapter();
	}
	unlock_opens();
}

/* --- A restored process. */

int adapter_restore_begin(struct adapter_saved *saved)
{
	int rc;

	settings_read();
	pthread_mutex_lock(&adapter_open_lock);
	saved->fork_generation = adapter_fork_generation;
	rc = opens ? -EBUSY : begin_attachment(saved);
	if (adapter_is_parents(saved->fork_generation))
		rc = -EIO;
	if (rc)
		unlock_opens();
	return rc;
}

void adapter_restore_abort(const struct adapter_saved *saved)
{
	if (!adapter_is_parents(saved->fork_generation))
		detach_adapter();
	unlock_opens();
}

/* Adapts the restored engine to the present port, and sends the contexts events for P_Keys, GIDs
 * and a port state that have changed since the process was saved. Tells the daemon the multicast
 * mode and the remote QPs. 0 or a negative errno value. */
static int follow_changes(const struct adapter_saved *saved)
{
	const struct vnic_attach_port now = adapter.welcome.port;
	uint16_t pkeys[VNIC_ATTACH_PKEYS];
	int rc;

	adapter_lock();
	for (uint32_t i = 0; i < VNIC_ATTACH_PKEYS; i++)
		pkeys[i] = urxe_pkey(adapter.dev, i);
	memcpy(adapter.welcome.port.gids, saved->gids, sizeof(saved->gids));
	adapter.welcome.port.up = saved->up;
	port_pkeys_changed(pkeys);
	port_changed(&now);
	adapter_set_multicast();
	rc = told_qp_tell_all(adapter.nic, &adapter.remote_qps);
	uplink_qpns_update();
	adapter_unlock();
	return rc;
}

/* Ends the attachment of a restored process. 0 or a negative errno value; -EIO as end_attachment.
 */
static int end_restoration(const struct adapter_saved *saved)
{
	int rc = follow_changes(saved);

	if (adapter_is_parents(saved->fork_generation))
		return -EIO;
	if (!rc)
		return end_attachment(saved->fork_generation);
	detach_adapter();
	return rc;
}

int adapter_restore_end(const struct adapter_saved *saved, uint32_t users)
{
	int rc = adapter_is_parents(saved->fork_generation) ? -EIO : end_restoration(saved);

	if (!rc)
		opens = users;
	unlock_opens();
	return rc;
}
