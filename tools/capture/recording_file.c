/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "capture/recording_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/pcapng_reader.h"
#include "common/printable.h"

enum subtype { SUBTYPE_PROCESS = 1, SUBTYPE_BYTES = 2, SUBTYPE_LOST = 3 };

/* At the start of each block, in the byte order of the file. */
struct block_head {
	uint32_t version;
	uint32_t subtype;
	uint32_t number; /* of the process; 0 for SUBTYPE_LOST */
	uint32_t n;      /* bytes behind this header, without padding */
};

/* --- Writing. */

static int put_block(struct pcapng *w, enum subtype subtype, uint32_t number, const void *bytes,
		     uint32_t n)
{
	uint8_t block[sizeof(struct block_head) + RECORDING_CHUNK] = {0};
	const struct block_head head = {RECORDING_VERSION, subtype, number, n};

	memcpy(block, &head, sizeof(head));
	memcpy(block + sizeof(head), bytes, n);
	return pcapng_put_local(w, RECORDING_BLOCK, block,
				(uint32_t)sizeof(head) + ((n + 3) & ~3u));
}

const char *recording_error_text(int error)
{
	switch (error) {
	case -EOPNOTSUPP:
		return "an HCA backs its device, and has the state of its queue pairs; urxe run "
		       "--way engine leaves them to the engine, which can be recorded";
	case -EFBIG: return "its state is larger than the ring of its recording, 32 MiB";
	default: return strerror(-error);
	}
}

int recording_put_process(struct pcapng *w, uint32_t number, const struct recording_process *p)
{
	return put_block(w, SUBTYPE_PROCESS, number, p, sizeof(*p));
}

int recording_put_bytes(struct pcapng *w, uint32_t number, const void *bytes, uint32_t n)
{
	return put_block(w, SUBTYPE_BYTES, number, bytes, n);
}

int recording_put_lost(struct pcapng *w, uint64_t lost)
{
	return put_block(w, SUBTYPE_LOST, 0, &lost, sizeof(lost));
}

/* --- Reading. */

static struct recording *add_recording(struct recording_file *f)
{
	struct recording *grown =
		realloc(f->recordings, (f->n_recordings + 1) * sizeof(*f->recordings));

	if (!grown)
		return NULL;
	f->recordings = grown;
	grown[f->n_recordings] = (struct recording){0};
	return &grown[f->n_recordings++];
}

/* Adds a process. Processes have the numbers 0, 1, ... in the order of the file; else -EBADMSG. */
static int read_process(struct recording_file *f, const struct block_head *head,
			const uint8_t *bytes)
{
	struct recording *r;
	char text[RECORDING_PORT];

	if (head->n != sizeof(r->process) || head->number != f->n_recordings ||
	    f->n_recordings == RECORDING_PROCESSES)
		return -EBADMSG;
	r = add_recording(f);
	if (!r)
		return -ENOMEM;
	memcpy(&r->process, bytes, sizeof(r->process));
	snprintf(text, sizeof(text), "%.*s", RECORDING_PROGRAM - 1, r->process.program);
	printable_copy(r->process.program, sizeof(r->process.program), text);
	snprintf(text, sizeof(text), "%.*s", RECORDING_PORT - 1, r->process.port);
	printable_copy(r->process.port, sizeof(r->process.port), text);
	return 0;
}

static int read_bytes(struct recording_file *f, const struct block_head *head, const uint8_t *bytes)
{
	struct recording *r;
	uint8_t *grown;

	if (head->number >= f->n_recordings)
		return -EBADMSG;
	r = &f->recordings[head->number];
	if (r->room - r->n < head->n) {
		r->room = 2 * r->room + head->n;
		grown = realloc(r->bytes, r->room);
		if (!grown)
			return -ENOMEM;
		r->bytes = grown;
	}
	if (head->n)
		memcpy(r->bytes + r->n, bytes, head->n);
	r->n += head->n;
	return 0;
}

static int read_lost(struct recording_file *f, const struct block_head *head, const uint8_t *bytes)
{
	if (head->n != sizeof(f->lost))
		return -EBADMSG;
	memcpy(&f->lost, bytes, sizeof(f->lost));
	return 0;
}

static int read_recording(struct recording_file *f, const struct pcapng_block *block)
{
	struct block_head head;

	if (block->type != RECORDING_BLOCK)
		return 0;
	if (block->len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, block->data, sizeof(head));
	if (!head.version || head.version > RECORDING_VERSION)
		return -EPROTONOSUPPORT;
	if (head.n > block->len - sizeof(head))
		return -EBADMSG;
	if (head.subtype == SUBTYPE_PROCESS)
		return read_process(f, &head, block->data + sizeof(head));
	if (head.subtype == SUBTYPE_BYTES)
		return read_bytes(f, &head, block->data + sizeof(head));
	if (head.subtype == SUBTYPE_LOST)
		return read_lost(f, &head, block->data + sizeof(head));
	return -EBADMSG;
}

static int add_frame(struct recording_file *f, const struct pcapng_block *block)
{
	struct recorded_frame *grown, *frame;

	if (f->n_frames == f->frames_room) {
		f->frames_room = f->frames_room ? 2 * f->frames_room : 1024;
		grown = realloc(f->frames, f->frames_room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		f->frames = grown;
	}
	frame = &f->frames[f->n_frames++];
	*frame = (struct recorded_frame){.data = block->data,
					 .len = block->len,
					 .direction = block->direction,
					 .time = block->time};
	snprintf(frame->port, sizeof(frame->port), "%s", block->interface);
	return 0;
}

int recording_file_parse(struct recording_file *f, uint8_t *bytes, size_t n)
{
	struct pcapng_reader reader;
	struct pcapng_block block = {0};
	int rc;

	*f = (struct recording_file){.bytes = bytes};
	pcapng_reader_begin(&reader, bytes, n);
	do {
		rc = pcapng_reader_next(&reader, &block);
		if (!rc && block.kind == PCAPNG_FRAME)
			rc = add_frame(f, &block);
		else if (!rc && block.kind == PCAPNG_LOCAL_BLOCK)
			rc = read_recording(f, &block);
	} while (!rc && block.kind != PCAPNG_END);
	pcapng_reader_end(&reader);
	f->cut = rc == -ENODATA;
	return f->cut ? 0 : rc;
}

static uint8_t *read_whole(FILE *file, size_t *n)
{
	size_t room = 1 << 16, got;
	uint8_t *bytes = malloc(room), *grown;

	*n = 0;
	while (bytes && (got = fread(bytes + *n, 1, room - *n, file)) > 0) {
		*n += got;
		if (*n < room)
			continue;
		room *= 2;
		grown = realloc(bytes, room);
		if (!grown)
			free(bytes);
		bytes = grown;
	}
	return bytes;
}

static const char *describe(int rc)
{
	switch (rc) {
	case -EPROTO:
		return "it is no pcapng file of urxe capture, written with this machine's byte "
		       "order";
	case -EPROTONOSUPPORT: return "a later version of urxe has written it";
	case -EBADMSG: return "it is damaged";
	default: return strerror(-rc);
	}
}

bool recording_file_open(struct recording_file *f, const char *path, char error[RECORDING_ERROR])
{
	FILE *file = fopen(path, "re");
	uint8_t *bytes;
	size_t n;
	int rc;

	*f = (struct recording_file){0};
	if (!file) {
		snprintf(error, RECORDING_ERROR, "cannot read %s: %s", path, strerror(errno));
		return false;
	}
	bytes = read_whole(file, &n);
	rc = ferror(file) ? -errno : bytes ? 0 : -ENOMEM;
	fclose(file);
	if (!rc)
		rc = recording_file_parse(f, bytes, n);
	else
		free(bytes);
	if (rc)
		snprintf(error, RECORDING_ERROR, "cannot read %s: %s", path, describe(rc));
	return !rc;
}

void recording_file_close(struct recording_file *f)
{
	for (uint32_t i = 0; i < f->n_recordings; i++)
		free(f->recordings[i].bytes);
	free(f->recordings);
	free(f->frames);
	free(f->bytes);
	*f = (struct recording_file){0};
}
