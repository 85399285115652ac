/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address handles (IBA 10.2.2, 11.2.3). test_qp_ud.c tests messages over them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static void test_attributes_are_accepted_or_refused(void)
{
	struct ibv_ah_attr attr = valid();

	rule_errno(0, try_create(attr), "an address handle to this host can be created");
	attr.grh.traffic_class = 0xff;
	attr.grh.flow_label = 0xfffff;
	attr.grh.hop_limit = 0xff;
	attr.sl = 7;
	rule_errno(0, try_create(attr),
		   "all values of traffic class, flow label and hop limit are accepted");
	for (attr.sl = 8; attr.sl < 16; attr.sl++)
		rule_errno(0, try_create(attr), "service level %u is accepted", attr.sl);
	attr.sl = 0;
	attr.grh.dgid = (union ibv_gid){.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};
	rule_errno(0, try_create(attr), "an address handle to a group can be created");
}

static void test_misuse_is_refused(void)
{
	struct ibv_gid_entry entry;
	struct ibv_ah_attr attr = valid();
	int last;

	attr.is_global = 0;
	rule_errno(EINVAL, try_create(attr), "RoCE needs a global route (IBA A16.5.1)");
	attr = valid();
	attr.port_num = 0;
	rule(try_create(attr), "port 0 is refused");
	attr.port_num = (uint8_t)(hca.attr.phys_port_cnt + 1);
	rule(try_create(attr), "a port after the last is refused");
	attr = valid();
	last = hca.port.gid_tbl_len - 1;
	if (last < 255) {
		attr.grh.sgid_index = (uint8_t)(last + 1);
		rule(try_create(attr), "a source GID index after the last is refused");
	}
	while (last >= 0 && !ibv_query_gid_ex(hca.context, PORT, (uint32_t)last, &entry, 0))
		last--;
	if (last >= 0 && last <= 255) {
		attr.grh.sgid_index = (uint8_t)last;
		rule_errno(ENODATA, try_create(attr),
			   "an empty GID entry is refused as the source");
	}
}

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = {[10] = 0xff, 0xff};

	return !memcmp(gid, prefix, sizeof(prefix));
}

/* Of the other entries of the GID table, those of RoCEv2. */
static void test_addresses_have_one_family(void)
{
	struct ibv_ah_attr attr = valid();
	struct ibv_gid_entry entry;
	int others = 0;

	for (uint32_t i = 0; i < (uint32_t)hca.port.gid_tbl_len && i < 256; i++) {
		if (ibv_query_gid_ex(hca.context, PORT, i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    is_ipv4(&entry.gid) == is_ipv4(&hca.gid))
			continue;
		others++;
		attr.grh.sgid_index = (uint8_t)i;
		rule_errno(EINVAL, try_create(attr),
			   "source GID %u is refused for a destination of the other family", i);
	}
	if (!others)
		skip("all GIDs are of one address family");
}

static void test_max_ah_can_be_created(void)
{
	int n = limit_of(hca.attr.max_ah), made;
	struct ibv_ah **ah = calloc((size_t)n, sizeof(struct ibv_ah *));
	struct ibv_ah_attr attr = valid();

	MUST(ah);
	for (made = 0; made < n; made++)
		if (!(ah[made] = ibv_create_ah(hca.pd, &attr)))
			break;
	rule(made == n, "max_ah address handles can be created");
	if (n == hca.attr.max_ah)
		rule(!ibv_create_ah(hca.pd, &attr), "one address handle more is refused");
	while (made--)
		MUST(!ibv_destroy_ah(ah[made]));
}

const struct test ah_tests[] = {
	{"attributes", test_attributes_are_accepted_or_refused},
	{"misuse", test_misuse_is_refused},
	{"family", test_addresses_have_one_family},
	{"many", test_max_ah_can_be_created},
	{NULL, NULL},
};
