/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vfio_message.h"

#include <linux/vfio.h>
#include <stdbool.h>
#include <string.h>

#include "require.h"

#define PAGE   4096u
#define HEADER 16u

const struct vnic_vfio_function vfio_message_function = {
	.vendor = 0x15ad,
	.device = 0x07b0,
	.class_code = 0x020000,
	.bar_size = {4096, 4096, 8192},
	.vectors = VFIO_MESSAGE_VECTORS,
	.msix_bar = 2,
	.pba_offset = 4096,
};

void vfio_message_check_access(uint32_t bar, uint32_t offset, uint32_t size)
{
	require(bar < VNIC_VFIO_BARS && size <= 8 && size && !(size & (size - 1)));
	require(offset % size == 0 && offset + size <= vfio_message_function.bar_size[bar]);
	require(bar != 2 ||
		(offset >= VFIO_MESSAGE_VECTORS * 16 && (offset < 4096 || offset >= 4104)));
}

static void put(uint8_t *to, uint64_t value, uint32_t size)
{
	memcpy(to, &value, size);
}

/* A number near one of those that matter. */
static uint64_t pick_number(struct script *in)
{
	static const uint64_t numbers[] = {0,
					   1,
					   2,
					   4,
					   8,
					   16,
					   VFIO_MESSAGE_VECTORS,
					   0x1000,
					   0x2000,
					   0x10000,
					   0x100000,
					   1u << 20,
					   1u << 31,
					   UINT32_MAX,
					   UINT64_MAX,
					   UINT64_MAX - 4095};
	const uint8_t byte = script_get8(in);

	return byte < 128 ? byte % 32
			  : numbers[byte % (sizeof(numbers) / sizeof(numbers[0]))] +
				    (byte & 0x10 ? script_get8(in) : 0);
}

/* Fills in fields; `widths` has the size of each, 4 or 8 bytes. */
static uint32_t fill_fields(struct script *in, uint8_t *body, const char *widths)
{
	uint32_t at = 0;

	for (; *widths; widths++) {
		const uint32_t size = (uint32_t)(*widths - '0');

		put(body + at, pick_number(in), size);
		at += size;
	}
	return at;
}

uint32_t vfio_message_bytes(struct script *in, uint8_t *body, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		body[i] = script_get8(in);
	return n;
}

static uint32_t fill_map(struct script *in, uint8_t *body)
{
	const uint8_t what = script_get8(in);

	put(body, 32, 4);
	put(body + 4, 1 + what % 3, 4);
	put(body + 8, (uint64_t)(script_get8(in) % VFIO_MESSAGE_PAGES) * PAGE, 8);
	put(body + 16, (uint64_t)script_get8(in) * PAGE, 8);
	put(body + 24, (uint64_t)(script_get8(in) % 16) * PAGE, 8);
	return 32;
}

static uint32_t fill_unmap(struct script *in, uint8_t *body)
{
	put(body, 24, 4);
	put(body + 4, script_get8(in) % 8 == 7 ? 2 : 0, 4);
	put(body + 8, (uint64_t)script_get8(in) * PAGE, 8);
	put(body + 16, (uint64_t)(script_get8(in) % 64) * PAGE, 8);
	return 24;
}

static uint32_t fill_irqs(struct script *in, uint8_t *body)
{
	static const uint8_t flags[] = {0x24, 0x21, 0x22, 0x09, 0x11, 0x0a, 0x12, 0x0c};
	const uint8_t flag = flags[script_get8(in) % sizeof(flags)];
	const uint8_t start = script_get8(in) % (VFIO_MESSAGE_VECTORS + 2);
	const uint8_t count = script_get8(in) % (VFIO_MESSAGE_VECTORS + 2);
	const uint32_t bytes = flag & VFIO_IRQ_SET_DATA_BOOL ? count : 0;

	put(body, 20 + bytes, 4);
	put(body + 4, flag, 4);
	put(body + 8, VFIO_PCI_MSIX_IRQ_INDEX, 4);
	put(body + 12, start, 4);
	put(body + 16, count, 4);
	return 20 + vfio_message_bytes(in, body + 20, bytes);
}

static uint32_t fill_access(struct script *in, uint8_t *body, bool write)
{
	const uint32_t count = 1u << script_get8(in) % 4;

	put(body, script_get16(in) % 9000 / count * count, 8);
	put(body + 8, script_get8(in) % 9, 4);
	put(body + 12, count, 4);
	return write ? 16 + vfio_message_bytes(in, body + 16, count) : 16;
}

static uint32_t fill_multi(struct script *in, uint8_t *body)
{
	const uint32_t count = script_get8(in) % 8;
	uint32_t at = 8;

	put(body, count, 8);
	for (uint32_t i = 0; i < count; i++, at += 24)
		fill_access(in, body + at, true);
	return at;
}

/* States of a migration, and commands of the log. */
static uint32_t fill_feature(struct script *in, uint8_t *body)
{
	static const uint32_t flags[] = {0x20002, 0x20002, 0x20002, 0x20002, 0x10001, 0x10002,
					 0x20006, 0x20007, 0x10008, 0x10008, 0x50008, 0x70002};
	const uint32_t flag = flags[script_get8(in) % 12];

	put(body, 1024, 4);
	put(body + 4, flag, 4);
	switch (flag & 0xf) {
	case 2: put(body + 8, script_get8(in) % 8, 8); return 16;
	case 6:
		put(body + 8, PAGE, 8);
		put(body + 16, 0, 8);
		return 24;
	case 8:
		put(body + 8, (uint64_t)script_get8(in) * PAGE, 8);
		put(body + 16, (uint64_t)script_get8(in) * PAGE + 1, 8);
		put(body + 24, 1u << script_get8(in) % 20, 8);
		return 32;
	default: return 8;
	}
}

/* A read or write of a migration's data. */
static uint32_t fill_data(struct script *in, uint8_t *body, bool write)
{
	const uint32_t n = script_get8(in);

	put(body, 8, 4);
	put(body + 4, write ? n : n * 16, 4);
	return write ? 8 + vfio_message_bytes(in, body + 8, n) : 8;
}

static uint32_t fill_version(struct script *in, uint8_t *body)
{
	static const char text[] = "{\"capabilities\":{\"write_multiple\" : true}}";
	const uint32_t n = 1 + script_get8(in) % sizeof(text);

	put(body, 0, 4);
	memcpy(body + 4, text, n - 1);
	body[4 + n - 1] = script_get8(in) & 1 ? '}' : 0;
	return 4 + n;
}

static uint32_t fill_body(struct script *in, uint16_t command, uint8_t *body)
{
	/* Sometimes fields of any value. */
	if (script_get8(in) % 8 == 0)
		return fill_fields(in, body, command & 1 ? "448488" : "44444");
	switch (command) {
	case 1: return fill_version(in, body);
	case 2: return fill_map(in, body);
	case 3: return fill_unmap(in, body);
	case 8: return fill_irqs(in, body);
	case 9: return fill_access(in, body, false);
	case 10: return fill_access(in, body, true);
	case 15: return fill_multi(in, body);
	case 13: return 0;
	case 16: return fill_feature(in, body);
	case 17:
	case 18: return fill_data(in, body, command == 18);
	default:
		put(body, 32, 4);
		put(body + 8, script_get8(in) % 10, 4);
		return command == 5 ? 32 : 16;
	}
}

void vfio_message_fill(struct script *in, struct vfio_message *m)
{
	const uint16_t command = script_get8(in) % 20;
	const uint8_t shape = script_get8(in);
	uint8_t *bytes = m->bytes;

	*m = (struct vfio_message){.n = HEADER};
	m->n += fill_body(in, command, bytes + HEADER);
	put(bytes + 2, command, 2);
	put(bytes + 4, m->n + (shape % 16 == 1) - (shape % 16 == 2), 4);
	put(bytes + 8, shape & 0x40 ? 0x10 : 0, 4);
	if (command == 2)
		m->fds = shape & 0x20 ? 0 : 1;
	if (command == 8 && bytes[20] & VFIO_IRQ_SET_DATA_EVENTFD)
		m->fds = bytes[32] % (VFIO_MESSAGE_FDS + 1);
	if (shape % 16 == 3)
		m->fds = script_get8(in) % (VFIO_MESSAGE_FDS + 1);
	if (shape % 16 == 4)
		m->cut = 1 + script_get8(in) % (m->n - 1);
}
