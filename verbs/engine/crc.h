/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The CRC-32 of the engine's ICRC, from ISA-L or zlib, loaded when the program opens the device.
 * Programs that never open it would pay twice as much for liburxe.so if the library were loaded at
 * start. For adapter.c, and for the engine by urxe_ops.copy_crc.
 */
#ifndef URXE_VERBS_ENGINE_CRC_H
#define URXE_VERBS_ENGINE_CRC_H

#include <stdint.h>

#include "engine/crc_copy.h"

enum crc_library { CRC_ISAL, CRC_ZLIB };

/* urxe_ops.copy_crc: the fastest copy of this processor; after crc_load. */
crc_copy_fn crc_copy;

/* The library that is faster on this processor. */
enum crc_library crc_fastest(void);

/*
 * 0, or -ENOENT if the library is not installed: an earlier choice stays. Callers hold a lock, and
 * no engine runs.
 */
int crc_select(enum crc_library library);

/* Loads the fastest library that is installed, once. 0, or -ENOENT. Callers hold a lock. */
int crc_load(void);

#endif
