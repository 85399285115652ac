/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Regions of scattered pages, as those of virtual machines, at an HCA that a provider double plays.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <hca/hca.h>
#include <hca/objects/flat_memory.h>
#include <rxe/rxe.h>

#include "fake_hca.h"

#define PAGE   4096u
#define PAGES  8u
#define PD     7u
#define IOVA   UINT64_C(0x7f0000000000)
#define OFFSET 0x100u

static bool takes(void *ctx, void *qp_ctx, const struct urxe_qp_attr *attr)
{
	(void)ctx;
	(void)qp_ctx;
	(void)attr;
	return true;
}

static const struct hca_owner owner = {.takes = takes};

static bool complete(void *cq_ctx, const struct urxe_wc *wc)
{
	(void)cq_ctx;
	(void)wc;
	return true;
}

static struct {
	struct urxe_dev *dev;
	struct hca *hca;
	uint8_t *pages;
	int fd;
} f;

static int setup(void **state)
{
	static const struct urxe_ops ops = {.complete = complete};
	const struct urxe_dev_attr attr = {
		.ops = &ops, .mac = {2, 0, 0, 0, 0, 1}, .mtu = 4200, .seed = 1};

	(void)state;
	memset(&f, 0, sizeof(f));
	fake_hca_init();
	f.fd = memfd_create("pages", MFD_CLOEXEC);
	assert_int_equal(ftruncate(f.fd, PAGES * PAGE), 0);
	f.pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, 0);
	assert_ptr_not_equal(f.pages, MAP_FAILED);
	for (uint32_t i = 0; i < PAGES; i++)
		memset(f.pages + i * PAGE, 'a' + (int)i, PAGE);
	assert_int_equal(urxe_dev_create(&attr, &f.dev), 0);
	assert_int_equal(hca_open(&fake_hca.verbs, "fake0", 1, &owner, &f.hca), 0);
	hca_attach(f.hca, f.dev);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	hca_detach(f.hca);
	assert_int_equal(fake_hca.mrs + fake_hca.pds, 0);
	urxe_dev_destroy(f.dev);
	hca_close(f.hca);
	munmap(f.pages, PAGES * PAGE);
	close(f.fd);
	return 0;
}

static struct urxe_extent page(uint32_t i)
{
	return (struct urxe_extent){f.pages + i * PAGE, PAGE};
}

static struct urxe_mr *reg(struct urxe_extent *extents, uint32_t n)
{
	struct urxe_mr_attr attr = {.pd = PD,
				    .access = URXE_ACCESS_LOCAL_WRITE,
				    .iova = IOVA + (uintptr_t)extents[0].addr % PAGE,
				    .extents = extents,
				    .n_extents = n};
	struct urxe_mr *mr;

	for (uint32_t i = 0; i < n; i++)
		attr.length += extents[i].length;
	assert_int_equal(urxe_mr_reg(f.dev, &attr, &mr), 0);
	return mr;
}

/* Mappings of the pages in this process. */
static uint32_t count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	uint32_t n = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, "/memfd:pages") != NULL;
	fclose(maps);
	return n;
}

/* From the middle of page 5 by pages 2 and 3 to the middle of page 0. */
static void scattered_pages_become_one_range(void **state)
{
	struct urxe_extent extents[] = {
		{f.pages + 5 * PAGE + OFFSET, PAGE - OFFSET},
		{f.pages + 2 * PAGE, 2 * PAGE},
		{f.pages, 100},
	};
	const uint32_t mappings = count_mappings();
	struct urxe_mr *mr;
	uint8_t *bytes;

	(void)state;
	mr = reg(extents, 3);
	assert_int_equal(fake_hca.mrs, 1);
	assert_int_equal(urxe_mr_key(mr), fake_hca.last_mr.lkey);
	bytes = fake_hca.last_mr.addr;
	assert_int_equal(fake_hca.last_mr.length, 3 * PAGE - OFFSET + 100);
	/* Hardware needs the same offset in a page. */
	assert_int_equal((uintptr_t)bytes % PAGE, OFFSET);
	assert_int_equal(bytes[0], 'f');
	assert_int_equal(bytes[PAGE - OFFSET], 'c');
	assert_int_equal(bytes[2 * PAGE - OFFSET], 'd');
	assert_int_equal(bytes[3 * PAGE - OFFSET + 99], 'a');
	/* It is the same memory. */
	bytes[2 * PAGE - OFFSET + 1] = 'X';
	assert_int_equal(f.pages[3 * PAGE + 1], 'X');
	f.pages[2 * PAGE + 7] = 'Y';
	assert_int_equal(bytes[PAGE - OFFSET + 7], 'Y');
	assert_int_equal(urxe_mr_dereg(mr), 0);
	assert_int_equal(fake_hca.mrs, 0);
	assert_int_equal(count_mappings(), mappings);
	assert_int_equal(f.pages[2 * PAGE + 7], 'Y');
}

static void one_range_gets_no_mapping(void **state)
{
	struct urxe_extent extent = {f.pages + OFFSET, 3 * PAGE};
	struct urxe_mr *mr;

	(void)state;
	mr = reg(&extent, 1);
	assert_ptr_equal(fake_hca.last_mr.addr, f.pages + OFFSET);
	assert_int_equal(urxe_mr_dereg(mr), 0);
}

/* Neighbours in memory need no second mapping. */
static void neighbouring_pieces_get_no_mapping(void **state)
{
	struct urxe_extent extents[] = {
		{f.pages + OFFSET, PAGE - OFFSET}, page(1), {f.pages + 2 * PAGE, 100}};
	const uint32_t mappings = count_mappings();
	struct urxe_mr *mr;

	(void)state;
	mr = reg(extents, 3);
	assert_ptr_equal(fake_hca.last_mr.addr, f.pages + OFFSET);
	assert_int_equal(fake_hca.last_mr.length, 2 * PAGE - OFFSET + 100);
	assert_int_equal(count_mappings(), mappings);
	assert_int_equal(urxe_mr_dereg(mr), 0);
}

static void check_alone(struct urxe_extent *extents, uint32_t n)
{
	const uint32_t mappings = count_mappings(), mrs = fake_hca.mrs;
	struct urxe_mr *mr = reg(extents, n);

	assert_int_equal(fake_hca.mrs, mrs);
	assert_int_equal(count_mappings(), mappings);
	assert_int_equal(urxe_mr_dereg(mr), 0);
}

static void other_lists_are_the_engines(void **state)
{
	static uint8_t private_pages[3 * PAGE] __attribute__((aligned(PAGE)));
	struct urxe_extent hole[] = {page(3), {NULL, PAGE}, page(1)};
	struct urxe_extent parts[] = {page(3), {f.pages + 10, PAGE - 10}, page(1)};
	struct urxe_extent shorter[] = {page(3), {f.pages, PAGE - 10}, page(1)};
	struct urxe_extent not_shared[] = {
		page(3), {private_pages + PAGE, PAGE}, {private_pages, PAGE}};

	(void)state;
	check_alone(hole, 3);
	check_alone(parts, 3);
	check_alone(shorter, 3);
	check_alone(not_shared, 3);
}

static void pieces_are_limited(void **state)
{
	static struct urxe_extent many[FLAT_PIECES_MAX + 1];
	struct urxe_extent few[] = {page(3), page(1)};
	struct urxe_mr *mr;

	(void)state;
	for (uint32_t i = 0; i <= FLAT_PIECES_MAX; i++)
		many[i] = page(i % 2 * 2);
	check_alone(many, FLAT_PIECES_MAX + 1);
	mr = reg(few, 2);
	assert_int_equal(fake_hca.mrs, 1);
	check_alone(many, FLAT_PIECES_MAX - 1);
	assert_int_equal(urxe_mr_dereg(mr), 0);
	/* The HCA refuses it. */
	fake_hca.rkey_differs = 1;
	mr = reg(few, 2);
	assert_int_equal(urxe_mr_dereg(mr), 0);
	fake_hca.rkey_differs = 0;
	/* The pieces of regions that are gone count no more. */
	mr = reg(many, 1024);
	assert_int_equal(fake_hca.mrs, 1);
	assert_int_equal(urxe_mr_dereg(mr), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(scattered_pages_become_one_range),
		TEST(one_range_gets_no_mapping),
		TEST(neighbouring_pieces_get_no_mapping),
		TEST(other_lists_are_the_engines),
		TEST(pieces_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
