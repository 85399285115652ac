/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "poll/engine_run.h"

#include <stdbool.h>

#include <hca/hca.h>
#include <rxe/offload.h>
#include <samehost/peer.h>

#include "adapter/adapter.h"
#include "engine/clock.h"
#include "objects/uverbs_file.h"
#include "poll/polling.h"
#include "poll/receiving_member.h"
#include "process/log.h"
#include "queues/publish.h"
#include "queues/verbs_qp.h"
#include "queues/verbs_srq.h"

#define BURST  32 /* most frames in one burst, which the engine handles together */
#define ROUNDS 8  /* most bursts of one run, after which other threads may get the lock */

/* Number of bursts that empties a receive ring of the largest size that vmxnet3 allows. */
#define LAST_ROUNDS 128

/*
 * Sends one frame first: to lay out buffers for a burst takes longer than to send a small frame,
 * and the receiver reads the frame while this thread builds the next ones.
 */
void engine_transmit(uint64_t now)
{
	struct urxe_frame frames[TX_BURST];
	uint32_t wanted = 1;
	bool more, gso;

	if (!adapter_running())
		return;
	gso = tx_has_gso(&adapter.tx);
	urxe_dev_set_gso(adapter.dev, gso);
	more = tx_flush(&adapter.tx, now);
	while (more && urxe_next_deadline(adapter.dev) <= now) {
		uint32_t room = tx_reserve(&adapter.tx, now, frames, wanted);
		uint32_t n = room ? urxe_output(adapter.dev, now, frames, room) : 0;

		more = tx_send(&adapter.tx, now, frames, n) && n && n == room;
		wanted = gso ? TX_BURST : BURST;
	}
	tx_send_ack(&adapter.tx);
}

/*
 * Asks the engine for one frame. If it is the engine's only one and an ACK for the direct uplink,
 * `tx` keeps the ACK. An ACK for the switch enters the NIC's ring without waking the daemon. Sends
 * all other frames as engine_transmit() does.
 */
static void delay_ack(uint64_t now)
{
	struct urxe_frame frame;
	uint32_t n;

	if (!adapter_running() || !tx_flush(&adapter.tx, now) ||
	    urxe_next_deadline(adapter.dev) > now || !tx_reserve(&adapter.tx, now, &frame, 1))
		return;
	urxe_dev_set_gso(adapter.dev, tx_has_gso(&adapter.tx));
	n = urxe_output(adapter.dev, now, &frame, 1);
	if (n && urxe_next_deadline(adapter.dev) > now && tx_keep_ack(&adapter.tx, &frame))
		n = 0;
	vnic_driver_tx_hold(adapter.nic, n && frame.acknowledges);
	tx_send(&adapter.tx, now, &frame, n);
	vnic_driver_tx_hold(adapter.nic, false);
	if (urxe_next_deadline(adapter.dev) <= now || (n && !frame.acknowledges))
		engine_transmit(now);
}

/* Passes frames to the engine. Tells poll_detect if the engine has executed a one-sided request of
 * a peer, which may have changed the memory on which the program spins. */
static void run_input(uint64_t now, const struct urxe_frame *frames, uint32_t n)
{
	const uint64_t *one_sided = &urxe_dev_counters(adapter.dev)->event[URXE_EVENT_ONE_SIDED];
	uint64_t before = *one_sided;

	urxe_input(adapter.dev, now, frames, n);
	if (*one_sided != before)
		poll_detect_note_one_sided(&adapter_polling.detect);
}

static void input_frames(uint64_t now, const struct vnic_frame *buffers, uint32_t n, bool inbox)
{
	struct urxe_frame frames[BURST];
	uint32_t count = 0;

	if (!n)
		return;
	adapter_polling.heard_at = now;
	for (uint32_t i = 0; i < n; i++) {
		if (!tx_convert_received(&adapter.tx, &buffers[i], inbox, &frames[count])) {
			tx_count(&adapter.tx, VNIC_BYPASS_UNREACHED, 1);
			continue;
		}
		if (frames[count].reference.length)
			tx_count(&adapter.tx, VNIC_BYPASS_PULLED, 1);
		count++;
	}
	run_input(now, frames, count);
}

static uint32_t receive_from_switch(uint64_t now)
{
	struct vnic_frame buffers[BURST];
	uint32_t n = adapter_connected() ? vnic_driver_rx(adapter.nic, buffers, BURST) : 0;

	input_frames(now, buffers, n, false);
	vnic_driver_rx_release(adapter.nic, n);
	return n;
}

/* A peer has violated the protocol of this process's inbox: logs and counts that. From now on all
 * frames come by the switch. */
static void abandon_inbox(void)
{
	log_warning("a peer has written to the inbox of this process against its protocol: all "
		    "frames come by the switch now");
	tx_count(&adapter.tx, VNIC_BYPASS_BROKEN, 1);
	adapter.inbox_broken = true;
}

static uint32_t receive_from_inbox(uint64_t now)
{
	struct vnic_frame buffers[BURST];
	uint32_t n;

	if (!adapter.inbox)
		return 0;
	n = vnic_inbox_rx(adapter.inbox, buffers, BURST);
	input_frames(now, buffers, n, true);
	vnic_inbox_rx_release(adapter.inbox, n);
	tx_count(&adapter.tx, VNIC_BYPASS_RECEIVED, n);
	if (vnic_inbox_broken(adapter.inbox) && !adapter.inbox_broken)
		abandon_inbox();
	return n;
}

/* Receives one burst from an interface of the direct uplink, and returns the number of its frames.
 * All go to the engine: the packet sockets' filter accepts only packets to QPNs of this process. If
 * the kernel has joined packets (GRO), the filter checks the first of them. */
static uint32_t receive_from_uplink(uint64_t now)
{
	struct packet_port_frame received[TX_BURST];
	struct urxe_frame frames[TX_BURST];
	uint32_t n = adapter.uplink ? packet_group_rx(adapter.uplink, received, TX_BURST) : 0;

	if (!n)
		return 0;
	adapter_polling.heard_at = now;
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct urxe_frame){
			.data = received[i].data, .len = received[i].len, .from_wire = true};
	receiving_member_note(frames, n, packet_group_rx_member(adapter.uplink));
	run_input(now, frames, n);
	packet_group_release(adapter.uplink);
	tx_count(&adapter.tx, VNIC_BYPASS_UPLINK_RECEIVED, n);
	return n;
}

/*
 * Receives one burst from each interface of the direct uplink: packet_group_rx returns frames of
 * one interface only, and its next call those of the next interface. Returns the number of frames
 * of the largest burst.
 */
static uint32_t receive_from_uplinks(uint64_t now)
{
	uint32_t members = adapter.uplink ? packet_group_size(adapter.uplink) : 0, most = 0, n;

	for (uint32_t i = 0; i < members && (n = receive_from_uplink(now)); i++)
		most = n > most ? n : most;
	return most;
}

/* Receives one burst from the switch, the inbox and each interface of the direct uplink. True: one
 * of them may have more frames. */
static bool receive_bursts(uint64_t now)
{
	uint32_t of_switch = receive_from_switch(now), of_inbox = receive_from_inbox(now);
	uint32_t of_uplink = receive_from_uplinks(now);

	if (adapter_polling.state == POLL_BUSY)
		peers_count_poll(&adapter_peers);
	return of_inbox == BURST || of_switch == BURST || of_uplink >= BURST;
}

/* Hands the HCA the receive requests in the rings of offloaded queue pairs whose context has no
 * hooks (poll/recv_hook.h). */
static void refill_all(void)
{
	struct qp *qp;
	uint32_t at = 0;

	while ((qp = leases_next(&adapter.leases, &at)))
		if (!qp->object.file->post_recv && urxe_qp_offloaded(qp->qp))
			urxe_offload_refill(qp->srq ? qp->srq->recv.rq : qp->recv.rq);
}

/* Passes completions of the HCA to the engine. While a thread of the program polls a CQ, most calls
 * take only those of that CQ. True: more may wait. */
static bool poll_hca(void)
{
	if (!adapter.hca.hca)
		return false;
	if (adapter.hca.unhooked)
		refill_all();
	return hca_poll_cq(adapter.hca.hca,
			   adapter.hca.polled ? urxe_offload_hca_cq(adapter.hca.polled) : NULL);
}

/* Flushes receive requests that were posted, without a doorbell, to QPs in the error state. */
static void flush_qps(void)
{
	struct qp *qp;

	LIST_FOREACH(qp, &adapter.flushing_qps, flushing_link)
	qp_flush(qp);
}

/*
 * Receives, and publishes the completions before any acknowledgement leaves. So a program that
 * polls finds the completion of a message before the peer gets the acknowledgement, also if another
 * thread takes this one's processor in between. Completion events are sent later, without the lock
 * (poll/due_events.h). True: more frames or completions may wait.
 */
static bool receive_all(uint64_t now)
{
	bool more = poll_hca();

	more |= adapter_running() && receive_bursts(now);
	adapter_publish();
	return more;
}

void engine_run(uint64_t now)
{
	bool more = receive_all(now);
	uint32_t rounds = 0;

	engine_transmit(now);
	while (more && ++rounds < ROUNDS) {
		more = receive_all(now);
		engine_transmit(now);
	}
	flush_qps();
	adapter_publish();
}

void engine_poll_hca(uint64_t now)
{
	if (poll_hca()) {
		engine_run(now);
		return;
	}
	flush_qps();
	adapter_publish();
}

void engine_poll(uint64_t now)
{
	if (!poll_hca() && adapter_running() && !receive_bursts(now)) {
		adapter_publish();
		delay_ack(now);
		flush_qps();
		adapter_publish();
	} else {
		engine_run(now);
	}
}

/* Sends the QP's delayed ACKs, and all waiting frames (`waits`): ACKs may be among them because
 * their inbox is full, or be unbuilt because the engine builds none while frames wait. */
void engine_flush_acks(struct qp *qp)
{
	const bool waits = tx_deadline(&adapter.tx) != URXE_NEVER;

	if (!urxe_qp_flush_acks(qp->qp) && !tx_delays_ack(&adapter.tx) && !waits)
		return;
	tx_hurry(&adapter.tx, true);
	engine_transmit(clock_now());
	tx_hurry(&adapter.tx, false);
	adapter_publish();
}

void engine_receive_uplink(uint64_t now)
{
	uint32_t rounds = 0;

	while (receive_from_uplink(now) && ++rounds < LAST_ROUNDS)
		;
	adapter_publish();
}

void engine_receive_last(uint64_t now)
{
	uint32_t rounds = 0;

	while (receive_bursts(now) && ++rounds < LAST_ROUNDS)
		;
	adapter_publish();
}

uint64_t engine_deadline(void)
{
	uint64_t at = tx_deadline(&adapter.tx);

	if (!adapter_running())
		return URXE_NEVER;
	/* While frames wait, engine_transmit() does not ask the engine for more. */
	return at == URXE_NEVER ? urxe_next_deadline(adapter.dev) : at;
}
