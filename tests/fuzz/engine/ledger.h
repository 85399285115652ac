/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Records posted requests and checks their completions. A request must complete at most once, on
 * its own queue and in order. Only unsignaled successful sends leave without a completion.
 */
#ifndef URXE_FUZZ_LEDGER_H
#define URXE_FUZZ_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/types.h>

#define LEDGER_MAX 4096

/* A send queue, a receive queue of a QP, or a shared receive queue. */
struct ledger_queue {
	bool send;
	bool shared;     /* several QPs complete its requests, in no common order */
	uint32_t qpn;    /* unused if shared */
	uint32_t life;   /* incremented by RESET or a new QP, which drop earlier entries */
	uint32_t posted; /* number of all requests */
	uint32_t next;   /* serial number of the oldest outstanding request */
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

/* Records a request before it is posted; returns its wr_id. ledger_refused undoes it. */
uint64_t ledger_post(struct ledger *ledger, struct ledger_queue *queue);
uint64_t ledger_post_send(struct ledger *ledger, struct ledger_queue *queue,
			  const struct urxe_send_wr *wr, bool sq_sig_all, uint32_t length);
/* The engine has refused the newest request. */
void ledger_refused(struct ledger *ledger);
/* All outstanding requests disappear without completions. */
void ledger_forget(struct ledger_queue *queue);
/* A new QP: forgets all requests, and counts from 0. */
void ledger_restart(struct ledger_queue *queue, uint32_t qpn);
void ledger_complete(struct ledger *ledger, const struct urxe_wc *wc);
/* A flushed queue must have no outstanding request. */
void ledger_check_flushed(const struct ledger *ledger, const struct ledger_queue *queue);

#endif
