/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "pace.h"

#include <err.h>
#include <sys/mman.h>
#include <time.h>

#include "two.h"

#define COUNTED (PACE_MESSAGES - PACE_MESSAGES / 10)

enum { SENDER, RECEIVER };

struct pace *pace_create(double period)
{
	struct pace *pace = mmap(NULL, sizeof(*pace), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (pace == MAP_FAILED)
		err(1, "cannot share memory");
	pace->period = period;
	pace->next = bench_now();
	return pace;
}

/* Processor time of all threads of this process. */
static double worked(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void count(struct pace *pace, int who, uint32_t messages)
{
	if (messages == PACE_MESSAGES - COUNTED)
		pace->start[who] = worked();
	else if (messages == PACE_MESSAGES)
		pace->took[who] = worked() - pace->start[who];
}

static void sleep_until(double when)
{
	struct timespec time = {.tv_sec = (time_t)when};

	time.tv_nsec = (long)((when - (double)time.tv_sec) * 1e9);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

void pace_wait(struct pace *pace)
{
	do {
		/*
		 * If the receiver is late, the sender omits a message rather than send two at once.
		 */
		pace->next += pace->period;
		sleep_until(pace->next);
	} while (pace->heard != pace->sent);
}

void pace_send(struct pace *pace)
{
	count(pace, SENDER, ++pace->sent);
}

void pace_hear(struct pace *pace)
{
	count(pace, RECEIVER, pace->heard + 1);
	pace->heard++;
}

double pace_share(const struct pace *pace)
{
	return (pace->took[SENDER] + pace->took[RECEIVER]) / (COUNTED * pace->period);
}
