/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Streams of a device's state that are kept as files, so that tests restore them
 * with later versions of urxe. */
#ifndef URXE_TEST_KEPT_STREAM_H
#define URXE_TEST_KEPT_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "require.h"

#define KEPT_STREAM_MAX       262144u /* bytes; a stream is shorter */
#define KEPT_STREAM_PATH_SIZE 512u    /* bytes of a buffer for a path */

/* Reads a file; the caller frees the stream. */
static inline uint8_t *kept_stream_read(const char *path, size_t *length)
{
	uint8_t *stream = malloc(KEPT_STREAM_MAX);
	FILE *file = fopen(path, "rb");

	require(stream && file);
	*length = fread(stream, 1, KEPT_STREAM_MAX, file);
	require(!ferror(file) && *length && *length < KEPT_STREAM_MAX);
	fclose(file);
	return stream;
}

static inline void kept_stream_write(const char *path, const uint8_t *stream, size_t length)
{
	FILE *file = fopen(path, "wb");

	require(file && fwrite(stream, 1, length, file) == length && !fclose(file));
}

#endif
