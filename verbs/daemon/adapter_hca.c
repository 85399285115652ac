/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "daemon/adapter_hca.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include <hca/hca.h>
#include <hca/hca_verbs.h>

#include "adapter/adapter.h"
#include "adapter/told_qp.h"
#include "daemon/uplink_qpns.h"
#include "engine/clock.h"
#include "poll/engine_run.h"
#include "poll/engine_wake.h"
#include "process/high_fd.h"
#include "process/log.h"
#include "process/settings.h"
#include "queues/publish.h"
#include "queues/verbs_qp.h"

/* Interval of the attempts to take over the HCA's queue pairs, ns. The engine first waits until no
 * peer sends requests: no PSN that the HCA expects next changes between two attempts. After
 * TAKE_OVER_PATIENT attempts the engine does not wait for that any more. */
#define TAKE_OVER_PAUSE_NS UINT64_C(20000000)
#define TAKE_OVER_PATIENT  15
/* Longest wait until the daemon passes packets of the uplink to the engine, ns. Only then is a
 * queue pair stopped at the HCA. If the daemon needs longer, packets that come before are lost, and
 * only RC peers repeat them. */
#define TAKE_OVER_UPLINK_NS UINT64_C(100000000)
/* Longest time, in ns, for which a take-over delays the close of an HCA that goes. */
#define TAKE_OVER_NS UINT64_C(600000000)

static bool takes(void *ctx, void *qp_ctx, const struct urxe_qp_attr *attr)
{
	(void)ctx;
	(void)attr;
	return ((struct qp *)qp_ctx)->by_hca;
}

static void lock(void *ctx)
{
	(void)ctx;
	adapter_lock();
}

static void unlock(void *ctx)
{
	(void)ctx;
	adapter_unlock();
}

static const struct hca_owner owner = {
	.takes = takes, .lock = lock, .unlock = unlock, .place_fd = high_fd};

/* Whether the engine has to take over because the HCA's port is down: only with
 * URXE_HCA_GONE=engine. */
static bool wants_take_over(const struct vnic_attach_hca *hca)
{
	return hca->down && settings_engine_takes_over();
}

static bool is_time_to_open(void)
{
	return adapter.hca.retry.pause && adapter.hca.retry.at <= clock_now();
}

bool adapter_hca_stale(void)
{
	const struct vnic_attach_hca *now = &adapter.welcome.port.hca;

	return now->generation != adapter.hca.generation ||
	       wants_take_over(now) != adapter.hca.handled_down ||
	       (adapter.hca.hca && hca_is_dead(adapter.hca.hca)) || is_time_to_open();
}

void adapter_hca_adopt(const struct vnic_attach_hca *before, const struct vnic_attach_hca *now)
{
	if (adapter.hca.generation == before->generation && before->port == now->port &&
	    !strcmp(before->name, now->name))
		adapter.hca.generation = now->generation;
	else if (adapter.hca.generation == now->generation)
		adapter.hca.generation = now->generation - 1;
}

void adapter_hca_set_gids(void)
{
	const struct vnic_attach_gid *gids = adapter.welcome.port.gids;

	if (!adapter.hca.hca)
		return;
	for (uint32_t i = 0; i < VNIC_ATTACH_GIDS; i++) {
		struct urxe_gid gid;

		memcpy(gid.raw, gids[i].raw, sizeof(gid.raw));
		hca_set_gid(adapter.hca.hca, i, gids[i].valid ? &gid : NULL, gids[i].v1,
			    gids[i].ifindex);
	}
	hca_read_gids(adapter.hca.hca);
}

void adapter_hca_set_state(void)
{
	if (adapter.hca.hca)
		hca_set_port_down(adapter.hca.hca, adapter.welcome.port.hca.down);
}

void adapter_hca_set_pkeys(void)
{
	if (adapter.hca.hca)
		hca_set_pkeys(adapter.hca.hca, adapter.welcome.pkeys, VNIC_ATTACH_PKEYS);
}

struct hca *adapter_hca_release(void)
{
	struct hca *hca = adapter.hca.hca;

	if (!hca)
		return NULL;
	adapter.hca.hca = NULL;
	atomic_store_explicit(&adapter.hca_open, false, memory_order_relaxed);
	adapter.hca.take_over = (struct adapter_take_over){0};
	adapter.hca.qps_stopped = false;
	hca_defer_destruction(hca);
	hca_detach(hca);
	uplink_qpns_update();
	/* The engine thread sends the frames of queue pairs that the engine has taken over. */
	engine_wake_for_work();
	adapter_publish();
	return hca;
}

/* Tells the daemon the QPNs of the queue pairs that existed before the HCA, which the engine
 * executes. */
static void tell_numbers(void)
{
	struct qp *qp;
	uint32_t at = 0;

	while ((qp = leases_next(&adapter.leases, &at)))
		if (!qp->added)
			told_qp_add_locked(adapter.nic, qp->qpn, &qp->added);
}

static void attach_hca(struct hca *hca, const struct vnic_attach_hca *is)
{
	hca_attach(hca, adapter.dev);
	adapter.hca.hca = hca;
	atomic_store_explicit(&adapter.hca_open, true, memory_order_relaxed);
	adapter_hca_set_state();
	adapter_hca_set_gids();
	adapter_hca_set_pkeys();
	tell_numbers();
	log_info("port %u of %s executes queue pairs", is->port, is->name);
}

/* Opens the HCA that the daemon has named, and attaches it to the engine. After an error only sets
 * adapter.hca.retry. Called with adapter.lock, which it releases while libibverbs opens the HCA. */
static void open_hca(const struct vnic_attach_hca *wanted)
{
	struct hca *hca = NULL;
	int rc;

	adapter_unlock();
	rc = hca_open(hca_verbs_find(), wanted->name, wanted->port, &owner, &hca);
	adapter_claim();
	/* Repeated attempts are not logged. */
	if (rc && !adapter.hca.retry.pause)
		log_warning("cannot open %s: %s", wanted->name, strerror(-rc));
	hca_retry_note(&adapter.hca.retry, rc, clock_now());
	if (rc)
		return;
	/* If the daemon has named another HCA meanwhile, the engine thread's next round opens it.
	 */
	if (wanted->generation == adapter.welcome.port.hca.generation && !adapter.dead) {
		attach_hca(hca, wanted);
		return;
	}
	adapter_unlock();
	hca_close(hca);
	adapter_claim();
}

/* --- Take-over of the HCA's queue pairs by the engine. */

const char *adapter_hca_refusal(const struct urxe_offload_refusal *refusal)
{
	static const char *const texts[] = {
		[URXE_OFFLOAD_STALE_PSN] = "its driver does not tell the current PSNs",
		[URXE_OFFLOAD_UNPROVEN_PSN] =
			"no message shows that its driver tells the current PSNs",
		[URXE_OFFLOAD_NO_NEXT_HOP] =
			"urxed knows no next hop to its peer, or has not registered the peer",
		[URXE_OFFLOAD_NUMBER_UNKNOWN] = "urxed does not know its number",
		[URXE_OFFLOAD_REQUESTS] = "the HCA has requests that do not end",
		[URXE_OFFLOAD_BUSY_PEER] = "a peer sends requests without a pause",
		[URXE_OFFLOAD_UPLINK] = "urxed does not receive packets for the engine yet",
		[URXE_OFFLOAD_RECEIVES] = "the HCA does not give back its receive requests",
	};

	return texts[refusal->reason];
}

/* Returns the time of the next attempt, ns. 0: at once, because queue pairs are stopped and wait
 * only for their receive requests, which the HCA gives back soon. */
static uint64_t next_try(uint64_t now)
{
	return urxe_offload_stopped(adapter.dev) ? 0 : now + TAKE_OVER_PAUSE_NS;
}

/*
 * True: the take-over has to wait until the daemon passes the packets of the uplink to the engine.
 * The first such call begins the wait, which lasts TAKE_OVER_UPLINK_NS at most. For the first call
 * of urxe_offload_take_over() may stop queue pairs at the HCA, and datagrams that then neither the
 * HCA nor the uplink receives are lost.
 */
static bool check_uplink_wait(struct adapter_take_over *t, uint64_t now)
{
	if (t->tries || uplink_qpns_handled())
		return false;
	if (!t->uplink_until)
		t->uplink_until = now + TAKE_OVER_UPLINK_NS;
	return now < t->uplink_until;
}

/* Returns a queue pair of the HCA whose number the daemon does not know; NULL: none is left. The
 * engine cannot execute it: the switch drops its packets. */
static const struct qp *next_number_unknown(uint32_t *at)
{
	const struct qp *qp;

	while ((qp = leases_next(&adapter.leases, at)))
		if (qp->number_unknown && urxe_offload_has_qp(qp->qp))
			return qp;
	return NULL;
}

/* Whether the daemon has withdrawn the HCA itself, and not only reported that its port is down. */
static bool is_hca_withdrawn(void)
{
	return adapter.welcome.port.hca.generation != adapter.hca.generation;
}

/* Refuses the take-over (true) if the engine could not execute one of the HCA's queue pairs. Not if
 * the HCA goes: then such queue pairs have failed already (fail_numbers_unknown). */
static bool refuse_number_unknown(enum hca_taker taker, struct urxe_offload_refusal *refusal)
{
	uint32_t at = 0;
	const struct qp *qp =
		taker == TAKER_GONE && is_hca_withdrawn() ? NULL : next_number_unknown(&at);

	if (qp)
		*refusal = (struct urxe_offload_refusal){URXE_OFFLOAD_NUMBER_UNKNOWN, qp->qpn};
	return qp;
}

int adapter_hca_take_over(enum hca_taker taker, struct urxe_offload_refusal *refusal)
{
	struct adapter_take_over *t = &adapter.hca.take_over;
	const uint64_t now = clock_now();
	bool drained;
	int rc;

	*refusal = (struct urxe_offload_refusal){.reason = t->waits_for};
	if (!adapter.hca.hca)
		return 0;
	if (refuse_number_unknown(taker, refusal))
		return -EOPNOTSUPP;
	drained = hca_drain(adapter.hca.hca);
	if (hca_is_dead(adapter.hca.hca))
		return -EIO;
	t->takers |= (uint8_t)taker;
	uplink_qpns_update();
	if (now < t->due)
		return -EAGAIN;
	if (check_uplink_wait(t, now)) {
		t->waits_for = refusal->reason = URXE_OFFLOAD_UPLINK;
		return -EAGAIN;
	}
	if (!drained) {
		t->waits_for = refusal->reason = URXE_OFFLOAD_REQUESTS;
		return -EAGAIN;
	}
	rc = urxe_offload_take_over(adapter.dev, now, t->tries >= TAKE_OVER_PATIENT, refusal);
	if (!rc) {
		*t = (struct adapter_take_over){0};
		return 0;
	}
	if (rc != -EAGAIN) {
		*t = (struct adapter_take_over){.takers = t->takers};
		return rc;
	}
	t->tries++;
	t->waits_for = refusal->reason;
	t->due = next_try(now);
	return rc;
}

/* After an abandoned take-over: the HCA keeps its queue pairs, and the engine gets the stopped ones
 * that have their receive requests back. But a new take-over, if one has begun, gets these. */
static void keep_queue_pairs(void)
{
	const bool drained = hca_drain(adapter.hca.hca);

	if (drained && !adapter.hca.take_over.takers)
		urxe_offload_keep(adapter.dev);
	adapter.hca.qps_stopped = !drained || urxe_offload_stopped(adapter.dev);
	uplink_qpns_update();
}

void adapter_hca_abandon(enum hca_taker taker)
{
	struct adapter_take_over *t = &adapter.hca.take_over;

	t->takers &= (uint8_t)~taker;
	if (t->takers || !adapter.hca.hca)
		return;
	*t = (struct adapter_take_over){0};
	keep_queue_pairs();
}

void adapter_hca_finish(void)
{
	if (adapter.hca.qps_stopped)
		keep_queue_pairs();
}

/* --- An HCA that goes (URXE_HCA_GONE). */

/* Releases adapter.lock for 1 ms, and then runs the engine. The caller is the engine thread, and
 * the engine's own queue pairs depend on it during the take-over. */
static void wait_for_hca(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	adapter_unlock();
	nanosleep(&pause, NULL);
	adapter_claim();
	engine_run(clock_now());
}

/* Moves to the error state the queue pairs that only the HCA could execute (number_unknown): the
 * HCA goes, and the engine can then take over the others. */
static void fail_numbers_unknown(void)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;
	const struct qp *qp;
	uint32_t at = 0;

	while ((qp = next_number_unknown(&at))) {
		urxe_qp_query(qp->qp, &attr, &init);
		if (urxe_qp_offloaded(qp->qp) && attr.state != URXE_QPS_ERR)
			urxe_offload_qp_event(adapter.dev, qp->qpn, URXE_ASYNC_QP_FATAL);
	}
}

/* One attempt of adapter_hca_take_over. If the HCA goes, first fails the queue pairs that the
 * engine cannot take over; each attempt does so, because the program may have created more. */
static int try_take_over(struct urxe_offload_refusal *refusal)
{
	if (is_hca_withdrawn())
		fail_numbers_unknown();
	return adapter_hca_take_over(TAKER_GONE, refusal);
}

/* Has the engine take over the queue pairs of an HCA that goes, in TAKE_OVER_NS at most: peers that
 * never answer must not delay the end of the HCA. True: the HCA executes no queue pair any more. */
static bool take_over_queue_pairs(void)
{
	const uint64_t end = clock_monotonic() + TAKE_OVER_NS;
	struct urxe_offload_refusal refusal;
	int rc;

	while ((rc = try_take_over(&refusal)) == -EAGAIN && clock_monotonic() < end)
		wait_for_hca();
	if (!adapter.hca.hca || rc == -EIO)
		return false;
	if (rc == -EOPNOTSUPP)
		log_warning("the engine cannot take over from the HCA: %s (qp %#x)",
			    adapter_hca_refusal(&refusal), refusal.qpn);
	else if (rc)
		log_warning("the engine cannot take over from the HCA: %s",
			    adapter_hca_refusal(&refusal));
	else
		log_info("the engine goes on with the HCA's queue pairs");
	return !rc;
}

static bool is_alive(void)
{
	return adapter.hca.hca && !hca_is_dead(adapter.hca.hca);
}

static void close_old_hca(void)
{
	struct hca *old = adapter_hca_release();

	if (!old)
		return;
	log_info("the HCA has gone");
	adapter_unlock();
	hca_close(old);
	adapter_claim();
}

/* Abandons the take-over, and keeps the HCA: its port is active again, or may be so before the
 * queue pairs have used up their retries. */
static void keep_hca(bool down)
{
	adapter_hca_abandon(TAKER_GONE);
	adapter.hca.handled_down = down;
	engine_wake_for_work();
	adapter_publish();
}

void adapter_hca_renew(void)
{
	const struct vnic_attach_hca wanted = adapter.welcome.port.hca;
	const bool down = wants_take_over(&wanted);
	const bool same = wanted.generation == adapter.hca.generation;
	const bool changed = !same || down != adapter.hca.handled_down;
	bool taken = false;

	if (is_alive() && settings_engine_takes_over() && (down || !same))
		taken = take_over_queue_pairs();
	if (is_alive() && same && !taken) {
		keep_hca(down);
		return;
	}
	close_old_hca();
	/* The HCA has died. The engine thread opens an HCA again when the daemon names one. */
	if (!changed && !is_time_to_open())
		return;
	if (changed)
		adapter.hca.retry = (struct hca_retry){0};
	adapter.hca.generation = wanted.generation;
	adapter.hca.handled_down = down;
	if (wanted.name[0] && !down && settings_hca_way() != HCA_WAY_ENGINE)
		open_hca(&wanted);
}
