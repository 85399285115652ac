/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Allocation failures outside the engine. Each scenario runs with its first allocation failing,
 * then with its second, and so on. It has to return -ENOMEM, leak nothing, and succeed when
 * allocations succeed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <netdev/netdev.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/flow.h"
#include "mem_port.h"
#include "objects/handle.h"
#include "vnic_loop.h"

static struct {
	uint32_t left; /* allocations until the failing one; 0 = none fails */
	bool fired;
	int64_t live;
} memory;

/* The linker gives these names (--wrap). */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__real_reallocarray(void *block, size_t n, size_t size);
void *__wrap_reallocarray(void *block, size_t n, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *block);
void __wrap_free(void *block);

static bool runs_out(void)
{
	if (!memory.left || --memory.left)
		return false;
	memory.fired = true;
	return true;
}

static void *take(void *block)
{
	memory.live += block != NULL;
	return block;
}

void *__wrap_malloc(size_t size)
{
	return runs_out() ? NULL : take(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return runs_out() ? NULL : take(__real_calloc(n, size));
}

void *__wrap_realloc(void *block, size_t size)
{
	if (runs_out())
		return NULL;
	memory.live -= block != NULL;
	return take(__real_realloc(block, size));
}

void *__wrap_reallocarray(void *block, size_t n, size_t size)
{
	if (runs_out())
		return NULL;
	memory.live -= block != NULL;
	return take(__real_reallocarray(block, n, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return runs_out() ? NULL : take(__real_aligned_alloc(alignment, size));
}

void __wrap_free(void *block)
{
	memory.live -= block != NULL;
	__real_free(block);
}

/*
 * The scenario returns 0 or -ENOMEM; at least `allocations` allocations have to fail, one in each
 * run.
 */
static void starve(int (*scenario)(void), uint32_t allocations)
{
	uint32_t n = 0;
	int rc;

	do {
		memory.left = ++n;
		memory.fired = false;
		memory.live = 0;
		rc = scenario();
		memory.left = 0;
		assert_int_equal(rc, memory.fired ? -ENOMEM : 0);
		assert_int_equal(memory.live, 0);
	} while (memory.fired);
	assert_true(n > allocations);
}

static int mem_pair(void)
{
	struct netdev *ends[2];
	int rc = netdev_mem_pair(4, ends);

	if (rc)
		return rc;
	netdev_close(ends[0]);
	netdev_close(ends[1]);
	return 0;
}

/* The port refuses frames without memory for them, and the sender repeats. */
static int mem_frames(void)
{
	const struct netdev_frame frames[] = {{.data = (const uint8_t *)"a", .len = 1},
					      {.data = (const uint8_t *)"bb", .len = 2}};
	struct netdev_frame got[2];
	struct netdev *ends[2];
	int rc = netdev_mem_pair(4, ends);
	uint32_t sent;

	if (rc)
		return rc;
	sent = netdev_tx(ends[0], 0, frames, 2);
	rc = sent == 2 ? 0 : -ENOMEM;
	sent += netdev_tx(ends[0], 0, frames + sent, 2 - sent);
	assert_int_equal(sent, 2);
	assert_int_equal(netdev_rx(ends[1], 0, got, 2), 2);
	assert_int_equal(got[1].len, 2);
	netdev_close(ends[0]);
	netdev_close(ends[1]);
	return rc;
}

static int fault_port(void)
{
	const struct netdev_impairment fault = {.seed = 1};
	struct netdev *ends[2], *port;
	int rc = netdev_mem_pair(4, ends);

	if (rc)
		return rc;
	rc = netdev_impair_open(ends[0], &fault, NULL, &port);
	netdev_close(rc ? ends[0] : port);
	netdev_close(ends[1]);
	return rc;
}

static int loop(void)
{
	struct vnic_loop *loop;
	int rc = vnic_loop_open(1500, &loop);

	if (!rc)
		vnic_loop_close(loop);
	return rc;
}

#define OBJECTS 300

static int handles(void)
{
	static struct object objects[OBJECTS];
	const uint32_t max[OBJECT_TYPES] = {[OBJECT_PD] = OBJECTS};
	uint32_t counts[OBJECT_TYPES] = {0};
	struct handle_table table = {.counts = counts, .max = max};
	int rc = 0;

	for (uint32_t i = 0; i < OBJECTS; i++) {
		objects[i] = (struct object){.type = OBJECT_PD};
		if (handle_add(&table, &objects[i])) {
			rc = -ENOMEM;
			assert_int_equal(handle_add(&table, &objects[i]), 0);
		}
	}
	for (uint32_t i = 0; i < OBJECTS; i++)
		assert_ptr_equal(handle_find(&table, OBJECT_PD, objects[i].handle), &objects[i]);
	handle_table_free(&table);
	return rc;
}

/* Each packet opens a flow, then gaps in the flows. */
static int flows(void)
{
	struct flow_table *table = flow_table_create();
	int rc = 0;

	if (!table)
		return -ENOMEM;
	for (uint32_t i = 0; i < 400 && !rc; i++) {
		const struct urxe_packet p = {
			.opcode = 0x0a, .dest_qpn = i % 100, .psn = 10 * (i / 100)};

		rc = flow_input(table, &p);
	}
	flow_table_destroy(table);
	return rc;
}

static int capture(void)
{
	char path[] = "/tmp/urxe-nomem-XXXXXX", error[200] = "";
	int fd = mkstemp(path), rc;
	struct netdev *port;

	assert_true(fd >= 0);
	close(fd);
	rc = netdev_pcap_create(path, &port, error, sizeof(error));
	if (!rc) {
		netdev_close(port);
		rc = netdev_pcap_open(path, &port, error, sizeof(error));
	}
	if (!rc)
		netdev_close(port);
	else
		assert_true(error[0]);
	unlink(path);
	return rc;
}

static void test_mem_pair_survives_shortage(void **state)
{
	(void)state;
	starve(mem_pair, 3);
}

static void test_mem_frames_survive_shortage(void **state)
{
	(void)state;
	starve(mem_frames, 5);
}

static void test_impair_port_survives_shortage(void **state)
{
	(void)state;
	starve(fault_port, 4);
}

static void test_vnic_loop_survives_shortage(void **state)
{
	(void)state;
	starve(loop, 4);
}

static void test_handles_survive_shortage(void **state)
{
	(void)state;
	starve(handles, 3);
}

static void test_flow_table_survives_shortage(void **state)
{
	(void)state;
	starve(flows, 200);
}

static void test_capture_survives_shortage(void **state)
{
	(void)state;
	starve(capture, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mem_pair_survives_shortage),
		cmocka_unit_test(test_mem_frames_survive_shortage),
		cmocka_unit_test(test_impair_port_survives_shortage),
		cmocka_unit_test(test_vnic_loop_survives_shortage),
		cmocka_unit_test(test_handles_survive_shortage),
		cmocka_unit_test(test_flow_table_survives_shortage),
		cmocka_unit_test(test_capture_survives_shortage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
