/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hostile guest against the rings of a PVRDMA device: work requests, ring indices, doorbells and
 * completions of RC and UD queue pairs with and without an SRQ, which send to each other. The
 * device lives on between inputs (world.h), and an input is a few steps. What an input has broken,
 * the driver makes again before the next one.
 *
 * Pages that nobody may access surround the guest's memory, and one region is read-only. After
 * 4,096 inputs the driver resets the device, and a WRITE must arrive.
 */
#include "pvrdma_side.h"
#include "require.h"
#include "world.h"

#define INPUTS 4096
#define BYTES  96
#define STEPS  8
/* Inputs that a broken device serves before its driver repairs it. */
#define BROKEN_INPUTS 8

int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct side side = {.peer = &side};
static struct script in;
static uint64_t broken; /* value of count_broken after the last repair */

/* Rings that the device gave up, or ignores until their driver makes them again. */
static uint64_t count_broken(void)
{
	const uint64_t *counters = pvrdma_counters(side.guest.dev);

	return counters[PVRDMA_RING_BAD] + counters[PVRDMA_CQ_OVERFLOWS];
}

static bool all_ready(void)
{
	const struct urxe_qp *qp;
	uint32_t at = 0;

	while ((qp = pvrdma_next_qp(side.guest.dev, &at))) {
		struct urxe_qp_init init;
		struct urxe_qp_attr attr;

		urxe_qp_query(qp, &attr, &init);
		if (attr.state != URXE_QPS_RTS)
			return false;
	}
	return true;
}

/* Makes the objects of side_open and side_restart ready. */
static void start(void)
{
	side_connect(&side);
	side_add_read_only_memory(&side);
	broken = count_broken();
}

static void repair_queue_pairs(void)
{
	for (int i = 0; i < SIDE_QPS; i++)
		require(!qp_to(&side.guest, &side.qps[i], URXE_QPS_RESET));
	side_connect(&side);
}

static void repair(void)
{
	if (count_broken() != broken) {
		side_restart(&side);
		start();
	} else if (!all_ready()) {
		repair_queue_pairs();
	}
}

static void step(void)
{
	switch (script_get8(&in) % 16) {
	case 0:
	case 1: side_ring_doorbell(&side); break;
	case 2:
	case 3:
	case 4: side_post_receive(&side); break;
	case 5:
	case 6: side_scribble(&side); break;
	case 7: side_consume_completions(&side); break;
	case 8: side_pass_time(&side); break;
	case 9: pvrdma_poll(side.guest.dev, side.guest.now); break;
	case 10: side_run(&side); break;
	default: side_post_request(&side); break;
	}
}

static void open_world(void)
{
	side.in = &in;
	in.left = 0;
	side_open(&side, 1);
	start();
}

static void run_input(const uint8_t *data, size_t size)
{
	in = (struct script){.at = data, .left = size};
	if (world_inputs() % BROKEN_INPUTS == 0)
		repair();
	for (unsigned i = 0; i < STEPS && in.left; i++)
		step();
	side_run(&side);
}

static void close_world(void)
{
	in.left = 0;
	side_finish(&side);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct world world = {INPUTS, BYTES, open_world, run_input, close_world, true};

	world_start(&world, argc, argv);
	return 0;
}
