/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wake-ups of the engine thread. The test plays the thread. */
#include "poll/engine_wake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#define LATER UINT64_C(1000000)

ssize_t __real_write(int fd, const void *data, size_t n);
ssize_t __wrap_write(int fd, const void *data, size_t n);

/* The thread wakes up at once, runs, and sleeps again before the write returns. */
ssize_t __wrap_write(int fd, const void *data, size_t n)
{
	if (fd != adapter_thread.wake_fd)
		return __real_write(fd, data, n);
	adapter_thread.wake_at = LATER;
	return (ssize_t)n;
}

/* Otherwise other threads believe that the thread is awake, and do not wake it for its work. */
static void the_next_sleep_of_a_woken_thread_is_known(void **state)
{
	(void)state;
	adapter_thread.wake_fd = -2;
	adapter_thread.wake_at = 1;
	engine_wake();
	assert_true(adapter_thread.wake_at == LATER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_sleep_of_a_woken_thread_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
