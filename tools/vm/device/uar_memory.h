/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* PVRDMA's BAR2 as memory that the hypervisor maps: the doorbells of the guest are stores there. */
#ifndef URXE_VM_DEVICE_UAR_MEMORY_H
#define URXE_VM_DEVICE_UAR_MEMORY_H

struct uar_memory {
	int fd;      /* sealed at its size, so that the hypervisor cannot shorten it */
	void *bytes; /* NULL: none */
};

/* Makes the memory of BAR2, PVRDMA_UAR_SIZE bytes of 0. Returns 0 or a negative errno value. */
int uar_memory_open(struct uar_memory *memory);
/*
 * Takes the memory of another process over: maps *fd, and sets *fd to -1. Returns 0; -EBADMSG: *fd
 * is not memory of uar_memory_open; or an error of mmap. After an error *fd stays the caller's.
 */
int uar_memory_adopt(struct uar_memory *memory, int *fd);
/* Accepts a zeroed structure. */
void uar_memory_close(struct uar_memory *memory);

#endif
