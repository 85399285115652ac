/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The last byte of a WRITE, on which programs spin, is stored after all others. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "engine.h"

#define PAGE 4096u
#define OLD  0x11
#define NEW  0x77

/* A WRITE whose first bytes are in a page that cannot be written until a store faults. */
static struct {
	uint8_t *page;                /* ends where the next page begins */
	volatile const uint8_t *last; /* byte of the WRITE, in the next page */
	bool faulted, last_was_old;
} target;

/* The store that faults is the first to that page. */
static void allow_store(int number)
{
	(void)number;
	target.faulted = true;
	target.last_was_old = *target.last == OLD;
	mprotect(target.page, PAGE, PROT_READ | PROT_WRITE);
}

/* Writes `length` bytes, all but the last `behind` of them in front of the border of the pages. */
static void run(struct engine *e, uint32_t length, uint32_t behind)
{
	uint8_t *border = target.page + PAGE, *from = border + behind - length;

	memset(from, OLD, length);
	memset(e->a->mem, NEW, length);
	target.last = border + behind - 1;
	target.faulted = target.last_was_old = false;
	assert_int_equal(mprotect(target.page, PAGE, PROT_READ), 0);
	post_send(e, 0,
		  &(struct post){.wr_id = length,
				 .opcode = URXE_WR_RDMA_WRITE,
				 .length = length,
				 .remote = (uint64_t)(from - e->b->mem)});
	pair_settle(e->pair);
	mprotect(target.page, PAGE, PROT_READ | PROT_WRITE);
	expect_wc(&e->a->send_cq, length, URXE_WC_SUCCESS);
	assert_memory_equal(from, e->a->mem, length);
	assert_true(target.faulted);
	if (!target.last_was_old)
		fail_msg("%u bytes: the last one was stored before byte %u", length,
			 length - behind);
}

static void test_last_byte_is_stored_last(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct sigaction before, action = {.sa_handler = allow_store};
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	target.page = e.b->mem + PAGE - (uintptr_t)e.b->mem % PAGE;
	sigaction(SIGSEGV, &action, &before);
	for (uint32_t length = 2; length <= 24; length++)
		for (uint32_t behind = 1; behind < length; behind++)
			run(&e, length, behind);
	sigaction(SIGSEGV, &before, NULL);
	engine_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_byte_is_stored_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
