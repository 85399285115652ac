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

/*
 * The version of a stream (rxe/state_stream.h). Tests restore files of all versions up to that of
 * a stream that they have just saved, so a new version without files fails.
 */
static inline uint32_t kept_stream_version(const uint8_t *stream)
{
	return stream[8] | (uint32_t)stream[9] << 8 | (uint32_t)stream[10] << 16 |
	       (uint32_t)stream[11] << 24;
}

/* Reads DIRECTORY/vVERSION/NAME; the caller frees the stream. */
static inline uint8_t *kept_stream_of_version(const char *directory, uint32_t version,
					      const char *name, size_t *length)
{
	char path[KEPT_STREAM_PATH_SIZE];

	require(snprintf(path, sizeof(path), "%s/v%u/%s", directory, version, name) <
		(int)sizeof(path));
	return kept_stream_read(path, length);
}

#endif
