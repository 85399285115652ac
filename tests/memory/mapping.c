/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls that move, replace, protect or enlarge the mapping of a registered region. */
#include <err.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "region.h"
#include "row.h"
#include "smaps.h"
#include "snapshot.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

#define PRIVATE (MAP_PRIVATE | MAP_ANONYMOUS)

static void untouched(uintptr_t size)
{
	struct region region = region_map(size);

	region_fill(&region, 3);
	smaps_say(region.bytes);
	region_deregister(&region);
	say("the memory is the same: %s", region_says(&region, 3));
	smaps_say(region.bytes);
	region_unmap(&region);
}

/* --- mremap */

static void grow_in_place(uintptr_t unused)
{
	uint8_t *bytes = region_reserve(2 * MIB), *grown;
	struct region region;

	(void)unused;
	if (munmap(bytes + MIB, MIB))
		err(1, "munmap");
	region = region_register(bytes, MIB);
	region_fill(&region, 3);
	grown = mremap(bytes, MIB, 2 * MIB, 0);
	say("mremap %s", grown == bytes ? "grows in place" : "fails");
	say("the memory is the same: %s, behind it %#x", region_says(&region, 3),
	    bytes[2 * MIB - 1]);
	smaps_say(bytes);
	region_fill(&region, 4);
	say("the memory holds what the peer wrote then: %s", region_says(&region, 4));
	region_unmap(&region);
}

static void shrink(uintptr_t unused)
{
	struct region region = region_map(MIB), half;

	(void)unused;
	region_fill(&region, 3);
	say("mremap %s",
	    mremap(region.bytes, MIB, MIB / 2, 0) == region.bytes ? "shrinks" : "fails");
	say("the memory is the same: %s", region_holds(region.bytes, MIB / 2, 3) ? "yes" : "no");
	smaps_say(region.bytes);
	half = region_register(region.bytes, MIB / 2);
	region_fill(&half, 4);
	say("the memory holds what the peer wrote then: %s", region_says(&half, 4));
	region_deregister(&half);
	region_unmap(&region);
}

static void move(uintptr_t flags)
{
	struct region region = region_map(MIB), moved;
	uint8_t *to = region_reserve(2 * MIB);

	region_fill(&region, 3);
	to = mremap(region.bytes, MIB, flags & MREMAP_DONTUNMAP ? MIB : 2 * MIB, (int)flags, to);
	if (to == MAP_FAILED)
		skip("mremap: %s", strerror(errno));
	say("the memory is the same at its new place: %s", region_holds(to, MIB, 3) ? "yes" : "no");
	smaps_say(to);
	if (flags & MREMAP_DONTUNMAP)
		say("byte at the old place: %#x", region.bytes[0]);
	moved = region_register(to, MIB);
	region_fill(&moved, 4);
	say("the memory holds what the peer wrote then: %s", region_says(&moved, 4));
	if (flags & MREMAP_DONTUNMAP)
		say("byte at the old place: %#x", region.bytes[0]);
	snapshot_check(&moved, snapshot_fork);
	region_deregister(&moved);
	region_unmap(&region);
}

/* --- mmap with MAP_FIXED */

static void map_over(uintptr_t unused)
{
	struct region region = region_map(MIB), anew;
	uint8_t *bytes;

	(void)unused;
	region_fill(&region, 3);
	bytes = mmap(region.bytes, MIB / 2, PROT_READ | PROT_WRITE, PRIVATE | MAP_FIXED, -1, 0);
	if (bytes != region.bytes)
		err(1, "mmap");
	say("bytes %#x and %#x", bytes[0], bytes[MIB - 1]);
	smaps_say(bytes);
	anew = region_register(bytes, MIB / 2);
	region_fill(&anew, 4);
	say("the memory holds what the peer wrote then: %s", region_says(&anew, 4));
	snapshot_check(&anew, snapshot_fork);
	region_deregister(&anew);
	region_unmap(&region);
}

static void map_over_refused(uintptr_t unused)
{
	struct region region = region_map(MIB);
	void *mapped;

	(void)unused;
	region_fill(&region, 3);
	mapped = mmap(region.bytes, MIB, PROT_READ, PRIVATE | MAP_FIXED_NOREPLACE, -1, 0);
	say("MAP_FIXED_NOREPLACE %s",
	    mapped == MAP_FAILED && errno == EEXIST ? "is refused" : "maps");
	mapped = mmap(region.bytes, MIB, PROT_READ, MAP_PRIVATE | MAP_FIXED, -1, 0);
	say("a mapping of no file %s",
	    mapped == MAP_FAILED && errno == EBADF ? "is refused" : "maps");
	say("the memory is the same: %s", region_says(&region, 3));
	region_fill(&region, 4);
	say("the memory holds what the peer wrote then: %s", region_says(&region, 4));
	region_unmap(&region);
}

/* --- Huge pages */

static void explicit_huge_pages(uintptr_t unused)
{
	uint8_t *bytes = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, PRIVATE | MAP_HUGETLB, -1, 0);
	struct region region;

	(void)unused;
	if (bytes == MAP_FAILED)
		skip("MAP_HUGETLB, see vm.nr_hugepages: %s", strerror(errno));
	bytes[0] = 1; /* a missing page ends the program here, not later in a comparison */
	region = region_register(bytes, 2 * MIB);
	region_fill(&region, 3);
	smaps_say(bytes);
	say("the memory holds what the peer wrote: %s", region_says(&region, 3));
	region_unmap(&region);
}

static void transparent_huge_pages(uintptr_t unused)
{
	uint8_t *bytes = region_reserve(8 * MIB);
	struct region region;
	uint64_t kib;

	(void)unused;
	if (madvise(bytes, 8 * MIB, MADV_HUGEPAGE))
		skip("MADV_HUGEPAGE: %s", strerror(errno));
	memset(bytes, 1, 8 * MIB);
	kib = smaps_huge_kib(bytes);
	if (kib != 8 * 1024)
		skip("the kernel has huge pages for %lu KiB of 8 MiB", kib);
	region = region_register(bytes, 8 * MIB);
	region_fill(&region, 3);
	say("KiB in huge pages: %lu", smaps_huge_kib(bytes));
	smaps_say(bytes);
	snapshot_check(&region, snapshot_fork);
	region_unmap(&region);
}

/* --- Shared anonymous memory */

static void shared_anonymous(uintptr_t unused)
{
	uint8_t *bytes = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct region region;

	(void)unused;
	if (bytes == MAP_FAILED)
		err(1, "mmap");
	region = region_register(bytes, MIB);
	snapshot_check(&region, snapshot_fork);
	region_unmap(&region);
}

const struct row mapping_rows[] = {
	{"untouched_1_page", untouched, PAGE},
	{"untouched_1_mib", untouched, MIB},
	{"untouched_64_mib", untouched, 64 * MIB},
	{"mremap_grows_in_place", grow_in_place, 0},
	{"mremap_shrinks", shrink, 0},
	{"mremap_moves", move, MREMAP_MAYMOVE | MREMAP_FIXED},
	{"mremap_dontunmap", move, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP},
	{"map_fixed_over_it", map_over, 0},
	{"map_fixed_that_fails", map_over_refused, 0},
	{"huge_pages", explicit_huge_pages, 0},
	{"transparent_huge_pages", transparent_huge_pages, 0},
	{"shared_anonymous", shared_anonymous, 0},
	{0},
};
