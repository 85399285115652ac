/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Prints the lines of /proc/self/smaps about the mapping at an address. Exits on failure. */
#ifndef URXE_TEST_MEMORY_SMAPS_H
#define URXE_TEST_MEMORY_SMAPS_H

#include <stdint.h>

/* Prints its length, its permissions and file, and its VmFlags. */
void smaps_say(const void *address);
/* The KiB of the mapping that lie in transparent huge pages. */
uint64_t smaps_huge_kib(const void *address);

#endif
