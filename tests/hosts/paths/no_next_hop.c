/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An address to which urxed knows no next hop. Prints what happens:
 *
 * no_next_hop GID_INDEX ADDRESS plain   a queue pair of urxe0 goes to RTR
 * no_next_hop GID_INDEX ADDRESS region  the same. Its protection domain has a region that no HCA
 *                                       can have, so the engine would execute the queue pair
 * no_next_hop GID_INDEX ADDRESS handle  a checkpoint of this program, which has an address handle
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

/* IBV_ACCESS_FLUSH_GLOBAL of later headers. */
#define ACCESS_FLUSH_GLOBAL (1 << 8)

static uint8_t memory[4096];

static struct ibv_context *open_urxe(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), "urxe0"))
			context = ibv_open_device(list[i]);
	if (!context)
		errx(1, "cannot open urxe0");
	ibv_free_device_list(list);
	return context;
}

static struct ibv_qp *create_qp(struct ibv_context *context, struct ibv_pd *pd)
{
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *qp = cq ? ibv_create_qp(pd, &init) : NULL;

	if (!qp ||
	    ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		errx(1, "no queue pair");
	return qp;
}

static struct ibv_ah_attr address_of(const char *gid_index, const char *text)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.sgid_index = (uint8_t)atoi(gid_index), .hop_limit = 64},
	};
	uint8_t *gid = attr.grh.dgid.raw;

	memset(gid + 10, 0xff, 2);
	if (inet_pton(AF_INET, text, gid + 12) != 1)
		errx(1, "%s is no IPv4 address", text);
	return attr;
}

static const char *connect_to(struct ibv_qp *qp, const struct ibv_ah_attr *address)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 17,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = *address,
	};

	return strerror(ibv_modify_qp(qp, &attr,
				      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					      IBV_QP_MIN_RNR_TIMER));
}

static const char *checkpoint(struct ibv_pd *pd, struct ibv_ah_attr *address)
{
	int (*quiesce)(uint32_t timeout_ms) =
		(int (*)(uint32_t))dlsym(RTLD_DEFAULT, "urxe_checkpoint_quiesce");
	const char *(*error)(void) =
		(const char *(*)(void))dlsym(RTLD_DEFAULT, "urxe_checkpoint_error");

	if (!quiesce || !error)
		errx(1, "no liburxe.so");
	if (!ibv_create_ah(pd, address))
		err(1, "ibv_create_ah");
	return quiesce(10000) ? error() : "saved";
}

int main(int argc, char **argv)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_context *context;
	struct ibv_ah_attr address;
	struct ibv_pd *pd;

	if (argc != 4)
		errx(2, "usage: no_next_hop GID_INDEX ADDRESS plain|region|handle");
	address = address_of(argv[1], argv[2]);
	context = open_urxe();
	pd = ibv_alloc_pd(context);
	if (!pd)
		err(1, "ibv_alloc_pd");
	if (!strcmp(argv[3], "region"))
		access |= ACCESS_FLUSH_GLOBAL;
	if (!ibv_reg_mr(pd, memory, sizeof(memory), access))
		err(1, "ibv_reg_mr");
	puts(strcmp(argv[3], "handle") ? connect_to(create_qp(context, pd), &address)
				       : checkpoint(pd, &address));
	return 0;
}
