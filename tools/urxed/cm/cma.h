/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdma_cm IDs: what a program's rdma_cm_id is to the kernel. Addresses, routes, ports and
 * listeners above the connection manager, with the kernel's states, events and errors
 * (drivers/infiniband/core/cma.c).
 *
 * Functions that return int give 0 or a negative errno value, the kernel's.
 */
#ifndef URXE_URXED_CM_CMA_H
#define URXE_URXED_CM_CMA_H

#include <cm/cm.h>

#include "urxed/cm/cma_addr.h"
#include "urxed/cm/cma_early_req.h"
#include "urxed/cm/cma_port.h"
#include "urxed/hostnet/host.h"
#include "urxed/hostnet/neigh.h"

#define CMA_IDS         65536 /* librdmacm knows IDs by 16 bits */
#define CMA_PRIVATE_MAX 256
#define CMA_UD_QKEY     0x01234567u
#define CMA_QPN_BITS    0xffffffu

/* Values of enum rdma_cm_event_type. */
enum cma_event_type {
	CMA_ADDR_RESOLVED = 0,
	CMA_ADDR_ERROR = 1,
	CMA_ROUTE_RESOLVED = 2,
	CMA_CONNECT_REQUEST = 4,
	CMA_CONNECT_RESPONSE = 5,
	CMA_UNREACHABLE = 7,
	CMA_REJECTED = 8,
	CMA_ESTABLISHED = 9,
	CMA_DISCONNECTED = 10,
	CMA_MULTICAST_JOIN = 12,
	CMA_TIMEWAIT_EXIT = 15,
};

enum cma_service { CMA_RC, CMA_UC, CMA_UD };

enum cma_state {
	CMA_IDLE,
	CMA_ADDR_QUERY,
	CMA_STATE_ADDR_RESOLVED,
	CMA_STATE_ROUTE_RESOLVED,
	CMA_CONNECT,
	CMA_DISCONNECT,
	CMA_ADDR_BOUND,
	CMA_LISTEN,
};

/* What a program says of its side of a connection, or is told of the peer's. */
struct cma_param {
	uint32_t qpn;
	uint32_t qkey; /* UD */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint8_t private_len;
	uint8_t private_data[CMA_PRIVATE_MAX];
};

struct cma_event {
	enum cma_event_type type;
	int status; /* 0, a negative errno value, or a REJ's or SIDR_REP's reason */
	struct cma_param param;
};

struct cma;

struct cma_id {
	struct cma *cma;
	void *ctx; /* the owner's */
	uint32_t number;
	enum cma_state state;
	uint16_t ps;
	enum cma_service service;
	struct cma_binding src; /* address and port; of a listener those that it hears */
	bool low_ports;         /* the program may have those below CMA_PORT_LOW */
	bool afonly_set;        /* the program has said whether src.afonly */
	struct cma_addr dst;
	bool has_device; /* its address says which, and sgid_index is set */
	uint8_t sgid_index;
	uint8_t peer[16]; /* address that packets go to; dst, but for loopback */
	uint8_t tos;
	uint8_t ack_timeout;
	bool ack_timeout_set;
	uint32_t qkey; /* UD; 0 = not set yet */
	uint32_t psn;
	uint32_t qpn;
	struct cm_conn *conn; /* NULL: none yet */
	struct neigh_waiter waiter;
	bool waiting;
	uint32_t timeout_ms; /* of what it waits for */
	uint64_t due;        /* when it has waited long enough */
	LIST_ENTRY(cma_id) wait_link;
};
LIST_HEAD(cma_id_list, cma_id);

struct cma_ops {
	/* The connection manager's way out; ctx is the cma's. */
	void (*send)(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_LEN]);
	void (*event)(struct cma_id *id, const struct cma_event *event);
	/*
	 * A request has come for a listener, and `id` is for it. False: there is no place in the
	 * backlog.
	 */
	bool (*request)(struct cma_id *listener, struct cma_id *id, const struct cma_event *event);
};

struct cma {
	const struct cma_ops *ops;
	void *ctx;
	const struct host *host;
	struct neigh *neigh;
	struct cm *cm;
	struct cma_ports ports;
	struct cma_id **ids; /* CMA_IDS of them, by number */
	uint32_t last;
	uint64_t psns;
	uint64_t now; /* of what is under way */
	struct cma_id_list waiting;
	struct cma_early_reqs early;
};

/* 0, or a negative errno value; then nothing is left. */
int cma_open(struct cma *cma, const struct host *host, struct neigh *neigh,
	     const struct cma_ops *ops, void *ctx);
/* When all IDs are destroyed; also for one that is all 0. */
void cma_close(struct cma *cma);
void cma_input(struct cma *cma, uint64_t now, const struct cm_path *path,
	       const uint8_t mad[CM_MAD_LEN]);
/* Does what is due; returns when to call again, UINT64_MAX = never. */
uint64_t cma_tick(struct cma *cma, uint64_t now);
/* The neighbours' answer to a waiter of cma_resolve_addr. */
void cma_neigh_answer(struct neigh_waiter *w, int status);
/* EUI-64 of the host's MAC, as the device's node GUID. */
uint64_t cma_guid(const struct host *host);

/* Each call is at cma->now, which the caller sets. */
int cma_create_id(struct cma *cma, uint16_t ps, enum cma_service service, void *ctx,
		  struct cma_id **id);
void cma_destroy_id(struct cma_id *id);
/* NULL: there is none. */
struct cma_id *cma_find(const struct cma *cma, uint32_t number);

/* AF_IB: only the wildcard can be had, and hears nothing, as the kernel has it for RoCE. */
int cma_bind(struct cma_id *id, const struct cma_addr *addr);
/* src may be NULL. ADDR_RESOLVED or ADDR_ERROR follows. -ENETUNREACH: no way leads there. */
int cma_resolve_addr(struct cma_id *id, const struct cma_addr *src, const struct cma_addr *dst,
		     uint32_t timeout_ms);
/* ROUTE_RESOLVED follows. */
int cma_resolve_route(struct cma_id *id);
/* The same, of a path that the program knows. */
int cma_set_path(struct cma_id *id, uint8_t traffic_class);
int cma_listen(struct cma_id *id);
int cma_connect(struct cma_id *id, const struct cma_param *param);
/* param: NULL where a REP is answered. On error it is rejected. */
int cma_accept(struct cma_id *id, const struct cma_param *param);
int cma_reject(struct cma_id *id, uint8_t reason, const void *data, uint8_t len);
int cma_disconnect(struct cma_id *id);
/* Data has come before the RTU. */
int cma_notify_established(struct cma_id *id);
int cma_set_reuseaddr(struct cma_id *id, bool on);
int cma_set_afonly(struct cma_id *id, bool on);

/* The path's MTU, 1 = 256 to 5 = 4096. */
uint8_t cma_mtu(const struct cma *cma);

/* --- cma_save.c: an ID without pointers, for the daemon that comes after this one. */
struct cma_saved {
	struct cma_id id;
	bool connected; /* and there is */
	struct cm_saved conn;
};
void cma_save(const struct cma_id *id, struct cma_saved *saved);
/* -EBUSY: there is one with its number; -EINVAL: no ID is like that; -ENOMEM. */
int cma_restore(struct cma *cma, const struct cma_saved *saved, void *ctx, struct cma_id **id);

/* --- cma_way.c */
/* Asks once more for the way to who was restored in the middle of that; else nothing. */
void cma_resolve_again(struct cma_id *id);
/* For cma.c. */
void cma_resolved(struct cma_id *id, int status);
void cma_stop_waiting(struct cma_id *id);

/* --- cma.c */
void cma_emit(struct cma_id *id, enum cma_event_type type, int status);

#endif
