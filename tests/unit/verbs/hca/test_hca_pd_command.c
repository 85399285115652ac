/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A program's commands for PDs. An HCA has one domain for each number of a PD. */
#include <stdint.h>

#include "hca_program.h"

#define MTU 4200

static struct vnic_loop *loop;

static int setup(void **state)
{
	(void)state;
	fake_hca_init();
	loop = open_with_hca(MTU);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_with_hca(loop);
	assert_int_equal(fake_hca.pds, 0);
	return 0;
}

static uint32_t alloc_pd(void)
{
	const struct ib_uverbs_alloc_pd request = {0};
	uint32_t handle;

	assert_int_equal(COMMAND(ALLOC_PD, request, &handle), 0);
	return handle;
}

static void dealloc_pd(uint32_t handle)
{
	const struct ib_uverbs_dealloc_pd request = {.pd_handle = handle};

	assert_int_equal(COMMAND(DEALLOC_PD, request, NULL), 0);
}

/* As after 2^32 allocations. */
static void live_pds_have_different_numbers(void **state)
{
	uint32_t more[4];

	(void)state;
	adapter.last_pd = UINT32_MAX - 1;
	for (int i = 0; i < 4; i++)
		more[i] = alloc_pd();
	assert_int_equal(fake_hca.pds, 5); /* with that of the context, whose number is 1 */
	for (int i = 0; i < 4; i++)
		dealloc_pd(more[i]);
	assert_int_equal(fake_hca.pds, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(live_pds_have_different_numbers, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
