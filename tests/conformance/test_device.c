/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device, its port, and the tables of the port (IBA 11.2.1). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

static void attributes(void)
{
	const struct ibv_device_attr *a = &hca.attr;

	rule(a->max_qp > 0 && a->max_cq > 0 && a->max_mr > 0 && a->max_pd > 0,
	     "there is at least one object of each necessary kind");
	rule(a->max_qp_wr > 0 && a->max_cqe > 0 && a->max_sge > 0, "queues have entries");
	rule(a->max_mr_size > 0 && a->page_size_cap, "memory can be registered");
	rule(a->phys_port_cnt >= 1, "there is a port");
	rule(a->node_guid != 0, "the node has a GUID");
	rule(a->node_guid == ibv_get_device_guid(hca.context->device),
	     "the GUID is the one that the device is listed with");
	rule(a->max_pkeys >= 1, "there is a P_Key");
	rule(a->max_res_rd_atom >= a->max_qp_rd_atom,
	     "one QP may have as many resources for READs as it may be asked for");
}

static void extended(void)
{
	struct ibv_query_device_ex_input unknown = {.comp_mask = 1};
	struct ibv_device_attr_ex ex;

	memset(&ex, 0xff, sizeof(ex));
	rule_errno(0, ibv_query_device_ex(hca.context, NULL, &ex),
		   "the extended query needs no input");
	rule(!memcmp(&ex.orig_attr, &hca.attr, sizeof(hca.attr)),
	     "the extended query says what the plain one says");
	rule(ex.hca_core_clock == 0 || ex.completion_timestamp_mask,
	     "a device with a clock has time stamps");
	rule(ex.phys_port_cnt_ex >= hca.attr.phys_port_cnt, "it counts the ports");
	rule_errno(EINVAL, ibv_query_device_ex(hca.context, &unknown, &ex),
		   "input that nobody knows is refused");
}

static void clock_values(void)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_values_ex nothing = {.comp_mask = 0};
	struct ibv_device_attr_ex ex;
	int rc;

	MUST(!ibv_query_device_ex(hca.context, NULL, &ex));
	rc = ibv_query_rt_values_ex(hca.context, &values);
	rule_errno(ex.hca_core_clock ? 0 : EOPNOTSUPP, rc,
		   "its clock is read where there is one, and refused where there is none");
	rc = ibv_query_rt_values_ex(hca.context, &nothing);
	rule(rc == 0 || rc == EOPNOTSUPP, "no value may be asked for");
}

static void port(void)
{
	const struct ibv_port_attr *p = &hca.port;
	struct ibv_port_attr other;

	rule(p->state == IBV_PORT_ACTIVE, "the port is active");
	rule(p->link_layer == IBV_LINK_LAYER_ETHERNET, "its link layer is Ethernet");
	rule(p->active_mtu >= IBV_MTU_256 && p->active_mtu <= p->max_mtu,
	     "the active MTU is at most the greatest");
	rule(p->gid_tbl_len > 0 && p->pkey_tbl_len > 0, "it has a GID and a P_Key table");
	rule(p->max_msg_sz > 128u << p->max_mtu, "a message may have several packets");
	rule(p->phys_state == 5, "the link is up");
	rule(p->active_width && p->active_speed, "the link has width and speed");
	rule_errno(EINVAL, ibv_query_port(hca.context, 0, &other), "there is no port 0");
	rule_errno(EINVAL,
		   ibv_query_port(hca.context, (uint8_t)(hca.attr.phys_port_cnt + 1), &other),
		   "there is no port after the last");
}

static bool listed(const struct ibv_gid_entry *table, ssize_t n, uint32_t index,
		   const struct ibv_gid_entry *entry)
{
	for (ssize_t i = 0; i < n; i++)
		if (table[i].gid_index == index)
			return !memcmp(&table[i].gid, &entry->gid, sizeof(entry->gid)) &&
			       table[i].gid_type == entry->gid_type &&
			       table[i].port_num == entry->port_num &&
			       table[i].ndev_ifindex == entry->ndev_ifindex;
	return false;
}

static void gids(void)
{
	struct ibv_gid_entry table[1024], entry;
	ssize_t n = ibv_query_gid_table(hca.context, table, 1024, 0), found = 0;
	uint32_t length = (uint32_t)hca.port.gid_tbl_len;
	union ibv_gid gid;
	bool same = true, empty = true;

	MUST(n > 0);
	for (uint32_t i = 0; i < length; i++) {
		int rc = ibv_query_gid_ex(hca.context, PORT, i, &entry, 0);

		if (!rc) {
			found++;
			same &= entry.gid_index == i && entry.port_num == PORT &&
				listed(table, n, i, &entry) &&
				!ibv_query_gid(hca.context, PORT, (int)i, &gid) &&
				!memcmp(&gid, &entry.gid, sizeof(gid));
		} else {
			empty &= rc == ENODATA;
		}
	}
	rule(same, "ibv_query_gid, ibv_query_gid_ex and ibv_query_gid_table say the same");
	rule(found == n, "the table has each entry that there is");
	rule(empty, "an entry that is empty has no data");
	rule_errno(EINVAL, ibv_query_gid_ex(hca.context, PORT, length, &entry, 0),
		   "there is no entry after the last");
	rule_errno(EINVAL, ibv_query_gid_ex(hca.context, 0, 0, &entry, 0), "port 0 has no GIDs");
	rule(ibv_query_gid_ex(hca.context, PORT, 0, &entry, 1),
	     "flags that nobody knows are refused for an entry");
	rule(ibv_query_gid_table(hca.context, table, 1024, 1) < 0,
	     "flags that nobody knows are refused for the table");
	rule(ibv_query_gid(hca.context, PORT, (int)length, &gid) == -1,
	     "ibv_query_gid finds nothing after the last entry");
	if (n > 1)
		rule_errno(EINVAL, (int)-ibv_query_gid_table(hca.context, table, 1, 0),
			   "a table that is too small is refused");
}

static void pkeys(void)
{
	__be16 key, missing = htobe16(0x1234);

	MUST(!ibv_query_pkey(hca.context, PORT, 0, &key));
	rule(key == htobe16(0xffff), "the first P_Key is the default one, of a full member");
	rule(ibv_get_pkey_index(hca.context, PORT, key) == 0, "a P_Key's index is found");
	rule(ibv_get_pkey_index(hca.context, PORT, missing) == -1,
	     "a P_Key that is not in the table has no index");
	rule(ibv_query_pkey(hca.context, PORT, hca.port.pkey_tbl_len, &key) == -1,
	     "there is no P_Key after the last");
}

/* What is not there says so, and harms nothing. */
static void not_there(void)
{
	struct ibv_td_init_attr td = {0};
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_counters_init_attr counters = {0};
	struct ibv_xrcd_init_attr xrcd = {.comp_mask =
						  IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					  .fd = -1,
					  .oflags = O_CREAT};
	struct ibv_device_attr_ex ex;

	MUST(!ibv_query_device_ex(hca.context, NULL, &ex));
	if (!(hca.attr.device_cap_flags & IBV_DEVICE_XRC)) {
		errno = 0;
		rule_errno(EOPNOTSUPP, ibv_open_xrcd(hca.context, &xrcd) ? 0 : errno,
			   "a device without XRC opens no domain of it");
	}
	if (!ex.max_dm_size) {
		errno = 0;
		rule_errno(EOPNOTSUPP, ibv_alloc_dm(hca.context, &dm) ? 0 : errno,
			   "a device without memory of its own allocates none");
	}
	if (strstr(ibv_get_device_name(hca.context->device), "mlx"))
		return;
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_alloc_td(hca.context, &td) ? 0 : errno,
		   "a device without thread domains allocates none");
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_create_counters(hca.context, &counters) ? 0 : errno,
		   "a device without counters creates none");
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_alloc_null_mr(hca.pd) ? 0 : errno,
		   "a device without a null region allocates none");
}

/* What no command of the device is behind, and what only other providers have. */
static void not_of_this_provider(void)
{
	struct side s = {0};
	struct ibv_sge sge;
	struct ibv_flow_attr flow = {
		.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(flow), .port = PORT};
	struct ibv_wq_init_attr wq = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = hca.pd};
	struct ibv_rwq_ind_table_init_attr table = {0};
	struct ibv_qp_open_attr shared = {.comp_mask = IBV_QP_OPEN_ATTR_NUM, .qp_num = 5};
	struct ibv_qp_rate_limit_attr rate = {.rate_limit = 1000};
	struct ibv_ece ece = {0};

	if (strstr(ibv_get_device_name(hca.context->device), "mlx"))
		skip("a provider of more than verbs' least");
	side_create(&s, IBV_QPT_UD, 0);
	sge = side_sge(&s, 0, 8);
	wq.cq = s.cq;
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_create_flow(s.qp, &flow) ? 0 : errno, "no flow steering");
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_create_wq(hca.context, &wq) ? 0 : errno, "no work queues alone");
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_create_rwq_ind_table(hca.context, &table) ? 0 : errno,
		   "nor tables of them");
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_open_qp(hca.context, &shared) ? 0 : errno, "no shared QPs");
	rule_errno(EOPNOTSUPP, ibv_modify_qp_rate_limit(s.qp, &rate), "no pacing by a call");
	rule_errno(EOPNOTSUPP, ibv_advise_mr(hca.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1),
		   "no advice about regions");
	rule_errno(EOPNOTSUPP, ibv_set_ece(s.qp, &ece), "no enhanced connections to set");
	rule_errno(EOPNOTSUPP, ibv_query_ece(s.qp, &ece), "nor to query");
	rule(ibv_query_qp_data_in_order(s.qp, IBV_WR_RDMA_WRITE, 0) == 0,
	     "no promise that bytes are written in order");
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_reg_dmabuf_mr(hca.pd, 0, 4096, 0, -1, 0) ? 0 : errno,
		   "no regions of other devices' memory");
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_import_pd(hca.context, hca.pd->handle) ? 0 : errno,
		   "no domains of other contexts");
}

static void contexts(void)
{
	struct ibv_context *second = ibv_open_device(hca.context->device);
	struct ibv_pd *pd;

	MUST(second);
	rule(second->cmd_fd != hca.context->cmd_fd && second->async_fd != hca.context->async_fd,
	     "a device that is opened twice has two contexts");
	pd = ibv_alloc_pd(second);
	MUST(pd);
	rule_errno(0, ibv_dealloc_pd(pd), "each has its own objects");
	rule_errno(0, ibv_close_device(second), "one is closed");
	pd = ibv_alloc_pd(hca.context);
	rule(pd != NULL, "and the other goes on");
	rule(fcntl(hca.context->cmd_fd, F_GETFD) & FD_CLOEXEC,
	     "the device's descriptor is not inherited by exec");
	rule(fcntl(hca.context->async_fd, F_GETFD) & FD_CLOEXEC,
	     "the descriptor of its events is not inherited by exec");
	rule(hca.context->num_comp_vectors >= 1, "there is a completion vector");
}

/* A context is closed with everything that is still in it. */
static void closed_with_objects(void)
{
	for (int i = 0; i < 20; i++) {
		struct ibv_context *context = ibv_open_device(hca.context->device);
		struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
		struct ibv_cq *cq = pd ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
		struct ibv_qp_init_attr init = {.send_cq = cq,
						.recv_cq = cq,
						.qp_type = IBV_QPT_RC,
						.cap = {.max_send_wr = 1, .max_recv_wr = 1}};

		MUST(cq && ibv_create_qp(pd, &init));
		MUST(ibv_reg_mr(pd, &init, sizeof(init), IBV_ACCESS_LOCAL_WRITE));
		MUST(!ibv_close_device(context));
	}
	rule(ibv_alloc_pd(hca.context) != NULL,
	     "what a context leaves is cleaned up when it is closed");
}

/* The child of a fork has its parent's memory, and not its device. */
static void forked(void)
{
	struct side pair[2] = {0};
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	int status;
	pid_t child;

	rule_errno(0, ibv_fork_init(), "ibv_fork_init is given");
	rule(ibv_is_fork_initialized() != IBV_FORK_DISABLED, "and in force");
	pair_open(pair, IBV_QPT_RC, 0);
	child = fork();
	MUST(child >= 0);
	if (!child)
		_exit(0);
	MUST(waitpid(child, &status, 0) == child);
	MUST(!post_recv(&pair[1], 1, 0, 64));
	memset(pair[0].room, 0x5a, 64);
	sge = side_sge(&pair[0], 0, 64);
	wr = side_wr(&pair[0], IBV_WR_SEND, &sge, &pair[1]);
	MUST(!post_send(&pair[0], &wr));
	rule(next_wc(pair[1].cq).status == IBV_WC_SUCCESS &&
		     !memcmp(pair[1].room, pair[0].room, 64),
	     "after a fork the parent's messages arrive in the parent");
}

const struct test device_tests[] = {
	{"attributes", attributes},
	{"extended", extended},
	{"clock", clock_values},
	{"port", port},
	{"gids", gids},
	{"pkeys", pkeys},
	{"not_there", not_there},
	{"not_of_this_provider", not_of_this_provider},
	{"contexts", contexts},
	{"closed_with_objects", closed_with_objects},
	{"forked", forked},
	{NULL, NULL},
};
