/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hostile guest against the registers of a PVRDMA device and its commands: any register and
 * doorbell, requests of each command with some or all members overwritten, and the shared region.
 * The device lives on between inputs (world.h), and an input is a few steps. Its driver resets the
 * device when it is no longer active, and now and then.
 *
 * Pages that nobody may access surround the guest's memory, and one region is read-only. After each
 * reset the device must answer a command, and after 4,096 inputs a WRITE must arrive.
 */
#include <string.h>

#include "pvrdma_side.h"
#include "require.h"
#include "world.h"

#define INPUTS 4096
#define BYTES  96
#define STEPS  8
/* Inputs after which the driver looks whether the device is active, and resets it anyway. */
#define STOPPED_INPUTS 4
#define DRIVER_INPUTS  64

int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct side side = {.peer = &side};
static struct script in;

static void start(void)
{
	side_connect(&side);
	side_add_read_only_memory(&side);
}

/* --- Steps */

static void write_any_register(void)
{
	const uint8_t choice = script_get8(&in);
	const uint32_t offset = choice & 0x80 ? choice : choice % 16 * 4u;

	pvrdma_reg_write(side.guest.dev, side.guest.now, script_get8(&in) % 4, offset,
			 (uint32_t)side_value(&side));
}

/* The shared region as the driver made it, with words of the input's. */
static void load_region(void)
{
	struct guest *g = &side.guest;
	struct pv_shared_region region = {
		.driver_version = PV_VERSION - (script_get8(&in) % 4 == 3),
		.cmd_slot_dma = g->request,
		.resp_slot_dma = g->response,
		.async_ring_pages = {.num_pages = g->async.n, .pdir_dma = g->async.dir},
		.cq_ring_pages = {.num_pages = g->cq_notify.n, .pdir_dma = g->cq_notify.dir},
		.uar_pfn64 = GUEST_UAR_PFN,
	};
	uint64_t at = g->dsr;

	side_patch(&side, &region, offsetof(struct pv_shared_region, caps));
	memcpy(guest_at(g, g->dsr), &region, sizeof(region));
	if (script_get8(&in) % 8 == 0)
		at = side_value(&side);
	pvrdma_reg_write(g->dev, g->now, PV_BAR_REG, PV_REG_DSRLOW, (uint32_t)at);
	pvrdma_reg_write(g->dev, g->now, PV_BAR_REG, PV_REG_DSRHIGH, (uint32_t)(at >> 32));
	pvrdma_reg_write(g->dev, g->now, PV_BAR_REG, PV_REG_CTL, script_get8(&in) % 4);
}

/* A request of the input's bytes. */
static void send_bytes(void)
{
	struct guest *g = &side.guest;
	union pv_request request = {.hdr = {.cmd = script_get8(&in) % (PV_CMDS + 1)}};
	uint8_t *bytes = (uint8_t *)&request + sizeof(request.hdr);

	for (uint8_t n = script_get8(&in) % 32; n; n--)
		bytes[script_get8(&in) % (sizeof(request) - sizeof(request.hdr))] =
			script_get8(&in);
	memcpy(guest_at(g, g->request), &request, sizeof(request));
	pvrdma_reg_write(g->dev, g->now, PV_BAR_REG, PV_REG_REQUEST, 0);
}

/* A command of the driver, after a reset. */
static void check_response(void)
{
	struct guest *g = &side.guest;
	union pv_request request;
	union pv_response response;
	uint32_t err;

	request.hdr = (struct pv_cmd_hdr){.response = ++g->token, .cmd = PV_CMD_QUERY_PORT};
	request.query_port.port_num = 1;
	memcpy(guest_at(g, g->request), &request, sizeof(request.query_port));
	pvrdma_reg_write(g->dev, g->now, PV_BAR_REG, PV_REG_REQUEST, 0);
	require(!pvrdma_reg_read(g->dev, PV_BAR_REG, PV_REG_ERR, &err) && !err);
	memcpy(&response, guest_at(g, g->response), sizeof(response));
	require(response.hdr.response == g->token && !response.hdr.err);
	require(response.hdr.ack == PV_CMD_ACK + PV_CMD_QUERY_PORT);
}

static void step(void)
{
	switch (script_get8(&in) % 16) {
	case 0: /* Most of these end what the inputs before have made. */
		if (script_get8(&in) % 4 == 0)
			write_any_register();
		break;
	case 1: side_write_register(&side); break;
	case 2: side_read_register(&side); break;
	case 3: side_ring_doorbell(&side); break;
	case 4:
		if (script_get8(&in) % 4 == 0)
			load_region();
		break;
	case 5:
	case 6: send_bytes(); break;
	case 7: side_post_request(&side); break;
	case 8: side_post_receive(&side); break;
	case 9: side_change_link(&side); break;
	case 10: side_run(&side); break;
	default: side_send_command(&side); break;
	}
}

/* --- The world */

static void restart(void)
{
	in.left = 0;
	side_restart(&side);
	start();
	check_response();
}

static bool wants_restart(void)
{
	const uint32_t n = world_inputs();

	return n % DRIVER_INPUTS == 0 ||
	       (n % STOPPED_INPUTS == 0 && !pvrdma_active(side.guest.dev));
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
	if (wants_restart())
		restart();
	in = (struct script){.at = data, .left = size};
	for (unsigned i = 0; i < STEPS && in.left; i++)
		step();
	side_run(&side);
}

static void close_world(void)
{
	restart();
	side_check_write(&side);
	side_close(&side);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct world world = {INPUTS, BYTES, open_world, run_input, close_world, true};

	world_start(&world, argc, argv);
	return 0;
}
