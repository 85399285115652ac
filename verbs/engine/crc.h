/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The CRC-32 of the engine's ICRC, of a library that comes when the device is opened: to load one
 * that is larger than ours with each program that opens none would double what it costs them to
 * have us.
 */
#ifndef URXE_VERBS_ENGINE_CRC_H
#define URXE_VERBS_ENGINE_CRC_H

#include <stdint.h>

enum crc_library { CRC_ISAL, CRC_ZLIB };

/* urxe_ops.copy_crc; each needs crc_use before it is called. */
typedef uint32_t crc_copy_fn(uint32_t crc, uint8_t *to, const uint8_t *from, uint64_t n);

/* A copy and then its CRC, which every processor does. */
crc_copy_fn crc_copy_first;
/* Those that this processor does in one pass; where it does not, these. */
crc_copy_fn *crc_best_copy(void);
/* By the best ones, from crc_load on. */
crc_copy_fn crc_copy;

/* The one that is the faster on this processor. */
enum crc_library crc_best(void);

/*
 * 0, or -ENOENT where there is no such library: what was loaded before then stays in use. With the
 * caller's lock, and while no engine runs.
 */
int crc_use(enum crc_library library);

/* The best one that there is. 0, at each call after the first that could; -ENOENT where there is
 * none. With the caller's lock. */
int crc_load(void);

#endif
