/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Process-private locks in registered memory, while a peer writes beside them. */
#include <err.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "region.h"
#include "row.h"

#define WAIT_S 20

/* In the second page of the region. The peer writes to this page before the test, and to the others
 * during it. */
struct shared {
	_Atomic uint32_t word;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	pthread_barrier_t barrier;
	sem_t semaphore;
	bool ready;
};

static struct region region, page;
static bool registers_late; /* the region is registered after the waiter went to sleep */
static struct shared *shared;
static atomic_int asleep; /* the waiter's thread ID, just before it waits */

static void open_shared(void)
{
	region = (struct region){.bytes = region_reserve(MIB), .size = MIB};
	memset(region.bytes, 1, MIB);
	page = (struct region){.bytes = region.bytes + 4 * PAGE, .size = PAGE};
	if (!registers_late) {
		region = region_register(region.bytes, MIB);
		region_fill(&region, 1);
		page = region_register(page.bytes, PAGE);
		region_fill(&page, 2);
	}
	shared = (struct shared *)page.bytes;
	memset(shared, 0, sizeof(*shared));
	asleep = 0;
}

/* The peer writes around the page of the lock, whose waiter sleeps. */
static void write_around(void)
{
	struct region before, behind;

	if (registers_late)
		region = region_register(region.bytes, MIB);
	before = region_register(region.bytes, 4 * PAGE);
	behind = region_register(region.bytes + 5 * PAGE, MIB - 5 * PAGE);

	region_fill(&before, 3);
	region_fill(&behind, 4);
	region_deregister(&before);
	region_deregister(&behind);
}

static void close_shared(void)
{
	region_deregister(&page);
	region_unmap(&region);
}

static struct timespec deadline(void)
{
	struct timespec at;

	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_sec += WAIT_S;
	return at;
}

static pthread_t start(void *(*run)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL))
		errx(1, "pthread_create");
	return thread;
}

static void announce(void)
{
	asleep = (int)syscall(SYS_gettid);
}

/* Waits until the waiter has had time to sleep in the kernel; an earlier wake-up would prove less.
 */
static void await_sleeper(void)
{
	while (!asleep)
		;
	usleep(50000);
}

static const char *join(pthread_t thread)
{
	struct timespec at = deadline();
	void *result;

	if (pthread_timedjoin_np(thread, &result, &at))
		errx(1, "the waiter is not woken");
	return result;
}

/* --- A plain futex */

static void *wait_on_word(void *unused)
{
	struct timespec timeout = {.tv_sec = WAIT_S};

	(void)unused;
	announce();
	while (!shared->word)
		if (syscall(SYS_futex, &shared->word, FUTEX_WAIT_PRIVATE, 0, &timeout, NULL, 0) &&
		    errno == ETIMEDOUT)
			return "timed out";
	return "woken";
}

static void private_futex(uintptr_t unused)
{
	pthread_t thread;

	(void)unused;
	open_shared();
	thread = start(wait_on_word);
	await_sleeper();
	write_around();
	shared->word = 1;
	say("FUTEX_WAKE returns %ld",
	    syscall(SYS_futex, &shared->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	say("the waiter is %s", join(thread));
	close_shared();
}

/* A peer's WRITE changes the word; the program itself wakes the waiter. */
static void futex_word_of_peer(uintptr_t unused)
{
	pthread_t thread;

	(void)unused;
	open_shared();
	thread = start(wait_on_word);
	await_sleeper();
	region_fill(&page, 8);
	say("FUTEX_WAKE returns %ld",
	    syscall(SYS_futex, &shared->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	say("the waiter is %s, the word %#x", join(thread), shared->word);
	close_shared();
}

/* --- Mutexes */

static const char *name_result(int rc)
{
	return rc == 0 ? "locked" : rc == EOWNERDEAD ? "owner dead" : strerror(rc);
}

static void *lock_mutex(void *unused)
{
	struct timespec at = deadline();
	const char *result;

	(void)unused;
	announce();
	result = name_result(pthread_mutex_timedlock(&shared->mutex, &at));
	pthread_mutex_consistent(&shared->mutex);
	pthread_mutex_unlock(&shared->mutex);
	return (void *)result;
}

static atomic_bool may_die;

static void *lock_and_die(void *unused)
{
	if (pthread_mutex_lock(&shared->mutex))
		errx(1, "pthread_mutex_lock");
	shared->ready = true;
	while (!may_die)
		;
	return unused;
}

static void init_mutex(int robust, int protocol)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	if (pthread_mutexattr_setrobust(&attr, robust) ||
	    pthread_mutexattr_setprotocol(&attr, protocol) ||
	    pthread_mutex_init(&shared->mutex, &attr))
		errx(1, "pthread_mutex_init");
}

/* `protocol`: PTHREAD_PRIO_NONE or _INHERIT. */
static void robust_mutex(uintptr_t protocol)
{
	pthread_t owner, waiter;

	open_shared();
	init_mutex(PTHREAD_MUTEX_ROBUST, (int)protocol);
	may_die = false;
	owner = start(lock_and_die);
	while (!*(volatile bool *)&shared->ready)
		;
	waiter = start(lock_mutex);
	await_sleeper();
	write_around();
	may_die = true;
	join(owner);
	say("the waiter sees: %s", join(waiter));
	close_shared();
}

static void contended_mutex(uintptr_t protocol)
{
	pthread_t waiter;

	open_shared();
	init_mutex(PTHREAD_MUTEX_STALLED, (int)protocol);
	if (pthread_mutex_lock(&shared->mutex))
		errx(1, "pthread_mutex_lock");
	waiter = start(lock_mutex);
	await_sleeper();
	write_around();
	say("unlock returns %d", pthread_mutex_unlock(&shared->mutex));
	say("the waiter sees: %s", join(waiter));
	close_shared();
}

/* --- Other objects of POSIX */

static void *wait_on_condition(void *unused)
{
	struct timespec at = deadline();
	int rc = 0;

	(void)unused;
	pthread_mutex_lock(&shared->mutex);
	announce();
	while (!shared->ready && !rc)
		rc = pthread_cond_timedwait(&shared->cond, &shared->mutex, &at);
	pthread_mutex_unlock(&shared->mutex);
	return (void *)name_result(rc);
}

static void condition(uintptr_t unused)
{
	pthread_t waiter;

	(void)unused;
	open_shared();
	init_mutex(PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
	pthread_cond_init(&shared->cond, NULL);
	waiter = start(wait_on_condition);
	await_sleeper();
	write_around();
	pthread_mutex_lock(&shared->mutex);
	shared->ready = true;
	pthread_cond_signal(&shared->cond);
	pthread_mutex_unlock(&shared->mutex);
	say("the waiter sees: %s", join(waiter));
	close_shared();
}

static void *wait_on_semaphore(void *unused)
{
	struct timespec at = deadline();

	(void)unused;
	announce();
	return (void *)name_result(sem_timedwait(&shared->semaphore, &at) ? errno : 0);
}

static void semaphore(uintptr_t unused)
{
	pthread_t waiter;

	(void)unused;
	open_shared();
	sem_init(&shared->semaphore, 0, 0);
	waiter = start(wait_on_semaphore);
	await_sleeper();
	write_around();
	sem_post(&shared->semaphore);
	say("the waiter sees: %s", join(waiter));
	close_shared();
}

static void *wait_on_barrier(void *unused)
{
	(void)unused;
	announce();
	pthread_barrier_wait(&shared->barrier);
	return "passed";
}

static void barrier(uintptr_t unused)
{
	pthread_t waiter;

	(void)unused;
	open_shared();
	pthread_barrier_init(&shared->barrier, NULL, 2);
	waiter = start(wait_on_barrier);
	await_sleeper();
	write_around();
	pthread_barrier_wait(&shared->barrier);
	say("the waiter has %s", join(waiter));
	close_shared();
}

static void robust_mutex_late(uintptr_t protocol)
{
	registers_late = true;
	robust_mutex(protocol);
}

static void contended_mutex_late(uintptr_t protocol)
{
	registers_late = true;
	contended_mutex(protocol);
}

static void private_futex_late(uintptr_t unused)
{
	registers_late = true;
	private_futex(unused);
}

static void semaphore_late(uintptr_t unused)
{
	registers_late = true;
	semaphore(unused);
}

const struct row futex_rows[] = {
	{"private_futex", private_futex, 0},
	{"futex_word_written_by_the_peer", futex_word_of_peer, 0},
	{"mutex", contended_mutex, PTHREAD_PRIO_NONE},
	{"pi_mutex", contended_mutex, PTHREAD_PRIO_INHERIT},
	{"robust_mutex", robust_mutex, PTHREAD_PRIO_NONE},
	{"robust_pi_mutex", robust_mutex, PTHREAD_PRIO_INHERIT},
	{"condition_variable", condition, 0},
	{"semaphore", semaphore, 0},
	{"barrier", barrier, 0},
	{"private_futex_registered_while_waited_for", private_futex_late, 0},
	{"mutex_registered_while_waited_for", contended_mutex_late, PTHREAD_PRIO_NONE},
	{"pi_mutex_registered_while_waited_for", contended_mutex_late, PTHREAD_PRIO_INHERIT},
	{"robust_mutex_registered_while_waited_for", robust_mutex_late, PTHREAD_PRIO_NONE},
	{"robust_pi_mutex_registered_while_waited_for", robust_mutex_late, PTHREAD_PRIO_INHERIT},
	{"semaphore_registered_while_waited_for", semaphore_late, 0},
	{0},
};
