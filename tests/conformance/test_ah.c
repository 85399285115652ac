/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address handles (IBA 10.2.2, 11.2.3). What they lead to is tested with UD QPs. */
#include <errno.h>
#include <stdlib.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

static struct ibv_ah_attr valid(void)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = PORT,
		.grh = {.dgid = hca.gid, .sgid_index = (uint8_t)hca.gid_index, .hop_limit = 64}};
}

static int try_create(struct ibv_ah_attr attr)
{
	struct ibv_ah *ah;

	errno = 0;
	ah = ibv_create_ah(hca.pd, &attr);
	if (!ah)
		return errno;
	MUST(!ibv_destroy_ah(ah));
	return 0;
}

static void attributes(void)
{
	struct ibv_ah_attr attr = valid();

	rule_errno(0, try_create(attr), "an address of this host has a handle");
	attr.grh.traffic_class = 0xff;
	attr.grh.flow_label = 0xfffff;
	attr.grh.hop_limit = 0xff;
	attr.sl = 7;
	rule_errno(0, try_create(attr),
		   "all values of the traffic class, flow label and hop limit are taken");
	attr.grh.dgid = (union ibv_gid){.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};
	rule_errno(0, try_create(attr), "a group has a handle");
}

static void misuse(void)
{
	struct ibv_gid_entry entry;
	struct ibv_ah_attr attr = valid();
	int last;

	attr.is_global = 0;
	rule_errno(EINVAL, try_create(attr), "RoCE needs a global route (IBA A16.5.1)");
	attr = valid();
	attr.port_num = 0;
	rule(try_create(attr), "there is no port 0");
	attr.port_num = (uint8_t)(hca.attr.phys_port_cnt + 1);
	rule(try_create(attr), "there is no port after the last");
	attr = valid();
	last = hca.port.gid_tbl_len - 1;
	if (last < 255) {
		attr.grh.sgid_index = (uint8_t)(last + 1);
		rule(try_create(attr), "there is no source GID after the last");
	}
	while (last >= 0 && !ibv_query_gid_ex(hca.context, PORT, (uint32_t)last, &entry, 0))
		last--;
	if (last >= 0 && last <= 255) {
		attr.grh.sgid_index = (uint8_t)last;
		rule(try_create(attr), "an entry that is empty is no source");
	}
}

static void many(void)
{
	int n = limit_of(hca.attr.max_ah), made;
	struct ibv_ah **ah = calloc((size_t)n, sizeof(struct ibv_ah *));
	struct ibv_ah_attr attr = valid();

	MUST(ah);
	for (made = 0; made < n; made++)
		if (!(ah[made] = ibv_create_ah(hca.pd, &attr)))
			break;
	rule(made == n, "there are as many handles as the device says");
	while (made--)
		MUST(!ibv_destroy_ah(ah[made]));
}

const struct test ah_tests[] = {
	{"attributes", attributes},
	{"misuse", misuse},
	{"many", many},
	{NULL, NULL},
};
