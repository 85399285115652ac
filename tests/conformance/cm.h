/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_cm on the device under test, by plain librdmacm: both ends are in this process. */
#ifndef URXE_CONFORMANCE_CM_H
#define URXE_CONFORMANCE_CM_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

/* Private data that each message takes beside the addresses. */
#define REQ_DATA      56
#define REP_DATA      196
#define REJ_DATA      148
#define SIDR_REQ_DATA 180
#define SIDR_REP_DATA 136

/* Reasons of a rejection, and of a SIDR reply (IBA 12.6.7.2, 12.11.2.1). */
#define REJ_NO_SERVICE 8
#define REJ_CONSUMER   28
#define SIDR_REJECTED  2

union cm_addr {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage room;
};

/* errno of a call of librdmacm's: 0 where it succeeded. */
int cm_errno(int rc);

/* The address under test; the port is in host byte order. */
union cm_addr cm_own(uint16_t port);
/* All addresses of a family. */
union cm_addr cm_any(int family, uint16_t port);
/* The address and port that an ID is bound to. */
union cm_addr cm_bound(struct rdma_cm_id *id);

/* A channel of its own. Skips the test where there is no rdma_cm. */
struct rdma_event_channel *cm_open(void);
struct rdma_cm_id *cm_create(struct rdma_event_channel *channel, enum rdma_port_space ps);
/* The next event, which is to be of a type. The caller acknowledges it. */
struct rdma_cm_event *cm_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/* The same, acknowledged at once: its status. */
int cm_await(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/* The ID of the next request. */
struct rdma_cm_id *cm_request(struct rdma_event_channel *channel);
/* Whether there is an event, in time. */
bool cm_heard(struct rdma_event_channel *channel);
/* Whether nothing comes in as long as something under way would have needed. */
bool cm_quiet(struct rdma_event_channel *channel);

/* Listens at the address under test, at any port. */
struct rdma_cm_id *cm_listener(struct rdma_event_channel *channel, enum rdma_port_space ps,
			       int backlog);
/* An ID with a route to an address, and a queue pair with CQs of its own. */
struct rdma_cm_id *cm_client_to(struct rdma_event_channel *channel, enum rdma_port_space ps,
				union cm_addr to);
/* The same to a listener. */
struct rdma_cm_id *cm_client(struct rdma_event_channel *channel, struct rdma_cm_id *listener);
void cm_make_qp(struct rdma_cm_id *id);
/* Private data: bytes that tell one place from another. */
const uint8_t *cm_data(void);
struct rdma_conn_param cm_param(uint8_t private_len);

/* A connection. */
struct cm_pair {
	struct rdma_event_channel *server_channel, *client_channel;
	struct rdma_cm_id *listener, *server, *client;
};
void cm_pair_open(struct cm_pair *pair);

#endif
