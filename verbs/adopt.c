/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "adopt.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "arena.h"
#include "fd.h"
#include "log.h"
#include "maps.h"
#include "peer.h"
#include "pinned.h"
#include "real.h"
#include "registered.h"
#include "threads.h"

/* Linux 5.14; not in every libc's headers. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Linux 5.7. */
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

#define PAGE URXE_DIRECT_PAGE
/* Larger regions are copied as fast by the kernel, and may be of huge pages. */
#define REGION_MAX ((uint64_t)4 << 20)
/* Of all regions together. */
#define ALL_MAX ((uint64_t)16 << 20)
/*
 * What is done in the life of a program: to look at a region takes 0.1 ms and more, and each of its
 * pages some microseconds, which one that registers memory for each of its messages would pay.
 */
#define LOOKS_MAX 256
#define EVER_MAX  ((uint64_t)64 << 20)
/* Bytes of stack that all of this takes at most, and more. */
#define STACK 65536
/* Mappings that the program may have divided moved pages into. */
#define PARTS_MAX 8

enum use {
	FREE,
	IN_USE,
	KEPT,  /* no region's any more, but the kernel may hold its pages: it stays as it is */
	SPENT, /* something may still be mapped from there */
};

static struct place {
	uint64_t start, length;
	uint8_t *aside; /* the program's own mapping meanwhile, without its pages */
	enum use use;
} places[ARENA_PLACES]; /* the first is the token's */

static uint64_t moved; /* bytes that are there, */
static uint64_t ever;  /* and that ever were */
static unsigned int looks;
static atomic_bool no_more;
atomic_uint adopt_kept;
atomic_uint adopt_divided;

static uint64_t offset_of(const struct place *place)
{
	return (uint64_t)(place - places) * ARENA_PLACE;
}

static uint8_t *view_of(const struct place *place)
{
	return arena_at(offset_of(place));
}

static void *address(uint64_t at)
{
	return (void *)(uintptr_t)at;
}

/* --- Which. */

static bool overlaps(const struct place *place, const struct urxe_extent *bytes, enum use use)
{
	uint64_t first = (uintptr_t)bytes->addr;

	return place->use == use && bytes->length && first < place->start + place->length &&
	       place->start < first + bytes->length;
}

static struct place *find(const struct urxe_extent *bytes)
{
	for (struct place *place = places + 1; place < places + ARENA_PLACES; place++)
		if (overlaps(place, bytes, IN_USE))
			return place;
	return NULL;
}

static struct place *find_free(void)
{
	for (struct place *place = places + 1; place < places + ARENA_PLACES; place++)
		if (place->use == FREE)
			return place;
	return NULL;
}

/* NULL: at none. */
static struct place *starting(const struct urxe_extent *pages)
{
	struct place *place = find(pages);

	return place && place->start == (uintptr_t)pages->addr ? place : NULL;
}

bool adopt_next(uint32_t *at, const struct urxe_extent *bytes, struct urxe_extent *pages)
{
	while (++*at < ARENA_PLACES) {
		const struct place *place = &places[*at];

		if (!overlaps(place, bytes, IN_USE))
			continue;
		*pages = (struct urxe_extent){address(place->start), place->length};
		return true;
	}
	return false;
}

/* --- There. */

static bool is_own(const struct mapping *m)
{
	return m->readable && m->writable && !m->executable && !m->shared && !m->inode &&
	       !m->major && !m->minor && m->plain;
}

/* One system call may be in progress for each of the program's threads, and it has one. */
static bool are_own(uint64_t start, uint64_t end)
{
	struct lines maps;
	bool ring = false;
	struct mapping m;

	maps_open(&maps);
	while (maps_next(&maps, &m)) {
		ring |= m.aio;
		if (m.start <= start && start < m.end && is_own(&m))
			start = m.end;
	}
	lines_close(&maps);
	return !ring && start >= end;
}

/* No handler of the program's writes to the pages between their copy and their mapping. */
static void let_signals(bool in)
{
	static sigset_t before;
	sigset_t all;

	if (in) {
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		return;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
}

/* Puts the arena's pages where the program's were, whose mapping goes aside. */
static bool exchange(struct place *place)
{
	void *there = address(place->start);
	void *aside = REAL(mremap)(there, place->length, place->length,
				   MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);

	/* It is of several mappings, or the kernel is older than 5.7. */
	if (aside == MAP_FAILED)
		return false;
	if (REAL(mmap)(there, place->length, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_FIXED | MAP_POPULATE, arena_descriptor(),
		       (off_t)offset_of(place)) == MAP_FAILED) {
		REAL(mremap)
		(aside, place->length, place->length, MREMAP_MAYMOVE | MREMAP_FIXED, there);
		return false;
	}
	/* Of children that are made past fork's handlers: they have it not at all. */
	REAL(madvise)(there, place->length, MADV_DONTFORK);
	REAL(madvise)(aside, place->length, MADV_DONTNEED);
	place->aside = aside;
	return true;
}

static bool move_in(struct place *place)
{
	uint8_t *view = view_of(place);
	bool done;

	if (REAL(madvise)(view, place->length, MADV_POPULATE_WRITE) && errno != EINVAL)
		return false;
	let_signals(false);
	memcpy(view, address(place->start), place->length);
	done = exchange(place);
	let_signals(true);
	return done;
}

/* Of our own frames, as of a program that makes its stacks itself. */
static bool has_stack(uint64_t start, uint64_t length)
{
	return (uintptr_t)__builtin_frame_address(0) - start < length + STACK;
}

static bool is_worth_it(uint64_t length)
{
	return length <= REGION_MAX && moved + length <= ALL_MAX && ever + length <= EVER_MAX &&
	       looks < LOOKS_MAX;
}

/* What costs little first. */
static bool may_move(uint64_t start, uint64_t length)
{
	if (!peer_shares() || atomic_load(&no_more) || !is_worth_it(length) || !fd_owned() ||
	    registered_within(start, length) || has_stack(start, length) || !threads_alone())
		return false;
	looks++;
	return !pinned_any() && are_own(start, start + length) && peer_open_arena() && arena_kept();
}

static struct place *move(uint64_t start, uint64_t length)
{
	struct place *place = find_free();

	if (!place || !may_move(start, length))
		return NULL;
	place->start = start;
	place->length = length;
	if (!move_in(place)) {
		REAL(madvise)(view_of(place), length, MADV_REMOVE);
		return NULL;
	}
	place->use = IN_USE;
	moved += length;
	ever += length;
	return place;
}

bool adopt(const struct urxe_extent *bytes, struct urxe_shared *shared)
{
	uint64_t start = ((uintptr_t)bytes->addr + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	uint64_t end = ((uintptr_t)bytes->addr + bytes->length) & ~(uint64_t)(PAGE - 1);
	const struct place *place = find(bytes);

	if (!place && start < end)
		place = move(start, end - start);
	if (!place)
		return false;
	*shared = (struct urxe_shared){address(place->start), place->length, offset_of(place)};
	return true;
}

/* --- And back. */

/* Mappings of a place, as /proc/self/maps has them. */
struct parts {
	struct mapping at[PARTS_MAX];
	uint32_t n;
	bool astray; /* there are others */
};

static void find_parts(struct parts *parts, const struct place *place)
{
	uint64_t first = offset_of(place);
	struct lines maps;
	struct mapping m;

	parts->n = 0;
	parts->astray = !maps_open(&maps);
	while (maps_next(&maps, &m)) {
		/* What begins with the token has all of the arena: ours, as we see it, or as
		 * our own requester does. */
		if (!m.shared || !arena_is(m.major, m.minor, m.inode) || !m.offset)
			continue;
		if (m.offset >= first + ARENA_PLACE || m.offset + (m.end - m.start) <= first)
			continue;
		if (m.start - place->start == m.offset - first && parts->n < PARTS_MAX)
			parts->at[parts->n++] = m;
		else
			parts->astray = true;
	}
	lines_close(&maps);
}

static int protection(const struct mapping *m)
{
	return (m->readable ? PROT_READ : 0) | (m->writable ? PROT_WRITE : 0) |
	       (m->executable ? PROT_EXEC : 0);
}

/*
 * Where no other thread is, the program's own mapping comes back, with all that it was: it is one
 * with those beside it again.
 */
static bool restore(const struct place *place, const struct mapping *m, const void *bytes)
{
	const int wanted = protection(m);
	uint8_t *own = place->aside + (m->start - place->start);
	uint64_t length = m->end - m->start;

	memcpy(own, bytes, length);
	if (REAL(mremap)(own, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, address(m->start)) ==
	    MAP_FAILED)
		return false;
	if (wanted != (PROT_READ | PROT_WRITE))
		REAL(mprotect)(address(m->start), length, wanted);
	return true;
}

static void own_page(uint8_t *page)
{
#if defined(__x86_64__)
	__asm__ volatile("lock orb $0, %0" : "+m"(*page) : : "cc", "memory");
#else
	__atomic_fetch_or(page, 0, __ATOMIC_SEQ_CST);
#endif
}

/*
 * The mapping becomes a private one, of the same pages: no thread can tell when. Then each page is
 * written to, which makes it one of the program's own. What is not to be written to stays a mapping
 * of the arena's pages.
 */
static bool make_private(const struct place *place, const struct mapping *m)
{
	uint64_t length = m->end - m->start;

	REAL(munmap)(place->aside + (m->start - place->start), length);
	if (!arena_kept() ||
	    REAL(mmap)(address(m->start), length, protection(m), MAP_PRIVATE | MAP_FIXED,
		       arena_descriptor(), (off_t)m->offset) == MAP_FAILED)
		return false;
	for (uint64_t at = m->start; m->readable && m->writable && at < m->end; at += PAGE)
		own_page(address(at));
	return true;
}

/* And the arena's pages go: a hole stays where the program gives its own up. */
static bool divide(const struct place *place, const struct mapping *m)
{
	if (!make_private(place, m))
		return false;
	if (m->readable && m->writable)
		REAL(madvise)(arena_at(m->offset), m->end - m->start, MADV_REMOVE);
	return true;
}

static bool is_alone(const struct place *place)
{
	return threads_alone() && !has_stack(place->start, place->length);
}

static void move_out(struct place *place)
{
	bool alone = is_alone(place), all = true;
	struct parts parts;

	find_parts(&parts, place);
	let_signals(false);
	for (uint32_t i = 0; i < parts.n; i++)
		all &= alone ? restore(place, &parts.at[i], arena_at(parts.at[i].offset))
			     : divide(place, &parts.at[i]);
	let_signals(true);
	if (!all)
		log_warning("memory that was registered stays shared: %s", strerror(errno));
	place->use = SPENT;
	if (!alone)
		atomic_fetch_add(&adopt_divided, 1);
	if (!alone || !all || parts.astray)
		return;
	REAL(madvise)(view_of(place), place->length, MADV_REMOVE);
	place->use = FREE;
}

void adopt_return(const struct urxe_extent *pages)
{
	struct place *place = starting(pages);

	if (!place)
		return;
	peer_recall();
	if (pinned_any() || !(is_alone(place) || arena_kept())) {
		place->use = KEPT;
		atomic_fetch_add(&adopt_kept, 1);
		return;
	}
	move_out(place);
	moved -= place->length;
}

bool adopt_may_grow(const void *start, uint64_t length)
{
	const uint64_t first = (uintptr_t)start;
	bool may = true;
	struct lines maps;
	struct mapping m;

	if (!atomic_load(&adopt_divided) || length <= ARENA_PLACE - REGION_MAX)
		return true;
	maps_open(&maps);
	while (maps_next(&maps, &m))
		if (m.arena && m.start <= first && first < m.end)
			may = (m.offset + first - m.start) % ARENA_PLACE + length <= ARENA_PLACE;
	lines_close(&maps);
	return may;
}

static void empty(uint64_t from, uint64_t to, int protection)
{
	REAL(mmap)
	(address(from), to - from, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* Where one of the place's mappings is still what it was. */
static void give_up(const struct place *place, uint64_t first, uint64_t end)
{
	struct parts parts;

	find_parts(&parts, place);
	for (uint32_t i = 0; i < parts.n; i++) {
		uint64_t from = parts.at[i].start > first ? parts.at[i].start : first;
		uint64_t to = parts.at[i].end < end ? parts.at[i].end : end;

		if (from < to)
			empty(from, to, protection(&parts.at[i]));
	}
}

void adopt_give_up(const struct urxe_extent *bytes)
{
	uint64_t first = (uintptr_t)bytes->addr;

	for (struct place *place = places + 1; place < places + ARENA_PLACES; place++)
		if (overlaps(place, bytes, KEPT))
			give_up(place, first, first + bytes->length);
}

/* All that is kept. */
static void advise(int advice)
{
	for (struct place *place = places + 1; place < places + ARENA_PLACES; place++)
		if (place->use == KEPT)
			REAL(madvise)(address(place->start), place->length, advice);
}

void adopt_before_fork(void)
{
	advise(MADV_DOFORK);
}

void adopt_after_fork(void)
{
	advise(MADV_DONTFORK);
}

void adopt_release(const struct urxe_extent *bytes)
{
	struct urxe_extent pages;
	uint32_t at = 0;

	while (adopt_next(&at, bytes, &pages))
		if (!registered_within((uintptr_t)pages.addr, pages.length))
			adopt_return(&pages);
}

void adopt_no_more(void)
{
	atomic_store(&no_more, true);
}

void adopt_done(void)
{
	if (atomic_load(&adopt_kept))
		return;
	memset(places, 0, sizeof(places));
	moved = 0;
	arena_close();
}

/* Without the parent's descriptor, which may be closed, and its view, which is not here. */
static void restore_in_child(const struct place *place, const struct mapping *m)
{
	if (!m->readable)
		REAL(mprotect)(address(m->start), m->end - m->start, PROT_READ);
	restore(place, m, address(m->start));
}

void adopt_in_child(void)
{
	struct parts parts;

	for (struct place *place = places + 1; place < places + ARENA_PLACES; place++) {
		if (place->use != KEPT)
			continue;
		find_parts(&parts, place);
		for (uint32_t i = 0; i < parts.n; i++)
			restore_in_child(place, &parts.at[i]);
	}
	atomic_store(&adopt_kept, 0);
	memset(places, 0, sizeof(places));
	moved = 0;
	arena_in_child();
}
