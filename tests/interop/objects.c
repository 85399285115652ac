/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PORT      1
#define MAX_SENDS 64
#define MAX_RECVS 64

/* The parser of fixtures uses the engine's constants, which must equal those of verbs. */
_Static_assert((int)URXE_ACCESS_LOCAL_WRITE == IBV_ACCESS_LOCAL_WRITE &&
		       (int)URXE_ACCESS_REMOTE_WRITE == IBV_ACCESS_REMOTE_WRITE &&
		       (int)URXE_ACCESS_REMOTE_READ == IBV_ACCESS_REMOTE_READ &&
		       (int)URXE_ACCESS_REMOTE_ATOMIC == IBV_ACCESS_REMOTE_ATOMIC &&
		       (int)URXE_ACCESS_MW_BIND == IBV_ACCESS_MW_BIND,
	       "access rights");
_Static_assert((int)URXE_MTU_256 == IBV_MTU_256 && (int)URXE_MTU_4096 == IBV_MTU_4096, "MTUs");
_Static_assert((int)URXE_QPT_RC == IBV_QPT_RC && (int)URXE_QPT_UC == IBV_QPT_UC &&
		       (int)URXE_QPT_UD == IBV_QPT_UD,
	       "types of queue pairs");

void objects_fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

/* --- Device */

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	/* The list is not freed, because it owns the device. */
	for (; list && *list; list++)
		if (!strcmp(ibv_get_device_name(*list), name))
			return ibv_open_device(*list);
	return NULL;
}

static uint32_t find_gid(const struct objects *o)
{
	const struct urxe_gid *wanted = &o->fixture->station[o->side].gid;
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;

	if (ibv_query_port(o->context, PORT, &port))
		objects_fail("ibv_query_port");
	for (uint32_t i = 0; i < (uint32_t)port.gid_tbl_len; i++)
		if (!ibv_query_gid_ex(o->context, PORT, i, &entry, 0) &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(entry.gid.raw, wanted->raw, sizeof(wanted->raw)))
			return i;
	errno = ENOENT;
	objects_fail("the station's address in the device's table");
}

/* --- Objects */

/* Maps a region at the text's address, so that the capture has that address, too. */
static void map_region(struct objects *o, unsigned index)
{
	const struct region *region = &o->fixture->station[o->side].regions[index];
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = region->iova & ~(page - 1);
	void *wanted = (void *)(uintptr_t)start; /* NOLINT: an address from a text */
	void *got = mmap(wanted, region->iova + region->length + 1 - start, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (got != wanted)
		objects_fail("mmap of a region");
	o->memory[index] = (uint8_t *)got + (region->iova - start);
	content_write(&region->content, o->memory[index], region->length);
	o->mr[index] = ibv_reg_mr(o->pd, o->memory[index], region->length, (int)region->access);
	if (!o->mr[index])
		objects_fail("ibv_reg_mr");
}

static void create_windows(struct objects *o)
{
	for (unsigned i = 0; i < o->fixture->n_steps; i++) {
		const struct step *step = &o->fixture->steps[i];

		if (step->kind != STEP_MW || step->side != o->side)
			continue;
		if (o->n_mw == OBJECTS_WINDOWS)
			objects_fail("more windows than a station may have");
		o->mw[o->n_mw] = ibv_alloc_mw(o->pd, step->count == URXE_MW_TYPE_1 ? IBV_MW_TYPE_1
										   : IBV_MW_TYPE_2);
		if (!o->mw[o->n_mw++])
			objects_fail("ibv_alloc_mw");
	}
}

static void create_qp(struct objects *o, unsigned index)
{
	struct ibv_qp_init_attr init = {
		.send_cq = o->send_cq,
		.recv_cq = o->recv_cq,
		.srq = o->srq,
		.cap = {.max_send_wr = MAX_SENDS,
			.max_recv_wr = MAX_RECVS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = 64},
		.qp_type = (enum ibv_qp_type)o->fixture->connections[index].type,
		.sq_sig_all = 1,
	};

	o->qp[index] = ibv_create_qp(o->pd, &init);
	if (!o->qp[index])
		objects_fail("ibv_create_qp");
}

static void create_srq(struct objects *o)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = MAX_RECVS, .max_sge = 1}};

	o->srq = ibv_create_srq(o->pd, &init);
	if (!o->srq)
		objects_fail("ibv_create_srq");
}

void objects_create(struct objects *o, const struct fixture *fixture, enum side side,
		    const char *device)
{
	const struct station *station = &fixture->station[side];

	*o = (struct objects){.fixture = fixture, .side = side};
	o->context = open_device(device);
	if (!o->context)
		objects_fail(device);
	o->gid_index = find_gid(o);
	o->pd = ibv_alloc_pd(o->context);
	o->send_cq = ibv_create_cq(o->context, 2 * MAX_SENDS, NULL, NULL, 0);
	o->recv_cq = ibv_create_cq(o->context, 2 * MAX_RECVS, NULL, NULL, 0);
	if (!o->pd || !o->send_cq || !o->recv_cq)
		objects_fail("protection domain and completion queues");
	if (station->srq)
		create_srq(o);
	for (unsigned i = 0; i < station->n_regions; i++)
		map_region(o, i);
	create_windows(o);
	for (unsigned i = 0; i < fixture->n_connections; i++)
		create_qp(o, i);
}

/* --- Connections */

static struct ibv_ah_attr peer_address(const struct objects *o, const struct connection *c)
{
	struct ibv_ah_attr address = {
		.is_global = 1,
		.port_num = PORT,
		.sl = c->attr.path.sl,
		.grh = {.sgid_index = (uint8_t)o->gid_index,
			.hop_limit = c->attr.path.hop_limit,
			.traffic_class = c->attr.path.traffic_class,
			.flow_label = c->attr.path.flow_label},
	};

	memcpy(address.grh.dgid.raw, o->fixture->station[!o->side].gid.raw,
	       sizeof(address.grh.dgid.raw));
	return address;
}

static void modify(struct objects *o, unsigned index, enum ibv_qp_state state, int mask)
{
	const struct connection *c = &o->fixture->connections[index];
	struct ibv_qp_attr attr = {
		.qp_state = state,
		.path_mtu = (enum ibv_mtu)c->attr.path_mtu,
		.qkey = c->attr.qkey,
		.rq_psn = c->psn[!o->side],
		.sq_psn = c->psn[o->side],
		.dest_qp_num = c->qpn[!o->side],
		.qp_access_flags = c->attr.access,
		.ah_attr = peer_address(o, c),
		.max_rd_atomic = c->attr.max_rd_atomic,
		.max_dest_rd_atomic = c->attr.max_dest_rd_atomic,
		.min_rnr_timer = c->attr.min_rnr_timer,
		.port_num = PORT,
		.timeout = c->attr.timeout,
		.retry_cnt = c->attr.retry_cnt,
		.rnr_retry = c->attr.rnr_retry,
	};

	if (ibv_modify_qp(o->qp[index], &attr, IBV_QP_STATE | mask))
		objects_fail("ibv_modify_qp");
}

static void connect_qp(struct objects *o, unsigned index)
{
	enum urxe_qp_type type = o->fixture->connections[index].type;
	int init = IBV_QP_PKEY_INDEX | IBV_QP_PORT, rtr = 0, rts = IBV_QP_SQ_PSN;

	init |= type == URXE_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	if (type != URXE_QPT_UD)
		rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (type == URXE_QPT_RC) {
		rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC;
	}
	modify(o, index, IBV_QPS_INIT, init);
	modify(o, index, IBV_QPS_RTR, rtr);
	modify(o, index, IBV_QPS_RTS, rts);
}

void objects_connect(struct objects *o, const struct fixture *fixture)
{
	o->fixture = fixture;
	for (unsigned i = 0; i < fixture->n_connections; i++) {
		struct ibv_ah_attr address = peer_address(o, &fixture->connections[i]);

		connect_qp(o, i);
		if (fixture->connections[i].type != URXE_QPT_UD || o->ah)
			continue;
		o->ah = ibv_create_ah(o->pd, &address);
		if (!o->ah)
			objects_fail("ibv_create_ah");
	}
}
