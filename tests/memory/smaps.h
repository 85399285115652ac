/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Prints the lines of /proc/self/smaps about the mapping at an address. Exits on failure. */
#ifndef URXE_TEST_MEMORY_SMAPS_H
#define URXE_TEST_MEMORY_SMAPS_H

/* Prints its length, its permissions and file, and its VmFlags. */
void smaps_say(const void *address);

#endif
