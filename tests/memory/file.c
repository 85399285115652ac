/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Files and pipes that the kernel reads into, or writes out of, registered memory. */
#include "file.h"

#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "region.h"
#include "row.h"
#include "snapshot.h"

int file_make(size_t size, uint8_t byte)
{
	char path[] = "memory-XXXXXX";
	uint8_t *bytes = malloc(size);
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd < 0 || !bytes)
		err(1, "cannot make a file");
	unlink(path);
	memset(bytes, byte, size);
	if (pwrite(fd, bytes, size, 0) != (ssize_t)size || fsync(fd))
		err(1, "cannot fill a file");
	free(bytes);
	return fd;
}

/* --- O_DIRECT */

static int make_direct(size_t size, uint8_t byte)
{
	int fd = file_make(size, byte);

	skip_unless(!fcntl(fd, F_SETFL, O_DIRECT), "O_DIRECT");
	return fd;
}

static void direct_read(uintptr_t size)
{
	struct region region = region_map(size);
	int fd = make_direct(size, 0x42);
	ssize_t got;

	region_fill(&region, 3);
	got = pread(fd, region.bytes, size, 0);
	skip_unless(got >= 0, "read with O_DIRECT");
	say("read returns %zd, first %#x, last %#x", got, region.bytes[0], region.bytes[size - 1]);
	region_fill(&region, 4);
	got = pread(fd, region.bytes, size, 0);
	say("read returns %zd, first %#x, last %#x", got, region.bytes[0], region.bytes[size - 1]);
	snapshot_check(&region, snapshot_fork);
	region_unmap(&region);
}

static void direct_write(uintptr_t size)
{
	struct region region = region_map(size);
	int fd = make_direct(size, 0);
	uint8_t *copy = region_reserve(size);
	ssize_t put;

	region_fill(&region, 3);
	put = pwrite(fd, region.bytes, size, 0);
	skip_unless(put >= 0, "write with O_DIRECT");
	say("write returns %zd, read returns %zd", put, pread(fd, copy, size, 0));
	say("the file holds what the peer wrote: %s", region_holds(copy, size, 3) ? "yes" : "no");
	region_unmap(&region);
}

/* --- Shared and private mappings of a file */

static uint8_t *map_file(int fd, size_t size, int flags)
{
	uint8_t *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (bytes == MAP_FAILED)
		err(1, "mmap of a file");
	return bytes;
}

static void shared_file(uintptr_t size)
{
	int fd = file_make(size, 0x42);
	struct region region = region_register(map_file(fd, size, MAP_SHARED), size);
	uint8_t *copy = region_reserve(size);

	say("byte of the file: %#x", region.bytes[0]);
	region_fill(&region, 3);
	say("msync returns %d", msync(region.bytes, size, MS_SYNC));
	say("read returns %zd", pread(fd, copy, size, 0));
	say("the file holds what the peer wrote: %s", region_holds(copy, size, 3) ? "yes" : "no");
	if (pwrite(fd, "\x55", 1, 100) != 1)
		err(1, "pwrite");
	say("the mapping shows a write to the file: %#x", region.bytes[100]);
	region_unmap(&region);
}

static void shared_file_fork(uintptr_t size)
{
	int fd = file_make(size, 0x42);
	struct region region = region_register(map_file(fd, size, MAP_SHARED), size);

	region_fill(&region, 3);
	snapshot_check(&region, snapshot_fork);
	region_unmap(&region);
}

static void private_file(uintptr_t size)
{
	int fd = file_make(size, 0x42);
	struct region region = region_register(map_file(fd, size, MAP_PRIVATE), size);
	uint8_t byte = 0;

	region_fill(&region, 3);
	say("read returns %zd, byte %#x", pread(fd, &byte, 1, (off_t)size - 1), byte);
	say("the mapping holds what the peer wrote: %s", region_says(&region, 3));
	snapshot_check(&region, snapshot_fork);
	region_unmap(&region);
}

/* --- Pipes */

/* A pipe that has the first 4 pages of a region by reference. */
struct spliced {
	struct region region;
	int fds[2];
	ssize_t n;
};

static void splice_pages(struct spliced *s)
{
	struct iovec pages;

	s->region = region_map(16 * PAGE);
	pages = (struct iovec){s->region.bytes, 4 * PAGE};
	region_fill(&s->region, 3);
	if (pipe(s->fds))
		err(1, "pipe");
	s->n = vmsplice(s->fds[1], &pages, 1, 0);
	skip_unless(s->n >= 0, "vmsplice");
}

static void read_pipe(const struct spliced *s)
{
	static uint8_t copy[4 * PAGE];

	say("vmsplice returns %zd, read returns %zd", s->n, read(s->fds[0], copy, sizeof(copy)));
	say("the pipe holds %#x to %#x", copy[0], copy[sizeof(copy) - 1]);
}

static void vmsplice_shows_later_stores(uintptr_t unused)
{
	struct spliced s;

	(void)unused;
	splice_pages(&s);
	memset(s.region.bytes, 0x77, 4 * PAGE);
	read_pipe(&s);
	region_unmap(&s.region);
}

static void vmsplice_shows_later_writes(uintptr_t unused)
{
	struct spliced s;

	(void)unused;
	splice_pages(&s);
	region_fill(&s.region, 9);
	read_pipe(&s);
	snapshot_check(&s.region, snapshot_fork);
	region_unmap(&s.region);
}

const struct row file_rows[] = {
	{"o_direct_read_1_page", direct_read, PAGE},
	{"o_direct_read_1_mib", direct_read, MIB},
	{"o_direct_write_1_page", direct_write, PAGE},
	{"o_direct_write_1_mib", direct_write, MIB},
	{"shared_file_1_page", shared_file, PAGE},
	{"shared_file_1_mib", shared_file, MIB},
	{"shared_file_fork", shared_file_fork, MIB},
	{"private_file", private_file, MIB},
	{"vmsplice_shows_later_stores", vmsplice_shows_later_stores, 0},
	{"vmsplice_shows_later_writes_of_the_peer", vmsplice_shows_later_writes, 0},
	{0},
};
