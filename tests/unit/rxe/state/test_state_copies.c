/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The copy transport of a device that is saved: its rights end, copies and references too, and
 * the restored device publishes its rights again.
 */
#include <errno.h>

#include "copy/copy_pair.h"
#include "move.h"

static bool has_rights(const struct node *node, uint32_t key)
{
	const struct urxe_copy_table *t = node->table;
	bool found = false;

	for (uint32_t i = 0; i < URXE_COPY_GRANTS; i++)
		found |= t->grants[i].key == key;
	return found;
}

static void move_side(struct copy_pair *d, unsigned side)
{
	struct endpoint *end = &d->e.end[side];

	move_node(d->e.pair, side, &end, 1);
}

static void test_saved_device_publishes_copy_rights_again(void **state)
{
	const struct urxe_state_save how = {0};
	struct copy_pair d;
	uint8_t *stream;
	size_t length;

	(void)state;
	setup_proven(&d);
	assert_true(has_rights(d.e.b, d.key[1]));
	assert_int_equal(urxe_state_save(d.e.b->dev, d.e.pair->now, &how, &stream, &length), 0);
	urxe_state_free(stream);
	assert_false(has_rights(d.e.b, d.key[1]));
	assert_true(d.way[1].withdrawals > 0);
	/* The device goes on. */
	urxe_copy_rights_publish(d.e.b->dev);
	assert_true(has_rights(d.e.b, d.key[1]));
	move_side(&d, 1);
	assert_true(has_rights(d.e.b, d.key[1]));
	copy_pair_close(&d);
}

/* Both ends: after a move, packets show anew that the connection works, then requests are copied.
 */
static void test_requests_are_copied_after_a_move(void **state)
{
	(void)state;
	for (unsigned side = 0; side < 2; side++) {
		struct copy_pair d;
		struct post post;
		uint32_t copies;

		setup_proven(&d);
		move_side(&d, side);
		post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
		fill(d.e.a->mem + 4096, 100, 3);
		run(&d, &post, URXE_WC_SUCCESS);
		assert_memory_equal(d.e.b->mem + 8192, d.e.a->mem + 4096, 100);
		post.wr_id = 3;
		run(&d, &post, URXE_WC_SUCCESS);
		copies = d.way[0].copies;
		fill(d.e.a->mem + 4096, 100, 4);
		post.wr_id = 4;
		run(&d, &post, URXE_WC_SUCCESS);
		assert_int_equal(d.way[0].copies, copies + 1);
		assert_memory_equal(d.e.b->mem + 8192, d.e.a->mem + 4096, 100);
		copy_pair_close(&d);
	}
}

static void test_save_is_busy_during_copies_and_unmaps(void **state)
{
	const struct urxe_state_save how = {0};
	struct copy_pair d;
	struct urxe_extent bytes;
	uint8_t *stream;
	size_t length;

	(void)state;
	setup_proven(&d);
	d.way[1].unsettled = 1;
	assert_int_equal(urxe_state_save(d.e.b->dev, d.e.pair->now, &how, &stream, &length),
			 -EBUSY);
	assert_int_equal(urxe_state_save(d.e.b->dev, d.e.pair->now, &how, &stream, &length), 0);
	urxe_state_free(stream);
	bytes = (struct urxe_extent){d.e.b->mem, 4096};
	assert_int_equal(urxe_mr_unmap(d.mr[1], &bytes), 0);
	assert_int_equal(urxe_state_save(d.e.b->dev, d.e.pair->now, &how, &stream, &length),
			 -EBUSY);
	urxe_mr_unmapped(d.mr[1], &bytes, true);
	assert_int_equal(urxe_state_save(d.e.b->dev, d.e.pair->now, &how, &stream, &length), 0);
	urxe_state_free(stream);
	copy_pair_close(&d);
}

/* A frame with a reference is on its way when its sender moves: the message goes in packets. */
static void test_references_become_packets(void **state)
{
	static uint8_t data[4300];
	struct urxe_frame frame = {.data = data, .room = sizeof(data)};
	const struct post post = {.wr_id = 5,
				  .opcode = URXE_WR_SEND,
				  .flags = URXE_SEND_SIGNALED,
				  .offset = 4096,
				  .length = 40000};
	uint32_t generation;
	struct copy_pair d;

	(void)state;
	setup_proven(&d);
	fill(d.e.a->mem + 4096, 40000, 9);
	d.e.a->references = true;
	post_recv(&d.e.end[1], 6, 300000, 50000);
	post_send(&d.e, 0, &post);
	assert_int_equal(urxe_output(d.e.a->dev, d.e.pair->now, &frame, 1), 1);
	assert_int_equal(frame.reference.length, 40000);
	d.e.a->references = false;
	generation = d.e.a->table->references;
	move_side(&d, 0);
	assert_int_not_equal(d.e.a->table->references, generation);
	/* The old frame arrives now: its receiver notices that the reference has ended. */
	frame.reference.sender = d.e.a;
	frame.reference.address = (uintptr_t)d.e.a->mem;
	urxe_input(d.e.b->dev, d.e.pair->now, &frame, 1);
	assert_int_equal(drops(d.e.b, URXE_DROP_UNREADABLE), 1);
	pair_settle(d.e.pair);
	expect_wc(&d.e.a->send_cq, 5, URXE_WC_SUCCESS);
	expect_wc(&d.e.b->recv_cq, 6, URXE_WC_SUCCESS);
	assert_memory_equal(d.e.b->mem + 300000, d.e.a->mem + 4096, 40000);
	copy_pair_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_saved_device_publishes_copy_rights_again),
		cmocka_unit_test(test_requests_are_copied_after_a_move),
		cmocka_unit_test(test_save_is_busy_during_copies_and_unmaps),
		cmocka_unit_test(test_references_become_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
