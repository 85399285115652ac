/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "arena.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARENA_AT   ((uint8_t *)0x200000000000)
#define ARENA_SIZE ((size_t)1 << 30)
#define BOOT_SIZE  ((size_t)64 << 20)
#define CLASSES    40

/* In front of each block. */
struct block {
	uint32_t class; /* log2 of the bytes with this header; 0: never freed */
	uint32_t reserved;
	size_t size;
};

struct arena {
	size_t used, size;
	void *root;
	struct block *free[CLASSES]; /* the next one is behind the header */
};

static struct {
	struct arena arena;
	uint8_t bytes[BOOT_SIZE];
} boot = {.arena = {.used = sizeof(struct arena), .size = sizeof(boot)}};
static struct arena *current = &boot.arena;
static atomic_flag busy = ATOMIC_FLAG_INIT;

static void *map_arena(void)
{
	void *at = mmap(ARENA_AT, ARENA_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (at != ARENA_AT)
		err(1, "mmap");
	return at;
}

void arena_enter(void)
{
	struct arena *arena = map_arena();

	arena->used = sizeof(*arena);
	arena->size = ARENA_SIZE;
	current = arena;
}

/* --- Allocation. */

static void lock_arena(void)
{
	while (atomic_flag_test_and_set(&busy))
		;
}

static void unlock_arena(void)
{
	atomic_flag_clear(&busy);
}

/* With the lock: bytes that were never used, whose address behind the header is aligned. */
static struct block *take_new(size_t bytes, size_t align)
{
	uintptr_t at = (uintptr_t)current + current->used + sizeof(struct block);
	size_t end;

	at = (at + align - 1) & ~(align - 1);
	end = at - (uintptr_t)current + bytes - sizeof(struct block);
	if (end > current->size)
		return NULL;
	current->used = end;
	return (struct block *)at - 1;
}

static struct block *take_block(uint32_t class)
{
	struct block *block = current->free[class];

	if (block)
		current->free[class] = *(struct block **)(block + 1);
	else
		block = take_new((size_t)1 << class, 16);
	return block;
}

static void *take(size_t size, size_t align)
{
	size_t bytes = size + sizeof(struct block);
	uint32_t class = 5;
	struct block *block;

	while ((size_t)1 << class < bytes)
		class ++;
	lock_arena();
	if (align > 16 || class >= CLASSES) {
		block = take_new(bytes, align > 16 ? align : 16);
		class = 0;
	} else {
		block = take_block(class);
	}
	unlock_arena();
	if (!block) {
		errno = ENOMEM;
		return NULL;
	}
	*block = (struct block){.class = class, .size = size};
	return block + 1;
}

static bool is_current(const void *p)
{
	uintptr_t at = (uintptr_t)p - (uintptr_t)current;

	return at < current->size;
}

void *malloc(size_t size)
{
	return take(size, 16);
}

void free(void *p)
{
	struct block *block = (struct block *)p - 1;

	if (!p || !is_current(p) || !block->class)
		return;
	lock_arena();
	*(struct block **)p = current->free[block->class];
	current->free[block->class] = block;
	unlock_arena();
}

void *calloc(size_t n, size_t size)
{
	size_t bytes;
	void *p = __builtin_mul_overflow(n, size, &bytes) ? NULL : take(bytes, 16);

	return p ? memset(p, 0, bytes) : NULL;
}

void *realloc(void *p, size_t size)
{
	void *grown = take(size, 16);
	size_t old = p ? ((struct block *)p - 1)->size : 0;

	if (grown && p) {
		memcpy(grown, p, old < size ? old : size);
		free(p);
	}
	return grown;
}

void *aligned_alloc(size_t align, size_t size)
{
	return take(size, align);
}

void *memalign(size_t align, size_t size);
void *memalign(size_t align, size_t size)
{
	return take(size, align);
}

int posix_memalign(void **p, size_t align, size_t size)
{
	*p = take(size, align);
	return *p ? 0 : ENOMEM;
}

/* --- Files. */

void arena_save(const char *path, void *root)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t at = 0;

	current->root = root;
	while (fd >= 0 && at < current->used) {
		ssize_t n = write(fd, (uint8_t *)current + at, current->used - at);

		if (n <= 0)
			err(1, "%s", path);
		at += (size_t)n;
	}
	if (fd < 0 || close(fd))
		err(1, "%s", path);
}

void *arena_load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct arena *arena = map_arena();
	size_t at = 0;
	ssize_t n;

	if (fd < 0)
		err(1, "%s", path);
	while ((n = read(fd, (uint8_t *)arena + at, ARENA_SIZE - at)) > 0)
		at += (size_t)n;
	close(fd);
	current = arena;
	return arena->root;
}
