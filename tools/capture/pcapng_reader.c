/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "capture/pcapng_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/pcapng.h"
#include "common/clock.h"

enum block_type { SECTION = 0x0a0d0d0a, INTERFACE = 1, PACKET = 6 };
enum option { OPTION_END = 0, OPTION_NAME = 2, OPTION_FLAGS = 2, OPTION_RESOLUTION = 9 };

#define BYTE_ORDER_MAGIC 0x1a2b3c4d
/* HEAD_LEN: bytes of a block's type and length. FRAME_LEN counts also the second length, behind the
 * body. */
#define HEAD_LEN  8
#define FRAME_LEN 12
/* Fixed fields of the blocks, bytes. */
#define SECTION_LEN   16
#define INTERFACE_LEN 8
#define PACKET_LEN    20
/* Without the option if_tsresol the time stamps of an interface count microseconds. */
#define DEFAULT_RESOLUTION 6

static uint16_t get_u16(const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static uint32_t get_u32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

void pcapng_reader_begin(struct pcapng_reader *r, const void *bytes, size_t n)
{
	*r = (struct pcapng_reader){.bytes = bytes, .n = n};
}

void pcapng_reader_end(struct pcapng_reader *r)
{
	free(r->interfaces);
	r->interfaces = NULL;
}

/* The value of the first option with this code, in [from, from + n); NULL: none. */
static const uint8_t *find_option(const uint8_t *from, uint32_t n, uint16_t code, uint16_t *len)
{
	while (n >= 4) {
		const uint16_t at = get_u16(from);
		const uint32_t room = 4 + pcapng_pad_length(get_u16(from + 2));

		*len = get_u16(from + 2);
		if (at == OPTION_END || room > n)
			return NULL;
		if (at == code)
			return from + 4;
		from += room;
		n -= room;
	}
	return NULL;
}

/* --- Blocks. */

static int begin_section(struct pcapng_reader *r, const uint8_t *body, uint32_t len)
{
	if (len < SECTION_LEN)
		return -EBADMSG;
	if (get_u32(body) != BYTE_ORDER_MAGIC)
		return -EPROTO;
	r->begun = true;
	r->n_interfaces = 0;
	return 0;
}

static uint64_t read_units(const uint8_t *value, uint16_t len)
{
	const uint8_t resolution = value && len ? value[0] : DEFAULT_RESOLUTION;
	uint64_t units = 1;

	if (resolution & 0x80)
		return (resolution & 0x7f) < 64 ? UINT64_C(1) << (resolution & 0x7f) : 1;
	for (uint8_t i = 0; i < resolution && i < 18; i++)
		units *= 10;
	return units;
}

static int add_interface(struct pcapng_reader *r, const uint8_t *body, uint32_t len)
{
	struct pcapng_interface *interface, *grown;
	const uint8_t *value;
	uint16_t n;

	if (len < INTERFACE_LEN)
		return -EBADMSG;
	if (r->n_interfaces == PCAPNG_READER_INTERFACES)
		return -E2BIG;
	grown = realloc(r->interfaces, (r->n_interfaces + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->interfaces = grown;
	interface = &grown[r->n_interfaces++];
	*interface = (struct pcapng_interface){.name = ""};
	value = find_option(body + INTERFACE_LEN, len - INTERFACE_LEN, OPTION_NAME, &n);
	if (value)
		memcpy(interface->name, value, n < PCAPNG_READER_NAME ? n : PCAPNG_READER_NAME - 1);
	value = find_option(body + INTERFACE_LEN, len - INTERFACE_LEN, OPTION_RESOLUTION, &n);
	interface->units = read_units(value, n);
	return 0;
}

static uint64_t to_ns(uint64_t stamp, uint64_t units)
{
	return stamp / units * NS_PER_SEC +
	       (uint64_t)((unsigned __int128)(stamp % units) * NS_PER_SEC / units);
}

static int read_frame(const struct pcapng_reader *r, const uint8_t *body, uint32_t len,
		      struct pcapng_block *block)
{
	const struct pcapng_interface *interface;
	const uint8_t *flags;
	uint32_t room;
	uint16_t n;

	if (len < PACKET_LEN || get_u32(body) >= r->n_interfaces)
		return -EBADMSG;
	interface = &r->interfaces[get_u32(body)];
	block->len = get_u32(body + 12);
	if (block->len > len - PACKET_LEN)
		return -EBADMSG;
	room = pcapng_pad_length(block->len);
	block->kind = PCAPNG_FRAME;
	block->data = body + PACKET_LEN;
	block->interface = interface->name;
	block->time =
		to_ns((uint64_t)get_u32(body + 4) << 32 | get_u32(body + 8), interface->units);
	block->direction = 0;
	if (room > len - PACKET_LEN)
		return 0;
	flags = find_option(body + PACKET_LEN + room, len - PACKET_LEN - room, OPTION_FLAGS, &n);
	if (flags && n == 4)
		block->direction = get_u32(flags) & 3;
	return 0;
}

static int read_block(struct pcapng_reader *r, uint32_t type, const uint8_t *body, uint32_t len,
		      struct pcapng_block *block)
{
	if (type == SECTION)
		return begin_section(r, body, len);
	if (!r->begun)
		return -EPROTO;
	if (type == INTERFACE)
		return add_interface(r, body, len);
	if (type == PACKET)
		return read_frame(r, body, len, block);
	if (type & PCAPNG_LOCAL)
		*block = (struct pcapng_block){
			.kind = PCAPNG_LOCAL_BLOCK, .type = type, .data = body, .len = len};
	return 0;
}

int pcapng_reader_next(struct pcapng_reader *r, struct pcapng_block *block)
{
	int rc = 0;

	*block = (struct pcapng_block){.kind = PCAPNG_END};
	while (!rc && block->kind == PCAPNG_END && r->at < r->n) {
		const uint8_t *at = r->bytes + r->at;
		const size_t left = r->n - r->at;
		uint32_t len;

		if (left < FRAME_LEN)
			return r->begun ? -ENODATA : -EPROTO;
		len = get_u32(at + 4);
		if (!r->begun && get_u32(at) != SECTION)
			return -EPROTO;
		if (get_u32(at) == SECTION && get_u32(at + 8) != BYTE_ORDER_MAGIC)
			return -EPROTO;
		if (len < FRAME_LEN || len % 4)
			return -EBADMSG;
		if (len > left)
			return -ENODATA;
		if (get_u32(at + len - 4) != len)
			return -EBADMSG;
		rc = read_block(r, get_u32(at), at + HEAD_LEN, len - FRAME_LEN, block);
		r->at += len;
	}
	return rc;
}
