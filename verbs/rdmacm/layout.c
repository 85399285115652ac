/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names of the commands of rdma/rdma_user_cm.h, and offsets of members that many of them have. */
#include <stddef.h>
#include <string.h>

#include <rdma/rdma_user_cm.h>

#include "rdmacm/rdmacm_file.h"

#define COMMAND(name, id, response) [RDMA_USER_CM_CMD_##name] = {#name, id, response}
#define WITH_ID(name, type)         COMMAND(name, offsetof(struct type, id), RDMACM_NOWHERE)
#define WITH_RESPONSE(name, type)   COMMAND(name, RDMACM_NOWHERE, offsetof(struct type, response))
#define WITH_BOTH(name, type) \
	COMMAND(name, offsetof(struct type, id), offsetof(struct type, response))

static const struct layout {
	const char *name;
	uint16_t id_at, response_at;
} layouts[] = {
	WITH_RESPONSE(CREATE_ID, rdma_ucm_create_id),
	WITH_BOTH(DESTROY_ID, rdma_ucm_destroy_id),
	WITH_ID(BIND_IP, rdma_ucm_bind_ip),
	WITH_ID(RESOLVE_IP, rdma_ucm_resolve_ip),
	WITH_ID(RESOLVE_ROUTE, rdma_ucm_resolve_route),
	WITH_BOTH(QUERY_ROUTE, rdma_ucm_query),
	WITH_ID(CONNECT, rdma_ucm_connect),
	WITH_ID(LISTEN, rdma_ucm_listen),
	WITH_ID(ACCEPT, rdma_ucm_accept),
	WITH_ID(REJECT, rdma_ucm_reject),
	WITH_ID(DISCONNECT, rdma_ucm_disconnect),
	WITH_BOTH(INIT_QP_ATTR, rdma_ucm_init_qp_attr),
	WITH_RESPONSE(GET_EVENT, rdma_ucm_get_event),
	COMMAND(GET_OPTION, RDMACM_NOWHERE, RDMACM_NOWHERE),
	WITH_ID(SET_OPTION, rdma_ucm_set_option),
	WITH_ID(NOTIFY, rdma_ucm_notify),
	WITH_BOTH(JOIN_IP_MCAST, rdma_ucm_join_ip_mcast),
	WITH_BOTH(LEAVE_MCAST, rdma_ucm_destroy_id),
	WITH_BOTH(MIGRATE_ID, rdma_ucm_migrate_id),
	WITH_BOTH(QUERY, rdma_ucm_query),
	WITH_ID(BIND, rdma_ucm_bind),
	WITH_ID(RESOLVE_ADDR, rdma_ucm_resolve_addr),
	WITH_BOTH(JOIN_MCAST, rdma_ucm_join_mcast),
	/* By number: older headers lack these names. */
	[23] = {"RESOLVE_IB_SERVICE", 0, RDMACM_NOWHERE},
	[24] = {"WRITE_CM_EVENT", 0, RDMACM_NOWHERE},
};

static const struct layout *layout_of(uint32_t command)
{
	static const struct layout unknown = {"unknown", RDMACM_NOWHERE, RDMACM_NOWHERE};

	return command < sizeof(layouts) / sizeof(layouts[0]) ? &layouts[command] : &unknown;
}

const char *rdmacm_command_name(uint32_t command)
{
	return layout_of(command)->name;
}

uint32_t rdmacm_response_at(uint32_t command)
{
	return layout_of(command)->response_at;
}

uint32_t rdmacm_id_at(uint32_t command)
{
	return layout_of(command)->id_at;
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
