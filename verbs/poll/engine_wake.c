/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "poll/engine_wake.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "adapter/adapter.h"
#include "poll/polling.h"
#include "poll/thread_sleep.h"
#include "process/cancellation.h"
#include "process/libc_real.h"
#include "process/log.h"
#include "process/own_fd.h"

struct engine_thread adapter_thread;

static struct engine_thread *const self = &adapter_thread;

void engine_wake(void)
{
	const int cancel = cancellation_disable();
	const uint64_t one = 1;

	/* Before the write: a thread that has woken up by it may sleep again, and set wake_at. */
	self->wake_at = 0;
	if (write(self->wake_fd, &one, sizeof(one)) < 0)
		log_error("cannot wake the engine thread");
	cancellation_restore(cancel);
}

void engine_wake_for_grant(uint64_t now)
{
	if (self->wake_at > now + self->look)
		engine_wake();
}

void engine_wake_for_work(void)
{
	/* So that the thread watches the channel. */
	bool at_once = adapter.channel_waits || vnic_driver_broken(adapter.nic);

	/* Without a daemon and a direct uplink the engine's time stands still. */
	if (!adapter_running() || !self->wake_at)
		return;
	if (at_once)
		engine_wake();
	/* A program that polls meets the deadlines itself, or loses the grant. */
	else if (adapter_polling.state != POLL_PROGRAM)
		thread_sleep_shorten();
}

static bool is_within(int fd, unsigned int first, unsigned int last)
{
	return fd >= 0 && (unsigned int)fd >= first && (unsigned int)fd <= last;
}

/*
 * A low number: high ones may be those of other descriptors of the library that the program has
 * closed, and that the library closes once more with the device. -1: no number is free.
 */
static int duplicate_outside(int fd, unsigned int first, unsigned int last)
{
	int copy = REAL(fcntl)(fd, F_DUPFD_CLOEXEC, (void *)0);

	if (!is_within(copy, first, last))
		return copy;
	REAL(close)(copy);
	if (last >= INT_MAX)
		return -1;
	return REAL(fcntl)(fd, F_DUPFD_CLOEXEC, (void *)((uintptr_t)last + 1));
}

/* 0: the process has had no thread yet. A child of vfork has descriptors of its own. */
void engine_wake_keep(unsigned int first, unsigned int last)
{
	int fd = self->wake_fd, copy, saved = errno;

	if (fd <= 0 || !is_within(fd, first, last) || !fd_is_owner())
		return;
	copy = duplicate_outside(fd, first, last);
	/* Another thread has ended the engine thread, or moved the eventfd. */
	if (copy >= 0 && !atomic_compare_exchange_strong(&self->wake_fd, &fd, copy))
		REAL(close)(copy);
	errno = saved;
}
