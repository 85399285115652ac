/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fake_hca.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct fake_hca fake_hca;
const struct urxe_gid fake_gid = {
	.raw = {[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 1}};

struct fake_cq {
	struct ibv_cq ibv;
	struct ibv_wc wcs[FAKE_WRS];
	uint32_t head, tail;
};

/* --- Fast path. */

static int post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)ibv;

	for (; wr; wr = wr->next) {
		if (qp->n_sends >= qp->refuse_from) {
			*bad = wr;
			return qp->refuse_error;
		}
		qp->sends[qp->n_sends++] = *wr;
	}
	return 0;
}

static int post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)ibv;

	for (; wr; wr = wr->next) {
		if (qp->n_recvs >= qp->refuse_recv_from) {
			*bad = wr;
			return qp->refuse_error;
		}
		qp->recvs[qp->n_recvs++] = *wr;
	}
	return 0;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)srq;
	*bad = wr;
	if (fake_hca.srq_recv_error)
		return fake_hca.srq_recv_error;
	for (; wr; wr = wr->next)
		fake_hca.srq_recvs[fake_hca.n_srq_recvs++] = *wr;
	return 0;
}

static int poll_cq(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)ibv;
	int found = 0;

	if (fake_hca.poll_error)
		return -1;
	while (found < n && cq->tail != cq->head)
		wc[found++] = cq->wcs[cq->tail++ % FAKE_WRS];
	return found;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	(void)cq;
	fake_hca.armed++;
	fake_hca.arm_solicited = solicited;
	return 0;
}

void fake_hca_complete(struct ibv_cq *ibv, const struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)ibv;

	cq->wcs[cq->head++ % FAKE_WRS] = *wc;
}

void fake_hca_complete_send(struct fake_qp *qp, enum ibv_wc_status status)
{
	/* After an error, the opcode is undefined. */
	const struct ibv_wc wc = {
		.wr_id = qp->sends[qp->sent++].wr_id,
		.status = status,
		.qp_num = qp->ibv.qp_num,
		.opcode = status ? IBV_WC_RECV : IBV_WC_SEND,
	};

	fake_hca_complete(qp->init.send_cq, &wc);
}

void fake_hca_complete_recv(struct fake_qp *qp, enum ibv_wc_status status, uint32_t bytes)
{
	const struct ibv_wc wc = {
		.wr_id = qp->recvs[qp->received++].wr_id,
		.status = status,
		.qp_num = qp->ibv.qp_num,
		.opcode = status ? IBV_WC_SEND : IBV_WC_RECV,
		.byte_len = bytes,
	};

	fake_hca_complete(qp->init.recv_cq, &wc);
}

/* --- The device. */

static struct ibv_device *device_list[] = {&fake_hca.device, NULL};

static struct ibv_device **get_device_list(int *n)
{
	static struct ibv_device *no_device[] = {NULL};

	(void)n;
	if (fake_hca.list_error) {
		errno = fake_hca.list_error;
		return NULL;
	}
	if (!fake_hca.empty_lists)
		return device_list;
	fake_hca.empty_lists--;
	return no_device;
}

static void free_device_list(struct ibv_device **list)
{
	(void)list;
	errno = EINVAL;
}

static const char *get_device_name(struct ibv_device *device)
{
	(void)device;
	return "fake0";
}

static bool opens(enum fake_hca_open step)
{
	errno = fake_hca.open_error;
	return fake_hca.opens_to != step;
}

static struct ibv_context *open_device(struct ibv_device *device)
{
	(void)device;
	if (!opens(FAKE_HCA_OPEN_DEVICE))
		return NULL;
	fake_hca.context.async_fd = open("/dev/null", O_RDONLY);
	return &fake_hca.context;
}

static int close_device(struct ibv_context *context)
{
	(void)context;
	fake_hca.closed++;
	return 0;
}

static int query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	*attr = (struct ibv_device_attr){
		.vendor_id = fake_hca.vendor_id,
		.max_mr_size = 1 << 30,
		.max_qp_wr = fake_hca.max_qp_wr,
		.max_sge = 4,
		.max_cqe = 1000,
		.max_srq_wr = 50,
		.max_srq_sge = 2,
		.max_qp_rd_atom = 8,
		.max_qp_init_rd_atom = 4,
	};
	return opens(FAKE_HCA_QUERY_DEVICE) ? 0 : fake_hca.open_error;
}

static int query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	(void)context;
	(void)port;
	((struct ibv_port_attr *)attr)->active_mtu = fake_hca.mtu;
	return opens(FAKE_HCA_QUERY_PORT) ? 0 : fake_hca.open_error;
}

static int query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	(void)context;
	(void)port;
	if (index >= (int)(sizeof(fake_hca.pkeys) / sizeof(fake_hca.pkeys[0])))
		return -1;
	*pkey = htons(fake_hca.pkeys[index]);
	return 0;
}

static ssize_t query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t n,
			       uint32_t flags, size_t entry_size)
{
	(void)context;
	(void)n;
	(void)flags;
	(void)entry_size;
	if (fake_hca.gid_table_error)
		return fake_hca.gid_table_error;
	entries[0] = (struct ibv_gid_entry){.gid_index = fake_hca.gid_index,
					    .port_num = 1,
					    .gid_type = IBV_GID_TYPE_ROCE_V2,
					    .ndev_ifindex = fake_hca.ifindex};
	memcpy(entries[0].gid.raw, fake_gid.raw, sizeof(fake_gid.raw));
	entries[1] = entries[0];
	entries[1].gid_index++;
	entries[1].ndev_ifindex = fake_hca.vlan_ifindex;
	return fake_hca.vlan_ifindex ? 2 : 1;
}

static int get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	(void)context;
	if (!fake_hca.has_event)
		return -1;
	fake_hca.has_event = false;
	*event = fake_hca.event;
	return 0;
}

static void ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel;

	if (!opens(FAKE_HCA_CREATE_CHANNEL))
		return NULL;
	channel = calloc(1, sizeof(*channel));
	channel->context = context;
	channel->fd = open("/dev/null", O_RDONLY);
	return channel;
}

static int destroy_comp_channel(struct ibv_comp_channel *channel)
{
	free(channel);
	return 0;
}

static int get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	(void)channel;
	if (!fake_hca.comp_event)
		return -1;
	*cq = fake_hca.comp_event;
	*cq_context = (*cq)->cq_context;
	fake_hca.comp_event = NULL;
	return 0;
}

static void ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	(void)cq;
	(void)n;
}

/* --- Objects. */

static void delay(enum fake_hca_delay function)
{
	if (fake_hca.delays != function)
		return;
	sem_post(&fake_hca.delayed);
	sem_wait(&fake_hca.go_on);
}

static struct ibv_pd *alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd;

	delay(FAKE_HCA_ALLOC_PD);
	errno = ENOMEM;
	if (fake_hca.no_pds)
		return NULL;
	pd = calloc(1, sizeof(*pd));
	pd->context = context;
	fake_hca.pds++;
	return pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
	delay(FAKE_HCA_DEALLOC_PD);
	fake_hca.pds--;
	free(pd);
	return 0;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			     unsigned int access)
{
	struct ibv_mr *mr;

	(void)access;
	delay(FAKE_HCA_REG_MR);
	/* As the kernel does, for all drivers. */
	errno = EINVAL;
	if (((uintptr_t)addr ^ iova) % 4096)
		return NULL;
	errno = fake_hca.mr_error ? fake_hca.mr_error : ENOMEM;
	if (fake_hca.no_mrs || fake_hca.mr_error)
		return NULL;
	mr = calloc(1, sizeof(*mr));
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	mr->lkey = fake_hca.next_key++;
	mr->rkey = mr->lkey + fake_hca.rkey_differs;
	fake_hca.last_mr = *mr;
	fake_hca.mrs++;
	return mr;
}

static int dereg_mr(struct ibv_mr *mr)
{
	delay(FAKE_HCA_DEREG_MR);
	fake_hca.mrs--;
	free(mr);
	return 0;
}

static struct ibv_cq *create_cq(struct ibv_context *context, int cqe, void *cq_context,
				struct ibv_comp_channel *channel, int vector)
{
	struct fake_cq *cq;

	(void)vector;
	delay(FAKE_HCA_CREATE_CQ);
	errno = ENOMEM;
	if (fake_hca.no_cqs)
		return NULL;
	cq = calloc(1, sizeof(*cq));
	cq->ibv.context = context;
	cq->ibv.cq_context = cq_context;
	cq->ibv.channel = channel;
	cq->ibv.cqe = cqe;
	fake_hca.cqs++;
	return &cq->ibv;
}

static int resize_cq(struct ibv_cq *cq, int cqe)
{
	delay(FAKE_HCA_RESIZE_CQ);
	if (fake_hca.no_resize)
		return ENOSYS;
	cq->cqe = cqe;
	fake_hca.resized_to = (uint32_t)cqe;
	return 0;
}

static int destroy_cq(struct ibv_cq *cq)
{
	delay(FAKE_HCA_DESTROY_CQ);
	fake_hca.cqs--;
	free(cq);
	return 0;
}

static struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	delay(FAKE_HCA_CREATE_SRQ);
	errno = EINVAL;
	if (fake_hca.no_srqs)
		return NULL;
	fake_hca.srq = (struct ibv_srq){
		.context = &fake_hca.context, .srq_context = init->srq_context, .pd = pd};
	fake_hca.srqs++;
	return &fake_hca.srq;
}

static int modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	(void)srq;
	delay(FAKE_HCA_MODIFY_SRQ);
	if (!fake_hca.srq_error && mask & IBV_SRQ_LIMIT)
		fake_hca.srq_limit = attr->srq_limit;
	return fake_hca.srq_error;
}

static int destroy_srq(struct ibv_srq *srq)
{
	(void)srq;
	delay(FAKE_HCA_DESTROY_SRQ);
	fake_hca.srqs--;
	return 0;
}

/* A thread that ended in a provider's system call would keep adapter.lock. */
static void check_cancellation(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_setcancelstate(state, NULL);
	__atomic_add_fetch(&fake_hca.cancellable, state != PTHREAD_CANCEL_DISABLE,
			   __ATOMIC_RELAXED);
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct fake_qp *qp;

	delay(FAKE_HCA_CREATE_QP);
	errno = EINVAL;
	if (fake_hca.no_qps || init->cap.max_inline_data > fake_hca.max_inline) {
		errno = fake_hca.no_qps ? ENOMEM : EINVAL;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	qp->ibv.context = &fake_hca.context;
	qp->ibv.qp_context = init->qp_context;
	qp->ibv.pd = pd;
	qp->ibv.qp_num = fake_hca.next_qpn++;
	qp->init = *init;
	qp->refuse_from = qp->refuse_recv_from = FAKE_WRS;
	fake_hca.qps++;
	fake_hca.last_qp = qp;
	return &qp->ibv;
}

static int modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = (struct fake_qp *)ibv;

	fake_hca.modified++;
	check_cancellation();
	delay(FAKE_HCA_MODIFY_QP);
	if (fake_hca.modify_error)
		return fake_hca.modify_error;
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_ERR && fake_hca.no_error_state)
		return EIO;
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET && fake_hca.no_reset_state)
		return EIO;
	if (mask & IBV_QP_RATE_LIMIT && !fake_hca.has_rates)
		return EOPNOTSUPP;
	if (mask & IBV_QP_RATE_LIMIT)
		qp->attr.rate_limit = attr->rate_limit;
	if (mask & IBV_QP_PKEY_INDEX)
		qp->attr.pkey_index = attr->pkey_index;
	if (mask & IBV_QP_STATE)
		qp->attr.qp_state = attr->qp_state;
	if (mask & IBV_QP_AV)
		qp->attr.ah_attr = attr->ah_attr;
	return 0;
}

static int query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
		    struct ibv_qp_init_attr *init)
{
	(void)mask;
	(void)init;
	check_cancellation();
	delay(FAKE_HCA_QUERY_QP);
	if (fake_hca.query_error)
		return fake_hca.query_error;
	*attr = ((struct fake_qp *)ibv)->attr;
	return 0;
}

static int destroy_qp(struct ibv_qp *qp)
{
	check_cancellation();
	delay(FAKE_HCA_DESTROY_QP);
	fake_hca.qps--;
	free(qp);
	return 0;
}

static struct ibv_ah *create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *ah;

	check_cancellation();
	fake_hca.ah_calls[attr->grh.dgid.raw[15]]++;
	delay(FAKE_HCA_CREATE_AH);
	errno = fake_hca.ah_error;
	if (fake_hca.no_ahs)
		return NULL;
	ah = calloc(1, sizeof(*ah));
	ah->pd = pd;
	fake_hca.last_ah = *attr;
	fake_hca.ahs++;
	return ah;
}

static int destroy_ah(struct ibv_ah *ah)
{
	check_cancellation();
	delay(FAKE_HCA_DESTROY_AH);
	fake_hca.ahs--;
	free(ah);
	return 0;
}

static int change_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	delay(FAKE_HCA_CHANGE_MCAST);
	return fake_hca.mcast_error;
}

void fake_hca_init(void)
{
	fake_hca = (struct fake_hca){
		.mtu = IBV_MTU_1024,
		.vendor_id = 0xffffff,
		.open_error = EIO,
		.ah_error = EHOSTUNREACH,
		.max_qp_wr = 100,
		.context = {.device = &fake_hca.device,
			    .cmd_fd = -1,
			    .ops = {.post_send = post_send,
				    .post_recv = post_recv,
				    .post_srq_recv = post_srq_recv,
				    .poll_cq = poll_cq,
				    .req_notify_cq = req_notify_cq}},
		.verbs = {get_device_list,
			  free_device_list,
			  get_device_name,
			  open_device,
			  close_device,
			  query_device,
			  query_port,
			  query_pkey,
			  query_gid_table,
			  get_async_event,
			  ack_async_event,
			  alloc_pd,
			  dealloc_pd,
			  reg_mr,
			  dereg_mr,
			  create_comp_channel,
			  destroy_comp_channel,
			  create_cq,
			  resize_cq,
			  destroy_cq,
			  get_cq_event,
			  ack_cq_events,
			  create_srq,
			  modify_srq,
			  destroy_srq,
			  create_qp,
			  modify_qp,
			  query_qp,
			  destroy_qp,
			  create_ah,
			  destroy_ah,
			  change_mcast,
			  change_mcast},
		.gid_index = 3,
		.next_qpn = 0x17,
		.next_key = 0x1000,
		.max_inline = 64,
		.pkeys = {0xffff},
	};
}
