/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What was posted, and what came of it. Whatever happens, a request completes
 * at most once, on its own queue, in order; only successful sends that asked for
 * no completion leave without one.
 */
#ifndef URXE_FUZZ_LEDGER_H
#define URXE_FUZZ_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/types.h>

#define LEDGER_MAX 4096

/* A send queue, or a receive queue that one QP has or many share. */
struct ledger_queue {
	bool send;
	bool shared;     /* its completions come from several QPs, in no common order */
	uint32_t qpn;    /* not of a shared one */
	uint32_t life;   /* entries of earlier lives have vanished with their QP, or in RESET */
	uint32_t posted; /* ever */
	uint32_t next;   /* serial of the oldest that has not completed */
};

struct ledger_entry {
	struct ledger_queue *queue;
	uint32_t life;
	uint32_t serial;
	uint32_t length;
	uint32_t opcode; /* of a send */
	bool signaled;
	bool done;
};

struct ledger {
	struct ledger_entry entry[LEDGER_MAX]; /* by wr_id */
	uint32_t n;
};

/* The wr_id of a request that is about to be posted; undone by ledger_refused. */
uint64_t ledger_post(struct ledger *ledger, struct ledger_queue *queue);
uint64_t ledger_post_send(struct ledger *ledger, struct ledger_queue *queue,
			  const struct urxe_send_wr *wr, bool sq_sig_all, uint32_t length);
/* The newest request was not taken. */
void ledger_refused(struct ledger *ledger);
/* Everything outstanding vanishes without completions. */
void ledger_forget(struct ledger_queue *queue);
/* A new QP: the same, and nothing was ever posted. */
void ledger_restart(struct ledger_queue *queue, uint32_t qpn);
void ledger_complete(struct ledger *ledger, const struct urxe_wc *wc);
/* Nothing is outstanding in a queue that was flushed. */
void ledger_check_flushed(const struct ledger *ledger, const struct ledger_queue *queue);

#endif
