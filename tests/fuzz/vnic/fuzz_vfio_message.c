/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hostile hypervisor, as of fuzz_vfio, against a vfio-user server that lives on between inputs
 * (world.h) and makes no system calls (fake_client.h). An input is a few messages, whole and in
 * parts, hang-ups and interrupts of the function, which may be slow to settle.
 *
 * The model must see only accesses that its BARs have, each mapped byte must be readable until its
 * removal, and no descriptor and no memory may be left after the connection.
 */
#include <errno.h>
#include <stdlib.h>

#include <vnic/vfio_server.h>

#include "fake_client.h"
#include "require.h"
#include "vfio_message.h"
#include "world.h"

#define PAGE   4096u
#define INPUTS 4096
#define BYTES  128
#define STEPS  6
#define ROOM   65536u

int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct script in;
static struct vnic_guest_memory *memory;
static struct vnic_vfio_server *server;
static uint32_t unsettled; /* calls of model_settled that still return false */
static uint32_t sum;
static bool stopped, logging; /* by the client's migration */

/* --- The model */

static uint64_t model_read(void *ctx, uint32_t bar, uint32_t offset, uint32_t size)
{
	(void)ctx;
	vfio_message_check_access(bar, offset, size);
	return UINT64_MAX;
}

static void model_write(void *ctx, uint32_t bar, uint32_t offset, uint32_t size, uint64_t value)
{
	(void)ctx;
	require(!stopped);
	vfio_message_check_access(bar, offset, size);
	/* A model may raise an interrupt in a write, and withdraw memory that a peer copies. */
	if (value & 1)
		vnic_vfio_server_interrupt(server, offset % 64);
	unsettled = value >> 1 & 3;
}

static void model_reset(void *ctx)
{
	(void)ctx;
}

/* Reads a byte of each page of the regions that [addr, addr + size) is a part of. */
static void touch_memory(uint64_t addr, uint64_t size)
{
	const struct vnic_guest_region *regions;
	uint32_t count;

	regions = vnic_guest_memory_regions(memory, &count);
	for (uint32_t i = 0; i < count; i++) {
		const struct vnic_guest_region *r = &regions[i];

		require(r->size && r->addr + (r->size - 1) >= r->addr);
		require(!i || r->addr - regions[i - 1].addr >= regions[i - 1].size);
		if (r->addr + (r->size - 1) < addr || addr + (size - 1) < r->addr)
			continue;
		for (uint64_t at = 0; at < r->size; at += PAGE)
			sum += ((volatile uint8_t *)r->memory)[at];
	}
}

static void model_memory(void *ctx, uint64_t addr, uint64_t size)
{
	(void)ctx;
	require(size && addr + (size - 1) >= addr);
	touch_memory(addr, size);
}

static bool model_settled(void *ctx)
{
	(void)ctx;
	if (!unsettled)
		return true;
	unsettled--;
	return false;
}

/* --- The model's migration */

static void model_stop(void *ctx)
{
	(void)ctx;
	require(!stopped);
	stopped = true;
}

static void model_start(void *ctx)
{
	(void)ctx;
	require(stopped);
	stopped = false;
}

static int model_save(void *ctx, uint8_t **stream, size_t *length)
{
	(void)ctx;
	require(stopped && !unsettled);
	*length = 100;
	*stream = calloc(1, *length);
	require(*stream);
	return 0;
}

static int model_restore(void *ctx, const uint8_t *stream, size_t length)
{
	(void)ctx;
	require(stopped);
	for (size_t i = 0; i < length; i++)
		sum += stream[i];
	return length == 100 ? 0 : -EBADMSG;
}

static void model_logging(void *ctx, bool on)
{
	(void)ctx;
	require(logging != on);
	logging = on;
}

static void model_mark(void *ctx)
{
	(void)ctx;
	require(logging);
}

static const struct vnic_vfio_migration_ops migration = {
	.stop = model_stop,
	.start = model_start,
	.save = model_save,
	.restore = model_restore,
	.logging = model_logging,
	.mark = model_mark,
};

/* --- The client */

static void connect_client(void)
{
	require(!vnic_vfio_server_connect(server, fake_client_connect()));
	fake_client_room(ROOM);
}

static void serve(void)
{
	const bool was_connected = fake_client_connected();
	const int rc = vnic_vfio_server_event(server);
	uint32_t regions;

	require((rc < 0) == (was_connected && !fake_client_connected()));
	require(fake_client_connected() == (vnic_vfio_server_fd(server) >= 0));
	vnic_guest_memory_regions(memory, &regions);
	require(fake_client_connected() || vnic_vfio_server_is_held(server) ||
		(!regions && !fake_client_pages()));
}

/* The memory of the last connection may wait for the function to settle. */
static void settle(void)
{
	for (uint32_t i = 0; i < 16 && vnic_vfio_server_is_held(server); i++)
		serve();
	require(!vnic_vfio_server_is_held(server));
}

static void send_bytes(const uint8_t *bytes, uint32_t n, uint32_t n_fds)
{
	enum fake_kind kinds[VFIO_MESSAGE_FDS];

	for (uint32_t i = 0; i < n_fds; i++)
		kinds[i] = i & 1 ? FAKE_EVENT : FAKE_FILE;
	/* One descriptor: of the kind that the message wants, or the other one. */
	if (n_fds == 1 && script_get8(&in) & 1)
		kinds[0] = FAKE_EVENT;
	if (!fake_client_send(bytes, n, kinds, n_fds))
		serve();
}

static void send_command(void)
{
	struct vfio_message m;

	vfio_message_fill(&in, &m);
	if (m.cut) {
		send_bytes(m.bytes, m.cut, m.fds);
		serve();
	}
	send_bytes(m.bytes + m.cut, m.n - m.cut, m.fds);
}

static void send_noise(void)
{
	uint8_t bytes[64];
	const uint32_t n = 1 + script_get8(&in) % sizeof(bytes);

	vfio_message_bytes(&in, bytes, n);
	send_bytes(bytes, n, script_get8(&in) % 3);
}

static void greet(void)
{
	static const uint8_t version[] = {0, 0, 1, 0, 20, 0, 0, 0, 0, 0,
					  0, 0, 0, 0, 0,  0, 0, 0, 0, 0};

	send_bytes(version, sizeof(version), 0);
	serve();
}

static void begin(void)
{
	if (fake_client_connected())
		return;
	/* The server takes a next client before the memory of the last one is unmapped. */
	connect_client();
	greet();
}

static void step(void)
{
	const uint8_t choice = script_get8(&in);

	begin();
	switch (choice % 32) {
	case 0: send_noise(); break;
	case 1: fake_client_shut(); break;
	case 2: vnic_vfio_server_disconnect(server); break;
	case 3:
	case 4: vnic_vfio_server_interrupt(server, script_get8(&in)); break;
	case 5: fake_client_room(script_get8(&in)); break;
	case 6: fake_client_room(ROOM); break;
	case 7: greet(); break;
	case 8: touch_memory(0, UINT64_MAX); break;
	case 9: unsettled = script_get8(&in) % 4; break;
	default: send_command(); break;
	}
	if (choice & 0x80)
		return;
	serve();
}

/* --- The world */

static void open_world(void)
{
	const struct vnic_vfio_attr attr = {
		.function = vfio_message_function,
		.ops = {model_read, model_write, model_reset, model_memory, model_memory,
			model_settled},
		.migration = &migration,
	};
	struct vnic_vfio_attr own = attr;

	fake_client_open((uint64_t)VFIO_MESSAGE_PAGES * PAGE);
	unsettled = 0;
	require(!vnic_guest_memory_create(&memory));
	own.memory = memory;
	require(!vnic_vfio_server_create(&own, &server));
}

static void run_input(const uint8_t *data, size_t size)
{
	in = (struct script){.at = data, .left = size};
	for (unsigned i = 0; i < STEPS && in.left; i++)
		step();
	fake_client_room(ROOM);
	serve();
}

/* An honest client is served after the hostile one. */
static void check_honest_client(void)
{
	vnic_vfio_server_disconnect(server);
	unsettled = 0;
	serve();
	settle();
	require(!fake_client_pages() && !fake_client_fds());
	begin();
	require(fake_client_connected());
}

static void close_world(void)
{
	in.left = 0;
	check_honest_client();
	vnic_vfio_server_destroy(server);
	vnic_guest_memory_destroy(memory);
	require(!fake_client_pages() && !fake_client_fds());
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct world world = {INPUTS, BYTES, open_world, run_input, close_world, true};

	world_start(&world, argc, argv);
	return 0;
}
