/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The HCA refuses a modification of its queue pair: nothing has changed afterwards. */
#include "take_over_bed.h"

#define REMOTE (NODE_ACCESS & ~(uint32_t)URXE_ACCESS_LOCAL_WRITE)

static bool refuses;

static int modify(void *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	return refuses ? -EIO : engine_hca_ops.qp_modify(qp, attr, mask);
}

/* Side 1 has an HCA that can refuse. */
static void open_refusing(struct bed *bed)
{
	static struct urxe_offload_ops ops;

	refuses = false;
	ops = engine_hca_ops;
	ops.qp_modify = modify;
	bed_open_sides(bed, false, true, &(struct pair_attr){.seed = 1});
	urxe_offload_set(device(bed, 1), &ops, &bed->hca[1]);
}

static void modify_in_vain(const struct bed *bed, struct urxe_qp *qp,
			   const struct urxe_qp_attr *attr, uint32_t mask)
{
	refuses = true;
	assert_int_equal(urxe_qp_modify(qp, bed->wire->now, attr, mask), -EIO);
	refuses = false;
}

/* The engine could not count the messages of a peer that may WRITE, and would refuse to take over
 * an idle queue pair. */
static void test_refused_rights_are_not_granted(void **state)
{
	const struct urxe_qp_attr attr = {.access = REMOTE};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	static struct bed bed;

	(void)state;
	open_refusing(&bed);
	conn.access = 0;
	conn_open(&bed.above, &conn, bed.e.end);
	modify_in_vain(&bed, bed.e.end[1].qp, &attr, URXE_QP_ACCESS_FLAGS);
	take_over(&bed, 1);
	bed_close(&bed);
}

static size_t save(struct bed *bed, uint8_t **stream)
{
	size_t length;

	move_save(bed->above.node[1], bed->wire->now, stream, &length);
	return length;
}

static void test_refused_connection_leaves_the_saved_state(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	static struct bed bed;
	struct urxe_qp_attr attr;
	uint8_t *before, *after;
	size_t length;

	(void)state;
	open_refusing(&bed);
	for (unsigned side = 0; side < 2; side++)
		conn_create(&bed.above, &conn, side, &bed.e.end[side]);
	attr = conn_qp_attr(&conn, 1, bed.e.a, bed.e.end[0].qpn);
	attr.state = URXE_QPS_INIT;
	assert_int_equal(
		urxe_qp_modify(bed.e.end[1].qp, 1, &attr, conn_mask(conn.type, URXE_QPS_INIT)), 0);
	length = save(&bed, &before);
	attr.state = URXE_QPS_RTR;
	modify_in_vain(&bed, bed.e.end[1].qp, &attr, conn_mask(conn.type, URXE_QPS_RTR));
	assert_int_equal(save(&bed, &after), length);
	assert_memory_equal(before, after, length);
	urxe_state_free(before);
	urxe_state_free(after);
	bed_close(&bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused_rights_are_not_granted),
		cmocka_unit_test(test_refused_connection_leaves_the_saved_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
