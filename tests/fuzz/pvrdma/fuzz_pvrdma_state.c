/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The stream of a PVRDMA device that a hostile hypervisor has changed. A device that accepts it is
 * saved, restored once more, and used by its guest: no access may leave the guest's memory. The
 * first device must work afterwards.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "pvrdma_side.h"
#include "require.h"
#include "state_patch.h"

#define MAX_STEP 24

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct side side = {.peer = &side};
static struct script in;
static uint8_t *stream;
static size_t length;

/* Queues with requests, and packets on their way. */
static void open_side(void)
{
	side.in = &in;
	side_open(&side, 1);
	side_connect(&side);
	for (int i = 0; i < 6; i++) {
		side_post_receive(&side);
		side_post_request(&side);
	}
	side_run(&side);
	side_post_request(&side);
	pvrdma_pause(side.guest.dev, side.guest.now);
	require(!pvrdma_save(side.guest.dev, side.guest.now, &stream, &length));
	pvrdma_resume(side.guest.dev, side.guest.now);
}

static void act(void)
{
	switch (script_get8(&in) % 12) {
	case 0: side_write_register(&side); break;
	case 1: side_ring_doorbell(&side); break;
	case 2:
	case 3: side_send_command(&side); break;
	case 4: side_post_request(&side); break;
	case 5: side_post_receive(&side); break;
	case 6: side_scribble(&side); break;
	case 7: side_consume_completions(&side); break;
	case 8: side_pass_time(&side); break;
	case 9: pvrdma_poll(side.guest.dev, side.guest.now); break;
	default: side_run(&side); break;
	}
}

/* A restored device is saved at once, and that stream is restored. */
static void move_again(struct pvrdma *dev)
{
	uint8_t *again;
	size_t n;

	if (pvrdma_save(dev, side.guest.now, &again, &n))
		return;
	require(!pvrdma_restore(dev, side.guest.now, again, n));
	free(again);
}

static void use(struct pvrdma *dev)
{
	side.guest.dev = dev;
	pvrdma_resume(dev, side.guest.now);
	for (int i = 0; i < MAX_STEP && in.left; i++)
		act();
	side_run(&side);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pvrdma *own, *dev;
	uint8_t *copy;

	in = (struct script){.left = 0};
	if (!stream)
		open_side();
	own = side.guest.dev;
	in = (struct script){data, size};
	copy = malloc(length);
	require(copy);
	memcpy(copy, stream, length);
	state_patch(&in, copy, length);
	require(!pvrdma_create(&side.guest.attr, &dev));
	if (!pvrdma_restore(dev, side.guest.now, copy, length)) {
		move_again(dev);
		use(dev);
	} else {
		require(!pvrdma_active(dev));
	}
	pvrdma_destroy(dev);
	free(copy);
	side.guest.dev = own;
	require(pvrdma_active(own));
	return 0;
}
