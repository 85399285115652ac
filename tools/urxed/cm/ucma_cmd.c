/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The commands of rdma/rdma_user_cm.h, with the kernel's checks (drivers/infiniband/core/ucma.c).
 * ucma.c and ucma_reply_cache.c call ucma_run_command.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "urxed/cm/ucma.h"

#define QPT_RC      2 /* values of enum ib_qp_type */
#define QPT_UC      3
#define QPT_UD      4
#define QPT_XRC_INI 9
#define QPT_XRC_TGT 10
#define COMM_EST    4  /* enum ib_event_type */
#define MAX_EXP     31 /* largest exponent of a timeout, which has 5 bits */

/* Size of a structure up to, but without, `member`: newer versions have appended the fields from
 * `member` on. */
#define SIZE_UP_TO(type, member) offsetof(struct type, member)

static int write_response(struct ucma_command *c, const void *response, uint32_t size)
{
	c->out_len = c->out_size < size ? c->out_size : size;
	memcpy(c->out, response, c->out_len);
	return 0;
}

static struct ucma_ctx *find_ctx(const struct ucma_command *c, uint32_t number, int *rc)
{
	struct cma_id *id = cma_find_id(&c->file->ucma->cma, number);
	struct ucma_ctx *ctx = id ? id->ctx : NULL;

	*rc = !ctx ? -ENOENT : ctx->file != c->file ? -EINVAL : 0;
	return *rc ? NULL : ctx;
}

static struct ucma_ctx *find_ctx_to_change(const struct ucma_command *c, uint32_t number, int *rc)
{
	struct ucma_ctx *ctx = find_ctx(c, number, rc);

	/* Before the command runs, because a command that fails may have changed the ID, too. */
	if (ctx) {
		ucma_store_mark_dirty(ctx);
		ucma_ctx_resend_events(ctx);
	}
	return ctx;
}

/* --- IDs */

static int get_qp_type_service(uint8_t qp_type, enum cma_service *service)
{
	switch (qp_type) {
	case QPT_RC: *service = CMA_RC; return 0;
	case QPT_UC: *service = CMA_UC; return 0;
	case QPT_UD: *service = CMA_UD; return 0;
	case QPT_XRC_INI:
	case QPT_XRC_TGT: return -EOPNOTSUPP;
	default: return -EINVAL;
	}
}

static int get_service(const struct rdma_ucm_create_id *request, enum cma_service *service)
{
	switch (request->ps) {
	case RDMA_PS_TCP: *service = CMA_RC; return 0;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB: *service = CMA_UD; return 0;
	case RDMA_PS_IB: return get_qp_type_service(request->qp_type, service);
	default: return -EINVAL;
	}
}

static int create_id(struct ucma_command *c)
{
	const struct rdma_ucm_create_id *request = c->request;
	struct rdma_ucm_create_id_resp response;
	enum cma_service service = CMA_RC;
	struct ucma_ctx *ctx;
	int rc = get_service(request, &service);

	if (!rc && !ucma_can_create_id(c->file))
		rc = -ENOSPC;
	if (rc)
		return rc;
	ctx = ucma_ctx_new(c->file, request->uid);
	if (!ctx)
		return -ENOMEM;
	rc = cma_create_id(&c->file->ucma->cma, c->file->user, request->ps, service, ctx, &ctx->id);
	if (rc) {
		ucma_ctx_destroy(ctx);
		return rc;
	}
	ctx->id->low_ports = c->file->low_ports;
	response.id = ctx->id->number;
	return write_response(c, &response, sizeof(response));
}

static int destroy_id(struct ucma_command *c)
{
	const struct rdma_ucm_destroy_id_resp response = {.events_reported =
								  c->ctx->events_reported};

	ucma_ctx_destroy(c->ctx);
	return write_response(c, &response, sizeof(response));
}

static int migrate_id(struct ucma_command *c)
{
	const struct rdma_ucm_migrate_id *request = c->request;
	struct rdma_ucm_migrate_resp response;
	struct ucma_command from = *c;
	struct ucma_ctx *ctx;
	int rc;

	from.file = ucma_find_file(c->file->ucma, c->token);
	if (!from.file || from.file->pid != c->file->pid)
		return -EINVAL;
	if (from.file->frozen)
		return -EBUSY;
	c->withdrawn_from = from.file;
	from.file->stale = 0;
	ctx = find_ctx_to_change(&from, request->id, &rc);
	if (rc)
		return rc;
	response.events_reported = ctx->events_reported;
	ucma_ctx_move(ctx, c->file);
	return write_response(c, &response, sizeof(response));
}

/* --- Addresses */

/* Reads an address. Returns -EINVAL if the program's `size` is not that of the address family. */
static int read_sockaddr(struct cma_addr *addr, const void *sockaddr, uint32_t size)
{
	int rc = cma_addr_from(addr, sockaddr, size);

	return rc ? rc : cma_addr_size(addr) == size ? 0 : -EINVAL;
}

/* Reads an address of a command that gives no size, and so takes IPv4 and IPv6 only. Returns
 * -EINVAL for another family. */
static int read_ip_sockaddr(struct cma_addr *addr, const struct sockaddr_in6 *sockaddr)
{
	return cma_addr_from(addr, sockaddr, sizeof(*sockaddr));
}

static int bind_ip(struct ucma_command *c)
{
	const struct rdma_ucm_bind_ip *request = c->request;
	struct cma_addr addr;
	int rc = read_ip_sockaddr(&addr, &request->addr);
	struct ucma_ctx *ctx = rc ? NULL : find_ctx_to_change(c, request->id, &rc);

	return rc ? rc : cma_bind(ctx->id, &addr);
}

static int bind_addr(struct ucma_command *c)
{
	const struct rdma_ucm_bind *request = c->request;
	struct cma_addr addr;
	struct ucma_ctx *ctx;
	int rc;

	if (request->reserved || request->addr_size > sizeof(request->addr))
		return -EINVAL;
	rc = read_sockaddr(&addr, &request->addr, request->addr_size);
	ctx = rc ? NULL : find_ctx_to_change(c, request->id, &rc);
	return rc ? rc : cma_bind(ctx->id, &addr);
}

/* Each resolution ends in an event, which takes memory until the program fetches it. Returns
 * -ENOSPC if the ID or its user has too many unfetched events. */
static int check_events(const struct ucma_ctx *ctx)
{
	return ctx->n_events < UCMA_EVENTS_MAX && ucma_can_queue_event(ctx->file) ? 0 : -ENOSPC;
}

static int resolve_ctx(struct ucma_ctx *ctx, const struct cma_addr *src, const struct cma_addr *dst,
		       uint32_t timeout_ms)
{
	int rc = check_events(ctx);

	return rc ? rc : cma_resolve_addr(ctx->id, src, dst, timeout_ms);
}

/* The source address is optional: family 0 means none. */
static int resolve_ip(struct ucma_command *c)
{
	const struct rdma_ucm_resolve_ip *request = c->request;
	struct cma_addr src = {0}, dst;
	struct ucma_ctx *ctx;
	int rc = 0;

	if (request->src_addr.sin6_family)
		rc = read_ip_sockaddr(&src, &request->src_addr);
	if (!rc)
		rc = read_ip_sockaddr(&dst, &request->dst_addr);
	ctx = rc ? NULL : find_ctx_to_change(c, request->id, &rc);
	return rc ? rc : resolve_ctx(ctx, &src, &dst, request->timeout_ms);
}

/* The source address is optional: size 0 means none. */
static int resolve_addr(struct ucma_command *c)
{
	const struct rdma_ucm_resolve_addr *request = c->request;
	struct cma_addr src = {0}, dst;
	struct ucma_ctx *ctx;
	int rc = 0;

	if (request->reserved || request->src_size > sizeof(request->src_addr) ||
	    request->dst_size > sizeof(request->dst_addr))
		return -EINVAL;
	if (request->src_size)
		rc = read_sockaddr(&src, &request->src_addr, request->src_size);
	if (!rc)
		rc = read_sockaddr(&dst, &request->dst_addr, request->dst_size);
	ctx = rc ? NULL : find_ctx_to_change(c, request->id, &rc);
	return rc ? rc : resolve_ctx(ctx, &src, &dst, request->timeout_ms);
}

static int resolve_route(struct ucma_command *c)
{
	return cma_resolve_route(c->ctx->id);
}

#define QUERY_ROUTE_LEN SIZE_UP_TO(rdma_ucm_query_route_resp, ibdev_index)

static int query_route(struct ucma_command *c)
{
	struct rdma_ucm_query_route_resp response;

	ucma_fill_route(&response, c->ctx->id);
	return write_response(c, &response, QUERY_ROUTE_LEN);
}

#define QUERY_ADDR_LEN SIZE_UP_TO(rdma_ucm_query_addr_resp, ibdev_index)

typedef void fill_addr_fn(struct rdma_ucm_query_addr_resp *resp, const struct cma_id *id);

static int query_addr(struct ucma_command *c, const struct cma_id *id, fill_addr_fn *fill)
{
	struct rdma_ucm_query_addr_resp response;

	if (c->out_size < QUERY_ADDR_LEN)
		return -ENOSPC;
	fill(&response, id);
	return write_response(c, &response, QUERY_ADDR_LEN);
}

/* If the program's buffer has no room for a path, returns only the number of paths, as the kernel
 * does. */
static int query_path(struct ucma_command *c, const struct cma_id *id)
{
	struct rdma_ucm_query_path_resp head;
	struct ib_path_rec_data path = {.flags = 0};
	uint8_t response[sizeof(head) + sizeof(path)];
	uint32_t n;

	if (c->out_size < sizeof(head))
		return -ENOSPC;
	n = ucma_fill_path(&head, &path, id);
	memcpy(response, &head, sizeof(head));
	memcpy(response + sizeof(head), &path, sizeof(path));
	return write_response(c, response,
			      n && c->out_size >= sizeof(response) ? sizeof(response)
								   : sizeof(head));
}

static int query_id(struct ucma_command *c)
{
	const struct rdma_ucm_query *request = c->request;
	const struct cma_id *id = c->ctx->id;

	switch (request->option) {
	case RDMA_USER_CM_QUERY_ADDR: return query_addr(c, id, ucma_fill_addr);
	case RDMA_USER_CM_QUERY_PATH: return query_path(c, id);
	case RDMA_USER_CM_QUERY_GID: return query_addr(c, id, ucma_fill_gid);
	default: return -ENOSYS;
	}
}

/* --- Connections */

/* names_qp: the command names a QP of the program; the one that answers a SIDR_REQ does not.
 * Returns -EINVAL if the process may not name this QPN (ucma_ops.may_name_qpn). */
static int read_conn_param(const struct ucma_command *c, const struct rdma_ucm_conn_param *conn,
			   const struct rdma_ucm_ece *ece, bool names_qp, struct cma_param *p)
{
	const struct ucma *u = c->file->ucma;

	if (names_qp &&
	    !u->ops->may_name_qpn(u->ctx, c->file->pid, c->file->user, conn->qp_num & CMA_QPN_BITS))
		return -EINVAL;
	*p = (struct cma_param){.qpn = conn->qp_num & CMA_QPN_BITS,
				.responder_resources = conn->responder_resources,
				.initiator_depth = conn->initiator_depth,
				.flow_control = !!conn->flow_control,
				.retry_count = conn->retry_count,
				.rnr_retry_count = conn->rnr_retry_count,
				.srq = !!conn->srq,
				.ece = {ece->vendor_id, ece->attr_mod},
				.private_len = conn->private_data_len};
	memcpy(p->private_data, conn->private_data, p->private_len);
	return 0;
}

static bool was_connected(const struct ucma_command *c, const struct cma_id *id)
{
	return c->again && id->state == CMA_CONNECT && id->conn;
}

static int connect_id(struct ucma_command *c)
{
	const struct rdma_ucm_connect *request = c->request;
	struct ucma_ctx *ctx;
	struct cma_param p;
	int rc;

	if (!request->conn_param.valid)
		return -EINVAL;
	ctx = find_ctx_to_change(c, request->id, &rc);
	if (rc || was_connected(c, ctx->id))
		return rc;
	rc = read_conn_param(c, &request->conn_param, &request->ece, ctx->id->service != CMA_UD,
			     &p);
	return rc ? rc : cma_connect(ctx->id, &p);
}

static int listen_id(struct ucma_command *c)
{
	const struct rdma_ucm_listen *request = c->request;
	struct ucma_ctx *ctx = c->ctx;
	int rc = cma_listen(ctx->id);

	if (rc)
		return rc;
	ctx->backlog = request->backlog > 0 && request->backlog < UCMA_BACKLOG_MAX
			       ? request->backlog
			       : UCMA_BACKLOG_MAX;
	ctx->reserve = ctx->backlog / UCMA_RESERVE;
	return 0;
}

/* Whether the daemon has already carried out an ACCEPT that the program now repeats. An ACCEPT
 * without connection parameters comes from the connecting side, and has sent an RTU. */
static bool was_accepted(const struct ucma_command *c, const struct ucma_ctx *ctx,
			 const struct rdma_ucm_accept *request)
{
	if (!c->again || !ctx->id->conn)
		return false;
	return request->conn_param.valid ? ctx->uid == request->uid
					 : cm_state(ctx->id->conn) == CM_ESTABLISHED;
}

static int accept_id(struct ucma_command *c)
{
	const struct rdma_ucm_accept *request = c->request;
	struct ucma_ctx *ctx = c->ctx;
	struct cma_param p;
	int rc;

	if (was_accepted(c, ctx, request))
		return 0;
	if (!request->conn_param.valid)
		return cma_accept(ctx->id, NULL);
	rc = read_conn_param(c, &request->conn_param, &request->ece, true, &p);
	if (!rc)
		rc = cma_accept(ctx->id, &p);
	if (!rc)
		ucma_ctx_accept(ctx, request->uid);
	return rc;
}

static int reject_id(struct ucma_command *c)
{
	const struct rdma_ucm_reject *request = c->request;
	const uint8_t reason = request->reason ? request->reason : CM_REJ_CONSUMER;
	struct ucma_ctx *ctx;
	int rc;

	if (reason != CM_REJ_CONSUMER && reason != CM_REJ_VENDOR_OPTION)
		return -EINVAL;
	ctx = find_ctx_to_change(c, request->id, &rc);
	return rc ? rc
		  : cma_reject(ctx->id, reason, request->private_data, request->private_data_len);
}

static int disconnect_id(struct ucma_command *c)
{
	return cma_disconnect(c->ctx->id);
}

static int notify_id(struct ucma_command *c)
{
	const struct rdma_ucm_notify *request = c->request;
	struct cma_id *id = c->ctx->id;

	return id->conn && request->event == COMM_EST ? cma_notify_established(id) : -EINVAL;
}

static int init_qp_attr(struct ucma_command *c)
{
	const struct rdma_ucm_init_qp_attr *request = c->request;
	struct ib_uverbs_qp_attr response;
	int rc = ucma_fill_qp_attr(&response, c->ctx->id, request->qp_state);

	return rc ? rc : write_response(c, &response, sizeof(response));
}

/* --- Multicast groups. librdmacm attaches the QP itself when it gets MULTICAST_JOIN. */

static int join_group(struct ucma_command *c, uint32_t number, uint64_t uid,
		      const struct cma_addr *addr)
{
	struct rdma_ucm_create_id_resp response;
	struct ucma_ctx *ctx;
	int rc;

	ctx = find_ctx_to_change(c, number, &rc);
	if (rc)
		return rc;
	if (!ctx->id->has_device || ctx->id->service != CMA_UD || addr->family == CMA_AF_IB ||
	    !cma_addr_is_multicast(addr) ||
	    (ctx->id->state != CMA_ADDR_BOUND && ctx->id->state != CMA_STATE_ADDR_RESOLVED))
		return -EINVAL;
	rc = ucma_group_join(ctx, uid, addr->ip, &response.id);
	return rc ? rc : write_response(c, &response, sizeof(response));
}

static int join_ip_mcast(struct ucma_command *c)
{
	const struct rdma_ucm_join_ip_mcast *request = c->request;
	struct cma_addr addr;
	int rc = read_ip_sockaddr(&addr, &request->addr);

	return rc ? rc : join_group(c, request->id, request->uid, &addr);
}

static int join_mcast(struct ucma_command *c)
{
	const struct rdma_ucm_join_mcast *request = c->request;
	struct cma_addr addr;
	int rc;

	if (request->addr_size > sizeof(request->addr) ||
	    request->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return -EINVAL;
	rc = read_sockaddr(&addr, &request->addr, request->addr_size);
	return rc ? rc : join_group(c, request->id, request->uid, &addr);
}

static int leave_mcast(struct ucma_command *c)
{
	const struct rdma_ucm_destroy_id *request = c->request;
	struct ucma_group *group = ucma_find_group(c->file, request->id);
	struct rdma_ucm_destroy_id_resp response;

	if (!group)
		return -ENOENT;
	response.events_reported = group->events_reported;
	ucma_group_leave(group);
	return write_response(c, &response, sizeof(response));
}

/* --- Options */

static int set_id_option(struct cma_id *id, uint32_t name, const uint8_t *value, uint32_t len)
{
	int32_t number = 0;

	if (name == RDMA_OPTION_ID_REUSEADDR || name == RDMA_OPTION_ID_AFONLY) {
		if (len != sizeof(number))
			return -EINVAL;
		memcpy(&number, value, sizeof(number));
		return name == RDMA_OPTION_ID_AFONLY ? cma_set_afonly(id, number)
						     : cma_set_reuseaddr(id, number);
	}
	if (name != RDMA_OPTION_ID_TOS && name != RDMA_OPTION_ID_ACK_TIMEOUT)
		return -ENOSYS;
	if (len != sizeof(*value))
		return -EINVAL;
	if (name == RDMA_OPTION_ID_TOS) {
		id->tos = *value;
		return 0;
	}
	if (id->service != CMA_RC || *value > MAX_EXP)
		return -EINVAL;
	id->ack_timeout = *value;
	id->ack_timeout_set = true;
	return 0;
}

/*
 * Takes only the traffic class from the program's path record: the rest follows from the addresses.
 */
static int set_path(struct cma_id *id, const uint8_t *value, uint32_t len)
{
	struct ib_path_rec_data data[CM_ATTACH_OPTION / sizeof(struct ib_path_rec_data)];
	uint8_t traffic_class;
	int rc;

	if (len % sizeof(data[0]) || len > sizeof(data))
		return -EINVAL;
	memcpy(data, value, len);
	rc = ucma_read_path(data, len / (uint32_t)sizeof(data[0]), &traffic_class);
	return rc ? rc : cma_set_path(id, traffic_class);
}

static int set_option(struct ucma_command *c)
{
	const struct rdma_ucm_set_option *request = c->request;
	const uint8_t *value = c->in + sizeof(*request);
	struct cma_id *id = c->ctx->id;

	if (request->optlen > c->in_size - sizeof(*request))
		return -EINVAL;
	if (request->level == RDMA_OPTION_IB && request->optname == RDMA_OPTION_IB_PATH)
		return set_path(id, value, request->optlen);
	return request->level == RDMA_OPTION_ID
		       ? set_id_option(id, request->optname, value, request->optlen)
		       : -ENOSYS;
}

/* --- Events */

/* Does nothing here: ucma.c has already read from the message's `fetched` what the program has
 * fetched. */
static int acknowledge_events(struct ucma_command *c)
{
	(void)c;
	return 0;
}

/* --- Table of commands */

struct command {
	/* NULL: not supported. The kernel does not support GET_OPTION, either. */
	int (*run)(struct ucma_command *c);
	uint16_t request; /* least bytes of the request, and of the buffer for the response */
	uint16_t response;
	/* How the command uses c->ctx. NO_ID: the command finds its ID itself. */
	enum { NO_ID, READ_ID, CHANGE_ID } use;
	uint16_t id_at; /* offset of the ID's number in the request */
};

#define END_OF(type, member) (offsetof(struct type, member) + sizeof(((struct type *)0)->member))
#define NUMBER_LEN           sizeof(uint32_t) /* size of a response with one number */
#define QP_ATTR_LEN          sizeof(struct ib_uverbs_qp_attr)
/* `last` is the last member that a request must have. */
#define COMMAND(name, run, type, last, response, ...) \
	[RDMA_USER_CM_CMD_##name] = {run, END_OF(type, last), response, __VA_ARGS__}
#define WITH_ID(name, run, type, last, response, use) \
	COMMAND(name, run, type, last, response, use, offsetof(struct type, id))

static const struct command commands[] = {
	COMMAND(CREATE_ID, create_id, rdma_ucm_create_id, reserved, NUMBER_LEN),
	WITH_ID(DESTROY_ID, destroy_id, rdma_ucm_destroy_id, id, NUMBER_LEN, READ_ID),
	COMMAND(BIND_IP, bind_ip, rdma_ucm_bind_ip, id, 0),
	COMMAND(RESOLVE_IP, resolve_ip, rdma_ucm_resolve_ip, timeout_ms, 0),
	WITH_ID(RESOLVE_ROUTE, resolve_route, rdma_ucm_resolve_route, timeout_ms, 0, CHANGE_ID),
	WITH_ID(QUERY_ROUTE, query_route, rdma_ucm_query, id, QUERY_ROUTE_LEN, READ_ID),
	WITH_ID(QUERY, query_id, rdma_ucm_query, option, 0, READ_ID),
	COMMAND(CONNECT, connect_id, rdma_ucm_connect, reserved, 0),
	WITH_ID(LISTEN, listen_id, rdma_ucm_listen, backlog, 0, CHANGE_ID),
	WITH_ID(ACCEPT, accept_id, rdma_ucm_accept, reserved, 0, CHANGE_ID),
	COMMAND(REJECT, reject_id, rdma_ucm_reject, private_data, 0),
	WITH_ID(DISCONNECT, disconnect_id, rdma_ucm_disconnect, id, 0, CHANGE_ID),
	WITH_ID(INIT_QP_ATTR, init_qp_attr, rdma_ucm_init_qp_attr, qp_state, QP_ATTR_LEN, READ_ID),
	[RDMA_USER_CM_CMD_GET_EVENT] = {acknowledge_events},
	WITH_ID(SET_OPTION, set_option, rdma_ucm_set_option, optlen, 0, CHANGE_ID),
	WITH_ID(NOTIFY, notify_id, rdma_ucm_notify, event, 0, CHANGE_ID),
	COMMAND(MIGRATE_ID, migrate_id, rdma_ucm_migrate_id, fd, NUMBER_LEN),
	COMMAND(BIND, bind_addr, rdma_ucm_bind, addr, 0),
	COMMAND(RESOLVE_ADDR, resolve_addr, rdma_ucm_resolve_addr, dst_addr, 0),
	COMMAND(JOIN_IP_MCAST, join_ip_mcast, rdma_ucm_join_ip_mcast, id, NUMBER_LEN),
	COMMAND(JOIN_MCAST, join_mcast, rdma_ucm_join_mcast, addr, NUMBER_LEN),
	COMMAND(LEAVE_MCAST, leave_mcast, rdma_ucm_destroy_id, id, NUMBER_LEN),
};

int ucma_run_command(struct ucma_command *c)
{
	uint8_t request[CM_ATTACH_BYTES] __attribute__((aligned(8))) = {0};
	const struct command *command;
	uint32_t number;
	int rc = 0;

	if (c->number >= sizeof(commands) / sizeof(commands[0]))
		return -EINVAL;
	command = &commands[c->number];
	if (!command->run)
		return -ENOSYS;
	if (c->out_size < command->response)
		return -ENOSPC;
	if (c->in_size < command->request)
		return -EINVAL;
	/* Programs built with older headers give shorter requests; the rest stays 0. */
	memcpy(request, c->in, c->in_size < sizeof(request) ? c->in_size : sizeof(request));
	c->request = request;
	memcpy(&number, request + command->id_at, sizeof(number));
	if (command->use == READ_ID)
		c->ctx = find_ctx(c, number, &rc);
	else if (command->use == CHANGE_ID)
		c->ctx = find_ctx_to_change(c, number, &rc);
	return rc ? rc : command->run(c);
}
