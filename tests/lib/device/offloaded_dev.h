/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An engine whose HCA is the provider double of fake_hca.h, and what the engine tells its owner.
 * One at a time. For cmocka tests.
 */
#ifndef URXE_TESTS_LIB_OFFLOADED_DEV_H
#define URXE_TESTS_LIB_OFFLOADED_DEV_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <hca/hca.h>
#include <rxe/rxe.h>

#define OFFLOADED_PD  7u
#define OFFLOADED_WCS 64

struct offloaded_dev {
	pthread_mutex_t lock; /* of the engine and the HCA, for tests with threads */
	struct urxe_dev *dev;
	struct hca *hca; /* NULL: the test has closed it */
	struct urxe_cq *cq;
	struct urxe_qp *qp; /* the last one */
	bool takes;         /* the HCA executes connections */
	bool cq_full;       /* the owner's CQ takes no completion */
	/* What the engine has told. */
	struct urxe_wc wcs[OFFLOADED_WCS];
	uint32_t n;                  /* completions; the last ones are in `wcs` */
	uint32_t flushed_before_end; /* flush completions while the HCA had a queue pair */
	uint32_t comp_events;
	uint32_t asyncs;
	enum urxe_async last_async;
	uint32_t before_async; /* completions before the last asynchronous event */
};
extern struct offloaded_dev offloaded;
extern const struct hca_owner offloaded_owner;
/* Its source GID is the double's only one. */
extern const struct urxe_path offloaded_path;

/* Resets the double as well. */
void offloaded_open(void);
/* Requires that every object of the HCA ends with the engine's, or when the HCA goes. */
void offloaded_close(void);

/* Sets offloaded.qp, of OFFLOADED_PD. The result of urxe_qp_create(). */
int offloaded_try_qp(uint8_t type, uint32_t max_inline, struct urxe_rq *srq);
int offloaded_modify(enum urxe_qp_state to, uint32_t mask);
void offloaded_connect_rc(void);
void offloaded_connect_ud(void);

#endif
