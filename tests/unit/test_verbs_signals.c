/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Signals and cancellation that wait for the engine's work, and do what they would have done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "signals.h"

static volatile sig_atomic_t handled;

static void handle(int number)
{
	(void)number;
	handled++;
}

/* As the hooked sigaction does. */
static void set_action(int number, void (*handler)(int), int flags)
{
	const struct sigaction act = {.sa_handler = handler, .sa_flags = flags};

	signals_action(&act);
	assert_int_equal(sigaction(number, &act, NULL), 0);
}

static bool blocks(int number)
{
	sigset_t mask;

	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
	return sigismember(&mask, number);
}

/* The first test: nothing was to be handled yet. */
static void test_no_handler(void **state)
{
	(void)state;
	set_action(SIGUSR1, SIG_IGN, 0);
	signals_hold();
	assert_false(blocks(SIGUSR1));
	assert_false(signals_wait());
	assert_false(signals_let());
	set_action(SIGUSR1, SIG_DFL, 0);
}

static void test_interrupts(void **state)
{
	(void)state;
	handled = 0;
	set_action(SIGUSR1, handle, 0);
	signals_hold();
	assert_false(signals_wait());
	raise(SIGUSR1);
	assert_int_equal(handled, 0);
	assert_true(signals_wait());
	assert_true(signals_let());
	assert_int_equal(handled, 1);
	assert_false(blocks(SIGUSR1));
	signals_hold();
	assert_false(signals_wait());
	assert_false(signals_let());
}

static void test_restarts(void **state)
{
	(void)state;
	handled = 0;
	set_action(SIGUSR1, handle, SA_RESTART);
	set_action(SIGUSR2, handle, 0);
	signals_hold();
	raise(SIGUSR1);
	assert_true(signals_wait());
	assert_false(signals_let());
	assert_int_equal(handled, 1);
	signals_hold();
	raise(SIGUSR1);
	raise(SIGUSR2);
	assert_true(signals_let());
	assert_int_equal(handled, 3);
}

/* What the program blocks waits on, and is none of ours. */
static void test_blocked(void **state)
{
	sigset_t one;

	(void)state;
	handled = 0;
	set_action(SIGUSR1, handle, 0);
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &one, NULL), 0);
	signals_hold();
	raise(SIGUSR1);
	assert_false(signals_wait());
	assert_false(signals_let());
	assert_true(blocks(SIGUSR1));
	assert_int_equal(handled, 0);
	assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &one, NULL), 0);
	assert_int_equal(handled, 1);
}

/* The engine's own work may fault, and what becomes of that is fault.h's. */
static void test_faults(void **state)
{
	(void)state;
	signals_hold();
	assert_true(blocks(SIGTERM));
	assert_false(blocks(SIGSEGV));
	assert_false(blocks(SIGBUS));
	assert_false(signals_let());
}

static sigjmp_buf out;

static void leave(int number)
{
	siglongjmp(out, number);
}

/* What was held is not, also where a handler never returns. */
static void test_left(void **state)
{
	volatile bool left = false;
	int cancel;

	(void)state;
	set_action(SIGUSR1, leave, 0);
	if (!sigsetjmp(out, 1)) {
		signals_hold();
		raise(SIGUSR1);
		left = true;
		signals_let();
		fail();
	}
	assert_true(left);
	assert_false(blocks(SIGUSR1));
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel);
	assert_int_equal(cancel, PTHREAD_CANCEL_ENABLE);
}

static int ends[2];

static void *hold_and_write(void *unused)
{
	signals_hold();
	pthread_cancel(pthread_self());
	assert_int_equal(write(ends[1], "a", 1), 1); /* a cancellation point */
	signals_let();
	if (write(ends[1], "b", 1) != 1)
		return NULL;
	return unused;
}

static void test_cancelled(void **state)
{
	pthread_t thread;
	void *result;
	char got[3] = "";

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pthread_create(&thread, NULL, hold_and_write, NULL), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(read(ends[0], got, 2), 1);
	assert_string_equal(got, "a");
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_handler), cmocka_unit_test(test_interrupts),
		cmocka_unit_test(test_restarts),   cmocka_unit_test(test_blocked),
		cmocka_unit_test(test_faults),     cmocka_unit_test(test_left),
		cmocka_unit_test(test_cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
