/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's side of a program's rdma_cm_id: addresses, ports, listeners and connections, on top
 * of the connection manager in rxe/cm/. States, events and errors are those of the kernel's
 * drivers/infiniband/core/cma.c. The files ucma*.c call these functions for the commands of
 * programs.
 *
 * Functions that return int return 0 or the negative errno value that the kernel would return. Only
 * the daemon's thread calls them.
 */
#ifndef URXE_URXED_CM_CMA_H
#define URXE_URXED_CM_CMA_H

#include <cm/cm.h>

#include "urxed/cm/cma_addr.h"
#include "urxed/cm/cma_early_req.h"
#include "urxed/cm/cma_port.h"
#include "urxed/hostnet/host.h"
#include "urxed/hostnet/neigh.h"

#define CMA_IDS         65536 /* librdmacm's index of IDs has 16 bits */
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

/* Connection parameters that a program gives, or that the peer has sent in a message (IBA 12.6). */
struct cma_param {
	uint32_t qpn;
	uint32_t qkey; /* UD: in an event the peer's Q_Key; 0 in a program's parameters */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	struct cm_ece ece; /* ECE of a REQ or REP */
	uint8_t private_len;
	uint8_t private_data[CMA_PRIVATE_MAX];
};

struct cma_event {
	enum cma_event_type type;
	int status; /* 0, a negative errno value, or the reason of a REJ or status of a SIDR_REP */
	struct cma_param param;
};

struct cma;

struct cma_id {
	struct cma *cma;
	void *ctx; /* the owner's pointer, for the callbacks of cma_ops */
	uint32_t number;
	uid_t user; /* the user whose quotas count the ID's port and address resolution */
	enum cma_state state;
	uint16_t ps;
	enum cma_service service;
	struct cma_binding src; /* own address and port */
	bool low_ports;         /* the program may bind ports below CMA_PORT_UNPRIVILEGED */
	bool afonly_set;        /* the program has set src.afonly */
	struct cma_addr dst;
	bool has_device; /* the ID is bound to urxe0, and sgid_index is valid */
	/* Index in the host's GID table. Indices from HOST_ADDRESSES on mean RoCEv1; only an ID
	 * that a request over RoCEv1 has made has one of these. */
	uint8_t sgid_index;
	uint8_t peer[16]; /* GID that packets go to: dst, or for loopback the host's own address */
	/*
	 * MAC of the next hop to `peer` when the address was resolved, or from which the ID's
	 * request came. It is 0 before the resolution, and after the ID's restoration from a
	 * checkpoint; cma_path_mtu then takes the smallest MTU of the uplinks.
	 */
	uint8_t next_hop[ETHER_MAC_LEN];
	uint8_t tos;
	uint8_t route_tos; /* tos when the route was resolved, or the traffic class of cma_set_path
			    */
	uint8_t ack_timeout;
	bool ack_timeout_set;
	/* Local ACK timeout, 4.096 us * 2^n. The program's ack_timeout at the time of the route's
	 * resolution, 0 = none; for an ID that a REQ has made, that of the REQ, at least 1. */
	uint8_t route_ack_timeout;
	uint32_t qkey; /* UD: the Q_Key of the peer's SIDR_REP; 0 = none has come */
	uint32_t psn;
	uint32_t qpn;
	struct cm_conn *conn;       /* NULL: neither connected nor connecting */
	struct neigh_waiter waiter; /* for the MAC address of the next hop */
	bool waiting;               /* the ID waits for the next hop by waiter and wait_link */
	bool frozen;                /* from cma_freeze to cma_thaw */
	uint32_t timeout_ms;        /* timeout of cma_resolve_addr */
	uint64_t due;               /* time at which cma_resolve_addr times out, ns */
	LIST_ENTRY(cma_id) wait_link;
};
LIST_HEAD(cma_id_list, cma_id);

struct cma_ops {
	/* Sends a MAD to the peer's QP1; ctx is the one given to cma_open. */
	void (*send)(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_LEN]);
	/* Whether QP1's queue has room for CM_TICK_MAX MADs. If not, cma_tick runs no timers of the
	 * connection manager; its caller calls it again when there is room. */
	bool (*has_room)(void *ctx);
	/*
	 * Returns the longest Ethernet payload that the peer behind the ID's next_hop takes, bytes.
	 */
	uint16_t (*mtu_to_peer)(void *ctx, const struct cma_id *id);
	void (*event)(struct cma_id *id, const struct cma_event *event);
	/*
	 * A REQ or SIDR_REQ has arrived for a listener; `id` is the new ID for the connection.
	 * True: the owner of the listener keeps `id`. False: the backlog or a limit of the user is
	 * used up, or memory is lacking. Then cma_request.c destroys `id`, and drops the request as
	 * if the network had lost it.
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
	struct cma_id **ids;        /* CMA_IDS pointers, by number */
	uint32_t next_number;       /* number of the next ID, if that number is free */
	uint64_t now;               /* ns; CLOCK_MONOTONIC at the current call */
	struct cma_id_list waiting; /* IDs whose next hop is being resolved */
	uint64_t waiting_due;       /* before this time, no ID in `waiting` times out, ns */
	struct cma_early_reqs early;
};

/* On error the caller has nothing to close. */
int cma_open(struct cma *cma, const struct host *host, struct neigh *neigh,
	     const struct cma_ops *ops, void *ctx);
/* The caller has destroyed all IDs. Accepts a zeroed structure. */
void cma_close(struct cma *cma);
/* Handles a MAD of the CM class that has arrived at QP1. */
void cma_input(struct cma *cma, uint64_t now, const struct cm_path *path,
	       const uint8_t mad[CM_MAD_LEN]);
/* Handles expired timers; returns the time of the next call in ns, UINT64_MAX: no timer runs. */
uint64_t cma_tick(struct cma *cma, uint64_t now);
/* Returns when cma_tick is due, in ns; UINT64_MAX: no timer runs. Calls other than cma_tick may
 * change the time. */
uint64_t cma_next_deadline(const struct cma *cma);
/* Call it with neigh.h's answer to the waiter of an ID (neigh_ops.answer). It reports an event
 * ADDR_RESOLVED or ADDR_ERROR. */
void cma_neigh_answer(struct neigh_waiter *w, int status, const struct vnic_next_hop *hop);
/* The device's node GUID (vnic_node_guid), in host byte order. */
uint64_t cma_node_guid(const struct host *host);

/*
 * Makes an unbound ID. Returns -ENOSPC if CMA_IDS IDs exist, -EAGAIN if the kernel has no entropy
 * yet, or -ENOMEM. This and the functions below take the time from cma->now, which the caller sets.
 */
int cma_create_id(struct cma *cma, uid_t user, uint16_t ps, enum cma_service service, void *ctx,
		  struct cma_id **id);
void cma_destroy_id(struct cma_id *id);
/* Returns NULL if no ID has that number. */
struct cma_id *cma_find_id(const struct cma *cma, uint32_t number);

/*
 * Binds the ID to an address of the host and to addr->port, or to a free port if addr->port is 0.
 * An ID that is bound to the AF_IB wildcard receives no request.
 * -EADDRNOTAVAIL: the host does not have the address.
 * -ENODEV: the address is of AF_IB and not the wildcard, as in the kernel on RoCE.
 * -EINVAL: the ID is bound, or a link-local address names no interface.
 * -EACCES: the program may not bind a port below CMA_PORT_UNPRIVILEGED.
 * -EPROTONOSUPPORT: an AF_IB address has a service ID of no port space that the ID (its RDMA_PS_*)
 * may use.
 * Also the errors of cma_port_bind.
 */
int cma_bind(struct cma_id *id, const struct cma_addr *addr);
/*
 * Resolves dst, from the ID's address. An ID that is not bound is bound to src first, or to the
 * wildcard if src is NULL, with the errors of cma_bind. If it returns 0, it has reported an event
 * ADDR_RESOLVED or ADDR_ERROR, or one follows, after timeout_ms milliseconds at the latest
 * (-ETIMEDOUT).
 * -ENETUNREACH: no route to dst, or both have family AF_INET6, and only one is an IPv4-mapped
 * address. If the kernel's route to dst refuses packets, its error (route_refusal) instead.
 * -EINVAL: the ID's address is loopback, and dst another host's (a multicast group is allowed); the
 * host no longer has the ID's address; the ID has another address family than dst, or is in another
 * state.
 * -ENODEV: dst has family AF_IB; or dst is the wildcard, and the host has no address.
 * -ENOSPC: the user's quota of waiters is used up; -ENOMEM.
 */
int cma_resolve_addr(struct cma_id *id, const struct cma_addr *src, const struct cma_addr *dst,
		     uint32_t timeout_ms);
/* Reports the event ROUTE_RESOLVED. Returns -EINVAL if the ID is not in CMA_STATE_ADDR_RESOLVED. */
int cma_resolve_route(struct cma_id *id);
/* As cma_resolve_route, for a program that sets the path record itself (RDMA_OPTION_IB_PATH). */
int cma_set_path(struct cma_id *id, uint8_t traffic_class);
int cma_listen(struct cma_id *id);
int cma_connect(struct cma_id *id, const struct cma_param *param);
/*
 * Answers a REQ with a REP, or a SIDR_REQ with a SIDR_REP; with param NULL, answers a REP with an
 * RTU. Returns -EINVAL, and sends nothing, if the ID has no connection, if the connection has
 * ended, or if a UD ID has no param. After any other error it rejects the peer's message, if the
 * connection's state permits that.
 */
int cma_accept(struct cma_id *id, const struct cma_param *param);
/*
 * Sends a REJ for the ID's connection (cm_reject). For UD sends a SIDR_REP that refuses the
 * request, and that has no field for `reason`. Returns -EINVAL if the ID has no connection, the
 * connection's state forbids a refusal, or `data` does not fit into the message.
 */
int cma_reject(struct cma_id *id, enum cm_reason reason, const void *data, uint8_t len);
int cma_disconnect(struct cma_id *id);
/* Call it when the QP has received data before the RTU arrived (IBA 12.9.7.2). Returns -EISCONN if
 * the connection is already established, or -EINVAL if the ID does not wait for an RTU. */
int cma_notify_established(struct cma_id *id);
int cma_set_reuseaddr(struct cma_id *id, bool on);
int cma_set_afonly(struct cma_id *id, bool on);

/*
 * Returns the host's address at the ID's sgid_index. NULL: the ID has no device, or the host no
 * longer has the ID's address. For an ID that is bound to loopback, any address at that index is
 * right.
 */
const struct host_address *cma_own_address(const struct cma_id *id);
/* Returns the path of the ID's connection; without a connection, the path that cma_connect would
 * use. */
struct cm_path cma_path(const struct cma_id *id);
/* Returns the MTU of the path that cma_path returns, as enum ib_mtu: 1 = 256 to 5 = 4096 bytes. */
uint8_t cma_path_mtu(const struct cma_id *id);
/* Returns n: the packet lifetime of the ID's route is 4.096 us * 2^n. */
uint8_t cma_packet_lifetime(const struct cma_id *id);

/* --- cma_save.c: a copy of an ID without pointers, from which the next daemon restores it. */
struct cma_saved {
	struct cma_id id;
	bool connected; /* conn is valid */
	struct cm_saved conn;
};
void cma_save(const struct cma_id *id, struct cma_saved *saved);
/*
 * Restores an ID of an earlier daemon. With `again`, restores one that a checkpoint has saved
 * (ucma_checkpoint.c): that ID binds its port anew, and is frozen. Returns -EEXIST if the number or
 * the connection's communication ID is in use, -EINVAL if a field is out of range, -ENOMEM, or an
 * error of cm_restore or, with `again`, of cma_port_bind.
 */
int cma_restore(struct cma *cma, const struct cma_saved *saved, bool again, void *ctx,
		struct cma_id **id);
/*
 * Freezes an ID that a checkpoint saves and that may be restored elsewhere, so that no message or
 * timer changes it until cma_thaw. A frozen listener drops requests, as if the network had lost
 * them. cma_destroy_id of a frozen ID sends nothing to its peer.
 */
void cma_freeze(struct cma_id *id);
void cma_thaw(struct cma_id *id);

/* --- cma_resolve.c */
/* Resolves the next hop again if the ID still waited for the next hop when it was frozen or
 * recorded. */
void cma_restart_resolve(struct cma_id *id);
/* For cma_tick: ends resolutions that have timed out, with ADDR_ERROR and -ETIMEDOUT. */
void cma_tick_resolve(struct cma *cma);
/* Ends the ID's wait for its next hop; no event follows. */
void cma_cancel_resolve(struct cma_id *id);

/* --- cma_connect.c: cm_ops.event. The connection manager reports a message for the connection of
 * the ID `ctx`, that the peer does not answer, or the end of TIMEWAIT. Passes a struct cma_event to
 * the ID's owner if the kernel would report the event in the ID's state. */
void cma_on_cm_event(void *ctx, enum cm_event event, const struct cm_mad *mad);

/*
 * --- cma_request.c: cm_ops.request. The connection manager reports a REQ or SIDR_REQ. `ctx` is the
 * struct cma; *conn_ctx becomes the new ID. Rejects a request without a fitting listener, with a
 * P_Key that urxe0 lacks, or with IP addresses in its private data that differ from the packet's.
 * Drops the request if the listener is frozen, if no ID can be made, or if the listener's owner
 * refuses the new ID.
 */
enum cm_verdict cma_on_cm_request(void *ctx, struct cm_conn *conn, const struct cm_mad *mad,
				  void **conn_ctx);
/* Returns whether an ID listens at the port of that service ID, in its port space, at any address.
 * `cma` is a struct cma; it is a void pointer for cma_early_req_take. */
bool cma_has_listener(const void *cma, uint64_t service_id);

/* --- cma.c */
void cma_set_event_private_data(struct cma_event *event, const uint8_t *data, uint32_t len);
void cma_emit_event(struct cma_id *id, enum cma_event_type type, int status);

#endif
