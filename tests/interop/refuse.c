/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * refuse request|reply|datagram -b|-s ADDRESS: rejects a connection. With -b this program is the
 * server at ADDRESS, with -s the client of the server at ADDRESS.
 *
 * request   the server rejects the request
 * reply     the server accepts the request, and the client rejects the reply
 * datagram  the server rejects a SIDR request
 *
 * Each message has the largest possible private data, which its receiver compares.
 */
#include <arpa/inet.h>
#include <err.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#define PORT       7471
#define TIMEOUT_MS 60000

/* Private data (IBA volume 1, 12.6, 12.11; the IP header takes 36 bytes of a request: A11.2). */
#define REQ_DATA      56
#define REP_DATA      196
#define REJ_DATA      148
#define SIDR_REQ_DATA 180
#define SIDR_REP_DATA 136

#define REJ_CONSUMER  28 /* 12.6.7.2 */
#define SIDR_REJECTED 2  /* 12.11.2 */

static const struct mode {
	const char *name;
	enum rdma_port_space space;
	uint8_t request, refusal; /* lengths of private data */
	bool of_reply;
	enum rdma_cm_event_type refused;
	int status;
} modes[] = {
	{"request", RDMA_PS_TCP, REQ_DATA, REJ_DATA, false, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER},
	{"reply", RDMA_PS_TCP, REQ_DATA, REJ_DATA, true, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER},
	{"datagram", RDMA_PS_UDP, SIDR_REQ_DATA, SIDR_REP_DATA, false, RDMA_CM_EVENT_UNREACHABLE,
	 SIDR_REJECTED},
};

static struct rdma_event_channel *channel;
static uint8_t data[UINT8_MAX];

static struct rdma_cm_event *await(enum rdma_cm_event_type type)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;

	if (poll(&fd, 1, TIMEOUT_MS) != 1)
		errx(1, "no %s comes", rdma_event_str(type));
	if (rdma_get_cm_event(channel, &event))
		err(1, "rdma_get_cm_event");
	if (event->event != type)
		errx(1, "not %s comes but %s, status %d", rdma_event_str(type),
		     rdma_event_str(event->event), event->status);
	return event;
}

static void check_data(const struct rdma_cm_event *event, bool datagram, uint8_t length)
{
	const void *got = datagram ? event->param.ud.private_data : event->param.conn.private_data;
	uint8_t came =
		datagram ? event->param.ud.private_data_len : event->param.conn.private_data_len;

	if (came < length || memcmp(got, data, length))
		errx(1, "%s: %u bytes of private data come, not the %u that were given",
		     rdma_event_str(event->event), came, length);
}

static struct rdma_cm_id *hear(const struct mode *mode, enum rdma_cm_event_type type, int status,
			       uint8_t length)
{
	struct rdma_cm_event *event = await(type);
	struct rdma_cm_id *id = event->id;

	if (event->status != status)
		errx(1, "%s comes with the status %d, not %d", rdma_event_str(type), event->status,
		     status);
	check_data(event, mode->space == RDMA_PS_UDP, length);
	rdma_ack_cm_event(event);
	return id;
}

/* Creates a QP without librdmacm, which would accept replies by itself for an ID with a QP. Returns
 * its QPN. */
static uint32_t make_qp(const struct rdma_cm_id *id)
{
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct ibv_qp *qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;

	if (!qp)
		err(1, "ibv_create_qp");
	return qp->qp_num;
}

static struct rdma_conn_param param(const struct rdma_cm_id *id, uint8_t length)
{
	return (struct rdma_conn_param){.private_data = data,
					.private_data_len = length,
					.responder_resources = 1,
					.initiator_depth = 1,
					.retry_count = 7,
					.rnr_retry_count = 7,
					.qp_num = make_qp(id)};
}

static void refuse(struct rdma_cm_id *id, const struct mode *mode)
{
	if (rdma_reject(id, data, mode->refusal))
		err(1, "rdma_reject");
}

static void serve(struct rdma_cm_id *listener, struct sockaddr *own, const struct mode *mode)
{
	struct rdma_conn_param reply;
	struct rdma_cm_id *id;

	if (rdma_bind_addr(listener, own) || rdma_listen(listener, 1))
		err(1, "cannot listen");
	id = hear(mode, RDMA_CM_EVENT_CONNECT_REQUEST, 0, mode->request);
	if (mode->of_reply) {
		reply = param(id, REP_DATA);
		if (rdma_accept(id, &reply))
			err(1, "rdma_accept");
		hear(mode, mode->refused, mode->status, mode->refusal);
	} else {
		refuse(id, mode);
	}
	rdma_destroy_id(id);
}

static void ask(struct rdma_cm_id *id, struct sockaddr *server, const struct mode *mode)
{
	struct rdma_conn_param request;

	if (rdma_resolve_addr(id, NULL, server, TIMEOUT_MS))
		err(1, "rdma_resolve_addr");
	rdma_ack_cm_event(await(RDMA_CM_EVENT_ADDR_RESOLVED));
	if (rdma_resolve_route(id, TIMEOUT_MS))
		err(1, "rdma_resolve_route");
	rdma_ack_cm_event(await(RDMA_CM_EVENT_ROUTE_RESOLVED));
	request = param(id, mode->request);
	if (rdma_connect(id, &request))
		err(1, "rdma_connect");
	if (mode->of_reply) {
		hear(mode, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, REP_DATA);
		refuse(id, mode);
	} else {
		hear(mode, mode->refused, mode->status, mode->refusal);
	}
}

static const struct mode *find_mode(const char *name)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(modes[i].name, name))
			return &modes[i];
	return NULL;
}

static bool read_address(const char *text, struct sockaddr_storage *address)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;

	*address = (struct sockaddr_storage){.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET};
	if (address->ss_family == AF_INET6) {
		v6->sin6_port = htons(PORT);
		return inet_pton(AF_INET6, text, &v6->sin6_addr) == 1;
	}
	v4->sin_port = htons(PORT);
	return inet_pton(AF_INET, text, &v4->sin_addr) == 1;
}

int main(int argc, char **argv)
{
	const struct mode *mode = argc == 4 ? find_mode(argv[1]) : NULL;
	struct sockaddr_storage address;
	struct rdma_cm_id *id;

	if (!mode || (strcmp(argv[2], "-b") && strcmp(argv[2], "-s")) ||
	    !read_address(argv[3], &address))
		errx(2, "usage: refuse request|reply|datagram -b|-s ADDRESS");
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i + 1);
	channel = rdma_create_event_channel();
	if (!channel || rdma_create_id(channel, &id, NULL, mode->space))
		err(1, "no rdma_cm");
	if (argv[2][1] == 'b')
		serve(id, (struct sockaddr *)&address, mode);
	else
		ask(id, (struct sockaddr *)&address, mode);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	return 0;
}
