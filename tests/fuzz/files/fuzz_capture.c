/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Any bytes as a capture's ring. Records must lie inside the ring, and must be printable as text
 * and as pcapng.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "capture/capture_ring.h"
#include "capture/frame_json.h"
#include "capture/frame_text.h"
#include "capture/pcapng.h"
#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct capture_writer writer;
static struct capture_reader reader;
static struct pcapng pcapng;

static void open_once(void)
{
	FILE *out;
	int fd;

	if (reader.ring)
		return;
	fd = capture_writer_open(&writer);
	require(fd >= 0);
	require(!capture_reader_open(&reader, fd));
	close(fd);
	out = fopen("/dev/null", "w");
	require(out);
	require(!pcapng_begin(&pcapng, out, "fuzz", "one"));
}

static void tell(const uint8_t *frame, uint32_t len)
{
	char words[FRAME_TEXT], addresses[FRAME_TEXT];
	struct pcapng_packet packet = {.interface = "port",
				       .direction = PCAPNG_INBOUND,
				       .data = frame,
				       .len = len,
				       .comment = words};
	json_t *object = frame_json(frame, len);
	const char *c;

	/* Jansson makes no string of bytes that are not UTF-8. */
	require(object);
	json_decref(object);
	frame_words(words, frame, len);
	frame_addresses(addresses, frame, len);
	require(words[0] && addresses[0]);
	require(memchr(words, 0, sizeof(words)) && memchr(addresses, 0, sizeof(addresses)));
	for (c = words; *c; c++)
		require(*c >= ' ' && *c <= '~');
	require((pcapng_put(&pcapng, &packet) == 0) == (len <= PCAPNG_FRAME_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct capture_record *record;
	const uint8_t *frame, *end;

	open_once();
	if (size > CAPTURE_RING_BYTES)
		return 0;
	memcpy((uint8_t *)reader.ring + CAPTURE_RING_START, data, size);
	end = reader.copy + size;
	reader.tail = 0;
	atomic_store(&reader.ring->head, size);
	while (capture_reader_next(&reader, &record, &frame) > 0) {
		require(frame + record->len <= end);
		tell(frame, record->len);
	}
	/* The bytes as one frame, because random bytes rarely contain a valid record header. */
	tell(data, (uint32_t)size);
	return 0;
}
