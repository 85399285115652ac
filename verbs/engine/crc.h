/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The CRC-32 for the ICRC of packets, from ISA-L or zlib. The library is loaded when the program
 * opens the device: loaded at the program's start, it would double the time that liburxe.so costs
 * programs that never open the device. For attach/ and checkpoint/.
 */
#ifndef URXE_VERBS_ENGINE_CRC_H
#define URXE_VERBS_ENGINE_CRC_H

enum crc_library { CRC_ISAL, CRC_ZLIB };

/* The library that is faster on this processor. */
enum crc_library crc_fastest(void);

/*
 * Loads the library, and uses it from now on. 0, or -ENOENT if the library is not installed; then
 * an earlier choice stays. One thread at a time, while no engine runs.
 */
int crc_select(enum crc_library library);

/*
 * Loads the faster library, or else ISA-L. No effect after a success. 0, or -ENOENT: the libraries
 * are not installed. One thread at a time.
 */
int crc_load(void);

#endif
