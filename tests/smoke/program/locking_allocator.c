/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An allocator with one lock, which its handlers hold during fork. A constructor installs them, as
 * in gperftools.
 */
#include <pthread.h>
#include <stdlib.h>

/* glibc's own functions. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *memory);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void take(void)
{
	pthread_mutex_lock(&lock);
}

static void release(void)
{
	pthread_mutex_unlock(&lock);
}

void *malloc(size_t size)
{
	void *memory;

	take();
	memory = __libc_malloc(size);
	release();
	return memory;
}

void *calloc(size_t n, size_t size)
{
	void *memory;

	take();
	memory = __libc_calloc(n, size);
	release();
	return memory;
}

void *realloc(void *old, size_t size)
{
	void *memory;

	take();
	memory = __libc_realloc(old, size);
	release();
	return memory;
}

void free(void *memory)
{
	take();
	__libc_free(memory);
	release();
}

static __attribute__((constructor)) void install_fork_handlers(void)
{
	pthread_atfork(take, release, release);
}
