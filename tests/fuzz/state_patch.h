/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* For fuzz targets: the saved state of a device with some bytes overwritten, and right checksums.
 */
#ifndef URXE_FUZZ_STATE_PATCH_H
#define URXE_FUZZ_STATE_PATCH_H

#include <stddef.h>
#include <stdint.h>

#include "script.h"

/* Overwrites some words with values of the input, and completes the checksums again: of the stream
 * (rxe/state_stream.h), and of those in it, of the engine (rxe/state.h) and of vfio-user servers.
 */
void state_patch(struct script *in, uint8_t *stream, size_t length);

#endif
