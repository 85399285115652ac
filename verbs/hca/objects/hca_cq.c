/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "hca_cq.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "hca/hca_device.h"
#include "hca_qp.h"
#include "hca_srq.h"
#include "wait.h"
#include "wr.h"

#define CAPACITY_MIN 255u

/* Completions that one ibv_poll_cq() takes, and such calls for a CQ before the next CQ's turn. */
#define BATCH  16
#define ROUNDS 8

/* One of so many successive calls of hca_poll_cq() polls all CQs. */
#define SINGLE_POLLS 16

/* Time between two checks whether another thread still resizes a CQ, ns. */
#define RESIZE_PAUSE_NS 50000

int hca_cq_create(void *ctx, struct urxe_cq *engine_cq, void **out)
{
	struct hca *hca = ctx;
	struct hca_cq *cq = calloc(1, sizeof(*cq));
	struct hca_wait wait;
	int rc = 0;

	if (!cq)
		return -ENOMEM;
	wait = hca_begin_wait(hca);
	cq->ibv = hca->verbs->create_cq(hca->context, CAPACITY_MIN, cq, hca->channel, 0);
	if (!cq->ibv)
		rc = hca_verbs_null_error();
	hca_end_wait(hca, &wait);
	if (rc) {
		free(cq);
		return rc;
	}
	cq->hca = hca;
	cq->cq = engine_cq;
	cq->capacity = CAPACITY_MIN;
	*out = cq;
	return 0;
}

static void destroy_ibv_cq(struct hca_destruction *destruction)
{
	const struct hca_cq *cq = HCA_OBJECT_OF(destruction, struct hca_cq);

	cq->hca->verbs->destroy_cq(cq->ibv);
}

static void free_cq(struct hca_destruction *destruction)
{
	free(HCA_OBJECT_OF(destruction, struct hca_cq));
}

static void end_cq(struct hca_cq *cq)
{
	cq->destruction = (struct hca_destruction){.call = destroy_ibv_cq, .finish = free_cq};
	hca_destroy_object(cq->hca, &cq->destruction);
}

void hca_cq_get(struct hca_cq *cq)
{
	cq->users++;
}

void hca_cq_put(struct hca_cq *cq)
{
	if (!--cq->users && !cq->cq)
		end_cq(cq);
}

/* The engine has destroyed its CQ: destroys the HCA's CQ, now or, if it still has users, after the
 * last of them (hca_cq_put). Users are then queue pairs whose creation or destruction has not
 * ended, and resizes. */
void hca_cq_destroy(void *hca_cq)
{
	struct hca_cq *cq = hca_cq;

	if (cq->busy)
		LIST_REMOVE(cq, busy_link);
	cq->busy = false;
	cq->cq = NULL;
	if (!cq->users)
		end_cq(cq);
}

void hca_cq_arm(void *hca_cq, bool solicited_only)
{
	struct hca_cq *cq = hca_cq;

	ibv_req_notify_cq(cq->ibv, solicited_only);
}

static uint32_t capacity_of(const struct hca_cq *cq)
{
	return __atomic_load_n(&cq->capacity, __ATOMIC_RELAXED);
}

/* Returns the capacity to which the CQ is to grow: doubled until it is `needed` or more, so that
 * many queue pairs need few calls, but at most the HCA's maximum. */
static uint32_t next_capacity(const struct hca_cq *cq, uint32_t needed)
{
	uint32_t most = (uint32_t)cq->hca->attr.max_cqe, capacity = capacity_of(cq);

	while (capacity < needed)
		capacity = 2 * capacity + 1;
	return capacity < most ? capacity : most;
}

static int resize(struct hca_cq *cq, uint32_t needed)
{
	const uint32_t capacity = next_capacity(cq, needed);
	int rc;

	if (capacity_of(cq) >= needed)
		return 0;
	rc = cq->hca->verbs->resize_cq(cq->ibv, (int)capacity);
	if (rc)
		return hca_verbs_error(rc);
	__atomic_store_n(&cq->capacity, capacity, __ATOMIC_RELAXED);
	return 0;
}

/* Takes hca->resizing. 0; -EIO: this is a child that a signal handler has forked during the wait.
 * Does not sleep in the mutex, because no thread of such a child would unlock the mutex. */
static int begin_resize(struct hca *hca)
{
	const struct timespec pause = {.tv_nsec = RESIZE_PAUSE_NS};

	while (pthread_mutex_trylock(&hca->resizing)) {
		if (hca->abandoned)
			return -EIO;
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* Resizes the CQ if cq->needed exceeds its capacity. Meanwhile `resizes` keeps other threads from
 * polling the CQ: providers hold their lock of a CQ while they resize it, so a poll would wait. */
int hca_cq_grow(struct hca_cq *cq)
{
	const uint32_t needed = cq->needed;
	struct hca *hca = cq->hca;
	struct hca_wait wait;
	int rc;

	if (needed <= capacity_of(cq))
		return 0;
	hca_cq_get(cq);
	cq->resizes++;
	wait = hca_begin_wait(hca);
	rc = begin_resize(hca);
	if (!rc) {
		rc = resize(cq, needed);
		pthread_mutex_unlock(&hca->resizing);
	}
	hca_end_wait(hca, &wait);
	cq->resizes--;
	hca_cq_put(cq);
	return rc;
}

int hca_cq_await_resize(const struct hca_cq *cq)
{
	const struct timespec pause = {.tv_nsec = RESIZE_PAUSE_NS};
	struct hca *hca = cq->hca;
	struct hca_wait wait;

	while (hca->may_unlock && cq->resizes) {
		if (hca->abandoned)
			return -EIO;
		wait = hca_begin_wait(hca);
		nanosleep(&pause, NULL);
		hca_end_wait(hca, &wait);
	}
	return 0;
}

int hca_cq_count(struct hca_cq *cq, uint32_t n)
{
	const uint32_t needed = cq->needed + n;

	if (needed < n || needed > (uint32_t)cq->hca->attr.max_cqe)
		return -ENOMEM;
	cq->needed = needed;
	return 0;
}

bool hca_cq_is_full(const struct hca_cq *cq)
{
	return cq->needed > capacity_of(cq);
}

int hca_cq_reserve(struct hca_cq *cq, uint32_t n, uint32_t *reserved)
{
	int rc = hca_cq_count(cq, n);

	if (rc)
		return rc;
	*reserved = n;
	return hca_cq_grow(cq);
}

void hca_cq_release(struct hca_cq *cq, uint32_t n)
{
	cq->needed -= n;
}

static void make_busy(struct hca_cq *cq)
{
	if (cq->busy)
		return;
	cq->busy = true;
	LIST_INSERT_HEAD(&cq->hca->busy_cqs, cq, busy_link);
}

/* cq->cq is NULL if the HCA was detached while a queue pair was being made. Then the CQ is not
 * polled, and ends with the queue pair. */
void hca_cq_expect(struct hca_cq *cq, uint32_t n)
{
	cq->outstanding += n;
	if (n && cq->cq)
		make_busy(cq);
}

/* During a resize no thread polls the CQ, so hca_cqs_catch_up() passes the event afterwards. */
void hca_cq_event(struct hca_cq *cq)
{
	if (!cq->cq)
		return;
	cq->has_event = cq->resizes;
	if (cq->has_event) {
		cq->hca->skipped = true;
		make_busy(cq);
	} else {
		urxe_offload_cq_event(cq->cq);
	}
}

/* --- Completions. */

static void complete_of_srq(struct hca_srq *srq, const struct ibv_wc *wc)
{
	struct urxe_wc out = {.qpn = wc->qp_num};

	if (!(wc->wr_id & WORK_ID_RECV) || !hca_srq_received(srq, (uint32_t)wc->wr_id, &out.wr_id))
		return;
	hca_wr_completion(&out, wc);
	srq->hca->completions++;
	urxe_offload_srq_complete(srq->srq, &out);
}

static void complete_of_qp(struct hca_qp *qp, const struct ibv_wc *wc)
{
	struct urxe_wc out = {.qpn = hca_qp_number(qp)};
	const bool recv = wc->wr_id & WORK_ID_RECV;

	if (recv ? !hca_qp_received(qp, (uint32_t)wc->wr_id, &out.wr_id) : !hca_qp_sent(qp))
		return;
	hca_wr_completion(&out, wc);
	qp->hca->completions++;
	urxe_offload_complete(qp->hca->dev, &out, recv);
}

/* Passes a completion to the engine. Ignores it if its wr_id names no queue: the queue was
 * destroyed or reset, or the HCA has given a wrong wr_id. */
static void complete(struct hca *hca, const struct ibv_wc *wc)
{
	bool shared;
	void *queue = work_ids_find(&hca->work_ids, work_id_queue(wc->wr_id), &shared);

	if (!queue)
		return;
	if (shared)
		complete_of_srq(queue, wc);
	else
		complete_of_qp(queue, wc);
}

/* Passes up to BATCH * ROUNDS completions of the CQ to the engine. True: more may wait. */
static bool poll_cq(struct hca_cq *cq)
{
	struct ibv_wc wcs[BATCH];
	struct hca *hca = cq->hca;
	unsigned int rounds = 0;
	int n;

	do {
		n = ibv_poll_cq(cq->ibv, BATCH, wcs);
		for (int i = 0; i < n && i < BATCH; i++)
			complete(hca, &wcs[i]);
	} while (n == BATCH && ++rounds < ROUNDS);
	if (n < 0)
		hca->dead = true;
	return n == BATCH;
}

/*
 * Polls a CQ of busy_cqs, unless a thread resizes it, and removes it from that list if it expects
 * no more completions. True: more may wait. While the engine completes requests, it may post
 * others, which adds CQs at the head of the list. Only this function and hca_cq_destroy() remove
 * CQs from the list.
 */
static bool poll_busy(struct hca_cq *cq)
{
	bool more;

	if (cq->resizes) {
		cq->hca->skipped = true;
		return false;
	}
	more = poll_cq(cq);
	/* Completions of destroyed queue pairs do not count as outstanding. The CQ stays in the
	 * list until they are polled, because they would fill it. */
	if (!more && !cq->outstanding && !cq->has_event) {
		LIST_REMOVE(cq, busy_link);
		cq->busy = false;
	}
	return more;
}

bool hca_poll(struct hca *hca)
{
	struct hca_cq *cq = LIST_FIRST(&hca->busy_cqs);
	bool more = false;

	hca->single_polls = 0;
	while (cq && !hca->dead) {
		struct hca_cq *next = LIST_NEXT(cq, busy_link);

		more |= poll_busy(cq);
		cq = next;
	}
	return more;
}

bool hca_cqs_catch_up(struct hca *hca)
{
	struct hca_cq *cq, *next;
	bool more = false;

	if (!hca->skipped)
		return false;
	hca->skipped = false;
	for (cq = LIST_FIRST(&hca->busy_cqs); cq; cq = next) {
		next = LIST_NEXT(cq, busy_link);
		more |= poll_busy(cq);
		if (cq->has_event)
			hca_cq_event(cq);
	}
	return more;
}

bool hca_cq_is_resizing(const void *hca_cq)
{
	return hca_cq && ((const struct hca_cq *)hca_cq)->resizes;
}

bool hca_poll_cq(struct hca *hca, void *hca_cq)
{
	struct hca_cq *cq = hca_cq;

	if (!cq || ++hca->single_polls >= SINGLE_POLLS)
		return hca_poll(hca);
	return cq->busy && !hca->dead && poll_busy(cq);
}

/* Arms the busy CQs before it polls them: so a completion that comes after the poll causes an
 * event. */
bool hca_arm(struct hca *hca)
{
	const uint64_t before = hca->completions;
	const struct hca_cq *cq;

	LIST_FOREACH(cq, &hca->busy_cqs, busy_link)
	ibv_req_notify_cq(cq->ibv, 0);
	return hca_poll(hca) || hca->completions != before;
}

uint64_t hca_completions(const struct hca *hca)
{
	return hca->completions;
}
