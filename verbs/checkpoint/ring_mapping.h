/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rings in the address space of the process: parts of a context's memfd, mapped by librxe and
 * by this library. The kernel may merge neighbouring mappings of both, so each mapping is restored
 * as a whole, and this library finds its rings at the same addresses as librxe does.
 */
#ifndef URXE_VERBS_CHECKPOINT_RING_MAPPING_H
#define URXE_VERBS_CHECKPOINT_RING_MAPPING_H

#include <stdbool.h>

#include "checkpoint/image/checkpoint_records.h"

/* Writes a record for each mapping of the memfd. Without malloc. */
void ring_mappings_write(struct vnic_state_stream *s, uint32_t context, int memfd);
/*
 * Maps such a part of a memfd where it was. The addresses are unused, or reserved by shared
 * mappings that nobody can access (PROT_NONE), which are replaced; *reserved says which. -EEXIST:
 * they are in use.
 */
int ring_mapping_place(const struct mapping_record *r, int memfd, bool *reserved);
/* Unmaps it; the addresses are reserved again if they were. */
void ring_mapping_remove(const struct mapping_record *r, bool reserved);

#endif
