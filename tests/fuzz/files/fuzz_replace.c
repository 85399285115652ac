/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a device process gets from a hostile process that it should replace (vm/replace/bundle.h):
 * a stream with any words changed and right checksums, and descriptors of any kind in any order. A
 * refused bundle leaves no descriptor and no memory behind. A server that accepts its part answers
 * messages, and its model sees only the memory of the descriptors.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netdev/shm.h>

#include "require.h"
#include "send_fds.h"
#include "state_patch.h"
#include "vm/device/listen_socket.h"
#include "vm/device/uar_memory.h"
#include "vm/replace/bundle.h"

#define PAGE  UINT64_C(4096)
#define PAGES 16u
#define MODEL 64u /* bytes of the model's stream */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct side {
	struct vnic_guest_memory *memory;
	struct vnic_vfio_server *server;
	bool stopped;
};

static uint8_t *stream; /* of an honest process */
static size_t length;
static int fds[BUNDLE_FDS];
static uint32_t n_fds;
static int clients[BUNDLE_FUNCTIONS]; /* the other ends of the connections */

/* --- The model */

static uint64_t read_model(void *ctx, uint32_t bar, uint32_t offset, uint32_t size)
{
	(void)ctx, (void)bar, (void)offset, (void)size;
	return 0;
}

static void write_model(void *ctx, uint32_t bar, uint32_t offset, uint32_t size, uint64_t value)
{
	(void)bar, (void)offset, (void)size, (void)value;
	require(!((struct side *)ctx)->stopped);
}

static void ignore(void *ctx)
{
	(void)ctx;
}

static void add_memory(void *ctx, uint64_t addr, uint64_t size)
{
	require(vnic_guest_memory_range(((struct side *)ctx)->memory, addr, size, false));
}

static void remove_memory(void *ctx, uint64_t addr, uint64_t size)
{
	(void)ctx, (void)addr, (void)size;
}

static void stop(void *ctx)
{
	((struct side *)ctx)->stopped = true;
}

static void start(void *ctx)
{
	((struct side *)ctx)->stopped = false;
}

static int save(void *ctx, uint8_t **model, size_t *n)
{
	(void)ctx;
	*n = MODEL;
	*model = calloc(1, MODEL);
	return 0;
}

static int restore(void *ctx, const uint8_t *model, size_t n)
{
	uint8_t sum = 0;

	(void)ctx;
	for (size_t i = 0; i < n; i++)
		sum |= model[i];
	return sum == 0xff ? -1 : 0;
}

static void set_logging(void *ctx, bool on)
{
	(void)ctx, (void)on;
}

static const struct vnic_vfio_migration_ops migration = {stop, start,       save,  restore,
							 NULL, set_logging, ignore};

static void open_side(struct side *side)
{
	struct vnic_vfio_attr attr = {
		.function = {.bar_size = {4096, 4096, 8192},
			     .vectors = 3,
			     .msix_bar = 2,
			     .pba_offset = 4096},
		.ops = {.read = read_model,
			.write = write_model,
			.reset = ignore,
			.memory_added = add_memory,
			.memory_removed = remove_memory},
		.migration = &migration,
		.ctx = side,
	};

	*side = (struct side){.stopped = false};
	require(!vnic_guest_memory_create(&side->memory));
	attr.memory = side->memory;
	require(!vnic_vfio_server_create(&attr, &side->server));
}

static void close_side(struct side *side)
{
	vnic_vfio_server_destroy(side->server);
	vnic_guest_memory_destroy(side->memory);
}

/* --- The honest process */

static void send_to(const struct side *side, int client, const void *message, size_t n, int fd)
{
	uint8_t reply[256];

	require(send_fds(client, message, n, &fd, fd >= 0) == (ssize_t)n);
	require(vnic_vfio_server_event(side->server) >= 0);
	require(recv(client, reply, sizeof(reply), MSG_DONTWAIT) > 0 && !(reply[8] & 0x20));
}

/* VERSION, DMA_MAP and SET_IRQS. */
static void connect_client(struct side *side, int *client)
{
	const uint32_t version[5] = {1u << 16, sizeof(version)};
	const struct {
		uint32_t header[4], argsz, flags;
		uint64_t offset, addr, size;
	} map = {{2u << 16, sizeof(map)}, 32, 3, PAGE, 0x10000, (PAGES - 1) * PAGE};
	const uint32_t irq[9] = {8u << 16, sizeof(irq), 0, 0, 20, 4 | 32, 2, 1, 1};
	const int file = memfd_create("guest", MFD_CLOEXEC), event = eventfd(0, EFD_CLOEXEC);
	int ends[2];

	require(!ftruncate(file, PAGES * PAGE));
	require(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	require(!vnic_vfio_server_connect(side->server, ends[0]));
	*client = ends[1];
	send_to(side, ends[1], version, sizeof(version), -1);
	send_to(side, ends[1], &map, sizeof(map), file);
	send_to(side, ends[1], irq, sizeof(irq), event);
	close(file);
	close(event);
}

static int listening_socket(int type)
{
	const struct sockaddr address = {.sa_family = AF_UNIX};
	const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	/* The kernel chooses an abstract name. */
	require(!bind(fd, &address, sizeof(address.sa_family)) && !listen(fd, 1));
	return fd;
}

static void make_bundle(void)
{
	static struct side sides[BUNDLE_FUNCTIONS];
	struct bundle b = {.options = {.mtu = 1500, .map_doorbells = true}};
	struct uar_memory doorbells;
	static struct netdev *port;

	require(!uar_memory_open(&doorbells));
	require(!netdev_shm_create(9000, &port));
	b.doorbells = doorbells.fd;
	b.replace_listener = listening_socket(SOCK_SEQPACKET);
	b.link = (struct switch_link_handover){
		.joined = true, .mtu = 1500, .socket = socket(AF_UNIX, SOCK_SEQPACKET, 0)};
	require(!netdev_shm_connect(port, &b.link.fds));
	for (uint32_t i = 0; i < BUNDLE_FUNCTIONS; i++) {
		open_side(&sides[i]);
		connect_client(&sides[i], &clients[i]);
		b.listeners[i] = listening_socket(SOCK_STREAM);
		require(!vnic_vfio_server_stop(sides[i].server));
		require(!vnic_vfio_server_hand_over(sides[i].server, &b.functions[i]));
	}
	require(!bundle_encode(&b, &stream, &length, fds, &n_fds));
	for (uint32_t i = 0; i < BUNDLE_FUNCTIONS; i++)
		free(b.functions[i].stream);
}

/* --- The process that replaces it */

static void use_function(struct vnic_vfio_handover *h, bool honest)
{
	struct side side;
	int rc;

	open_side(&side);
	rc = vnic_vfio_server_take_over(side.server, h);
	require(!rc || !honest);
	if (!rc) {
		require(side.stopped);
		vnic_vfio_server_resume(side.server);
		vnic_vfio_server_interrupt(side.server, 1);
		vnic_vfio_server_event(side.server);
		require(!side.stopped);
	}
	close_side(&side);
}

static void use_bundle(struct bundle *b, bool honest)
{
	static const uint8_t mac[6] = {2};
	struct listen_socket listener;
	struct switch_link link;
	struct uar_memory doorbells;
	int rc;

	for (uint32_t i = 0; i < BUNDLE_FUNCTIONS; i++) {
		use_function(&b->functions[i], honest);
		rc = listen_socket_adopt(&listener, b->listeners[i], "/", SOCK_STREAM);
		require(!rc || !honest);
		if (!rc) {
			b->listeners[i] = -1;
			listen_socket_close(&listener);
		}
	}
	switch_link_clear(&link);
	rc = switch_link_adopt(&link, "/", "", mac, &b->link);
	require(!rc || !honest);
	switch_link_close(&link);
	rc = b->doorbells >= 0 ? uar_memory_adopt(&doorbells, &b->doorbells) : -1;
	require(!rc || !honest);
	if (!rc)
		uar_memory_close(&doorbells);
}

static int lowest_free_fd(void)
{
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

/* Some descriptors are missing, too many, or in the place of others. */
static uint32_t copy_fds(struct script *in, int to[BUNDLE_FDS])
{
	const uint8_t change = script_get8(in);
	uint32_t n = n_fds;

	if (change % 8 == 1)
		n = script_get8(in) % (n_fds + 1);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t from = i;

		if (change % 8 == 2 && script_get8(in) % 4 == 1)
			from = script_get8(in) % n_fds;
		to[i] = fcntl(fds[from], F_DUPFD_CLOEXEC, 0);
	}
	return n;
}

/* honest: all of it must be accepted. */
static void replace(struct script *in, bool honest)
{
	const int free_fd = lowest_free_fd();
	uint8_t *copy = malloc(length);
	int copies[BUNDLE_FDS], rc;
	struct bundle b;
	uint32_t n;

	require(copy);
	memcpy(copy, stream, length);
	n = copy_fds(in, copies);
	state_patch(in, copy, length);
	rc = bundle_decode(&b, copy, length, copies, n);
	require(!rc || !honest);
	if (!rc)
		use_bundle(&b, honest);
	bundle_close(&b);
	free(copy);
	require(lowest_free_fd() == free_fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script in = {NULL, 0};

	if (!stream) {
		make_bundle();
		replace(&in, true);
	}
	in = (struct script){data, size};
	replace(&in, false);
	return 0;
}
