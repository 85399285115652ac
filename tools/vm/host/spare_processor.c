/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/host/spare_processor.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "common/clock.h"

#define ASK_NS NS_PER_MS

void spare_processor_open(struct spare_processor *s)
{
	cpu_set_t set;

	*s = (struct spare_processor){.loadavg = open("/proc/loadavg", O_RDONLY | O_CLOEXEC)};
	if (!sched_getaffinity(0, sizeof(set), &set))
		s->processors = (uint32_t)CPU_COUNT(&set);
}

void spare_processor_close(struct spare_processor *s)
{
	if (s->loadavg >= 0)
		close(s->loadavg);
	s->loadavg = -1;
}

uint32_t spare_processor_runnable(const char *line)
{
	uint32_t runnable;

	return sscanf(line, "%*f %*f %*f %u/", &runnable) == 1 ? runnable : 0;
}

static bool ask(const struct spare_processor *s)
{
	char line[128];
	uint32_t runnable;
	ssize_t n = s->loadavg < 0 ? -1 : pread(s->loadavg, line, sizeof(line) - 1, 0);

	if (n <= 0)
		return false;
	line[n] = '\0';
	runnable = spare_processor_runnable(line);
	return runnable && runnable <= s->processors;
}

bool spare_processor_exists(struct spare_processor *s, uint64_t now)
{
	if (now - s->answered_at >= ASK_NS) {
		s->answered_at = now;
		s->spare = ask(s);
	}
	return s->spare;
}
