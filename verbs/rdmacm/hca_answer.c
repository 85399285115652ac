/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/hca_answer.h"

#include <endian.h>
#include <errno.h>
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
#define NO_DEVICE      UINT32_MAX /* no device index: librdmacm then looks for the node GUID */
#define NO_INDEX       UINT8_MAX  /* exceeds each table of urxe0: verbs commands fail with EINVAL */
#define FIRST_V1       (VNIC_ATTACH_GIDS / 2) /* urxe0's first index of RoCE v1; below: v2 */
#define ESTABLISHED    9                      /* of enum rdma_cm_event_type */
#define MULTICAST_JOIN 12

/* --- The daemon's file */

/* The contents of VNIC_HCA_FILE. GUIDs and GIDs are in network byte order. */
struct counterparts {
	uint64_t hca;                     /* node GUID of the HCA; 0: the file names no HCA */
	uint8_t port;                     /* of the HCA */
	uint64_t device;                  /* node GUID of urxe0 */
	char name[VNIC_HCA_NAME];         /* of the HCA; "": unknown */
	bool by_listener_only;            /* IDs get urxe0 only from a listener of urxe0 */
	uint8_t pkeys[VNIC_ATTACH_PKEYS]; /* urxe0's index by the HCA's */
	uint32_t n_gids;
	struct {
		uint32_t hca_index;
		int index; /* of urxe0; -1: urxe0 has no such GID */
		uint64_t gid[2];
	} gids[VNIC_HCA_GIDS];
};

static void parse_port(struct counterparts *c, const char *line)
{
	uint64_t hca, device;

	if (sscanf(line, "port %16" SCNx64 " %hhu %16" SCNx64 " %63s", &hca, &c->port, &device,
		   c->name) < 3)
		return;
	c->hca = htobe64(hca);
	c->device = htobe64(device);
}

static void parse_pkey(struct counterparts *c, const char *line)
{
	uint32_t hca_index;
	int index;

	if (sscanf(line, "pkey %" SCNu32 " %d", &hca_index, &index) == 2 &&
	    hca_index < VNIC_ATTACH_PKEYS)
		c->pkeys[hca_index] = (uint8_t)index;
}

static void parse_gid(struct counterparts *c, const char *line)
{
	uint64_t first, second;
	uint32_t hca_index;
	int index;

	if (c->n_gids == VNIC_HCA_GIDS || sscanf(line, "gid %" SCNu32 " %d %16" SCNx64 "%16" SCNx64,
						 &hca_index, &index, &first, &second) != 4)
		return;
	c->gids[c->n_gids].hca_index = hca_index;
	c->gids[c->n_gids].index = index;
	c->gids[c->n_gids].gid[0] = htobe64(first);
	c->gids[c->n_gids++].gid[1] = htobe64(second);
}

static void parse_line(struct counterparts *c, const char *line)
{
	switch (line[0]) {
	case 'p':
		if (line[1] == 'o')
			parse_port(c, line);
		else
			parse_pkey(c, line);
		break;
	case 'g': parse_gid(c, line); break;
	case 'c': c->by_listener_only = true; break;
	}
}

static void forget_counterparts(struct counterparts *c)
{
	memset(c, 0, sizeof(*c));
	memset(c->pkeys, NO_INDEX, sizeof(c->pkeys));
}

/* 0, or a negative errno value if the file cannot be read. */
static int read_counterparts(struct counterparts *c)
{
	char text[VNIC_HCA_TEXT + 1], *line;
	ssize_t n = rdmacm_kernel_read_hca(text, VNIC_HCA_TEXT);

	forget_counterparts(c);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	line = strchr(text, '\n');
	while (line) {
		char *next = strchr(++line, '\n');

		if (next)
			*next = '\0'; /* sscanf() measures the text that follows */
		parse_line(c, line);
		line = next;
	}
	return 0;
}

/* Whether the GID is that of a loopback address, 127.0.0.0/8 or ::1, which no GID table has. */
static bool is_loopback(const uint64_t gid[2])
{
	static const uint8_t v4[13] = {[10] = 0xff, 0xff, 127}, v6[16] = {[15] = 1};

	return !memcmp(gid, v4, sizeof(v4)) || !memcmp(gid, v6, sizeof(v6));
}

static bool is_same_gid(const uint64_t a[2], const uint64_t b[2])
{
	return a[0] == b[0] && a[1] == b[1];
}

/* UNKNOWN: the file lists no entry of the HCA with a GID; LACKING: urxe0 lacks one of the entries
 * with it; PRESENT: urxe0 has all of them. */
enum presence { GID_UNKNOWN, GID_LACKING, GID_PRESENT };

/* A loopback address matches any GID, because rdma_cm chooses one. */
static enum presence find_gid(const struct counterparts *c, const uint64_t gid[2])
{
	const bool any = is_loopback(gid);
	enum presence found = GID_UNKNOWN;

	for (uint32_t i = 0; i < c->n_gids; i++) {
		if (!any && !is_same_gid(c->gids[i].gid, gid))
			continue;
		if (c->gids[i].index < 0)
			return GID_LACKING;
		found = GID_PRESENT;
	}
	return found;
}

/*
 * Whether urxe0 has line i of the file, which is still right: the HCA's entry `now` has the GID and
 * RoCE version of the line. The GID must be that of the ID's source address, unless that is a
 * loopback address. `now` NULL: the kernel's table cannot be read, and is not compared.
 */
static bool is_entry(const struct counterparts *c, uint32_t i, const struct rdmacm_device *device,
		     const struct rdmacm_kernel_gid *now)
{
	const uint64_t *gid = c->gids[i].gid;

	if (c->gids[i].index < 0 ||
	    (now && (!is_same_gid(gid, now->gid) || now->v1 != (c->gids[i].index >= FIRST_V1))))
		return false;
	return is_same_gid(gid, device->gid) || (now && is_loopback(device->gid));
}

/*
 * Replaces *index, the HCA's, by that of urxe0, or NO_INDEX. The kernel may have given the HCA's
 * index to another entry since the daemon read its table, so compares GID and RoCE version. 0, or a
 * negative errno value if descriptors or memory are lacking; then *index is NO_INDEX.
 */
static int replace_gid_index(const struct counterparts *c, const struct rdmacm_device *device,
			     uint8_t *index)
{
	const uint8_t hca_index = *index;
	struct rdmacm_kernel_gid now;
	int rc;

	*index = NO_INDEX;
	if (!c->n_gids)
		return 0;
	rc = rdmacm_kernel_read_gid(c->name, c->port, hca_index, &now);
	if (rc && rc != -ENOENT)
		return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM ? rc : 0;
	for (uint32_t i = 0; i < c->n_gids; i++)
		if (c->gids[i].hca_index == hca_index && is_entry(c, i, device, rc ? NULL : &now))
			*index = (uint8_t)c->gids[i].index;
	return 0;
}

static uint8_t find_pkey_index(const struct counterparts *c, uint16_t hca_index)
{
	return hca_index < VNIC_ATTACH_PKEYS ? c->pkeys[hca_index] : NO_INDEX;
}

/* --- Answers that name the device */

/* Converts a source address to a GID. The address begins at the same byte in a struct sockaddr_in6
 * and in a struct sockaddr_ib. */
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

static bool is_of(const struct rdmacm_device *device, uint64_t guid, uint8_t port)
{
	return device->known && device->hca == guid && device->hca_port == port;
}

/*
 * The device of an ID that the kernel has bound to that port and GID. `earlier`: the device of the
 * ID's listener, or of earlier requests to the listener; NULL: none at that port. If `earlier` is
 * urxe0, the ID's device is, too, unless urxe0 lacks the GID. A GID without a line counts as
 * lacking only with by_listener_only, because the file may be older than the address.
 */
static struct rdmacm_device choose_device(const struct counterparts *c,
					  const struct rdmacm_device *earlier, uint64_t guid,
					  uint8_t port, const uint64_t gid[2])
{
	const bool stands = c->hca == guid && c->port == port;
	const enum presence found = stands ? find_gid(c, gid) : GID_UNKNOWN;
	struct rdmacm_device device = {
		.known = true, .hca = guid, .hca_port = port, .gid = {gid[0], gid[1]}};

	if (earlier && found != GID_LACKING &&
	    !(c->by_listener_only && stands && found == GID_UNKNOWN))
		device.guid = earlier->guid;
	else if (!earlier && found == GID_PRESENT && !c->by_listener_only)
		device.guid = c->device;
	return device;
}

/*
 * Decides the device of the ID, if no answer has done so. `listener`: that of a connection request,
 * else NULL. Programs use one protection domain for a listener's connections, so the listener's
 * device is also that of its requests at the same port. A listener at the wildcard gets the device
 * of its first request at the HCA's port that backs urxe0; at any port, if no HCA backs urxe0. 0,
 * or a negative errno value if VNIC_HCA_FILE is needed, and cannot be read.
 */
static int decide(struct rdmacm_id *id, struct rdmacm_id *listener, uint64_t guid, uint8_t port,
		  const uint8_t *source)
{
	const struct rdmacm_device *earlier =
		listener && is_of(&listener->device, guid, port) ? &listener->device : NULL;
	struct counterparts c;
	uint64_t gid[2];
	int rc;

	if (id->device.known)
		return 0;
	rc = read_counterparts(&c);
	if (rc && !earlier)
		return rc;
	read_gid(source, gid);
	id->device = choose_device(&c, earlier, guid, port, gid);
	if (listener && !listener->device.known && (!c.hca || (c.hca == guid && c.port == port)))
		listener->device = id->device;
	return 0;
}

void rdmacm_hca_take_request(struct rdmacm_id *id, struct rdmacm_id *listener,
			     const struct rdmacm_response *query)
{
	struct rdma_ucm_query_addr_resp addr;

	memcpy(&addr, query->out, sizeof(addr));
	if (addr.node_guid)
		decide(id, listener, addr.node_guid, addr.port_num,
		       query->out + offsetof(struct rdma_ucm_query_addr_resp, src_addr));
}

bool rdmacm_hca_is_other(const struct rdmacm_response *query)
{
	struct rdma_ucm_query_addr_resp addr;
	struct counterparts c;

	memcpy(&addr, query->out, sizeof(addr));
	return addr.node_guid && !read_counterparts(&c) && c.hca &&
	       (c.hca != addr.node_guid || c.port != addr.port_num);
}

/* Replaces the device in an answer that begins with the node GUID, and has the other members at
 * these offsets. 0 or the error of decide(). */
static int replace_device(struct rdmacm_id *id, uint8_t *answer, size_t port_at, size_t source_at,
			  size_t index_at)
{
	const uint32_t index = NO_DEVICE;
	uint64_t guid;
	int rc;

	memcpy(&guid, answer, sizeof(guid));
	if (!guid)
		return 0;
	rc = decide(id, NULL, guid, answer[port_at], answer + source_at);
	if (rc || !id->device.guid)
		return rc;
	memcpy(answer, &id->device.guid, sizeof(id->device.guid));
	answer[port_at] = PORT;
	memcpy(answer + index_at, &index, sizeof(index));
	return 0;
}

static int answer_query(struct rdmacm_id *id, const struct rdmacm_request *request,
			struct rdmacm_response *response)
{
	struct rdma_ucm_query query;

	memcpy(&query, request->in, sizeof(query));
	if (query.option != RDMA_USER_CM_QUERY_ADDR && query.option != RDMA_USER_CM_QUERY_GID)
		return 0;
	return replace_device(id, response->out,
			      offsetof(struct rdma_ucm_query_addr_resp, port_num),
			      offsetof(struct rdma_ucm_query_addr_resp, src_addr),
			      offsetof(struct rdma_ucm_query_addr_resp, ibdev_index));
}

/* --- Attributes of queue pairs and address handles */

#define NEEDS_TABLES (IBV_QP_PKEY_INDEX | IBV_QP_AV | IBV_QP_ALT_PATH)

/* Reads the counterparts of the table entries of the ID's HCA. *c is empty if urxe0 has another HCA
 * now, or none. 0 or a negative errno value. */
static int read_of(const struct rdmacm_id *id, struct counterparts *c)
{
	int rc = read_counterparts(c);

	if (!is_of(&id->device, c->hca, c->port))
		forget_counterparts(c);
	return rc;
}

/* Replaces the port and the GID index. 0, or the error of replace_gid_index(). */
static int replace_ah(const struct counterparts *c, const struct rdmacm_id *id,
		      struct ib_uverbs_ah_attr *ah)
{
	ah->port_num = PORT;
	return ah->is_global ? replace_gid_index(c, &id->device, &ah->grh.sgid_index) : 0;
}

static int answer_qp_attr(const struct rdmacm_id *id, struct rdmacm_response *response)
{
	struct ib_uverbs_qp_attr attr;
	struct counterparts c;
	int rc = 0;

	memcpy(&attr, response->out, sizeof(attr));
	if (attr.qp_attr_mask & NEEDS_TABLES)
		rc = read_of(id, &c);
	if (!rc && attr.qp_attr_mask & IBV_QP_AV)
		rc = replace_ah(&c, id, &attr.ah_attr);
	if (!rc && attr.qp_attr_mask & IBV_QP_ALT_PATH)
		rc = replace_ah(&c, id, &attr.alt_ah_attr);
	if (rc)
		return rc;
	if (attr.qp_attr_mask & IBV_QP_PORT)
		attr.port_num = PORT;
	if (attr.qp_attr_mask & IBV_QP_PKEY_INDEX)
		attr.pkey_index = find_pkey_index(&c, attr.pkey_index);
	if (attr.qp_attr_mask & IBV_QP_ALT_PATH) {
		attr.alt_port_num = PORT;
		attr.alt_pkey_index = find_pkey_index(&c, attr.alt_pkey_index);
	}
	memcpy(response->out, &attr, sizeof(attr));
	return 0;
}

int rdmacm_hca_answer(struct rdmacm_id *id, const struct rdmacm_request *request,
		      struct rdmacm_response *response)
{
	switch (request->command.command) {
	case RDMA_USER_CM_CMD_QUERY: return answer_query(id, request, response);
	case RDMA_USER_CM_CMD_QUERY_ROUTE:
		return replace_device(id, response->out,
				      offsetof(struct rdma_ucm_query_route_resp, port_num),
				      offsetof(struct rdma_ucm_query_route_resp, src_addr),
				      offsetof(struct rdma_ucm_query_route_resp, ibdev_index));
	case RDMA_USER_CM_CMD_INIT_QP_ATTR:
		return id->device.guid ? answer_qp_attr(id, response) : 0;
	default: return 0;
	}
}

/* --- Events */

/* Whether events of the ID have a struct rdma_ucm_ud_param with an address handle. False for IDs of
 * connection requests, whose events have none. */
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
	if ((event.event != ESTABLISHED && event.event != MULTICAST_JOIN) ||
	    !event.param.ud.ah_attr.is_global)
		return;
	id = event.event == MULTICAST_JOIN ? rdmacm_id_find_group(file, event.id)
					   : rdmacm_id_find_kernel(file, event.id);
	if (!id || !id->device.guid || !is_datagram(id))
		return;
	/* If the daemon's table cannot be read or has no counterpart of the GID, sgid_index becomes
	 * NO_INDEX: the program can make no address handle from the event. */
	if (read_of(id, &c))
		forget_counterparts(&c);
	(void)replace_ah(&c, id, &event.param.ud.ah_attr);
	memcpy(response->out, &event, sizeof(event));
}
