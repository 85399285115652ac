/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs of an engine whose requests a provider double executes, for tests of verbs/hca. */
#ifndef URXE_TEST_HCA_QUEUES_H
#define URXE_TEST_HCA_QUEUES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <hca/hca.h>
#include <rxe/rxe.h>

#include "fake_hca.h"
#include "offloaded_dev.h"

static struct offloaded_dev *const f = &offloaded;

static inline int setup(void **state)
{
	(void)state;
	offloaded_open();
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	offloaded_close();
	return 0;
}

static inline void make_qp(uint8_t type, uint32_t max_inline, struct urxe_rq *srq)
{
	assert_int_equal(offloaded_try_qp(type, max_inline, srq), 0);
	assert_int_equal(urxe_qp_qpn(f->qp), fake_hca.last_qp->ibv.qp_num);
}

static inline void send_some(uint32_t n, uint32_t flags)
{
	static const char text[] = "inline";

	for (uint32_t i = 0; i < n; i++) {
		const struct urxe_send_wr wr = {
			.wr_id = 100 + i,
			.opcode = URXE_WR_SEND,
			.flags = flags | URXE_SEND_SIGNALED,
			.inline_data = text,
			.inline_len = sizeof(text),
			.path = &offloaded_path,
			.remote_qpn = 0x55,
		};

		assert_int_equal(urxe_post_send(f->qp, &wr), 0);
	}
	urxe_qp_execute(f->qp, 1);
}

static inline void receive_some(struct urxe_rq *rq, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct urxe_recv_wr wr = {.wr_id = 200 + i};

		assert_int_equal(urxe_post_recv(rq, &wr), 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
