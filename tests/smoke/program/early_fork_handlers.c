/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A library whose constructor installs handlers of fork, as in UCX. */
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void take(void)
{
	pthread_mutex_lock(&lock);
}

static void release(void)
{
	pthread_mutex_unlock(&lock);
}

static __attribute__((constructor)) void install_fork_handlers(void)
{
	pthread_atfork(take, release, release);
}
