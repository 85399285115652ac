/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hostile guest against the PVRDMA device. Two devices with a cable between them have queues and
 * regions that an honest driver made. The input is what the guests do then: registers, doorbells,
 * which the second guest stores in memory, commands and work requests, honest ones with some
 * members overwritten; bytes anywhere in rings, page directories and slots; memory that comes and
 * goes, also without a word; time and frames.
 *
 * Sanitizers watch the accesses. In the end an honest driver starts the devices again, and a WRITE
 * between them must arrive.
 */
#include <stddef.h>

#include "pvrdma_side.h"
#include "require.h"

#define MAX_STEP 160

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct side sides[2];
static struct script in;

static void open_sides(void)
{
	static uint32_t uar[PVRDMA_UAR_SIZE / sizeof(uint32_t)];

	sides[1].uar = uar;
	for (uint8_t i = 0; i < 2; i++) {
		sides[i].peer = &sides[!i];
		sides[i].in = &in;
		side_open(&sides[i], (uint8_t)(i + 1));
	}
	for (int i = 0; i < 2; i++)
		side_connect(&sides[i]);
}

static void act(struct side *s)
{
	switch (script_get8(&in) % 20) {
	case 0: side_write_register(s); break;
	case 1: side_read_register(s); break;
	case 2:
	case 3: side_ring_doorbell(s); break;
	case 4:
	case 5:
	case 6: side_send_command(s); break;
	case 7:
	case 8:
	case 9: side_post_request(s); break;
	case 10:
	case 11: side_post_receive(s); break;
	case 12:
	case 13: side_scribble(s); break;
	case 14: side_consume_completions(s); break;
	case 15: side_change_memory(s); break;
	case 16: side_pass_time(s); break;
	case 17: pvrdma_poll(s->guest.dev, s->guest.now); break;
	case 18: side_change_link(s); break;
	default: side_run(s); break;
	}
}

/* The server looks for lost pages after it has handled some messages. */
static void step_of(struct side *s, unsigned step)
{
	act(s);
	if (step % 4 == 3)
		side_check_memory(s);
}

/* An honest driver resets the devices that the input has left behind, and sets them up again. */
static void restart(void)
{
	for (int i = 0; i < 2; i++)
		side_restart(&sides[i]);
	for (int i = 0; i < 2; i++)
		side_connect(&sides[i]);
	side_check_write(&sides[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	in = (struct script){.at = data, .left = size};
	open_sides();
	for (unsigned step = 0; step < MAX_STEP && in.left; step++)
		step_of(&sides[script_get8(&in) % 2], step);
	side_run(&sides[0]);
	if (size % 16 == 0)
		restart();
	for (int i = 0; i < 2; i++)
		side_close(&sides[i]);
	return 0;
}
