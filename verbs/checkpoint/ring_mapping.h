/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rings in the address space of the process: parts of a context's memfd, mapped by librxe and
 * by this library. The kernel may merge neighbouring mappings of both, so the stream has a record
 * of each of the kernel's mappings, and each ring names its address in one of them.
 */
#ifndef URXE_VERBS_CHECKPOINT_RING_MAPPING_H
#define URXE_VERBS_CHECKPOINT_RING_MAPPING_H

#include <stdbool.h>

#include "checkpoint/image/checkpoint_records.h"

struct ring_space;

/* Writes records for the mappings of the context's memfd to the stream, except for parts that only
 * destroyed rings had (ring_space_is_left); if these are very many, it leaves out only the first
 * ones. Does not call malloc. */
void ring_mappings_write(struct state_stream *s, uint32_t context, int memfd,
			 const struct ring_space *space);
/*
 * Maps a saved part of a memfd at its saved addresses. These must be unused, or reserved:
 * completely mapped, shared and PROT_NONE, by the checkpointer. The function replaces such a
 * mapping. *reserved: whether the addresses were reserved. 0; -EEXIST: the addresses are in use; or
 * an error of mmap(2).
 */
int ring_mapping_place(const struct mapping_record *r, int memfd, bool *reserved);
/* Undoes ring_mapping_place. `reserved`: maps the addresses shared and PROT_NONE again. */
void ring_mapping_remove(const struct mapping_record *r, bool reserved);

#endif
