/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "silence.h"

#include <err.h>
#include <sys/mman.h>
#include <time.h>

#include "two.h"

struct silence *silence_create(void)
{
	struct silence *silence = mmap(NULL, sizeof(*silence), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (silence == MAP_FAILED)
		err(1, "cannot share memory");
	return silence;
}

void silence_keep(const struct silence *silence)
{
	const struct timespec time = {0, 1000000};

	do
		nanosleep(&time, NULL);
	while (silence->heard != silence->sent);
}

void silence_end(struct silence *silence)
{
	silence->sent++;
	silence->at = bench_now();
}

void silence_heard(struct silence *silence, struct laps *laps)
{
	laps_since(laps, silence->at);
	silence->heard++;
}
