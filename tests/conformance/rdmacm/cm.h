/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Helpers for tests of rdma_cm through librdmacm on the device under test. Both ends are in this
 * process. */
#ifndef URXE_CONFORMANCE_CM_H
#define URXE_CONFORMANCE_CM_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

/* Maximum private data of each message, beside the addresses. */
#define REQ_DATA      56
#define REP_DATA      196
#define REJ_DATA      148
#define SIDR_REQ_DATA 180
#define SIDR_REP_DATA 136

/* Reasons of a REJ, and statuses of a SIDR_REP (IBA 12.6.7.2, 12.11.2.1). */
#define REJ_NO_SERVICE    8
#define REJ_CONSUMER      28
#define REJ_VENDOR_OPTION 35
#define SIDR_REJECTED     2

union cm_addr {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage room;
};

/* The errno value of a librdmacm call that returned rc; 0 = success. */
int cm_errno(int rc);

/* The address under test; the port is in host byte order. */
union cm_addr cm_own(uint16_t port);
/* The wildcard address of a family. */
union cm_addr cm_any(int family, uint16_t port);
/* The address and port that an ID is bound to. */
union cm_addr cm_bound(struct rdma_cm_id *id);

/* Opens an event channel. Skips the test on a system without rdma_cm. */
struct rdma_event_channel *cm_open(void);
struct rdma_cm_id *cm_create(struct rdma_event_channel *channel, enum rdma_port_space ps);
/* Waits for the next event, which must have this type. The caller acknowledges it. */
struct rdma_cm_event *cm_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/* Waits for the next event, which must have this type, acknowledges it, and returns its status. */
int cm_await(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/* Waits for the next connection request; returns its ID. */
struct rdma_cm_id *cm_request(struct rdma_event_channel *channel);
/* Whether an event arrives within the time limit. */
bool cm_heard(struct rdma_event_channel *channel);
/* Whether no event arrives within the time that a message needs. */
bool cm_quiet(struct rdma_event_channel *channel);

/* Listens on the address under test, on any port. */
struct rdma_cm_id *cm_listener(struct rdma_event_channel *channel, enum rdma_port_space ps,
			       int backlog);
/* Creates an ID with a resolved route to an address and a QP with CQs of its own. */
struct rdma_cm_id *cm_client_to(struct rdma_event_channel *channel, enum rdma_port_space ps,
				union cm_addr to);
/* cm_client_to the address of a listener. */
struct rdma_cm_id *cm_client(struct rdma_event_channel *channel, struct rdma_cm_id *listener);
void cm_make_qp(struct rdma_cm_id *id);
/* Private data whose bytes depend on their position. */
const uint8_t *cm_data(void);
struct rdma_conn_param cm_param(uint8_t private_len);

/* Both ends of a connection. */
struct cm_pair {
	struct rdma_event_channel *server_channel, *client_channel;
	struct rdma_cm_id *listener, *server, *client;
};
void cm_pair_open(struct cm_pair *pair);

#endif
