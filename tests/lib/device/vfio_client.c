/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vfio_client.h"

#include <errno.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "require.h"

#define VERSION      1
#define DMA_MAP      2
#define SET_IRQS     8
#define REGION_READ  9
#define REGION_WRITE 10
#define RESET        13
#define FEATURE      16
#define DATA_READ    17
#define DATA_WRITE   18

#define IS_REPLY 1u
#define IS_ERROR 0x20u

#define FEATURE_GET  (1u << 16)
#define FEATURE_SET  (1u << 17)
#define DEVICE_STATE 2u
#define LOG_START    6u
#define LOG_STOP     7u
#define LOG_REPORT   8u
#define PAGE         UINT64_C(4096)
#define REPORT_PAGES 8192u /* of one message */

struct header {
	uint16_t id, command;
	uint32_t size, flags, error;
};

static void send_command(struct vfio_client *c, uint16_t command, const void *body, uint32_t size,
			 int fd)
{
	const struct header header = {++c->id, command, (uint32_t)sizeof(header) + size, 0, 0};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(fd))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(fd)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS}};
	struct iovec parts[2] = {{(void *)(uintptr_t)&header, sizeof(header)},
				 {(void *)(uintptr_t)body, size}};
	struct msghdr msg = {.msg_iov = parts, .msg_iovlen = 2};

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control.bytes);
	}
	require(sendmsg(c->socket, &msg, MSG_NOSIGNAL) == header.size);
}

static void receive(struct vfio_client *c, void *to, uint32_t size)
{
	uint32_t got = 0;

	while (got < size) {
		ssize_t n = recv(c->socket, (uint8_t *)to + got, size - got,
				 c->pump ? MSG_DONTWAIT : 0);

		if (n < 0 && errno == EAGAIN && c->pump) {
			c->pump(c->ctx);
			continue;
		}
		require(n > 0);
		got += (uint32_t)n;
	}
}

int vfio_ask(struct vfio_client *c, uint16_t command, const void *body, uint32_t size, int fd)
{
	struct header header;

	send_command(c, command, body, size, fd);
	if (c->pump)
		c->pump(c->ctx);
	receive(c, &header, sizeof(header));
	require(header.id == c->id && header.command == command);
	require((header.flags & 0xf) == IS_REPLY);
	require(!!(header.flags & IS_ERROR) == !!header.error);
	require(header.size >= sizeof(header) && header.size - sizeof(header) <= sizeof(c->body));
	c->size = header.size - (uint32_t)sizeof(header);
	receive(c, c->body, c->size);
	return (int)header.error;
}

void vfio_client_open(struct vfio_client *c, int socket, void (*pump)(void *ctx), void *ctx)
{
	static const uint8_t version[4];

	*c = (struct vfio_client){.socket = socket, .pump = pump, .ctx = ctx};
	require(!vfio_ask(c, VERSION, version, sizeof(version), -1));
}

void vfio_client_connect(struct vfio_client *c, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int tries = 0;

	require(fd >= 0 && strlen(path) < sizeof(address.sun_path));
	strcpy(address.sun_path, path);
	while (connect(fd, (const struct sockaddr *)&address, sizeof(address))) {
		require(++tries < 500);
		usleep(10000);
	}
	vfio_client_open(c, fd, NULL, NULL);
}

void vfio_client_close(struct vfio_client *c)
{
	close(c->socket);
	if (c->pump)
		c->pump(c->ctx);
}

int vfio_map(struct vfio_client *c, uint64_t addr, uint64_t size, int fd, uint64_t offset)
{
	struct {
		uint32_t argsz, flags;
		uint64_t offset, addr, size;
	} map = {sizeof(map), VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE, offset, addr, size};

	return vfio_ask(c, DMA_MAP, &map, sizeof(map), fd);
}

void vfio_reset(struct vfio_client *c)
{
	require(!vfio_ask(c, RESET, NULL, 0, -1));
}

struct access {
	uint64_t offset;
	uint32_t region, count;
	uint32_t value;
};

#define ACCESS_SIZE 16u /* without the value */

int vfio_write(struct vfio_client *c, uint32_t region, uint64_t offset, uint32_t value)
{
	const struct access access = {offset, region, sizeof(value), value};

	return vfio_ask(c, REGION_WRITE, &access, ACCESS_SIZE + sizeof(value), -1);
}

uint32_t vfio_read(struct vfio_client *c, uint32_t region, uint64_t offset)
{
	const struct access access = {offset, region, sizeof(access.value), 0};
	uint32_t value;

	require(!vfio_ask(c, REGION_READ, &access, ACCESS_SIZE, -1));
	require(c->size == ACCESS_SIZE + sizeof(value));
	memcpy(&value, c->body + ACCESS_SIZE, sizeof(value));
	return value;
}

void vfio_set_master(struct vfio_client *c)
{
	require(!vfio_write(c, VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND,
			    PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER));
}

void vfio_set_eventfd(struct vfio_client *c, uint32_t vector, int fd)
{
	const uint32_t set[5] = {sizeof(set),
				 VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
				 VFIO_PCI_MSIX_IRQ_INDEX, vector, 1};

	require(!vfio_ask(c, SET_IRQS, set, sizeof(set), fd));
}

/* --- Migration */

int vfio_feature(struct vfio_client *c, uint32_t flags, const void *data, uint32_t size,
		 uint32_t argsz)
{
	uint8_t body[VFIO_CLIENT_BODY / 2];
	const uint32_t header[2] = {argsz ? argsz : VFIO_CLIENT_BODY, flags};

	require(size <= sizeof(body) - sizeof(header));
	memcpy(body, header, sizeof(header));
	if (size)
		memcpy(body + sizeof(header), data, size);
	return vfio_ask(c, FEATURE, body, (uint32_t)sizeof(header) + size, -1);
}

int vfio_set_state(struct vfio_client *c, enum vfio_state state)
{
	const uint32_t data[2] = {state, 0};

	return vfio_feature(c, FEATURE_SET | DEVICE_STATE, data, sizeof(data), 0);
}

enum vfio_state vfio_get_state(struct vfio_client *c)
{
	uint32_t state;

	require(!vfio_feature(c, FEATURE_GET | DEVICE_STATE, NULL, 0, 0));
	require(c->size == 16);
	memcpy(&state, c->body + 8, sizeof(state));
	return (enum vfio_state)state;
}

void vfio_read_stream(struct vfio_client *c, uint8_t **stream, size_t *length)
{
	uint32_t data[2] = {8 + VFIO_CLIENT_DATA, VFIO_CLIENT_DATA};

	do {
		require(!vfio_ask(c, DATA_READ,
				  &(uint32_t[]){8 + VFIO_CLIENT_DATA, VFIO_CLIENT_DATA},
				  sizeof(data), -1));
		require(c->size >= sizeof(data));
		memcpy(data, c->body, sizeof(data));
		require(data[1] <= VFIO_CLIENT_DATA && c->size == sizeof(data) + data[1]);
		*stream = realloc(*stream, *length + data[1] + 1);
		require(*stream);
		memcpy(*stream + *length, c->body + sizeof(data), data[1]);
		*length += data[1];
	} while (data[1] == VFIO_CLIENT_DATA);
}

int vfio_write_stream(struct vfio_client *c, const uint8_t *stream, size_t length)
{
	uint8_t body[8 + VFIO_CLIENT_DATA];
	int rc = 0;

	while (length && !rc) {
		const uint32_t n = length < VFIO_CLIENT_DATA ? (uint32_t)length : VFIO_CLIENT_DATA;
		const uint32_t data[2] = {8, n};

		memcpy(body, data, sizeof(data));
		memcpy(body + sizeof(data), stream, n);
		rc = vfio_ask(c, DATA_WRITE, body, 8 + n, -1);
		stream += n;
		length -= n;
	}
	return rc;
}

int vfio_start_log(struct vfio_client *c)
{
	const uint64_t control[2] = {PAGE, 0};

	return vfio_feature(c, FEATURE_SET | LOG_START, control, sizeof(control), 0);
}

int vfio_stop_log(struct vfio_client *c)
{
	return vfio_feature(c, FEATURE_SET | LOG_STOP, NULL, 0, 0);
}

void vfio_take_log(struct vfio_client *c, uint64_t addr, uint64_t size, uint64_t *bitmap)
{
	uint64_t word;

	for (uint64_t page = 0; page < size / PAGE; page += REPORT_PAGES) {
		const uint64_t left = size / PAGE - page;
		const uint64_t pages = left < REPORT_PAGES ? left : REPORT_PAGES;
		const uint64_t report[3] = {addr + page * PAGE, pages * PAGE, PAGE};

		require(!vfio_feature(c, FEATURE_GET | LOG_REPORT, report, sizeof(report), 0));
		require(c->size == 8 + sizeof(report) + (pages + 63) / 64 * 8);
		for (uint64_t i = 0; i < (pages + 63) / 64; i++) {
			memcpy(&word, c->body + 8 + sizeof(report) + i * 8, sizeof(word));
			bitmap[page / 64 + i] |= word;
		}
	}
}
