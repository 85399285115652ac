/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Corners of the verbs that the pairs do not reach, one a run:
 *
 *   late_receive  receives posted to a QP in error complete with nobody polling
 *   channels      events of more channels than are watched at a time all arrive
 *   srq           a SRQ that was asked for without segments has one
 */
#include <err.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define CHANNELS 24
#define EVENTS   1000 /* of each: more than a socket holds */
#define EVENT_MS 2000

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (!context)
		err(1, "cannot open the device");
	ibv_free_device_list(list);
	return context;
}

/* A QP in the error state, whose receives are flushed to a CQ with a channel. */
struct failed_qp {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void fail_qp(struct failed_qp *f, struct ibv_context *context, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	f->channel = ibv_create_comp_channel(context);
	f->cq = f->channel ? ibv_create_cq(context, 1, NULL, f->channel, 0) : NULL;
	if (!f->cq)
		err(1, "cannot create a CQ with a channel");
	init.send_cq = init.recv_cq = f->cq;
	f->qp = ibv_create_qp(pd, &init);
	if (!f->qp || ibv_modify_qp(f->qp, &attr, IBV_QP_STATE))
		err(1, "cannot create a QP in error");
}

static void arm_and_post(struct failed_qp *f)
{
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad;

	if (ibv_req_notify_cq(f->cq, 0) || ibv_post_recv(f->qp, &wr, &bad))
		errx(1, "cannot arm, or post a receive");
}

static void await_event(struct failed_qp *f)
{
	struct pollfd pfd = {f->channel->fd, POLLIN, 0};
	struct ibv_cq *cq;
	void *context;

	if (poll(&pfd, 1, EVENT_MS) != 1)
		errx(1, "no event in %d ms", EVENT_MS);
	if (ibv_get_cq_event(f->channel, &cq, &context) || cq != f->cq)
		err(1, "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
}

static void expect_flushed(struct failed_qp *f)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(f->cq, 1, &wc) != 1 || wc.status != IBV_WC_WR_FLUSH_ERR || wc.wr_id != 1)
		errx(1, "the receive is not flushed");
}

static void late_receive(void)
{
	struct ibv_context *context = open_device();
	struct failed_qp f;

	fail_qp(&f, context, ibv_alloc_pd(context));
	/* Time for the engine thread to go to sleep. */
	usleep(100000);
	arm_and_post(&f);
	await_event(&f);
	expect_flushed(&f);
}

static void channels(void)
{
	struct ibv_context *context = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct failed_qp f[CHANNELS];

	for (int i = 0; i < CHANNELS; i++) {
		fail_qp(&f[i], context, pd);
		for (int n = 0; n < EVENTS; n++) {
			struct ibv_wc wc;

			arm_and_post(&f[i]);
			while (!ibv_poll_cq(f[i].cq, 1, &wc))
				;
		}
		/* Else the library looks after the QP, and by the way after its channels. */
		if (ibv_modify_qp(f[i].qp, &reset, IBV_QP_STATE))
			err(1, "cannot reset a QP");
	}
	/* Whichever end of its list the library watches, this reads from the other too. */
	for (int i = 0; i < CHANNELS / 2; i++) {
		for (int n = 0; n < EVENTS; n++)
			await_event(&f[i]);
		for (int n = 0; n < EVENTS; n++)
			await_event(&f[CHANNELS - 1 - i]);
	}
}

static void srq(void)
{
	struct ibv_context *context = open_device();
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 1}};
	struct ibv_srq *made = ibv_create_srq(ibv_alloc_pd(context), &init);
	struct ibv_srq_attr attr;

	if (!made || ibv_query_srq(made, &attr))
		err(1, "cannot create or query a SRQ");
	if (init.attr.max_sge < 1 || attr.max_sge != init.attr.max_sge)
		errx(1, "max_sge %u, and %u when it is asked", init.attr.max_sge, attr.max_sge);
}

static const struct {
	const char *name;
	void (*run)(void);
} corners[] = {{"late_receive", late_receive}, {"channels", channels}, {"srq", srq}};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof(corners) / sizeof(corners[0]); i++)
		if (!strcmp(argv[1], corners[i].name)) {
			corners[i].run();
			return 0;
		}
	fputs("usage: verbs_corners CORNER\n", stderr);
	return 2;
}
