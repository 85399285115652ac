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
	OPTION_RESOLUTION = 9,  /* likewise */
	OPTION_APPLICATION = 4, /* of a section */
};

#define BYTE_ORDER_MAGIC   0x1a2b3c4d
#define LINK_ETHERNET      1
#define RESOLUTION_NS      9
#define ANY_SECTION_LENGTH UINT64_MAX
#define TRAILER_LEN        4
/* The longest frame and comment, names, and what stands around them. */
#define BLOCK_MAX (PCAPNG_FRAME_MAX + PCAPNG_TEXT_MAX + 256)

/* A block under construction, in host byte order, as the format lets a writer choose. */
struct buffer {
	uint32_t len;
	uint8_t bytes[BLOCK_MAX];
};

static uint32_t padded(uint32_t len)
{
	return (len + 3) & ~3u;
}

static void add(struct buffer *b, const void *bytes, uint32_t len)
{
	memcpy(b->bytes + b->len, bytes, len);
	memset(b->bytes + b->len + len, 0, padded(len) - len);
	b->len += padded(len);
}

static void add32(struct buffer *b, uint32_t value)
{
	add(b, &value, sizeof(value));
}

static void add_option(struct buffer *b, enum option code, const void *value, uint32_t len)
{
	const uint16_t head[2] = {(uint16_t)code, (uint16_t)len};

	add(b, head, sizeof(head));
	add(b, value, len);
}

static void begin(struct buffer *b, enum block type)
{
	b->len = 0;
	add32(b, type);
	add32(b, 0); /* the length, once it is known */
}

static int write_block(struct buffer *b, FILE *out)
{
	uint32_t len;

	add_option(b, OPTION_END, "", 0);
	len = b->len + TRAILER_LEN;
	memcpy(b->bytes + 4, &len, sizeof(len));
	add32(b, len);
	return fwrite(b->bytes, b->len, 1, out) == 1 ? 0 : -EIO;
}

int pcapng_begin(struct pcapng *w, FILE *out, const char *application)
{
	static const uint16_t version[2] = {1, 0};
	static const uint64_t length = ANY_SECTION_LENGTH;
	struct buffer b;

	memset(w, 0, sizeof(*w));
	w->out = out;
	begin(&b, BLOCK_SECTION);
	add32(&b, BYTE_ORDER_MAGIC);
	add(&b, version, sizeof(version));
	add(&b, &length, sizeof(length));
	add_option(&b, OPTION_APPLICATION, application, (uint32_t)strlen(application));
	return write_block(&b, out);
}

static int add_interface(struct pcapng *w, const char *name)
{
	static const uint16_t link[2] = {LINK_ETHERNET, 0};
	static const uint8_t resolution = RESOLUTION_NS;
	struct buffer b;

	if (w->n == PCAPNG_INTERFACES)
		return -ENOSPC;
	w->names[w->n] = strdup(name);
	if (!w->names[w->n])
		return -ENOMEM;
	w->n++;
	begin(&b, BLOCK_INTERFACE);
	add(&b, link, sizeof(link));
	add32(&b, 0); /* frames are whole */
	add_option(&b, OPTION_NAME, name, (uint32_t)strlen(name));
	add_option(&b, OPTION_RESOLUTION, &resolution, sizeof(resolution));
	return write_block(&b, w->out);
}

/* The number of the interface with that name, which is described first where it is new. */
static int find_interface(struct pcapng *w, const char *name, uint32_t *number)
{
	for (*number = 0; *number < w->n; ++*number)
		if (!strcmp(w->names[*number], name))
			return 0;
	return add_interface(w, name);
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
	begin(&b, BLOCK_PACKET);
	add32(&b, number);
	add32(&b, (uint32_t)(p->time >> 32));
	add32(&b, (uint32_t)p->time);
	add32(&b, p->len);
	add32(&b, p->len);
	add(&b, p->data, p->len);
	add_option(&b, OPTION_FLAGS, &flags, sizeof(flags));
	if (p->comment[0])
		add_option(&b, OPTION_COMMENT, p->comment, (uint32_t)strlen(p->comment));
	return write_block(&b, w->out);
}

void pcapng_end(struct pcapng *w)
{
	uint32_t i;

	for (i = 0; i < w->n; i++)
		free(w->names[i]);
}
