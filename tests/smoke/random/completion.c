/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "completion.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "queue_pair.h"
#include "region.h"

#define LIMIT           120 /* s, for a busy machine */
#define MARKER_RECEIVES 8
#define NOTES           256

enum kind { SEND, RECEIVE, EVENT, KINDS };

/* A completion or event. The order counts among those of one kind of one queue pair. */
static struct note {
	int qp;
	enum kind kind;
	char text[160];
} notes[NOTES];
static uint32_t note_count;
/* The marker's messages from the peer, and its events, for which nobody has waited yet. */
static uint32_t markers_received, marker_events;

static struct note *add_note(int qp, enum kind kind)
{
	struct note *note = &notes[note_count];

	if (note_count++ == NOTES)
		errx(1, "an operation has too many completions");
	note->qp = qp;
	note->kind = kind;
	return note;
}

static void log_notes(struct side *side)
{
	for (int qp = 0; qp < QPS; qp++)
		for (enum kind kind = SEND; kind < KINDS; kind++)
			for (uint32_t i = 0; i < note_count; i++)
				if (notes[i].qp == qp && notes[i].kind == kind)
					side_log(side, "qp %d: %s", qp, notes[i].text);
	note_count = 0;
}

/* --- Completions. */

static void post_marker_receive(struct side *side)
{
	struct ibv_recv_wr *bad, wr = {.wr_id = COMPLETION_RECEIVE};

	errno = ibv_post_recv(side->qps[QP_MARKER], &wr, &bad);
	if (errno)
		err(1, "ibv_post_recv");
}

static void take_marker(struct side *side, const struct ibv_wc *wc)
{
	if (wc->status)
		errx(1, "the marker's message: %s", ibv_wc_status_str(wc->status));
	if (wc->wr_id & COMPLETION_RECEIVE) {
		markers_received++;
		post_marker_receive(side);
	} else {
		side->sends[QP_MARKER]--;
	}
}

static void describe_receive(const struct side *side, int qp, const struct ibv_wc *wc,
			     struct note *note)
{
	uint32_t imm_data = wc->wc_flags & IBV_WC_WITH_IMM ? wc->imm_data : 0;
	int source = side_qp_type(qp) == IBV_QPT_UD ? side_find_qp(&side->peer, wc->src_qp) : -1;

	snprintf(note->text, sizeof(note->text),
		 "receive %u: opcode %d, flags %#x, %u bytes, immediate %u, source %d",
		 (uint32_t)wc->wr_id, wc->opcode, wc->wc_flags, wc->byte_len, imm_data, source);
}

static void describe_send(const struct ibv_wc *wc, struct note *note)
{
	snprintf(note->text, sizeof(note->text), "send %u: opcode %d, flags %#x, %u bytes",
		 (uint32_t)wc->wr_id, wc->opcode, wc->wc_flags,
		 wc->opcode == IBV_WC_RDMA_READ ? wc->byte_len : 0);
}

static void take_completion(struct side *side, const struct ibv_wc *wc)
{
	bool receive = wc->wr_id & COMPLETION_RECEIVE;
	int qp = side_find_qp(&side->own, wc->qp_num);
	struct note *note;

	if (qp < 0)
		errx(1, "a completion of the unknown queue pair %#x", wc->qp_num);
	if (qp == QP_MARKER) {
		take_marker(side, wc);
		return;
	}
	note = add_note(qp, receive ? RECEIVE : SEND);
	(receive ? side->own.receives : side->sends)[qp]--;
	if (wc->status) {
		side->own.failed = true;
		region_unbind_windows(side, qp);
		snprintf(note->text, sizeof(note->text), "%s %u: status %d",
			 receive ? "receive" : "send", (uint32_t)wc->wr_id, wc->status);
	} else if (receive) {
		if (wc->wc_flags & IBV_WC_WITH_INV)
			region_invalidate_window(side, wc->invalidated_rkey);
		describe_receive(side, qp, wc, note);
	} else {
		describe_send(wc, note);
	}
}

static bool poll_completions(struct side *side)
{
	struct ibv_wc wcs[16];
	int n = ibv_poll_cq(side->cq, 16, wcs);

	if (n < 0)
		errx(1, "ibv_poll_cq");
	for (int i = 0; i < n; i++)
		take_completion(side, &wcs[i]);
	return n;
}

/* --- Events. */

static void take_event(struct side *side, const struct ibv_async_event *event)
{
	int qp = -1;
	struct note *note;

	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		qp = side_find_qp(&side->own, event->element.qp->qp_num);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED: qp = QP_RC_SRQ; break;
	default: errx(1, "the event %s", ibv_event_type_str(event->event_type));
	}
	if (qp == QP_MARKER) {
		marker_events++;
		return;
	}
	note = add_note(qp, EVENT);
	snprintf(note->text, sizeof(note->text), "event %s", ibv_event_type_str(event->event_type));
}

static void take_events(struct side *side)
{
	struct ibv_async_event event;

	while (!ibv_get_async_event(side->context, &event)) {
		take_event(side, &event);
		ibv_ack_async_event(&event);
	}
}

/* --- Waiting. */

static void fail_late(const struct side *side)
{
	for (int i = 0; i < ALL_QPS; i++)
		warnx("side %d, qp %d: state %d, without a completion: %u sends, %u receives",
		      side->number, i, queue_pair_state(side, i), side->sends[i],
		      i < QPS ? side->own.receives[i] : 0);
	errx(1, "side %d: %u marker messages and %u marker events arrived, and nothing in %d s",
	     side->number, markers_received, marker_events, LIMIT);
}

static void await(struct side *side, bool (*ready)(const struct side *side))
{
	time_t end = time(NULL) + LIMIT;

	while (poll_completions(side) || !ready(side)) {
		take_events(side);
		if (time(NULL) > end)
			fail_late(side);
		side_check_peer(side);
		/* On a busy machine the peer has to run. */
		sched_yield();
	}
}

static bool sends_completed(const struct side *side)
{
	for (int i = 0; i < ALL_QPS; i++)
		if (side->sends[i])
			return false;
	return true;
}

static bool marker_arrived(const struct side *side)
{
	return !side->sends[QP_MARKER] && markers_received;
}

static bool marker_drained(const struct side *side)
{
	(void)side;
	return marker_events;
}

/* A queue pair in state ERR completes all requests. */
static bool flushed(const struct side *side)
{
	for (int i = 0; i < QPS; i++)
		if ((side->sends[i] || (side->own.receives[i] && i != QP_RC_SRQ)) &&
		    queue_pair_state(side, i) == IBV_QPS_ERR)
			return false;
	return true;
}

/* --- The marker: what it causes comes after all that the operation has caused. */

void completion_start(struct side *side)
{
	queue_pair_connect(side, QP_MARKER);
	for (int i = 0; i < MARKER_RECEIVES; i++)
		post_marker_receive(side);
	side_exchange(side);
}

static void exchange_messages(struct side *side)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND};

	errno = ibv_post_send(side->qps[QP_MARKER], &wr, &bad);
	if (errno)
		err(1, "ibv_post_send");
	side->sends[QP_MARKER]++;
	await(side, marker_arrived);
	markers_received--;
}

/* The device reports its events in order. */
static void cause_event(struct side *side)
{
	struct ibv_qp_attr drained = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_qp_attr ready = {.qp_state = IBV_QPS_RTS};

	queue_pair_modify(side, QP_MARKER, &drained, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
	await(side, marker_drained);
	marker_events--;
	queue_pair_modify(side, QP_MARKER, &ready, IBV_QP_STATE);
}

static void log_states(struct side *side)
{
	enum ibv_qp_state states[QPS];

	for (int i = 0; i < QPS; i++) {
		states[i] = queue_pair_state(side, i);
		side->own.broken[i] |= states[i] != IBV_QPS_RTS;
	}
	side_log(side, "states %d %d %d %d %d", states[0], states[1], states[2], states[3],
		 states[4]);
}

void completion_await_sends(struct side *side)
{
	await(side, sends_completed);
}

void completion_settle(struct side *side)
{
	completion_await_sends(side);
	exchange_messages(side);
	cause_event(side);
	await(side, flushed);
	log_notes(side);
	log_states(side);
	side_exchange(side);
	/* A failed request leaves its memory undefined. */
	if (side->own.failed || side->peer.failed)
		region_fill_memory(side);
	else
		side_log(side, "memory %016" PRIx64, region_hash_memory(side));
	side->own.failed = false;
}
