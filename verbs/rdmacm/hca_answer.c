/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/hca_answer.h"

#include <endian.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <vnic/attach_protocol.h>

#include "rdmacm/kernel.h"

#define PORT           1          /* the only port of urxe0 */
#define NO_DEVICE      UINT32_MAX /* device index of librdmacm, which then looks for the GUID */
#define NO_INDEX       UINT8_MAX  /* exceeds each table of urxe0: verbs commands fail with EINVAL */
#define MULTICAST_JOIN 12         /* of enum rdma_cm_event_type */

/* --- The daemon's file */

/* The contents of VNIC_HCA_FILE. GUIDs and GIDs are in network byte order. */
struct counterparts {
	uint64_t hca;                     /* node GUID of the HCA; 0: nothing stands for it */
	uint8_t port;                     /* of the HCA */
	uint64_t device;                  /* node GUID of urxe0 */
	uint8_t pkeys[VNIC_ATTACH_PKEYS]; /* urxe0's index by the HCA's */
	uint32_t n_gids;
	struct {
		uint32_t hca_index;
		int index; /* of urxe0; -1: urxe0 has no such GID */
		uint64_t gid[2];
	} gids[VNIC_HCA_GIDS];
};

static void parse_line(struct counterparts *c, const char *line)
{
	uint64_t first, second;
	uint32_t hca_index;
	uint8_t port;
	int index;

	if (sscanf(line, "port %16" SCNx64 " %hhu %16" SCNx64, &first, &port, &second) == 3) {
		c->hca = htobe64(first);
		c->port = port;
		c->device = htobe64(second);
	} else if (sscanf(line, "pkey %" SCNu32 " %d", &hca_index, &index) == 2) {
		if (hca_index < VNIC_ATTACH_PKEYS)
			c->pkeys[hca_index] = (uint8_t)index;
	} else if (sscanf(line, "gid %" SCNu32 " %d %16" SCNx64 "%16" SCNx64, &hca_index, &index,
			  &first, &second) == 4 &&
		   c->n_gids < VNIC_HCA_GIDS) {
		c->gids[c->n_gids].hca_index = hca_index;
		c->gids[c->n_gids].index = index;
		c->gids[c->n_gids].gid[0] = htobe64(first);
		c->gids[c->n_gids++].gid[1] = htobe64(second);
	}
}

static void read_counterparts(struct counterparts *c)
{
	char text[VNIC_HCA_TEXT + 1];

	memset(c, 0, sizeof(*c));
	memset(c->pkeys, NO_INDEX, sizeof(c->pkeys));
	text[rdmacm_kernel_read_hca(text, VNIC_HCA_TEXT)] = '\0';
	for (const char *line = strchr(text, '\n'); line; line = strchr(line + 1, '\n'))
		parse_line(c, line + 1);
}

/* Whether the GID is that of a loopback address, 127.0.0.0/8 or ::1, which no GID table has. */
static bool is_loopback(const uint64_t gid[2])
{
	static const uint8_t v4[13] = {[10] = 0xff, 0xff, 127}, v6[16] = {[15] = 1};

	return !memcmp(gid, v4, sizeof(v4)) || !memcmp(gid, v6, sizeof(v6));
}

/*
 * Whether the HCA's table has entries with that GID, and urxe0 has all of these. A loopback address
 * stands for any GID: rdma_cm chooses one.
 */
static bool has_gid(const struct counterparts *c, const uint64_t gid[2])
{
	const bool any = is_loopback(gid);
	bool found = false;

	for (uint32_t i = 0; i < c->n_gids; i++) {
		if (!any && memcmp(c->gids[i].gid, gid, sizeof(c->gids[i].gid)) != 0)
			continue;
		if (c->gids[i].index < 0)
			return false;
		found = true;
	}
	return found;
}

static uint8_t find_gid_index(const struct counterparts *c, uint8_t hca_index)
{
	for (uint32_t i = 0; i < c->n_gids; i++)
		if (c->gids[i].hca_index == hca_index && c->gids[i].index >= 0)
			return (uint8_t)c->gids[i].index;
	return NO_INDEX;
}

static uint8_t find_pkey_index(const struct counterparts *c, uint16_t hca_index)
{
	return hca_index < VNIC_ATTACH_PKEYS ? c->pkeys[hca_index] : NO_INDEX;
}

/* --- Answers that name the device */

/* The GID of a source address, of which the address begins at the same byte in a struct
 * sockaddr_in6 and a struct sockaddr_ib. */
static void read_gid(const uint8_t *addr, uint64_t gid[2])
{
	static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};
	uint8_t *bytes = (uint8_t *)gid;
	sa_family_t family;

	memcpy(&family, addr, sizeof(family));
	if (family != AF_INET) {
		memcpy(bytes, addr + offsetof(struct sockaddr_in6, sin6_addr), 16);
		return;
	}
	memcpy(bytes, v4_prefix, sizeof(v4_prefix));
	memcpy(bytes + sizeof(v4_prefix), addr + offsetof(struct sockaddr_in, sin_addr), 4);
}

static struct rdmacm_device choose_device(uint64_t guid, uint8_t port, const uint8_t *source)
{
	struct counterparts c;
	uint64_t gid[2];

	read_counterparts(&c);
	read_gid(source, gid);
	if (c.hca != guid || c.port != port || !has_gid(&c, gid))
		return (struct rdmacm_device){.known = true};
	return (struct rdmacm_device){
		.known = true, .guid = c.device, .hca = guid, .hca_port = port};
}

/* Replaces the device in an answer that begins with the node GUID, and has the other members at
 * these offsets. */
static void replace_device(struct rdmacm_id *id, uint8_t *answer, size_t port_at, size_t source_at,
			   size_t index_at)
{
	const uint32_t index = NO_DEVICE;
	uint64_t guid;

	memcpy(&guid, answer, sizeof(guid));
	if (!guid)
		return;
	if (!id->device.known)
		id->device = choose_device(guid, answer[port_at], answer + source_at);
	if (!id->device.guid)
		return;
	memcpy(answer, &id->device.guid, sizeof(id->device.guid));
	answer[port_at] = PORT;
	memcpy(answer + index_at, &index, sizeof(index));
}

static void answer_query(struct rdmacm_id *id, const struct rdmacm_request *request,
			 struct rdmacm_response *response)
{
	struct rdma_ucm_query query;

	memcpy(&query, request->in, sizeof(query));
	if (query.option == RDMA_USER_CM_QUERY_ADDR || query.option == RDMA_USER_CM_QUERY_GID)
		replace_device(id, response->out,
			       offsetof(struct rdma_ucm_query_addr_resp, port_num),
			       offsetof(struct rdma_ucm_query_addr_resp, src_addr),
			       offsetof(struct rdma_ucm_query_addr_resp, ibdev_index));
}

/* --- Attributes of queue pairs and address handles */

/* Reads what corresponds to the entries of the ID's HCA; nothing if urxe0 has another HCA now, or
 * none. */
static void read_of(const struct rdmacm_id *id, struct counterparts *c)
{
	read_counterparts(c);
	if (c->hca == id->device.hca && c->port == id->device.hca_port)
		return;
	memset(c, 0, sizeof(*c));
	memset(c->pkeys, NO_INDEX, sizeof(c->pkeys));
}

static void replace_ah(const struct counterparts *c, struct ib_uverbs_ah_attr *ah)
{
	ah->port_num = PORT;
	if (ah->is_global)
		ah->grh.sgid_index = find_gid_index(c, ah->grh.sgid_index);
}

static void answer_qp_attr(const struct rdmacm_id *id, struct rdmacm_response *response)
{
	struct ib_uverbs_qp_attr attr;
	struct counterparts c;

	memcpy(&attr, response->out, sizeof(attr));
	read_of(id, &c);
	if (attr.qp_attr_mask & IBV_QP_PORT)
		attr.port_num = PORT;
	if (attr.qp_attr_mask & IBV_QP_PKEY_INDEX)
		attr.pkey_index = find_pkey_index(&c, attr.pkey_index);
	if (attr.qp_attr_mask & IBV_QP_AV)
		replace_ah(&c, &attr.ah_attr);
	if (attr.qp_attr_mask & IBV_QP_ALT_PATH) {
		attr.alt_port_num = PORT;
		attr.alt_pkey_index = find_pkey_index(&c, attr.alt_pkey_index);
		replace_ah(&c, &attr.alt_ah_attr);
	}
	memcpy(response->out, &attr, sizeof(attr));
}

void rdmacm_hca_answer(struct rdmacm_id *id, const struct rdmacm_request *request,
		       struct rdmacm_response *response)
{
	switch (request->command.command) {
	case RDMA_USER_CM_CMD_QUERY: answer_query(id, request, response); break;
	case RDMA_USER_CM_CMD_QUERY_ROUTE:
		replace_device(id, response->out,
			       offsetof(struct rdma_ucm_query_route_resp, port_num),
			       offsetof(struct rdma_ucm_query_route_resp, src_addr),
			       offsetof(struct rdma_ucm_query_route_resp, ibdev_index));
		break;
	case RDMA_USER_CM_CMD_INIT_QP_ATTR:
		if (id->device.guid)
			answer_qp_attr(id, response);
		break;
	}
}

/* --- Events */

/* Whether events of the ID have a struct rdma_ucm_ud_param. The IDs of connection requests count as
 * others: their events have no address handle. */
static bool is_datagram(const struct rdmacm_id *id)
{
	return id->create.ps == RDMA_PS_UDP || id->create.ps == RDMA_PS_IPOIB ||
	       (id->create.ps == RDMA_PS_IB && id->create.qp_type == IBV_QPT_UD);
}

void rdmacm_hca_answer_event(struct rdmacm_file *file, struct rdmacm_response *response)
{
	const struct rdmacm_id *id;
	struct rdma_ucm_event_resp event;
	struct counterparts c;

	memcpy(&event, response->out, sizeof(event));
	if (!event.param.ud.ah_attr.is_global)
		return;
	id = event.event == MULTICAST_JOIN ? rdmacm_id_find_group(file, event.id)
					   : rdmacm_id_find_kernel(file, event.id);
	if (!id || !id->device.guid || !is_datagram(id))
		return;
	read_of(id, &c);
	replace_ah(&c, &event.param.ud.ah_attr);
	memcpy(response->out, &event, sizeof(event));
}
