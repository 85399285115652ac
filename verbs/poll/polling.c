/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "poll/polling.h"

#include "adapter/adapter.h"
#include "engine/clock.h"
#include "objects/uverbs_file.h"
#include "poll/engine_run.h"
#include "poll/engine_wake.h"
#include "queues/verbs_cq.h"
#include <rxe/offload.h>

/*
 * Maximum of runs of the engine in the program's thread while frames keep coming; then the engine
 * thread takes over.
 */
#define ROUNDS 8

/* While the HCA executes all queue pairs, each 16th empty poll runs the engine; the others only
 * take the HCA's completions. Of the polls that find completions, each 16th takes the HCA's. */
#define HCA_LOOKS 16

_Static_assert(POLL_DETECT_LOST_NS == POLL_GRANT_NS / 2, "see poll_detect.h");

struct polling adapter_polling;

static struct polling *const polling = &adapter_polling;

static void mask_interrupts(void)
{
	if (!polling->irq_on)
		return;
	vnic_driver_irq_mask(adapter.nic);
	if (adapter.inbox)
		vnic_inbox_irq_mask(adapter.inbox);
	if (adapter.uplink)
		packet_group_irq_mask(adapter.uplink);
	polling->irq_on = false;
}

/* Unmasks the interrupts of vNIC, inbox and direct uplink. True: frames wait already, or transmit
 * buffers are free, for which no interrupt comes. While the engine may not run: no effect, false.
 */
static bool unmask_interrupts(void)
{
	bool waiting;

	if (!adapter_running())
		return false;
	/* Without a daemon the NIC's interrupt stays masked: frames that wait in the NIC's rings
	 * would wake the engine thread again and again. */
	waiting = adapter_connected() && vnic_driver_irq_unmask(adapter.nic);
	if (adapter.inbox)
		waiting |= vnic_inbox_irq_unmask(adapter.inbox);
	if (adapter.uplink)
		waiting |= packet_group_irq_unmask(adapter.uplink);
	polling->irq_on = true;
	return waiting;
}

bool polling_event(enum poll_event event)
{
	const struct poll_step step = poll_step(polling->state, event);

	polling->state = step.next;
	if (step.next != POLL_PROGRAM)
		polling->grant_until = 0;
	if (step.action == POLL_MASK)
		mask_interrupts();
	if (step.action != POLL_UNMASK || !unmask_interrupts())
		return false;
	polling_event(POLL_FRAMES);
	return true;
}

static bool hca_executes_all(void)
{
	return adapter.hca.hca && urxe_offload_all(adapter.dev);
}

/* Grants are not long for programs without the hooks of poll/recv_hook.h: their receives reach the
 * HCA only when the engine runs. */
bool polling_grant_is_long(void)
{
	return hca_executes_all() && !adapter.hca.unhooked;
}

static void set_grant(uint64_t now, uint64_t length)
{
	/* No full barrier, because most polls come here: the engine thread may see the end late. */
	atomic_store_explicit(&polling->grant_ns, length, memory_order_relaxed);
	atomic_store_explicit(&polling->grant_until, now + length, memory_order_relaxed);
}

void polling_shorten_grant(uint64_t now)
{
	if (polling->grant_until > now + POLL_GRANT_NS)
		set_grant(now, POLL_GRANT_NS);
}

static void take_grant(uint64_t now)
{
	/* In POLL_PROGRAM the event has no effect. */
	if (polling->state != POLL_PROGRAM)
		polling_event(POLL_EMPTY);
	polling->grants++;
	set_grant(now, polling_grant_is_long() ? adapter_thread.look : POLL_GRANT_NS);
	engine_wake_for_grant(now);
}

static void return_grant(void)
{
	bool waiting = polling_event(POLL_PAUSE);

	tx_send_ack(&adapter.tx);
	/* Stops when a completion event is due: this thread first has to release the lock. */
	for (unsigned int i = 0; i < ROUNDS && waiting && !adapter.due_events.n; i++) {
		engine_run(clock_now());
		waiting = polling_event(POLL_DRAINED);
	}
	if (waiting)
		engine_wake();
	else
		engine_wake_for_work();
}

uint64_t polling_entered(uint64_t now)
{
	return poll_detect_end(&polling->detect, now);
}

void polling_posted(uint64_t away)
{
	delayed_ack_posted(&polling->delayed_ack, away);
}

static bool is_time_for_hca(void)
{
	uint32_t n = atomic_load_explicit(&polling->found_polls, memory_order_relaxed) + 1;

	if (!atomic_load_explicit(&adapter.hca_open, memory_order_relaxed))
		return false;
	atomic_store_explicit(&polling->found_polls, n, memory_order_relaxed);
	return n % HCA_LOOKS == 0;
}

static void look_at_hca(uint64_t now)
{
	if (!adapter_trylock())
		return;
	if (adapter.hca.hca) {
		engine_poll_hca(now);
		engine_wake_for_work();
	}
	adapter_unlock();
}

void polling_found(uint64_t now)
{
	if (is_time_for_hca()) {
		look_at_hca(now);
		now = clock_now();
	}
	/* Without the lock the program keeps the grant, which ends by itself. */
	if (poll_detect_expected(&polling->detect) && adapter_trylock()) {
		if (adapter.dev && polling->state == POLL_PROGRAM)
			return_grant();
		adapter_unlock();
	}
	/* `now` may be too early: the thread may have lost its processor during the poll. */
	if (poll_detect_doubted(&polling->detect))
		now = clock_now();
	poll_detect_begin(&polling->detect, now);
}

/* Whether the program probably waits for an event next: it has armed the CQ, and polls it once more
 * before it sleeps. */
static bool is_last_poll(const struct cq *cq)
{
	return cq && cq->armed;
}

/*
 * Whether this poll takes only the HCA's completions. Most polls do so while the HCA executes all
 * queue pairs: a run of the engine, with NIC, inbox and deadlines, takes longer.
 */
static bool looks_at_hca_only(void)
{
	return hca_executes_all() && ++polling->hca_looks % HCA_LOOKS;
}

static void run_engine(uint64_t now)
{
	if (looks_at_hca_only()) {
		engine_poll_hca(now);
		return;
	}
	if (tx_delays_ack(&adapter.tx))
		delayed_ack_missed(&polling->delayed_ack, false);
	if (polling->state == POLL_PROGRAM && delayed_ack_allowed(&polling->delayed_ack))
		engine_poll(now);
	else
		engine_run(now);
}

bool polling_empty(const struct uverbs_file *file, uint32_t handle, uint64_t *now)
{
	const struct cq *cq;
	uint32_t doorbells;
	bool found;

	polling_entered(*now);
	/* Another thread runs the engine, or waits for the lock: the poll does not wait. */
	if (!adapter_trylock())
		return false;
	if (!adapter.dev || (!adapter_running() && !adapter.hca.hca)) {
		adapter_unlock();
		return false;
	}
	cq = (struct cq *)handle_find(&file->handles, OBJECT_CQ, handle);
	if (!is_last_poll(cq))
		take_grant(*now);
	adapter.hca.polled = cq ? cq->cq : NULL;
	doorbells = vnic_driver_tx_doorbells(adapter.nic);
	run_engine(*now);
	adapter.hca.polled = NULL;
	if (polling->state == POLL_PROGRAM && is_last_poll(cq))
		return_grant();
	engine_wake_for_work();
	if (vnic_driver_tx_doorbells(adapter.nic) != doorbells)
		*now = clock_now();
	found = !cq || queue_producer(&cq->ring) != queue_consumer(&cq->ring);
	adapter_unlock();
	return found;
}
