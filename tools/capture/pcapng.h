/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writes captures in pcapng (draft-ietf-opsawg-pcapng) for urxe capture: an interface block before
 * the first frame of each port, and a packet block with a comment for each frame. After 1,024
 * interfaces another section begins, with interfaces of its own.
 */
#ifndef URXE_CAPTURE_PCAPNG_H
#define URXE_CAPTURE_PCAPNG_H

#include <stdint.h>
#include <stdio.h>

#define PCAPNG_INTERFACES 1024  /* most in a section, because each frame compares their names */
#define PCAPNG_FRAME_MAX  65536 /* bytes */
#define PCAPNG_TEXT_MAX   1024  /* bytes of a name, and of a comment */

#define PCAPNG_LOCAL 0x80000000u /* types with this bit are for local use */

enum pcapng_direction { PCAPNG_INBOUND = 1, PCAPNG_OUTBOUND = 2 };

/* Rounds up to the multiple of 4 bytes on which options and packets end. */
static inline uint32_t pcapng_pad_length(uint32_t len)
{
	return (len + 3) & ~3u;
}

struct pcapng {
	FILE *out;
	const char *application;
	uint32_t n;
	char *names[PCAPNG_INTERFACES]; /* of interfaces, by number */
};

struct pcapng_packet {
	const char *interface; /* name */
	uint64_t time;         /* ns since 1970 */
	enum pcapng_direction direction;
	const uint8_t *data; /* Ethernet, without FCS */
	uint32_t len;
	const char *comment; /* UTF-8; "" = none */
};

/*
 * Writes the section header and the first interface block to `out`, which the caller closes:
 * libpcap reads no file without an interface. `application` stays valid until pcapng_end. 0,
 * -ENOMEM or a negative errno value of the write.
 */
int pcapng_begin(struct pcapng *w, FILE *out, const char *application, const char *interface);
/*
 * Writes a packet block, after an interface block if the interface's name is new in the section. 0;
 * -EMSGSIZE: frame, name or comment is too long; -ENOMEM; another negative errno value: the write
 * has failed.
 */
int pcapng_put(struct pcapng *w, const struct pcapng_packet *packet);
/*
 * Writes a block of a local type with these bytes, which other readers skip. `len` is a multiple
 * of 4. 0 or a negative errno value of the write.
 */
int pcapng_put_local(struct pcapng *w, uint32_t type, const void *bytes, uint32_t len);
/* Frees the names of the interfaces; writes nothing. */
void pcapng_end(struct pcapng *w);

#endif
