/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory of a virtual machine, as its devices see it: a set of regions of the guest's physical
 * address space, each mapped into this process from a descriptor that the hypervisor passed on
 * (vfio-user's DMA_MAP).
 *
 * The guest and the hypervisor can change the contents at any time. The hypervisor can also take
 * pages away from this process: it may shorten the file, or free a huge page for which the host has
 * no other one. Such a page is lost at its next access (vnic_guest_memory_catch_faults).
 *
 * One thread of a process uses the memory of all its machines. Functions that return int give 0 or
 * a negative errno value.
 */
#ifndef URXE_VNIC_GUEST_MEMORY_H
#define URXE_VNIC_GUEST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Regions at most. A machine of QEMU has about 10; each memory device that is plugged in adds one.
 */
#define VNIC_GUEST_REGIONS 256

struct vnic_guest_memory;

/* A mapped region of the guest's physical address space. */
struct vnic_guest_region {
	uint64_t addr; /* guest physical address of the first byte */
	uint64_t size; /* bytes */
	void *memory;
	bool writable;
};

int vnic_guest_memory_create(struct vnic_guest_memory **memory);
/* Unmaps all regions, and frees the memory's description. */
void vnic_guest_memory_destroy(struct vnic_guest_memory *memory);

/*
 * Maps `size` bytes of `fd` from `offset` as the guest's memory at `addr`. The caller keeps fd.
 * -EINVAL: the size is 0, a number is not a multiple of the page size, or an end wraps; -EEXIST: a
 * region has some of the addresses; -ENOSPC: too many regions; -EOPNOTSUPP: the file is neither
 * memory (memfd, tmpfs, hugetlbfs) nor on ext4, XFS or Btrfs, so that an access might wait for
 * ever; -EFBIG: the file is shorter; -ENOMEM, or an error of fstat, fcntl or mmap.
 */
int vnic_guest_memory_map(struct vnic_guest_memory *memory, uint64_t addr, uint64_t size, int fd,
			  uint64_t offset, bool writable);
/*
 * Unmaps [addr, addr + size). The range may cover several regions, and part of a region, which is
 * split then. The caller has withdrawn the memory from its devices before, so that none uses it any
 * more. -EINVAL: as of vnic_guest_memory_map; -ENOENT: no region lies in the range; -ENOSPC: a
 * split needs one region more.
 */
int vnic_guest_memory_unmap(struct vnic_guest_memory *memory, uint64_t addr, uint64_t size);
/* What vnic_guest_memory_unmap would return. */
int vnic_guest_memory_check_unmap(const struct vnic_guest_memory *memory, uint64_t addr,
				  uint64_t size);
void vnic_guest_memory_unmap_all(struct vnic_guest_memory *memory);

/*
 * Installs a handler of SIGBUS. No other code of the process may need one. From then on an access
 * to a page of guest memory that the kernel cannot give reads and writes a private page of zeros,
 * and the page is lost: vnic_guest_memory_find_lost reports the page once for each region that has
 * it. All other faults go to the earlier handler. Without this call such an access kills the
 * process. `losing`, if not NULL, is called in the handler before the page is replaced: the owner
 * then tells other processes that copy from this process's addresses.
 */
int vnic_guest_memory_catch_faults(void (*losing)(void *ctx), void *ctx);
/*
 * Whether none of these bytes, which are mapped memory of the guest, is lost. Ask after an access.
 */
bool vnic_guest_memory_is_intact(const struct vnic_guest_memory *memory, const void *bytes,
				 uint64_t size);
/*
 * True: sets *addr and *size to a lost part of a region. The caller withdraws this part from its
 * devices, then calls vnic_guest_memory_forget with it, and asks again. False: no region has lost
 * pages. A region with many lost pages is lost as a whole.
 */
bool vnic_guest_memory_find_lost(struct vnic_guest_memory *memory, uint64_t *addr, uint64_t *size);
/* Removes a part that vnic_guest_memory_find_lost has found from its region. Its pages stay mapped
 * until a later unmapping, since another process may still copy to them. */
void vnic_guest_memory_forget(struct vnic_guest_memory *memory, uint64_t addr, uint64_t size);

/*
 * The bytes at `addr` in this process, of which *size, at most the number passed in, lie side by
 * side in one region. NULL: no region has the address, or it is read-only and `write` is set.
 */
void *vnic_guest_memory_at(const struct vnic_guest_memory *memory, uint64_t addr, uint64_t *size,
			   bool write);
/* As vnic_guest_memory_at, but NULL unless all `size` bytes lie side by side. */
void *vnic_guest_memory_range(const struct vnic_guest_memory *memory, uint64_t addr, uint64_t size,
			      bool write);

/* The regions in the order of their addresses; valid until the next call that changes them. */
const struct vnic_guest_region *vnic_guest_memory_regions(const struct vnic_guest_memory *memory,
							  uint32_t *count);

/* Returns the descriptor of the file of a region, which stays the memory's, and sets *offset to the
 * place of the region's first byte in the file. */
int vnic_guest_memory_file(const struct vnic_guest_region *region, uint64_t *offset);

/*
 * The log of the pages that devices write (vnic/dirty_log.h); it is off at first, and empty at each
 * start. take_log sets bit n of the bitmap if a device has written one of the `page_size` bytes at
 * addr + n * page_size since the last take_log of that byte. page_size is a power of two, size is
 * not 0, and addr + size does not exceed 2^64. The bitmap's words are in host byte order.
 */
struct vnic_dirty_log;
struct vnic_dirty_log *vnic_guest_memory_log(struct vnic_guest_memory *memory);
void vnic_guest_memory_start_log(struct vnic_guest_memory *memory);
void vnic_guest_memory_stop_log(struct vnic_guest_memory *memory);
void vnic_guest_memory_take_log(struct vnic_guest_memory *memory, uint64_t addr, uint64_t size,
				uint64_t page_size, uint64_t *bitmap);

#endif
