/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "ledger.h"

#include "require.h"

uint64_t ledger_post(struct ledger *ledger, struct ledger_queue *queue)
{
	require(ledger->n < LEDGER_MAX);
	ledger->entry[ledger->n] = (struct ledger_entry){
		.queue = queue,
		.life = queue->life,
		.serial = queue->posted++,
		.signaled = true,
	};
	return ledger->n++;
}

uint64_t ledger_post_send(struct ledger *ledger, struct ledger_queue *queue,
			  const struct urxe_send_wr *wr, bool sq_sig_all, uint32_t length)
{
	uint64_t wr_id = ledger_post(ledger, queue);

	ledger->entry[wr_id].opcode = wr->opcode;
	ledger->entry[wr_id].signaled = sq_sig_all || wr->flags & URXE_SEND_SIGNALED;
	ledger->entry[wr_id].length = length;
	return wr_id;
}

void ledger_refused(struct ledger *ledger)
{
	ledger->entry[--ledger->n].queue->posted--;
}

void ledger_forget(struct ledger_queue *queue)
{
	queue->life++;
	queue->next = queue->posted;
}

void ledger_restart(struct ledger_queue *queue, uint32_t qpn)
{
	queue->life++;
	queue->posted = queue->next = 0;
	queue->qpn = qpn;
}

/* Skips requests without a completion, which must be unsignaled sends. */
static void skip_unsignaled(const struct ledger *ledger, const struct ledger_entry *until)
{
	for (uint32_t i = 0; i < ledger->n; i++) {
		const struct ledger_entry *e = &ledger->entry[i];

		if (e->queue == until->queue && e->life == until->life && !e->done &&
		    e->serial < until->serial)
			require(e->queue->send && !e->signaled);
	}
}

static void check_send_result(const struct ledger_entry *entry, const struct urxe_wc *wc)
{
	static const uint8_t expected[] = {
		[URXE_WR_RDMA_WRITE] = URXE_WC_RDMA_WRITE,
		[URXE_WR_RDMA_WRITE_IMM] = URXE_WC_RDMA_WRITE,
		[URXE_WR_SEND] = URXE_WC_SEND,
		[URXE_WR_SEND_IMM] = URXE_WC_SEND,
		[URXE_WR_RDMA_READ] = URXE_WC_RDMA_READ,
		[URXE_WR_COMPARE_SWAP] = URXE_WC_COMPARE_SWAP,
		[URXE_WR_FETCH_ADD] = URXE_WC_FETCH_ADD,
		[URXE_WR_LOCAL_INV] = URXE_WC_LOCAL_INV,
		[URXE_WR_BIND_MW] = URXE_WC_BIND_MW,
		[URXE_WR_SEND_INV] = URXE_WC_SEND,
		[URXE_WR_FLUSH] = URXE_WC_FLUSH,
		[URXE_WR_ATOMIC_WRITE] = URXE_WC_ATOMIC_WRITE,
	};

	require(entry->signaled);
	require(entry->opcode < sizeof(expected) && wc->opcode == expected[entry->opcode]);
	if (wc->opcode == URXE_WC_RDMA_READ)
		require(wc->byte_len == entry->length);
}

void ledger_complete(struct ledger *ledger, const struct urxe_wc *wc)
{
	struct ledger_entry *entry;
	struct ledger_queue *queue;

	require(wc->wr_id < ledger->n);
	entry = &ledger->entry[wc->wr_id];
	queue = entry->queue;
	require(!entry->done && entry->life == queue->life);
	entry->done = true;
	require(wc->status <= URXE_WC_RNR_RETRY_EXC_ERR);
	if (!wc->status && queue->send)
		check_send_result(entry, wc);
	else if (!wc->status)
		require(wc->opcode == URXE_WC_RECV || wc->opcode == URXE_WC_RECV_RDMA_WITH_IMM);
	if (queue->shared)
		return;
	require(wc->qpn == queue->qpn && entry->serial >= queue->next);
	skip_unsignaled(ledger, entry);
	queue->next = entry->serial + 1;
}

void ledger_check_flushed(const struct ledger *ledger, const struct ledger_queue *queue)
{
	for (uint32_t i = 0; i < ledger->n; i++) {
		const struct ledger_entry *e = &ledger->entry[i];

		if (e->queue == queue && e->life == queue->life)
			require(e->done || (queue->send && !e->signaled));
	}
}
