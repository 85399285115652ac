/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Handles of a context. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "objects/handle.h"

#define OBJECTS 1000

static struct object objects[OBJECTS];

static const uint32_t no_max[OBJECT_TYPES] = {[0 ... OBJECT_TYPES - 1] = UINT32_MAX};
static uint32_t counts[OBJECT_TYPES];

static int set_up(void **state)
{
	(void)state;
	memset(counts, 0, sizeof(counts));
	return 0;
}

static void handle_finds_objects_of_its_type_only(void **state)
{
	struct handle_table table = {.counts = counts, .max = no_max};

	(void)state;
	for (uint32_t i = 0; i < OBJECTS; i++) {
		objects[i] = (struct object){.type = i % 2 ? OBJECT_QP : OBJECT_CQ};
		assert_int_equal(handle_add(&table, &objects[i]), 0);
		assert_int_not_equal(objects[i].handle, 0);
	}
	for (uint32_t i = 0; i < OBJECTS; i++) {
		assert_ptr_equal(handle_find(&table, objects[i].type, objects[i].handle),
				 &objects[i]);
		assert_null(handle_find(&table, i % 2 ? OBJECT_CQ : OBJECT_QP, objects[i].handle));
		assert_null(handle_find(&table, OBJECT_MR, objects[i].handle));
	}
	handle_table_free(&table);
}

static void unknown_handles_find_no_object(void **state)
{
	struct handle_table table = {.counts = counts, .max = no_max};
	struct object pd = {.type = OBJECT_PD};

	(void)state;
	assert_null(handle_find(&table, OBJECT_PD, 0));
	assert_null(handle_find(&table, OBJECT_PD, 1));
	assert_int_equal(handle_add(&table, &pd), 0);
	assert_null(handle_find(&table, OBJECT_PD, 0));
	assert_null(handle_find(&table, OBJECT_PD, table.size));
	assert_null(handle_find(&table, OBJECT_PD, table.size + 1));
	assert_null(handle_find(&table, OBJECT_PD, UINT32_MAX));
	assert_int_equal(handle_error(&table, pd.handle), -EINVAL);
	assert_int_equal(handle_error(&table, 0), -ENOENT);
	handle_remove(&table, &pd);
	assert_null(handle_find(&table, OBJECT_PD, pd.handle));
	assert_int_equal(handle_error(&table, pd.handle), -ENOENT);
	assert_int_equal(handle_error(&table, UINT32_MAX), -ENOENT);
	handle_table_free(&table);
}

static void objects_may_be_removed_during_a_walk(void **state)
{
	struct handle_table table = {.counts = counts, .max = no_max};
	uint32_t at = 0, found = 0;
	struct object *object;

	(void)state;
	for (uint32_t i = 0; i < OBJECTS; i++) {
		objects[i] = (struct object){.type = i % 3 ? OBJECT_QP : OBJECT_AH};
		assert_int_equal(handle_add(&table, &objects[i]), 0);
	}
	while ((object = handle_next(&table, OBJECT_QP, &at))) {
		assert_int_equal(object->type, OBJECT_QP);
		handle_remove(&table, object);
		found++;
	}
	assert_int_equal(found, OBJECTS - (OBJECTS + 2) / 3);
	at = 0;
	assert_null(handle_next(&table, OBJECT_QP, &at));
	at = 0;
	assert_non_null(handle_next(&table, OBJECT_AH, &at));
	handle_table_free(&table);
}

/* As a restored process does: in any order, with gaps. */
static void restored_objects_keep_their_handles(void **state)
{
	static const uint32_t handles[] = {300, 2, 65};
	struct handle_table table = {.counts = counts, .max = no_max};
	struct object other = {.type = OBJECT_PD, .handle = 65}, added = {.type = OBJECT_AH};

	(void)state;
	for (int i = 0; i < 3; i++) {
		objects[i] = (struct object){.type = OBJECT_CQ, .handle = handles[i]};
		assert_int_equal(handle_place(&table, &objects[i]), 0);
	}
	assert_int_equal(handle_place(&table, &other), -EEXIST);
	other.handle = 0;
	assert_int_equal(handle_place(&table, &other), -EEXIST);
	handle_find_free(&table);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(handle_find(&table, OBJECT_CQ, handles[i]), &objects[i]);
	/* Each other handle is free, and is used once. */
	for (uint32_t i = 3; i < OBJECTS; i++) {
		objects[i] = added;
		assert_int_equal(handle_add(&table, &objects[i]), 0);
		assert_ptr_equal(handle_find(&table, OBJECT_AH, objects[i].handle), &objects[i]);
	}
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(handle_find(&table, OBJECT_CQ, handles[i]), &objects[i]);
	handle_table_free(&table);
}

/* Two contexts of a device share its maxima. */
static void refuses_one_more_than_the_maximum(void **state)
{
	const uint32_t max[OBJECT_TYPES] = {[OBJECT_PD] = 3, [OBJECT_CQ] = 1};
	struct handle_table table[2] = {{.counts = counts, .max = max},
					{.counts = counts, .max = max}};
	struct object pd[4], cq = {.type = OBJECT_CQ}, mr = {.type = OBJECT_MR};

	(void)state;
	for (int i = 0; i < 4; i++) {
		pd[i] = (struct object){.type = OBJECT_PD};
		assert_int_equal(handle_add(&table[i % 2], &pd[i]), i < 3 ? 0 : -EINVAL);
	}
	assert_int_equal(handle_add(&table[0], &cq), 0);
	assert_int_equal(handle_add(&table[1], &mr), -EINVAL);
	/* A removed object makes room for one, in either context. */
	handle_remove(&table[0], &pd[0]);
	assert_int_equal(handle_add(&table[1], &pd[3]), 0);
	assert_int_equal(handle_add(&table[0], &pd[0]), -EINVAL);
	handle_remove(&table[1], &pd[3]);
	handle_table_free(&table[0]);
	handle_table_free(&table[1]);
}

static void refuses_to_place_one_more_than_the_maximum(void **state)
{
	const uint32_t max[OBJECT_TYPES] = {[OBJECT_QP] = 2};
	struct handle_table table = {.counts = counts, .max = max};
	struct object qp[3];

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		qp[i] = (struct object){.type = OBJECT_QP, .handle = 10 * (i + 1)};
		assert_int_equal(handle_place(&table, &qp[i]), i < 2 ? 0 : -EINVAL);
	}
	/* An object that gets no handle does not count. */
	handle_remove(&table, &qp[0]);
	qp[2].handle = qp[1].handle;
	assert_int_equal(handle_place(&table, &qp[2]), -EEXIST);
	qp[2].handle = 30;
	assert_int_equal(handle_place(&table, &qp[2]), 0);
	handle_table_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(handle_finds_objects_of_its_type_only, set_up),
		cmocka_unit_test_setup(unknown_handles_find_no_object, set_up),
		cmocka_unit_test_setup(objects_may_be_removed_during_a_walk, set_up),
		cmocka_unit_test_setup(restored_objects_keep_their_handles, set_up),
		cmocka_unit_test_setup(refuses_one_more_than_the_maximum, set_up),
		cmocka_unit_test_setup(refuses_to_place_one_more_than_the_maximum, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
