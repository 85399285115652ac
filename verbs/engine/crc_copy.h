/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * urxe_ops.copy_crc, for liburxe.so and for the device process of a virtual machine. It calls
 * crc32_gzip_refl: liburxe.so has a function of that name (crc.c), and the device process has that
 * of ISA-L.
 */
#ifndef URXE_VERBS_ENGINE_CRC_COPY_H
#define URXE_VERBS_ENGINE_CRC_COPY_H

#include <stdint.h>

/* Copies n bytes, and returns their CRC-32, continued from `crc`. */
typedef uint32_t crc_copy_fn(uint32_t crc, uint8_t *to, const uint8_t *from, uint64_t n);

/* Copies first, then computes the CRC: works on every processor. */
crc_copy_fn crc_copy_then_sum;
/* Returns the function that computes the CRC while it copies. If this processor lacks AVX-512 or
 * VPCLMULQDQ, returns crc_copy_then_sum. */
crc_copy_fn *crc_fastest_copy(void);

#endif
