/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Multicast groups (IBA 10.5, 11.3). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

static union ibv_gid group_number(unsigned int n)
{
	return (union ibv_gid){.raw = {[10] = 0xff, 0xff, 239, 1, (uint8_t)(n >> 8), (uint8_t)n}};
}

static void test_attach_and_detach(void)
{
	const union ibv_gid group = group_number(1);
	const union ibv_gid unicast = {.raw = {[10] = 0xff, 0xff, 10, 1, 2, 3}};
	struct side ud = {0}, rc = {0};

	if (!hca.attr.max_mcast_grp)
		skip("no multicast");
	side_create(&ud, IBV_QPT_UD, 0);
	side_create(&rc, IBV_QPT_RC, 0);
	side_up(&ud, NULL, IBV_QPS_RTS);
	rule_errno(EINVAL, ibv_attach_mcast(ud.qp, &unicast, 0), "a unicast address is no group");
	rule_errno(EINVAL, ibv_attach_mcast(rc.qp, &group, 0), "only UD QPs can join a group");
	rule_errno(EINVAL, ibv_detach_mcast(ud.qp, &group, 0),
		   "a QP outside of a group cannot leave it");
	rule_errno(0, ibv_attach_mcast(ud.qp, &group, 0), "a QP can join a group");
	rule_errno(0, ibv_attach_mcast(ud.qp, &group, 0), "a QP can join a group twice");
	rule_errno(EBUSY, ibv_destroy_qp(ud.qp), "a QP in a group cannot be destroyed");
	rule_errno(0, ibv_detach_mcast(ud.qp, &group, 0), "a QP can leave a group");
	rule_errno(0, ibv_destroy_qp(ud.qp), "and goes");
}

static void test_max_groups(void)
{
	int n = limit_of(hca.attr.max_mcast_grp), joined;
	struct side ud = {0};
	union ibv_gid group;

	if (!hca.attr.max_mcast_grp)
		skip("no multicast");
	side_create(&ud, IBV_QPT_UD, 0);
	side_up(&ud, NULL, IBV_QPS_RTS);
	for (joined = 0; joined < n; joined++) {
		group = group_number((unsigned int)joined);
		if (ibv_attach_mcast(ud.qp, &group, 0))
			break;
	}
	rule(joined == n, "max_mcast_grp groups can be joined");
	while (joined--) {
		group = group_number((unsigned int)joined);
		MUST(!ibv_detach_mcast(ud.qp, &group, 0));
	}
}

static void test_max_members_of_a_group(void)
{
	int n = limit_of(hca.attr.max_mcast_qp_attach), joined;
	struct side *ud = calloc((size_t)n + 1, sizeof(struct side));
	const union ibv_gid group = group_number(7);
	struct ibv_cq *cq = ibv_create_cq(hca.context, 64, NULL, NULL, 0);

	if (!hca.attr.max_mcast_grp)
		skip("no multicast");
	if (n > 4096)
		skip("too many");
	MUST(ud && cq);
	for (joined = 0; joined <= n; joined++) {
		ud[joined].cq = cq;
		side_create(&ud[joined], IBV_QPT_UD, 0);
		if (ibv_attach_mcast(ud[joined].qp, &group, 0))
			break;
	}
	rule(joined == n, "a group has exactly the advertised number of members");
}

/* Attaches every QP to every group. */
static void test_max_attachments(void)
{
	int qps = hca.attr.max_mcast_qp_attach, n = limit_of(hca.attr.max_total_mcast_qp_attach);
	struct ibv_cq *cq = ibv_create_cq(hca.context, 64, NULL, NULL, 0);
	struct side *ud;
	union ibv_gid group;
	int made;

	if (!hca.attr.max_mcast_grp)
		skip("no multicast");
	if (qps > 4096)
		skip("too many");
	ud = calloc((size_t)qps, sizeof(struct side));
	MUST(ud && cq);
	for (int i = 0; i < qps; i++) {
		ud[i].cq = cq;
		side_create(&ud[i], IBV_QPT_UD, 0);
	}
	for (made = 0; made < n; made++) {
		group = group_number((unsigned int)(made / qps));
		if (ibv_attach_mcast(ud[made % qps].qp, &group, 0))
			break;
	}
	rule(made == n, "the advertised number of attachments is possible");
}

/* --- Delivery */

static struct ibv_ah *group_ah(const union ibv_gid *group)
{
	struct ibv_ah_attr to = {
		.is_global = 1,
		.port_num = PORT,
		.grh = {.dgid = *group, .sgid_index = (uint8_t)hca.gid_index, .hop_limit = 1}};
	struct ibv_ah *ah = ibv_create_ah(hca.pd, &to);

	MUST(ah);
	return ah;
}

static void send_to(struct side *from, struct ibv_ah *ah)
{
	struct ibv_sge sge = side_sge(from, 0, 8);
	struct ibv_send_wr wr = side_wr(from, IBV_WR_SEND, &sge, from);

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0xffffff;
	MUST(!post_send(from, &wr));
	MUST(next_wc(from->cq).status == IBV_WC_SUCCESS);
}

static void test_datagrams_reach_all_members(void)
{
	const union ibv_gid group = group_number(2), other = group_number(3);
	struct side pair[2] = {0};
	struct ibv_wc wc;
	struct ibv_ah *ah;

	if (!hca.attr.max_mcast_grp)
		skip("no multicast");
	pair_open(pair, IBV_QPT_UD, 0);
	ah = group_ah(&group);
	MUST(!ibv_attach_mcast(pair[1].qp, &group, 0));
	MUST(!post_recv(&pair[1], 1, 0, 100) && !post_recv(&pair[1], 2, 0, 100));
	send_to(&pair[0], ah);
	rule(await_wc(pair[1].cq, &wc) && wc.wr_id == 1,
	     "a member receives its group, also on the sender's host");
	rule(!any_wc(pair[1].cq, &wc), "once");
	send_to(&pair[0], group_ah(&other));
	rule(!any_wc(pair[1].cq, &wc), "a member does not receive another group");
	MUST(!ibv_detach_mcast(pair[1].qp, &group, 0));
	send_to(&pair[0], ah);
	rule(!any_wc(pair[1].cq, &wc), "a QP that has left the group receives nothing");
}

/* Runs a group member in another process, which opens the device itself. */
static int listen_elsewhere(const union ibv_gid *group, int ready)
{
	struct side s = {0};
	struct ibv_wc wc;

	hca_open();
	side_create(&s, IBV_QPT_UD, 0);
	side_up(&s, NULL, IBV_QPS_RTS);
	MUST(!ibv_attach_mcast(s.qp, group, 0));
	MUST(!post_recv(&s, 1, 0, 100) && !post_recv(&s, 2, 0, 100));
	MUST(write(ready, "", 1) == 1);
	return await_wc(s.cq, &wc) && !any_wc(s.cq, &wc) ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void test_members_in_two_processes(void)
{
	const union ibv_gid group = group_number(4);
	struct side s = {0};
	int ready[2], status;
	pid_t child;
	char byte;

	if (!hca.attr.max_mcast_grp)
		skip("no multicast");
	MUST(!pipe(ready));
	child = fork();
	MUST(child >= 0);
	if (!child)
		_exit(listen_elsewhere(&group, ready[1]));
	side_create(&s, IBV_QPT_UD, 0);
	side_up(&s, NULL, IBV_QPS_RTS);
	close(ready[1]);
	MUST(read(ready[0], &byte, 1) == 1);
	send_to(&s, group_ah(&group));
	MUST(waitpid(child, &status, 0) == child);
	rule(!status, "a member in another process receives its group once");
}

const struct test mcast_tests[] = {
	{"membership", test_attach_and_detach},
	{"many", test_max_groups},
	{"members", test_max_members_of_a_group},
	{"attachments", test_max_attachments},
	{"delivery", test_datagrams_reach_all_members},
	{"processes", test_members_in_two_processes},
	{NULL, NULL},
};
