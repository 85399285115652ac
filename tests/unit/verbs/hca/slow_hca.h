/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A slow HCA for tests: a function of the provider double waits until the test lets it go on, and
 * datagrams of another thread show meanwhile that the lock is free. A test file includes this once.
 */
#ifndef URXE_TESTS_UNIT_VERBS_SLOW_HCA_H
#define URXE_TESTS_UNIT_VERBS_SLOW_HCA_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <hca/hca.h>
#include <rxe/rxe.h>

#include "fake_hca.h"
#include "offloaded_dev.h"
#include "slow_thread.h"

static struct offloaded_dev *const f = &offloaded;
static struct fake_qp *datagrams; /* the HCA's UD queue pair */

#define OTHER_PD (OFFLOADED_PD + 1)

static struct urxe_cq *other_cq;
static struct urxe_rq *other_srq;
static struct urxe_qp *other_qp;

/* A UD queue pair that goes on while another thread waits for the HCA. */
static int setup(void **state)
{
	(void)state;
	offloaded_open();
	slow_thread_init();
	assert_int_equal(offloaded_try_qp(URXE_QPT_UD, 0, NULL), 0);
	datagrams = fake_hca.last_qp;
	offloaded_connect_ud();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	offloaded_close();
	return 0;
}

/* A datagram goes to the HCA. Returns its address handle. */
static struct ibv_ah *post_datagram(void)
{
	const struct urxe_send_wr wr = {.wr_id = 1,
					.opcode = URXE_WR_SEND,
					.flags = URXE_SEND_SIGNALED | URXE_SEND_INLINE,
					.path = &offloaded_path,
					.remote_qpn = 0x55};

	pthread_mutex_lock(&f->lock);
	assert_int_equal(urxe_post_send(f->qp, &wr), 0);
	urxe_qp_execute(f->qp, 1);
	pthread_mutex_unlock(&f->lock);
	return datagrams->sends[datagrams->n_sends - 1].wr.ud.ah;
}

static void complete_datagram(void)
{
	const uint32_t before = f->n;

	pthread_mutex_lock(&f->lock);
	fake_hca_complete_send(datagrams, IBV_WC_SUCCESS);
	hca_poll(f->hca);
	pthread_mutex_unlock(&f->lock);
	assert_int_equal(f->n, before + 1);
}

static void exchange(void)
{
	post_datagram();
	complete_datagram();
}

static void exchange_some(void)
{
	for (int i = 0; i < 100; i++)
		exchange();
}

static void open_others(void)
{
	const struct urxe_rq_attr attr = {.ctx = f, .pd = OTHER_PD, .max_wr = 4, .max_sge = 1};
	struct urxe_qp_init init = {.ctx = f,
				    .type = URXE_QPT_RC,
				    .pd = OTHER_PD,
				    .cap = {.max_send_wr = 4, .max_send_sge = 1}};

	assert_int_equal(urxe_cq_create(f->dev, f, &other_cq), 0);
	assert_int_equal(urxe_srq_create(f->dev, &attr, &other_srq), 0);
	init.send_cq = init.recv_cq = other_cq;
	init.srq = other_srq;
	assert_int_equal(urxe_qp_create(f->dev, &init, &other_qp), 0);
}

/* hca_close() waits for no other thread: the last thread that leaves a call closes the HCA. */
static void check_hca_that_goes(enum fake_hca_delay function, void *(*call)(void *))
{
	pthread_t slow = start_slow(function, call);
	struct hca *hca = f->hca;

	pthread_mutex_lock(&f->lock);
	f->hca = NULL;
	hca_defer_destruction(hca);
	hca_detach(hca);
	pthread_mutex_unlock(&f->lock);
	hca_close(hca);
	assert_int_equal(fake_hca.closed, 0);
	let_go_on(slow);
	assert_int_equal(fake_hca.closed, 1);
	assert_int_equal(fake_hca.mrs + fake_hca.ahs + fake_hca.pds, 0);
}

#endif
