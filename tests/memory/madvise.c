/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Each advice of madvise(2) for registered memory: flags of the mapping, contents, children. */
#include <err.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file.h"
#include "region.h"
#include "row.h"
#include "smaps.h"
#include "snapshot.h"

/* Debian 12's headers lack these. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif

/* Skips the row if the kernel does not know the advice: then it fails for no bytes, too. */
static void advise(struct region *region, int advice)
{
	int rc;

	skip_unless(!madvise(region->bytes, 0, advice), "the kernel does not know the advice");
	rc = madvise(region->bytes, region->size, advice);
	say("madvise returns %d %s", rc, rc ? strerror(errno) : "");
}

/* Prints a byte as a forked child sees it. The child reads it by a system call, which returns
 * EFAULT for unmapped memory. */
static void say_child_sees(const struct region *region)
{
	int fds[2], status;
	uint8_t byte = 0;
	pid_t child;

	if (pipe(fds))
		err(1, "pipe");
	child = fork();
	if (!child)
		_exit(write(fds[1], region->bytes + 5, 1) == 1 ? 0 : errno);
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		errx(1, "the child ends with status %#x", (unsigned int)status);
	if (!WEXITSTATUS(status) && read(fds[0], &byte, 1) != 1)
		err(1, "read");
	say("the child sees byte %#x, %s", byte, strerror(WEXITSTATUS(status)));
	close(fds[0]);
	close(fds[1]);
}

static void say_bytes(const struct region *region)
{
	say("bytes %#x and %#x", region->bytes[0], region->bytes[region->size - 1]);
}

static void advice_row(uintptr_t advice)
{
	struct region region = region_map(MIB);

	region_fill(&region, 3);
	advise(&region, (int)advice);
	say_bytes(&region);
	smaps_say(region.bytes);
	say_child_sees(&region);
	region.bytes[0] = 0x31;
	say_bytes(&region);
	/* The peer still reaches the memory. */
	region_fill(&region, 4);
	say("the memory holds what the peer wrote then: %s", region_says(&region, 4));
	smaps_say(region.bytes);
	if (advice != MADV_DONTFORK && advice != MADV_WIPEONFORK)
		snapshot_check(&region, snapshot_fork);
	region_unmap(&region);
}

static void advice_before_registering(uintptr_t advice)
{
	uint8_t *bytes = region_reserve(MIB);
	struct region region = {.bytes = bytes, .size = MIB};

	bytes[0] = 0x77;
	advise(&region, (int)advice);
	region = region_register(bytes, MIB);
	region_fill(&region, 3);
	smaps_say(bytes);
	say_child_sees(&region);
	region_unmap(&region);
}

/* The kernel may free these pages at any time, so the contents are not compared. */
static void advice_free(uintptr_t unused)
{
	struct region region = region_map(MIB);

	(void)unused;
	region_fill(&region, 3);
	advise(&region, MADV_FREE);
	smaps_say(region.bytes);
	region_fill(&region, 4);
	say("the memory holds what the peer wrote then: %s", region_says(&region, 4));
	region_unmap(&region);
}

/* A region of 2 MiB, because the kernel collapses whole huge pages only. */
static void advice_collapse(uintptr_t unused)
{
	struct region region = region_map(2 * MIB);
	int tries = 100;

	(void)unused;
	region_fill(&region, 3);
	/* The kernel returns EAGAIN while somebody else holds one of the pages. */
	while (madvise(region.bytes, region.size, MADV_COLLAPSE) && errno == EAGAIN && tries--)
		usleep(10000);
	advise(&region, MADV_COLLAPSE);
	say("KiB in huge pages: %lu", smaps_huge_kib(region.bytes));
	say("the memory is the same: %s", region_says(&region, 3));
	smaps_say(region.bytes);
	region_fill(&region, 4);
	say("the memory holds what the peer wrote then: %s", region_says(&region, 4));
	say("KiB in huge pages: %lu", smaps_huge_kib(region.bytes));
	snapshot_check(&region, snapshot_fork);
	region_unmap(&region);
}

/* Guard pages fault as unmapped memory does, and are empty once the guard is removed. */
static void advice_guard(uintptr_t unused)
{
	struct region region = region_map(MIB);

	(void)unused;
	region_fill(&region, 3);
	advise(&region, MADV_GUARD_INSTALL);
	smaps_say(region.bytes);
	say_child_sees(&region);
	advise(&region, MADV_GUARD_REMOVE);
	say_bytes(&region);
	region_fill(&region, 4);
	say("the memory holds what the peer wrote then: %s", region_says(&region, 4));
	snapshot_check(&region, snapshot_fork);
	region_unmap(&region);
}

static void advice_remove(uintptr_t unused)
{
	int fd = file_make(MIB, 0x42);
	uint8_t *bytes = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), byte = 1;
	struct region region;

	(void)unused;
	if (bytes == MAP_FAILED)
		err(1, "mmap");
	region = region_register(bytes, MIB);
	region_fill(&region, 3);
	advise(&region, MADV_REMOVE);
	say_bytes(&region);
	say("read returns %zd, byte %#x", pread(fd, &byte, 1, 0), byte);
	region_fill(&region, 4);
	say("read returns %zd, byte %#x", pread(fd, &byte, 1, 0), byte);
	region_unmap(&region);
}

static void advice_remove_anonymous(uintptr_t unused)
{
	uint8_t *bytes = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct region region;

	(void)unused;
	if (bytes == MAP_FAILED)
		err(1, "mmap");
	region = region_register(bytes, MIB);
	region_fill(&region, 3);
	advise(&region, MADV_REMOVE);
	say_bytes(&region);
	region_fill(&region, 4);
	say_bytes(&region);
	region_unmap(&region);
}

const struct row madvise_rows[] = {
	{"normal", advice_row, MADV_NORMAL},
	{"random", advice_row, MADV_RANDOM},
	{"sequential", advice_row, MADV_SEQUENTIAL},
	{"willneed", advice_row, MADV_WILLNEED},
	{"dontneed", advice_row, MADV_DONTNEED},
	{"dontneed_locked", advice_row, MADV_DONTNEED_LOCKED},
	{"free", advice_free, 0},
	{"remove_shared_file", advice_remove, 0},
	{"remove_shared_anonymous", advice_remove_anonymous, 0},
	{"remove_private", advice_row, MADV_REMOVE},
	{"dontfork", advice_row, MADV_DONTFORK},
	{"dofork", advice_row, MADV_DOFORK},
	{"mergeable", advice_row, MADV_MERGEABLE},
	{"unmergeable", advice_row, MADV_UNMERGEABLE},
	{"hugepage", advice_row, MADV_HUGEPAGE},
	{"nohugepage", advice_row, MADV_NOHUGEPAGE},
	{"dontdump", advice_row, MADV_DONTDUMP},
	{"dodump", advice_row, MADV_DODUMP},
	{"wipeonfork", advice_row, MADV_WIPEONFORK},
	{"keeponfork", advice_row, MADV_KEEPONFORK},
	{"cold", advice_row, MADV_COLD},
	{"pageout", advice_row, MADV_PAGEOUT},
	{"populate_read", advice_row, MADV_POPULATE_READ},
	{"populate_write", advice_row, MADV_POPULATE_WRITE},
	{"collapse", advice_collapse, 0},
	{"guard_install", advice_guard, 0},
	{"dontfork_before_registering", advice_before_registering, MADV_DONTFORK},
	{"wipeonfork_before_registering", advice_before_registering, MADV_WIPEONFORK},
	{"dontdump_before_registering", advice_before_registering, MADV_DONTDUMP},
	{"mergeable_before_registering", advice_before_registering, MADV_MERGEABLE},
	{"hugepage_before_registering", advice_before_registering, MADV_HUGEPAGE},
	{0},
};
