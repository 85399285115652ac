/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "capture/pcapng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum block { BLOCK_SECTION = 0x0a0d0d0a, BLOCK_INTERFACE = 1, BLOCK_PACKET = 6 };
enum option {
	OPTION_END = 0,
	OPTION_COMMENT = 1,
	OPTION_FLAGS = 2,       /* of a packet */
	OPTION_NAME = 2,        /* of an interface */
	OPTION_RESOLUTION = 9,  /* of an interface */
	OPTION_APPLICATION = 4, /* of a section */
};

#define BYTE_ORDER_MAGIC   0x1a2b3c4d
#define LINK_ETHERNET      1
#define RESOLUTION_NS      9
#define ANY_SECTION_LENGTH UINT64_MAX
#define TRAILER_LEN        4
/* The longest block: that of a packet with the longest frame and comment, and its headers. A block
 * with a name is shorter. */
#define BLOCK_MAX (PCAPNG_FRAME_MAX + PCAPNG_TEXT_MAX + 256)

/* A block under construction, in host byte order, which pcapng permits. */
struct buffer {
	uint32_t len;
	uint8_t bytes[BLOCK_MAX];
};

static void append_bytes(struct buffer *b, const void *bytes, uint32_t len)
{
	memcpy(b->bytes + b->len, bytes, len);
	memset(b->bytes + b->len + len, 0, pcapng_pad_length(len) - len);
	b->len += pcapng_pad_length(len);
}

static void append_u32(struct buffer *b, uint32_t value)
{
	append_bytes(b, &value, sizeof(value));
}

static void append_option(struct buffer *b, enum option code, const void *value, uint32_t len)
{
	const uint16_t head[2] = {(uint16_t)code, (uint16_t)len};

	append_bytes(b, head, sizeof(head));
	append_bytes(b, value, len);
}

static void begin_block(struct buffer *b, enum block type)
{
	b->len = 0;
	append_u32(b, type);
	append_u32(b, 0); /* length; write_block fills it in */
}

static int write_block(struct buffer *b, FILE *out)
{
	uint32_t len;

	append_option(b, OPTION_END, "", 0);
	len = b->len + TRAILER_LEN;
	memcpy(b->bytes + 4, &len, sizeof(len));
	append_u32(b, len);
	return fwrite(b->bytes, b->len, 1, out) == 1 ? 0 : -errno;
}

static int write_section(struct pcapng *w)
{
	static const uint16_t version[2] = {1, 0};
	static const uint64_t length = ANY_SECTION_LENGTH;
	struct buffer b;

	begin_block(&b, BLOCK_SECTION);
	append_u32(&b, BYTE_ORDER_MAGIC);
	append_bytes(&b, version, sizeof(version));
	append_bytes(&b, &length, sizeof(length));
	append_option(&b, OPTION_APPLICATION, w->application, (uint32_t)strlen(w->application));
	return write_block(&b, w->out);
}

static void forget_interfaces(struct pcapng *w)
{
	while (w->n)
		free(w->names[--w->n]);
}

static int write_interface(struct pcapng *w, const char *name)
{
	static const uint16_t link[2] = {LINK_ETHERNET, 0};
	static const uint8_t resolution = RESOLUTION_NS;
	struct buffer b;

	w->names[w->n] = strdup(name);
	if (!w->names[w->n])
		return -ENOMEM;
	w->n++;
	begin_block(&b, BLOCK_INTERFACE);
	append_bytes(&b, link, sizeof(link));
	append_u32(&b, 0); /* no snap length */
	append_option(&b, OPTION_NAME, name, (uint32_t)strlen(name));
	append_option(&b, OPTION_RESOLUTION, &resolution, sizeof(resolution));
	return write_block(&b, w->out);
}

int pcapng_begin(struct pcapng *w, FILE *out, const char *application, const char *interface)
{
	int rc;

	memset(w, 0, sizeof(*w));
	w->out = out;
	w->application = application;
	rc = write_section(w);
	return rc ? rc : write_interface(w, interface);
}

/* Finds the number of the interface with that name; writes an interface block for a new name. 0 or
 * a negative errno value. */
static int find_interface(struct pcapng *w, const char *name, uint32_t *number)
{
	for (*number = 0; *number < w->n; ++*number)
		if (!strcmp(w->names[*number], name))
			return 0;
	if (w->n == PCAPNG_INTERFACES) {
		int rc = write_section(w);

		if (rc)
			return rc;
		forget_interfaces(w);
		*number = 0;
	}
	return write_interface(w, name);
}

int pcapng_put(struct pcapng *w, const struct pcapng_packet *p)
{
	const uint32_t flags = p->direction;
	struct buffer b;
	uint32_t number;
	int rc;

	if (p->len > PCAPNG_FRAME_MAX || strlen(p->comment) > PCAPNG_TEXT_MAX ||
	    strlen(p->interface) > PCAPNG_TEXT_MAX)
		return -EMSGSIZE;
	rc = find_interface(w, p->interface, &number);
	if (rc)
		return rc;
	begin_block(&b, BLOCK_PACKET);
	append_u32(&b, number);
	append_u32(&b, (uint32_t)(p->time >> 32));
	append_u32(&b, (uint32_t)p->time);
	append_u32(&b, p->len);
	append_u32(&b, p->len);
	append_bytes(&b, p->data, p->len);
	append_option(&b, OPTION_FLAGS, &flags, sizeof(flags));
	if (p->comment[0])
		append_option(&b, OPTION_COMMENT, p->comment, (uint32_t)strlen(p->comment));
	return write_block(&b, w->out);
}

int pcapng_put_local(struct pcapng *w, uint32_t type, const void *bytes, uint32_t len)
{
	const uint32_t total = len + 3 * (uint32_t)sizeof(uint32_t);
	const uint32_t head[2] = {type, total};

	return fwrite(head, sizeof(head), 1, w->out) == 1 &&
			       (!len || fwrite(bytes, len, 1, w->out) == 1) &&
			       fwrite(&total, sizeof(total), 1, w->out) == 1
		       ? 0
		       : -errno;
}

void pcapng_end(struct pcapng *w)
{
	forget_interfaces(w);
}
