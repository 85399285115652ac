/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "memory/uaccess.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rxe/rxe.h>

#include "memory/proc_maps.h"
#include "memory/sigbus_guard.h"

/* Linux 5.14; not in every libc's headers. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* That a process has on x86-64, and at least on arm64, where more need to be asked for. */
#define ADDRESSES (UINT64_C(1) << 47)

typedef ssize_t transfer_fn(pid_t, const struct iovec *, unsigned long, const struct iovec *,
			    unsigned long, unsigned long);

/* process_vm_*() of the own process reports a bad address where memcpy() would fault. */
static int transfer(transfer_fn *fn, void *local, void *remote, size_t size)
{
	struct iovec here = {local, size};
	struct iovec there = {remote, size};
	ssize_t n = fn(getpid(), &here, 1, &there, 1, 0);

	if (n == (ssize_t)size)
		return 0;
	if (n >= 0 || errno == EFAULT)
		return -EFAULT;
	return 1; /* refused by seccomp or not in this kernel */
}

struct move {
	void *to;
	const void *from;
	size_t size;
};

static void move(void *arg)
{
	const struct move *m = arg;

	memcpy(m->to, m->from, m->size);
}

/*
 * Where faults of the engine's are caught, those of a copy are, too: a tenth of a system call's
 * time. But whoever is at no address that processes have is told no address by the processor.
 */
static bool is_guarded(uint64_t address, size_t size)
{
	/* memcpy() must not be given a null pointer, whatever lies there. */
	return fault_installed() && address && address < ADDRESSES && size < ADDRESSES - address;
}

static int guarded(struct move m, uint64_t address)
{
	const struct urxe_extent theirs = {(void *)(uintptr_t)address, m.size};

	return fault_guard(NULL, &theirs, move, &m) ? 0 : -EFAULT;
}

int user_read(void *to, uint64_t from, size_t size)
{
	int rc;

	if (!size)
		return 0;
	if (is_guarded(from, size))
		return guarded((struct move){to, (const void *)(uintptr_t)from, size}, from);
	rc = transfer(process_vm_readv, to, (void *)(uintptr_t)from, size);
	if (rc > 0)
		memcpy(to, (const void *)(uintptr_t)from, size);
	return rc < 0 ? rc : 0;
}

int user_write(uint64_t to, const void *from, size_t size)
{
	int rc;

	if (!size)
		return 0;
	if (is_guarded(to, size))
		return guarded((struct move){(void *)(uintptr_t)to, from, size}, to);
	rc = transfer(process_vm_writev, (void *)(uintptr_t)from, (void *)(uintptr_t)to, size);
	if (rc > 0)
		memcpy((void *)(uintptr_t)to, from, size);
	return rc < 0 ? rc : 0;
}

/* Whether the kernel knows the advice: asked for once, with memory that is certainly there. */
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

/* The mappings tell the protection, though not what is behind them. */
static int check_maps(uint64_t start, uint64_t end, bool writable)
{
	struct lines maps;
	struct mapping m;

	maps_open(&maps);
	while (start < end && maps_next(&maps, &m)) {
		if (m.end <= start)
			continue;
		if (m.start > start || !m.readable || (writable && !m.writable))
			break;
		start = m.end;
	}
	lines_close(&maps);
	return start >= end ? 0 : -EFAULT;
}

/* A range as long can only be a sparse one, whose pages come as they are accessed. */
static bool exceeds_memory(uint64_t length)
{
	return length / (uint64_t)sysconf(_SC_PAGESIZE) > (uint64_t)sysconf(_SC_PHYS_PAGES);
}

int user_populate(uint64_t start, uint64_t length, int writable)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t from = start & ~(page - 1);
	uint64_t to = (start + length + page - 1) & ~(page - 1);
	int rc;

	/* Kernels before 5.14 have no such advice. */
	if (!have_populate() || exceeds_memory(length))
		return check_maps(from, to, writable);
	do {
		rc = madvise((void *)(uintptr_t)from, to - from,
			     writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	} while (rc && (errno == EINTR || errno == EAGAIN));
	/* ENOMEM and EINVAL: not mapped, or not so; get_user_pages says EFAULT to both. */
	return rc ? -EFAULT : 0;
}
