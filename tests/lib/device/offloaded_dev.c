/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "offloaded_dev.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "fake_hca.h"

static struct offloaded_dev *const f = &offloaded;
struct offloaded_dev offloaded;
const struct urxe_path offloaded_path = {.dgid = {.raw = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 9}}};

/* --- The owner. */

static bool takes(void *ctx, void *qp_ctx, const struct urxe_qp_attr *attr)
{
	(void)ctx;
	(void)qp_ctx;
	(void)attr;
	return f->takes;
}

static void lock(void *ctx)
{
	(void)ctx;
	pthread_mutex_lock(&f->lock);
}

static void unlock(void *ctx)
{
	(void)ctx;
	pthread_mutex_unlock(&f->lock);
}

const struct hca_owner offloaded_owner = {.takes = takes, .lock = lock, .unlock = unlock};

static bool complete(void *cq_ctx, const struct urxe_wc *wc)
{
	(void)cq_ctx;
	if (f->cq_full)
		return false;
	f->wcs[f->n++ % OFFLOADED_WCS] = *wc;
	if (wc->status == URXE_WC_WR_FLUSH_ERR && fake_hca.qps)
		f->flushed_before_end++;
	return true;
}

static void comp_event(void *cq_ctx)
{
	(void)cq_ctx;
	f->comp_events++;
}

static void refill(void *rq_ctx)
{
	(void)rq_ctx;
}

static void async_event(void *dev_ctx, enum urxe_async event, void *obj_ctx)
{
	(void)dev_ctx;
	(void)obj_ctx;
	f->asyncs++;
	f->last_async = event;
	f->before_async = f->n;
}

/* --- The device. */

void offloaded_open(void)
{
	static const struct urxe_ops ops = {.complete = complete,
					    .comp_event = comp_event,
					    .refill = refill,
					    .async_event = async_event};
	const struct urxe_dev_attr attr = {
		.ops = &ops, .mac = {2, 0, 0, 0, 0, 1}, .mtu = 4200, .seed = 1};

	*f = (struct offloaded_dev){.takes = true};
	pthread_mutex_init(&f->lock, NULL);
	fake_hca_init();
	assert_int_equal(urxe_dev_create(&attr, &f->dev), 0);
	assert_int_equal(urxe_gid_set(f->dev, 0, &fake_gid, false), 0);
	assert_int_equal(hca_open(&fake_hca.verbs, "fake0", 1, &offloaded_owner, &f->hca), 0);
	hca_set_gid(f->hca, 0, &fake_gid, false, 0);
	hca_read_gids(f->hca);
	hca_set_pkeys(f->hca, (const uint16_t[]){0xffff}, 1);
	hca_attach(f->hca, f->dev);
	assert_int_equal(urxe_cq_create(f->dev, f, &f->cq), 0);
}

static uint32_t objects(void)
{
	return fake_hca.pds + fake_hca.mrs + fake_hca.cqs + fake_hca.srqs + fake_hca.qps +
	       fake_hca.ahs;
}

void offloaded_close(void)
{
	if (f->hca)
		hca_detach(f->hca);
	urxe_dev_destroy(f->dev);
	assert_int_equal(objects(), 0);
	if (f->hca)
		hca_close(f->hca);
	assert_int_equal(fake_hca.closed, 1);
}

/* --- Queue pairs. */

int offloaded_try_qp(uint8_t type, uint32_t max_inline, struct urxe_rq *srq)
{
	const struct urxe_qp_init init = {
		.ctx = f,
		.type = type,
		.pd = OFFLOADED_PD,
		.send_cq = f->cq,
		.recv_cq = f->cq,
		.srq = srq,
		.cap = {.max_send_wr = 16,
			.max_recv_wr = srq ? 0 : 16,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_inline = max_inline},
	};

	return urxe_qp_create(f->dev, &init, &f->qp);
}

int offloaded_modify(enum urxe_qp_state to, uint32_t mask)
{
	const struct urxe_qp_attr attr = {
		.state = to,
		.port = 1,
		.path = offloaded_path,
		.path_mtu = URXE_MTU_1024,
		.dest_qpn = 0x99,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.qkey = 5,
	};

	return urxe_qp_modify(f->qp, 1, &attr, mask | URXE_QP_STATE);
}

static void must_modify(enum urxe_qp_state to, uint32_t mask)
{
	assert_int_equal(offloaded_modify(to, mask), 0);
}

void offloaded_connect_rc(void)
{
	must_modify(URXE_QPS_INIT, URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_ACCESS_FLAGS);
	must_modify(URXE_QPS_RTR, URXE_QP_AV | URXE_QP_PATH_MTU | URXE_QP_DEST_QPN |
					  URXE_QP_RQ_PSN | URXE_QP_MAX_DEST_RD_ATOMIC |
					  URXE_QP_MIN_RNR_TIMER);
	must_modify(URXE_QPS_RTS, URXE_QP_TIMEOUT | URXE_QP_RETRY_CNT | URXE_QP_RNR_RETRY |
					  URXE_QP_SQ_PSN | URXE_QP_MAX_QP_RD_ATOMIC);
}

void offloaded_connect_ud(void)
{
	must_modify(URXE_QPS_INIT, URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_QKEY);
	must_modify(URXE_QPS_RTR, 0);
	must_modify(URXE_QPS_RTS, URXE_QP_SQ_PSN);
}
