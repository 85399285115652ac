/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The checks of neighbour discovery that depend on source and destination (RFC 4861, 7.1). */
#include "neigh_world.h"

#define SOLICITED 0x40

static bool is_accepted(const struct hand_made_nd *nd)
{
	uint8_t frame[ND_FRAME_LEN];
	struct nd m;
	uint32_t len = put_nd(frame, nd);

	return nd_parse(&m, frame, len);
}

static struct hand_made_nd solicitation(const char *from, const char *to, uint8_t option)
{
	return (struct hand_made_nd){
		.type = 135, .from = from, .to = to, .target = "2001:db8::1", .option = option};
}

static struct hand_made_nd advertisement(const char *to, uint8_t flags)
{
	return (struct hand_made_nd){.type = 136,
				     .flags = flags,
				     .from = "2001:db8::9",
				     .to = to,
				     .target = "2001:db8::9",
				     .option = 2};
}

static void host_without_address_asks_a_solicited_node_group(void **state)
{
	static const char *const wrong[] = {"2001:db8::1", "ff02::1", "ff02::2:ff00:1",
					    "ff05::1:ff00:1", "ff02::1:fe00:1"};
	struct hand_made_nd nd = solicitation("::", "ff02::1:ff00:1", 0);

	(void)state;
	assert_true(is_accepted(&nd));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		nd = solicitation("::", wrong[i], 0);
		assert_false(is_accepted(&nd));
		nd = solicitation("2001:db8::9", wrong[i], 0);
		assert_true(is_accepted(&nd));
	}
}

static void host_without_address_names_no_mac(void **state)
{
	struct hand_made_nd nd = solicitation("::", "ff02::1:ff00:1", 1);

	(void)state;
	assert_false(is_accepted(&nd));
	nd = solicitation("2001:db8::9", "ff02::1:ff00:1", 1);
	assert_true(is_accepted(&nd));
	/* An option of another kind is not for solicitations: receivers skip it. */
	nd = solicitation("::", "ff02::1:ff00:1", 14);
	assert_true(is_accepted(&nd));
}

static void answer_to_a_group_is_ignored(void **state)
{
	struct hand_made_nd nd = advertisement("ff02::1", SOLICITED);

	(void)state;
	assert_false(is_accepted(&nd));
	nd = advertisement("ff02::1", 0);
	assert_true(is_accepted(&nd));
	nd = advertisement("2001:db8::1", SOLICITED);
	assert_true(is_accepted(&nd));
}

/* What the daemon sends passes the same checks. */
static void own_frames_are_valid(void **state)
{
	const struct hand_made_nd probe = solicitation("::", "ff02::1:ff00:1", 0);
	uint8_t frame[ND_FRAME_LEN];
	struct nd m, out;

	(void)state;
	assert_true(nd_parse(&m, frame, put_nd(frame, &probe)));
	nd_build_advertisement(frame, &m, our_mac);
	assert_true(nd_parse(&out, frame, sizeof(frame)));
	memcpy(m.sip, ip("2001:db8::9"), 16);
	nd_build_advertisement(frame, &m, our_mac);
	assert_true(nd_parse(&out, frame, sizeof(frame)));
	nd_build_solicitation(frame, &m);
	assert_true(nd_parse(&out, frame, sizeof(frame)));
	nd_build_probe(frame, &m, peer_mac);
	assert_true(nd_parse(&out, frame, sizeof(frame)));
}

/* An answer that a whole group receives changes no MAC. */
static void answer_to_a_group_claims_nothing(void **state)
{
	const struct hand_made_nd nd = advertisement("ff02::1", SOLICITED);
	struct neigh_waiter waiter;
	uint8_t frame[ND_FRAME_LEN];

	(void)state;
	assert_int_equal(neigh_resolve(&w.neigh, T0, 0, 1, ip("2001:db8::9"), &waiter, &w.hop),
			 -EINPROGRESS);
	neigh_input(&w.neigh, T0, 0, frame, put_nd(frame, &nd));
	assert_int_equal(w.answers, 0);
}

/* A virtual machine's frame: other receivers may believe such an answer. */
static void filters_check_an_answer_to_a_group(void **state)
{
	const uint8_t flags[] = {SOLICITED, 0};
	uint8_t frame[ND_FRAME_LEN];

	(void)state;
	pin("2001:db8::9=02:00:00:00:00:66");
	for (size_t i = 0; i < sizeof(flags); i++) {
		struct hand_made_nd nd = advertisement("ff02::1", flags[i]);

		assert_false(neigh_claim_allowed(&w.neigh, frame, put_nd(frame, &nd)));
		assert_false(neigh_claims_host(&w.neigh, frame, put_nd(frame, &nd)));
		nd.target = "2001:db8::1";
		assert_true(neigh_claims_host(&w.neigh, frame, put_nd(frame, &nd)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_without_address_asks_a_solicited_node_group),
		cmocka_unit_test(host_without_address_names_no_mac),
		cmocka_unit_test(answer_to_a_group_is_ignored),
		cmocka_unit_test(own_frames_are_valid),
		TEST(answer_to_a_group_claims_nothing),
		TEST(filters_check_an_answer_to_a_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
