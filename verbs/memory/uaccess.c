/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "memory/uaccess.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rxe/rxe.h>

#include "memory/proc_maps.h"
#include "memory/sigbus_guard.h"

typedef ssize_t transfer_fn(pid_t, const struct iovec *, unsigned long, const struct iovec *,
			    unsigned long, unsigned long);

/* Copies by process_vm_readv() or process_vm_writev() within this process: for a bad address these
 * calls return an error, where memcpy() would fault. 0; -EFAULT; 1: the kernel refuses the call or
 * lacks it, and nothing is copied. */
static int copy_by_kernel(transfer_fn *fn, void *local, void *remote, size_t size)
{
	struct iovec here = {local, size};
	struct iovec there = {remote, size};
	ssize_t n = fn(getpid(), &here, 1, &there, 1, 0);

	if (n == (ssize_t)size)
		return 0;
	/* Not 1 for address 0, even if memory is mapped there: the caller would call memcpy() with
	 * a null pointer. */
	if (n >= 0 || errno == EFAULT || !remote)
		return -EFAULT;
	return 1; /* refused by seccomp, or not in this kernel */
}

struct copy_args {
	void *to;
	const void *from;
	size_t size;
};

static void copy_bytes(void *arg)
{
	const struct copy_args *m = arg;

	memcpy(m->to, m->from, m->size);
}

/* Whether the SIGBUS guard can protect memcpy() at the address; a guarded memcpy() takes a tenth of
 * the time of a system call. For non-canonical addresses the processor reports no fault address, so
 * the guard cannot help. */
static bool is_guarded(uint64_t address, size_t size)
{
	return sigbus_guard_installed() && address && address < UACCESS_END &&
	       size < UACCESS_END - address;
}

static int copy_guarded(struct copy_args m, uint64_t address)
{
	const struct urxe_extent theirs = {(void *)(uintptr_t)address, m.size};

	return sigbus_guard_run(NULL, &theirs, copy_bytes, &m) ? 0 : -EFAULT;
}

int uaccess_read(void *to, uint64_t from, size_t size)
{
	int rc;

	if (!size)
		return 0;
	if (is_guarded(from, size))
		return copy_guarded((struct copy_args){to, (const void *)(uintptr_t)from, size},
				    from);
	rc = copy_by_kernel(process_vm_readv, to, (void *)(uintptr_t)from, size);
	if (rc > 0)
		memcpy(to, (const void *)(uintptr_t)from, size);
	return rc < 0 ? rc : 0;
}

int uaccess_write(uint64_t to, const void *from, size_t size)
{
	int rc;

	if (!size)
		return 0;
	if (is_guarded(to, size))
		return copy_guarded((struct copy_args){(void *)(uintptr_t)to, from, size}, to);
	rc = copy_by_kernel(process_vm_writev, (void *)(uintptr_t)from, (void *)(uintptr_t)to,
			    size);
	if (rc > 0)
		memcpy((void *)(uintptr_t)to, from, size);
	return rc < 0 ? rc : 0;
}

static void read_pages(void *arg)
{
	const struct urxe_extent *bytes = arg;
	const volatile uint8_t *first = bytes->addr;
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (uint64_t at = 0; at < bytes->length; at += page - ((uintptr_t)first + at) % page)
		(void)first[at];
}

void uaccess_touch(uint64_t start, uint64_t length)
{
	struct urxe_extent bytes = {(void *)(uintptr_t)start, length};

	if (is_guarded(start, length))
		sigbus_guard_run(NULL, &bytes, read_pages, &bytes);
}

/* Whether the kernel knows MADV_POPULATE_READ: tries it once, for the mapped page of `known`. */
static bool have_populate(void)
{
	static int known; /* 0 = not asked, 1 = yes, -1 = no */
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	if (!known)
		known = madvise((void *)((uintptr_t)&known & ~(page - 1)), page, MADV_POPULATE_READ)
				? -1
				: 1;
	return known > 0;
}

/* 0 if the list of mappings shows that all of the range has the protection, else -EFAULT. Does not
 * check whether the files behind the mappings are long enough. */
static int check_maps(uint64_t start, uint64_t end, bool writable)
{
	struct text_lines maps;
	struct mapping m;

	proc_maps_open(&maps);
	while (start < end && proc_maps_next(&maps, &m)) {
		if (m.end <= start)
			continue;
		if (m.start > start || !m.readable || (writable && !m.writable))
			break;
		start = m.end;
	}
	text_lines_close(&maps);
	return start >= end ? 0 : -EFAULT;
}

/* Whether the range is larger than the machine's memory. Such a range must not be populated: the
 * program uses only a part of its pages. */
static bool exceeds_memory(uint64_t length)
{
	return length / (uint64_t)sysconf(_SC_PAGESIZE) > (uint64_t)sysconf(_SC_PHYS_PAGES);
}

/* The range of the pages that have bytes of [start, start + length). */
static struct urxe_extent pages_of(uint64_t start, uint64_t length)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t from = start & ~(page - 1);

	return (struct urxe_extent){(void *)(uintptr_t)from,
				    ((start + length + page - 1) & ~(page - 1)) - from};
}

bool uaccess_is_mapped(uint64_t start, uint64_t length)
{
	const struct urxe_extent pages = pages_of(start, length);

	/* With MS_ASYNC alone Linux writes nothing to files; ENOMEM: some page is not mapped. */
	return !msync(pages.addr, pages.length, MS_ASYNC) || errno != ENOMEM;
}

int uaccess_populate(uint64_t start, uint64_t length, int writable)
{
	const struct urxe_extent pages = pages_of(start, length);
	int rc;

	/* Kernels before 5.14 lack the advice, and so does QEMU's user emulation. */
	if (!have_populate() || exceeds_memory(length))
		return check_maps((uintptr_t)pages.addr, (uintptr_t)pages.addr + pages.length,
				  writable);
	do {
		rc = madvise(pages.addr, pages.length,
			     writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	} while (rc && (errno == EINTR || errno == EAGAIN));
	/*
	 * ENOMEM and EINVAL: not mapped, or without the permission; get_user_pages reports both as
	 * EFAULT.
	 */
	return rc ? -EFAULT : 0;
}
