/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Describes frames as JSON, for urxe capture --json. */
#ifndef URXE_CAPTURE_FRAME_JSON_H
#define URXE_CAPTURE_FRAME_JSON_H

#include <stdint.h>

#include <jansson.h>

/*
 * Returns an object with the members source, destination, bytes, text, roce and error, of which the
 * last two may be null; docs/json/capture.json describes them. The caller owns the object. NULL: no
 * memory.
 */
json_t *frame_json(const uint8_t *frame, uint32_t len);

#endif
