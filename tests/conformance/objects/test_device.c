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

static void test_device_attributes(void)
{
	const struct ibv_device_attr *a = &hca.attr;

	rule(a->max_qp > 0 && a->max_cq > 0 && a->max_mr > 0 && a->max_pd > 0,
	     "max_qp, max_cq, max_mr and max_pd are positive");
	rule(a->max_qp_wr > 0 && a->max_cqe > 0 && a->max_sge > 0,
	     "max_qp_wr, max_cqe and max_sge are positive");
	rule(a->max_mr_size > 0 && a->page_size_cap, "memory can be registered");
	rule(a->phys_port_cnt >= 1, "the device has a port");
	rule(a->node_guid != 0, "the node has a GUID");
	rule(a->node_guid == ibv_get_device_guid(hca.context->device),
	     "the node GUID equals that of the device list");
	rule(a->max_pkeys >= 1, "the device has a P_Key");
	rule(a->max_res_rd_atom >= a->max_qp_rd_atom, "max_res_rd_atom is at least max_qp_rd_atom");
	rule(a->device_cap_flags & IBV_DEVICE_PORT_ACTIVE_EVENT,
	     "the device tells when its port becomes active");
	rule(!(a->device_cap_flags & IBV_DEVICE_N_NOTIFY_CQ),
	     "the device claims no events after several completions, which no verb requests");
}

static void test_extended_query(void)
{
	struct ibv_query_device_ex_input unknown = {.comp_mask = 1};
	struct ibv_device_attr_ex ex;

	memset(&ex, 0xff, sizeof(ex));
	rule_errno(0, ibv_query_device_ex(hca.context, NULL, &ex),
		   "the extended query needs no input");
	rule(!memcmp(&ex.orig_attr, &hca.attr, sizeof(hca.attr)),
	     "the extended query returns the attributes of the plain one");
	rule(ex.hca_core_clock == 0 || ex.completion_timestamp_mask,
	     "a device with a clock has time stamps");
	rule(ex.phys_port_cnt_ex >= hca.attr.phys_port_cnt, "the extended query counts the ports");
	rule_errno(EINVAL, ibv_query_device_ex(hca.context, &unknown, &ex),
		   "unknown input is refused");
}

static void test_clock_values(void)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_values_ex nothing = {.comp_mask = 0};
	struct ibv_device_attr_ex ex;
	int rc;

	MUST(!ibv_query_device_ex(hca.context, NULL, &ex));
	rc = ibv_query_rt_values_ex(hca.context, &values);
	rule_errno(ex.hca_core_clock ? 0 : EOPNOTSUPP, rc,
		   "reading the clock succeeds only on a device with a clock");
	rc = ibv_query_rt_values_ex(hca.context, &nothing);
	rule(rc == 0 || rc == EOPNOTSUPP, "a query without values is accepted or unsupported");
}

static void test_port_attributes(void)
{
	const struct ibv_port_attr *p = &hca.port;
	struct ibv_port_attr other;

	rule(p->state == IBV_PORT_ACTIVE, "the port is active");
	rule(p->link_layer == IBV_LINK_LAYER_ETHERNET, "its link layer is Ethernet");
	rule(p->flags & IBV_QPF_GRH_REQUIRED, "an address on Ethernet needs a GRH");
	rule(p->active_mtu >= IBV_MTU_256 && p->active_mtu <= p->max_mtu,
	     "the active MTU is at most the maximum");
	rule(p->gid_tbl_len > 0 && p->pkey_tbl_len > 0, "it has a GID and a P_Key table");
	rule(p->max_msg_sz > 128u << p->max_mtu, "a message may have several packets");
	rule(p->phys_state == 5, "the link is up");
	rule(p->active_width && p->active_speed, "the link has width and speed");
	rule_errno(EINVAL, ibv_query_port(hca.context, 0, &other), "port 0 is refused");
	rule_errno(EINVAL,
		   ibv_query_port(hca.context, (uint8_t)(hca.attr.phys_port_cnt + 1), &other),
		   "a port after the last is refused");
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

static void test_gid_table(void)
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
	rule(same, "ibv_query_gid, ibv_query_gid_ex and ibv_query_gid_table agree");
	rule(found == n, "ibv_query_gid_table returns each valid entry");
	rule(empty, "an empty entry returns ENODATA");
	rule_errno(EINVAL, ibv_query_gid_ex(hca.context, PORT, length, &entry, 0),
		   "a GID index after the last is refused");
	rule_errno(EINVAL, ibv_query_gid_ex(hca.context, 0, 0, &entry, 0),
		   "the GID query of port 0 is refused");
	rule(ibv_query_gid_ex(hca.context, PORT, 0, &entry, 1),
	     "unknown flags of a GID entry query are refused");
	rule(ibv_query_gid_table(hca.context, table, 1024, 1) < 0,
	     "unknown flags of a GID table query are refused");
	rule(ibv_query_gid(hca.context, PORT, (int)length, &gid) == -1,
	     "ibv_query_gid after the last entry fails");
	if (n > 1)
		rule_errno(EINVAL, (int)-ibv_query_gid_table(hca.context, table, 1, 0),
			   "a GID table buffer that is too small is refused");
}

static void test_pkey_table(void)
{
	__be16 key, missing = htobe16(0x1234);

	MUST(!ibv_query_pkey(hca.context, PORT, 0, &key));
	rule(key == htobe16(0xffff), "the first P_Key is the default one, of a full member");
	rule(ibv_get_pkey_index(hca.context, PORT, key) == 0, "ibv_get_pkey_index finds a P_Key");
	rule(ibv_get_pkey_index(hca.context, PORT, missing) == -1,
	     "ibv_get_pkey_index fails for a missing P_Key");
	rule(ibv_query_pkey(hca.context, PORT, hca.port.pkey_tbl_len, &key) == -1,
	     "a P_Key index after the last is refused");
}

/* Calls for features that the device lacks return an error. */
static void test_missing_features_are_refused(void)
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
			   "a device without XRC refuses an XRC domain");
	}
	if (!ex.max_dm_size) {
		errno = 0;
		rule_errno(EOPNOTSUPP, ibv_alloc_dm(hca.context, &dm) ? 0 : errno,
			   "a device without device memory refuses its allocation");
	}
	if (strstr(ibv_get_device_name(hca.context->device), "mlx"))
		return;
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_alloc_td(hca.context, &td) ? 0 : errno,
		   "a device without thread domains refuses their allocation");
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_create_counters(hca.context, &counters) ? 0 : errno,
		   "a device without counters refuses their creation");
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_alloc_null_mr(hca.pd) ? 0 : errno,
		   "a device without null regions refuses their allocation");
}

/* Calls that need no command of the device, and calls that only other providers implement. */
static void test_calls_of_other_providers_are_refused(void)
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
	struct ibv_parent_domain_init_attr domain = {.pd = hca.pd};

	if (strstr(ibv_get_device_name(hca.context->device), "mlx"))
		skip("a provider of more than verbs' least");
	side_create(&s, IBV_QPT_UD, 0);
	sge = side_sge(&s, 0, 8);
	wq.cq = s.cq;
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_create_flow(s.qp, &flow) ? 0 : errno,
		   "flow steering is refused");
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_create_wq(hca.context, &wq) ? 0 : errno,
		   "a separate work queue is refused");
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_create_rwq_ind_table(hca.context, &table) ? 0 : errno,
		   "a work queue table is refused");
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_open_qp(hca.context, &shared) ? 0 : errno,
		   "a shared QP is refused");
	rule_errno(EOPNOTSUPP, ibv_modify_qp_rate_limit(s.qp, &rate),
		   "ibv_modify_qp_rate_limit is refused");
	rule_errno(EOPNOTSUPP, ibv_advise_mr(hca.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1),
		   "ibv_advise_mr is refused");
	rule_errno(EOPNOTSUPP, ibv_set_ece(s.qp, &ece), "ibv_set_ece is refused");
	rule_errno(EOPNOTSUPP, ibv_query_ece(s.qp, &ece), "ibv_query_ece is refused");
	rule(ibv_query_qp_data_in_order(s.qp, IBV_WR_RDMA_WRITE, 0) == 0,
	     "the device does not promise in-order writes");
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_reg_dmabuf_mr(hca.pd, 0, 4096, 0, -1, 0) ? 0 : errno,
		   "ibv_reg_dmabuf_mr is refused");
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_import_pd(hca.context, hca.pd->handle) ? 0 : errno,
		   "ibv_import_pd is refused");
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_import_mr(hca.pd, s.mr->handle) ? 0 : errno,
		   "ibv_import_mr is refused");
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_import_device(hca.context->cmd_fd) ? 0 : errno,
		   "ibv_import_device is refused");
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_alloc_parent_domain(hca.context, &domain) ? 0 : errno,
		   "a parent domain is refused");
}

static void test_contexts_are_independent(void)
{
	struct ibv_context *second = ibv_open_device(hca.context->device);
	struct ibv_pd *pd;

	MUST(second);
	rule(second->cmd_fd != hca.context->cmd_fd && second->async_fd != hca.context->async_fd,
	     "a device opened twice has two contexts");
	pd = ibv_alloc_pd(second);
	MUST(pd);
	rule_errno(0, ibv_dealloc_pd(pd), "each context has its own objects");
	rule_errno(0, ibv_close_device(second), "one context can be closed");
	pd = ibv_alloc_pd(hca.context);
	rule(pd != NULL, "the other context still works");
	rule(fcntl(hca.context->cmd_fd, F_GETFD) & FD_CLOEXEC,
	     "the device's descriptor is not inherited by exec");
	rule(fcntl(hca.context->async_fd, F_GETFD) & FD_CLOEXEC,
	     "the descriptor of its events is not inherited by exec");
	rule(hca.context->num_comp_vectors >= 1, "there is a completion vector");
}

/* Closing a context destroys its objects. */
static void test_close_destroys_objects(void)
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
	rule(ibv_alloc_pd(hca.context) != NULL, "closing a context destroys its objects");
}

/* A forked child cannot use its parent's device. */
static void test_child_cannot_use_the_device(void)
{
	struct side pair[2] = {0};
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	int status;
	pid_t child;

	rule_errno(0, ibv_fork_init(), "ibv_fork_init succeeds");
	rule(ibv_is_fork_initialized() != IBV_FORK_DISABLED,
	     "fork support is enabled after ibv_fork_init");
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
	{"attributes", test_device_attributes},
	{"extended", test_extended_query},
	{"clock", test_clock_values},
	{"port", test_port_attributes},
	{"gids", test_gid_table},
	{"pkeys", test_pkey_table},
	{"not_there", test_missing_features_are_refused},
	{"not_of_this_provider", test_calls_of_other_providers_are_refused},
	{"contexts", test_contexts_are_independent},
	{"closed_with_objects", test_close_destroys_objects},
	{"forked", test_child_cannot_use_the_device},
	{NULL, NULL},
};
