/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "daemon/reconnect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "adapter/adapter.h"
#include "daemon/adapter_hca.h"
#include "daemon/answer_limit.h"
#include "daemon/port_attributes.h"
#include "daemon/recording.h"
#include "daemon/uplink_qpns.h"
#include "engine/clock.h"
#include "objects/uverbs_file.h"
#include "poll/due_events.h"
#include "poll/engine_run.h"
#include "poll/engine_wake.h"
#include "poll/polling.h"
#include "process/log.h"
#include "process/run_dir.h"
#include "process/settings.h"
#include "queues/publish.h"
#include "queues/verbs_qp.h"

#define SECOND UINT64_C(1000000000)

/* Under adapter.lock; times of clock_monotonic. */
static struct {
	uint64_t since;
	uint64_t until;
	uint64_t next;  /* earliest time of the next attempt */
	int last_error; /* of the last attempt; 0: there was none */
} reconnect;

static void reconnect_begin(void)
{
	uint64_t now = clock_monotonic();

	adapter.reconnecting = true;
	reconnect.since = now;
	reconnect.until = now + settings_reconnect_ns();
	reconnect.next = 0;
	reconnect.last_error = 0;
	log_warning("urxed has gone: looking for another one");
	tx_lose_switch(&adapter.tx);
	if (!adapter.uplink)
		clock_stop();
}

/*
 * Declares the device dead: each context gets IBV_EVENT_DEVICE_FATAL, outstanding requests complete
 * in error, and the waits at completion channels end. `reason` is for the log.
 */
static void fail_adapter(const char *reason)
{
	struct uverbs_file *file;
	uint32_t at = 0;
	struct qp *qp;

	log_warning("%s: the device is dead", reason);
	adapter.dead = true;
	adapter_note_death(true);
	while ((qp = leases_next(&adapter.leases, &at)))
		qp_abort(qp);
	/* Sends the events of these completions before comp_channels_end(), which discards others.
	 */
	due_events_begin_drain();
	adapter_publish();
	due_events_end_drain();
	LIST_FOREACH(file, &adapter.files, link)
	{
		uverbs_file_event(file, 0, IBV_EVENT_DEVICE_FATAL);
		comp_channels_end(file);
	}
}

void adapter_disconnected(void)
{
	uint64_t now = clock_now();
	bool goes_on = adapter.uplink && !vnic_driver_broken(adapter.nic);

	if (!goes_on) {
		polling_event(POLL_LOST);
		adapter_polling.irq_on = false;
	}
	if (vnic_driver_broken(adapter.nic)) {
		fail_adapter("the NIC completes what it was not given");
		return;
	}
	engine_receive_last(now);
	reconnect_begin();
	engine_wake();
}

/* --- The next daemon. */

/* Whether the next daemon gives this process the same MAC address and QPNs, which peers have in
 * their packets, and the same MTU. The daemon may have leased one more block than this process has
 * received. */
static bool is_same_host(const struct vnic_attach_welcome *now)
{
	return now->qpn_first == adapter.welcome.qpn_first && now->leases >= adapter.leases.n &&
	       now->qpn_count == adapter.welcome.qpn_count && now->mtu == adapter.welcome.mtu &&
	       !memcmp(now->mac, adapter.welcome.mac, sizeof(now->mac));
}

static void replace_nic(struct vnic_driver *nic, const struct vnic_attach_welcome *now)
{
	const struct vnic_attach_welcome was = adapter.welcome;
	struct vnic_driver *old = adapter.nic;

	recording_stop();
	tx_set_nic(&adapter.tx, nic);
	/* Set before the old NIC is abandoned, because a child that is forked meanwhile isolates
	 * adapter.nic. */
	adapter.nic = nic;
	vnic_driver_abandon(old);
	adapter.welcome = *now;
	adapter.welcome.port = was.port;
	port_pkeys_changed(was.pkeys);
	adapter_hca_adopt(&was.port.hca, &now->port.hca);
	port_changed(&now->port);
	adapter_set_multicast();
	adapter.daemon_generation++;
	/* The earlier daemon opened the packet sockets, perhaps with other options than the new
	 * daemon relies on. */
	adapter.uplink_inherited = true;
	uplink_qpns_update();
	told_qp_tell_all(nic, &adapter.added_qps);
	told_qp_tell_all(nic, &adapter.remote_qps);
	/* Peers have this process's inbox already. The new daemon needs it to introduce others. */
	if (adapter.inbox && vnic_driver_set_inbox(nic, adapter.inbox))
		log_info("the new daemon does not take the inbox");
	answer_limit_extend();
}

/* Replaces the NIC by a NIC of the next daemon, with the same leases. Releases adapter.lock
 * meanwhile. 0; -ESTALE: that daemon serves another host; -EBUSY: another thread is in the way, and
 * a later attempt may succeed; or an error of vnic_driver_claim. */
static int reattach(void)
{
	struct vnic_attach_welcome now;
	struct vnic_driver *nic;
	int rc;

	/* A thread still waits for the old daemon's answer, or the adapter is being closed. */
	if (adapter.nic_users || pthread_mutex_trylock(&adapter_open_lock))
		return -EBUSY;
	adapter_unlock();
	rc = vnic_driver_claim(run_dir_path(), &adapter.welcome, adapter.nic, &now, &nic);
	if (!rc) {
		rc = is_same_host(&now) ? 0 : -ESTALE;
		if (rc)
			vnic_driver_detach(nic);
	}
	adapter_claim();
	pthread_mutex_unlock(&adapter_open_lock);
	if (!rc)
		replace_nic(nic, &now);
	return rc;
}

/* Whether a further attempt would end in the same error. */
static bool is_final(int rc)
{
	return rc == -EPERM || rc == -EPROTO || rc == -ESTALE;
}

static const char *timeout_text(void)
{
	static char text[160];

	snprintf(text, sizeof(text), "no urxed accepted this process for %llu s%s%s",
		 (unsigned long long)((reconnect.until - reconnect.since) / SECOND),
		 reconnect.last_error ? ": " : "",
		 reconnect.last_error ? strerror(-reconnect.last_error) : "");
	return text;
}

static const char *failure_text(int rc)
{
	switch (rc) {
	case -ETIME: return timeout_text();
	case -ESTALE: return "the new urxed serves another host";
	case -EPROTO: return "the new urxed has another version";
	default: return "the new urxed has no lease for this process";
	}
}

void reconnect_try(void)
{
	uint64_t now = clock_monotonic();
	int rc;

	/* With a direct uplink, the engine thread wakes up for frames and calls this function, too.
	 */
	if (now < reconnect.next)
		return;
	reconnect.next = now + RECONNECT_INTERVAL_NS / 2;
	rc = now < reconnect.until ? reattach() : -ETIME;
	if (rc != -ETIME)
		reconnect.last_error = rc;
	if (!rc)
		log_warning("attached again after %llu ms",
			    (unsigned long long)((clock_monotonic() - reconnect.since) / 1000000));
	else if (!is_final(rc) && rc != -ETIME)
		return;
	adapter.reconnecting = false;
	clock_resume();
	if (rc)
		fail_adapter(failure_text(rc));
	lock_notify(&adapter.reconnects_ended);
}
