/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parts of files that a hypervisor passes on as memory of its machine, mapped into this process,
 * and the handler of SIGBUS for pages of them that the kernel cannot give. guest_memory.c calls
 * these functions.
 */
#ifndef URXE_VNIC_GUEST_MAPPING_H
#define URXE_VNIC_GUEST_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

/* Lost pages of a mapping at most; with one more the whole mapping is lost. */
#define GUEST_MAPPING_LOST 64

/* A mapped part of a file. Its addresses stay reserved until guest_mapping.c closes the mapping,
 * also those of bytes that guest_mapping_discard gave up before. */
struct guest_mapping {
	struct guest_mapping *next; /* in the list of all mappings of this process */
	uint8_t *start;
	uint64_t length; /* bytes, whole pages of the file */
	uint64_t page;   /* bytes of a page of the file; more than the kernel's for huge pages */
	int protection;
	int fd;           /* the mapping's own descriptor of the file, passed on when another
			     process takes over */
	uint64_t offset;  /* of `start` in the file */
	uint32_t regions; /* number of regions of the guest's memory in the mapping */
	/* The handler of SIGBUS writes the rest. */
	bool *lost_flag; /* struct vnic_guest_memory's `lost` */
	bool lost;       /* the mapping is lost as a whole */
	uint32_t n_lost;
	uint64_t lost_at[GUEST_MAPPING_LOST]; /* offsets of lost pages */
};

/* Bytes [offset, offset + size) of a file. */
struct guest_file {
	int fd;
	uint64_t offset;
	uint64_t size;
	bool writable;
};

/*
 * Maps the pages of these bytes. *bytes: the first of them. -EOPNOTSUPP: the file is neither memory
 * (memfd, tmpfs, hugetlbfs) nor on a file system of a local disk, so an access might wait for
 * ever; -EFBIG: the file is shorter; -ENOMEM, or an error of fstat, fcntl or mmap. The mapping has
 * a descriptor of its own; the caller keeps file->fd.
 */
int guest_mapping_open(const struct guest_file *file, bool *lost_flag,
		       struct guest_mapping **mapping, void **bytes);
/* Closes all mappings that guest_mapping_open has made with this lost_flag and that have no
 * regions; `all`: those with regions, too. */
void guest_mapping_close_unused(const bool *lost_flag, bool all);

/* The mapping that has the byte; NULL: none. */
struct guest_mapping *guest_mapping_find(const void *byte);
/* Gives up the pages that lie wholly in these bytes of the mapping; later accesses are faults. */
void guest_mapping_discard(const struct guest_mapping *mapping, void *bytes, uint64_t size);
/* Whether none of these bytes, which may lie in several mappings side by side, is lost. */
bool guest_mapping_is_intact(const void *bytes, uint64_t size);
/*
 * Whether some of the bytes, which lie in the mapping, are lost. If so, sets *bytes and *size to
 * those in one lost page; to all if the whole mapping is lost.
 */
bool guest_mapping_find_lost(const struct guest_mapping *mapping, void **bytes, uint64_t *size);

/*
 * Installs the handler of SIGBUS. A fault in a mapping replaces the page by a private page of
 * zeros, marks the page as lost and sets *lost_flag; before that it calls `losing`. Any other fault
 * goes to the handler that was installed before. Returns 0 or a negative errno value.
 */
int guest_mapping_catch_faults(void (*losing)(void *ctx), void *ctx);

#endif
