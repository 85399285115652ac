/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A thread that waits within a function of the provider double until the test lets it go on. */
#ifndef URXE_TESTS_UNIT_VERBS_SLOW_THREAD_H
#define URXE_TESTS_UNIT_VERBS_SLOW_THREAD_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_hca.h"

/* After fake_hca_init(). */
static inline void slow_thread_init(void)
{
	sem_init(&fake_hca.delayed, 0, 0);
	sem_init(&fake_hca.go_on, 0, 0);
}

/* The thread has entered that function of the HCA, which does not return yet. */
static inline pthread_t start_slow(enum fake_hca_delay function, void *(*call)(void *))
{
	pthread_t thread;

	fake_hca.delays = function;
	assert_int_equal(pthread_create(&thread, NULL, call, NULL), 0);
	sem_wait(&fake_hca.delayed);
	fake_hca.delays = FAKE_HCA_PROMPT;
	return thread;
}

static inline void let_go_on(pthread_t thread)
{
	sem_post(&fake_hca.go_on);
	pthread_join(thread, NULL);
}

#endif
