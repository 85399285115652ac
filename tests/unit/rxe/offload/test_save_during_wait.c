/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device is saved while an operation of the program waits for the HCA. */
#include "take_over_bed.h"

static struct bed *waiting;
static uint8_t *stream;
static size_t stream_length;

static void take_over_and_save(void)
{
	struct urxe_offload_refusal refusal;
	struct node *node = waiting->above.node[1];

	assert_int_equal(urxe_offload_take_over(node->dev, 1, true, &refusal), 0);
	move_save(node, 1, &stream, &stream_length);
}

static int save_and_create_srq(void *ctx, const struct urxe_rq_attr *attr, struct urxe_rq *srq,
			       void **made)
{
	take_over_and_save();
	return engine_hca_ops.srq_create(ctx, attr, srq, made);
}

static int save_and_attach(void *qp, const struct urxe_gid *gid)
{
	take_over_and_save();
	return engine_hca_ops.mcast_attach(qp, gid);
}

static void open_waiting(struct bed *bed)
{
	static struct urxe_offload_ops ops;

	ops = engine_hca_ops;
	ops.srq_create = save_and_create_srq;
	ops.mcast_attach = save_and_attach;
	bed_open_sides(bed, false, true, &(struct pair_attr){.seed = 1});
	urxe_offload_set(device(bed, 1), &ops, &bed->hca[1]);
	waiting = bed;
}

static void count_srq(void *n, const struct urxe_state_object *object)
{
	*(unsigned *)n += object->kind == URXE_STATE_SRQ;
}

/* Returns the number of shared receive queues. */
static unsigned restore_stream(const struct node *saved)
{
	struct node node = *saved;
	unsigned n = 0;

	node.old_mem = (uintptr_t)node.mem;
	assert_int_equal(move_restore(&node, 1, stream, stream_length, count_srq, &n), 0);
	urxe_dev_destroy(node.dev);
	urxe_state_free(stream);
	return n;
}

/* The owner does not know the queue yet. */
static void test_srq_that_the_hca_creates_is_not_saved(void **state)
{
	const struct urxe_rq_attr attr = {.pd = NODE_PD, .max_wr = 8, .max_sge = 2};
	static struct bed bed;
	struct urxe_rq *srq;

	(void)state;
	open_waiting(&bed);
	assert_int_equal(urxe_srq_create(device(&bed, 1), &attr, &srq), 0);
	assert_int_equal(restore_stream(bed.above.node[1]), 0);
	assert_int_equal(urxe_srq_destroy(srq), 0);
	bed_close(&bed);
}

static void test_group_that_the_hca_joins_is_saved(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_UD);
	const struct urxe_gid group = {{0xff, 0x0e, [15] = 1}};
	static struct bed bed;
	struct endpoint end;

	(void)state;
	open_waiting(&bed);
	conn_create(&bed.above, &conn, 1, &end);
	assert_int_equal(urxe_mcast_attach(end.qp, &group), 0);
	restore_stream(bed.above.node[1]);
	urxe_qp_destroy(end.qp);
	bed_close(&bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_srq_that_the_hca_creates_is_not_saved),
		cmocka_unit_test(test_group_that_the_hca_joins_is_saved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
