/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads pcapng (draft-ietf-opsawg-pcapng) with blocks of local types, which libpcap skips: frames
 * with the name of their interface and their direction, and local blocks. For recording_file.c.
 */
#ifndef URXE_CAPTURE_PCAPNG_READER_H
#define URXE_CAPTURE_PCAPNG_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAPNG_READER_INTERFACES 8192
#define PCAPNG_READER_NAME       64 /* of an interface, with its NUL; the rest is cut off */

struct pcapng_interface {
	char name[PCAPNG_READER_NAME];
	uint64_t units; /* time stamps count in this fraction of a second: 10^6 are microseconds */
};

/* The state of reading a file, whose bytes the caller keeps until pcapng_reader_end. */
struct pcapng_reader {
	const uint8_t *bytes;
	size_t n, at;
	bool begun;                          /* a section header was read */
	struct pcapng_interface *interfaces; /* of the section */
	uint32_t n_interfaces;
};

enum pcapng_kind { PCAPNG_END, PCAPNG_FRAME, PCAPNG_LOCAL_BLOCK };

struct pcapng_block {
	enum pcapng_kind kind;
	uint32_t type;         /* PCAPNG_LOCAL_BLOCK */
	const uint8_t *data;   /* of the frame; or the bytes of the block */
	uint32_t len;          /* of data */
	const char *interface; /* PCAPNG_FRAME: its name; "" = none */
	uint8_t direction;     /* enum pcapng_direction; 0 = unknown */
	uint64_t time;         /* ns since 1970 */
};

void pcapng_reader_begin(struct pcapng_reader *r, const void *bytes, size_t n);
/*
 * The next frame or local block; PCAPNG_END behind the last one. 0; -EPROTO: no pcapng of this
 * machine's byte order; -EBADMSG: damaged; -ENODATA: the file is cut within a block; -ENOMEM;
 * -E2BIG: too many interfaces.
 */
int pcapng_reader_next(struct pcapng_reader *r, struct pcapng_block *block);
void pcapng_reader_end(struct pcapng_reader *r);

#endif
