/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Offsets of members that many commands of rdma/rdma_user_cm.h have in common. */
#include <stddef.h>
#include <string.h>

#include <rdma/rdma_user_cm.h>

#include "rdmacm/rdmacm_file.h"

uint32_t rdmacm_response_at(uint32_t command)
{
	switch (command) {
	case RDMA_USER_CM_CMD_CREATE_ID: return offsetof(struct rdma_ucm_create_id, response);
	case RDMA_USER_CM_CMD_DESTROY_ID:
	case RDMA_USER_CM_CMD_LEAVE_MCAST: return offsetof(struct rdma_ucm_destroy_id, response);
	case RDMA_USER_CM_CMD_QUERY_ROUTE:
	case RDMA_USER_CM_CMD_QUERY: return offsetof(struct rdma_ucm_query, response);
	case RDMA_USER_CM_CMD_INIT_QP_ATTR: return offsetof(struct rdma_ucm_init_qp_attr, response);
	case RDMA_USER_CM_CMD_GET_EVENT: return offsetof(struct rdma_ucm_get_event, response);
	case RDMA_USER_CM_CMD_MIGRATE_ID: return offsetof(struct rdma_ucm_migrate_id, response);
	case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
		return offsetof(struct rdma_ucm_join_ip_mcast, response);
	case RDMA_USER_CM_CMD_JOIN_MCAST: return offsetof(struct rdma_ucm_join_mcast, response);
	default: return RDMACM_NOWHERE;
	}
}

uint32_t rdmacm_id_at(uint32_t command)
{
	switch (command) {
	case RDMA_USER_CM_CMD_DESTROY_ID:
	case RDMA_USER_CM_CMD_LEAVE_MCAST: return offsetof(struct rdma_ucm_destroy_id, id);
	case RDMA_USER_CM_CMD_BIND_IP: return offsetof(struct rdma_ucm_bind_ip, id);
	case RDMA_USER_CM_CMD_BIND: return offsetof(struct rdma_ucm_bind, id);
	case RDMA_USER_CM_CMD_RESOLVE_IP: return offsetof(struct rdma_ucm_resolve_ip, id);
	case RDMA_USER_CM_CMD_RESOLVE_ADDR: return offsetof(struct rdma_ucm_resolve_addr, id);
	case RDMA_USER_CM_CMD_RESOLVE_ROUTE: return offsetof(struct rdma_ucm_resolve_route, id);
	case RDMA_USER_CM_CMD_QUERY_ROUTE:
	case RDMA_USER_CM_CMD_QUERY: return offsetof(struct rdma_ucm_query, id);
	case RDMA_USER_CM_CMD_CONNECT: return offsetof(struct rdma_ucm_connect, id);
	case RDMA_USER_CM_CMD_LISTEN: return offsetof(struct rdma_ucm_listen, id);
	case RDMA_USER_CM_CMD_ACCEPT: return offsetof(struct rdma_ucm_accept, id);
	case RDMA_USER_CM_CMD_REJECT: return offsetof(struct rdma_ucm_reject, id);
	case RDMA_USER_CM_CMD_DISCONNECT: return offsetof(struct rdma_ucm_disconnect, id);
	case RDMA_USER_CM_CMD_INIT_QP_ATTR: return offsetof(struct rdma_ucm_init_qp_attr, id);
	case RDMA_USER_CM_CMD_SET_OPTION: return offsetof(struct rdma_ucm_set_option, id);
	case RDMA_USER_CM_CMD_NOTIFY: return offsetof(struct rdma_ucm_notify, id);
	case RDMA_USER_CM_CMD_JOIN_IP_MCAST: return offsetof(struct rdma_ucm_join_ip_mcast, id);
	case RDMA_USER_CM_CMD_JOIN_MCAST: return offsetof(struct rdma_ucm_join_mcast, id);
	case RDMA_USER_CM_CMD_MIGRATE_ID: return offsetof(struct rdma_ucm_migrate_id, id);
	default: return RDMACM_NOWHERE;
	}
}

bool rdmacm_id_of(const struct rdmacm_request *request, uint32_t *number)
{
	uint32_t at = rdmacm_id_at(request->command.command);

	if (at == RDMACM_NOWHERE || request->command.in < at + sizeof(*number))
		return false;
	memcpy(number, request->in + at, sizeof(*number));
	return true;
}

struct rdmacm_request rdmacm_request_make(struct rdmacm_file *file, uint32_t command,
					  const void *in, uint32_t size, uint32_t out)
{
	struct rdmacm_request request = {.command = {.command = command, .in = size, .out = out},
					 .opening = file->opening,
					 .from = file};

	memcpy(request.in, in, size);
	return request;
}
