/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/report/report_rdmacm.h"

#include <arpa/inet.h>
#include <string.h>

#include <cm/ip.h>

#include "common/json_fields.h"

static const char *get_port_space_name(uint16_t ps)
{
	switch (ps) {
	case CM_PS_TCP: return "TCP";
	case CM_PS_UDP: return "UDP";
	case CM_PS_IB: return "IB";
	default: return "IPOIB";
	}
}

static const char *get_service_name(enum cma_service service)
{
	static const char *const names[] = {[CMA_RC] = "RC", [CMA_UC] = "UC", [CMA_UD] = "UD"};

	return names[service];
}

static const char *get_state_name(enum cma_state state)
{
	static const char *const names[] = {
		[CMA_IDLE] = "idle",
		[CMA_ADDR_QUERY] = "address query",
		[CMA_STATE_ADDR_RESOLVED] = "address resolved",
		[CMA_STATE_ROUTE_RESOLVED] = "route resolved",
		[CMA_CONNECT] = "connect",
		[CMA_DISCONNECT] = "disconnect",
		[CMA_ADDR_BOUND] = "bound",
		[CMA_LISTEN] = "listen",
	};

	return names[state];
}

static json_t *make_cm_state(const struct cma_id *id)
{
	static const char *const names[] = {
		[CM_IDLE] = "IDLE",
		[CM_LISTEN] = "LISTEN",
		[CM_REQ_SENT] = "REQ_SENT",
		[CM_REQ_RCVD] = "REQ_RCVD",
		[CM_MRA_REQ_SENT] = "MRA_REQ_SENT",
		[CM_MRA_REQ_RCVD] = "MRA_REQ_RCVD",
		[CM_REP_SENT] = "REP_SENT",
		[CM_REP_RCVD] = "REP_RCVD",
		[CM_MRA_REP_SENT] = "MRA_REP_SENT",
		[CM_MRA_REP_RCVD] = "MRA_REP_RCVD",
		[CM_ESTABLISHED] = "ESTABLISHED",
		[CM_DREQ_SENT] = "DREQ_SENT",
		[CM_DREQ_RCVD] = "DREQ_RCVD",
		[CM_TIMEWAIT] = "TIMEWAIT",
		[CM_SIDR_REQ_SENT] = "SIDR_REQ_SENT",
		[CM_SIDR_REQ_RCVD] = "SIDR_REQ_RCVD",
	};

	return id->conn ? json_string(names[cm_state(id->conn)]) : json_null();
}

static json_t *make_address(const struct cma_addr *a)
{
	char text[INET6_ADDRSTRLEN];

	if (!a->family)
		return json_null();
	if (a->family == AF_INET)
		inet_ntop(AF_INET, a->ip + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, a->ip, text, sizeof(text));
	return json_sprintf(a->family == AF_INET ? "%s:%u" : "[%s]:%u", text, a->port);
}

static json_t *make_id(const struct ucma_ctx *ctx)
{
	const struct ucma_file *file = ctx->file;
	const struct cma_id *id = ctx->id;

	return json_pack("{s:s, s:i, s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:i}", "process",
			 file->name, "pid", (int)file->pid, "id", (int)id->number, "space",
			 get_port_space_name(id->ps), "type", get_service_name(id->service),
			 "state", get_state_name(id->state), "cm", make_cm_state(id), "src",
			 make_address(&id->src.addr), "dst", make_address(&id->dst), "qpn",
			 json_number_or_null(id->qpn), "peer_qpn",
			 json_number_or_null(id->conn ? cm_channel(id->conn)->remote_qpn : 0),
			 "events", (int)ctx->n_events);
}

json_t *report_ids(const struct rdmacm *r)
{
	const struct ucma_file *file;
	const struct ucma_ctx *ctx;
	json_t *list = json_array();

	LIST_FOREACH(file, &r->ucma.files, link)
	LIST_FOREACH(ctx, &file->ctxs, link)
	json_array_append_new(list, make_id(ctx));
	return list;
}
