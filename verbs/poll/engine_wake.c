/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "poll/engine_wake.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include <hca/hca.h>

#include "adapter/adapter.h"
#include "poll/polling.h"
#include "poll/thread_sleep.h"
#include "process/cancellation.h"
#include "process/emulated_fd.h"
#include "process/log.h"

struct engine_thread adapter_thread;
atomic_bool adapter_main_thread_ended;

static struct engine_thread *const self = &adapter_thread;

void engine_wake(void)
{
	const int cancel = cancellation_disable();
	const uint64_t one = 1;

	/* Cleared before the write: the engine thread, which the write wakes, may already sleep
	 * again and have set wake_at. */
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

static bool is_hca_dead(void)
{
	return adapter.hca.hca && hca_is_dead(adapter.hca.hca);
}

void engine_wake_for_work(void)
{
	/* The thread has to watch a channel's socket, or to stop using the NIC or the HCA. */
	bool at_once = adapter.channel_waits || vnic_driver_broken(adapter.nic) || is_hca_dead();

	/* Without a daemon and a direct uplink the engine's time stands still. */
	if (!adapter_running() || !self->wake_at)
		return;
	if (at_once)
		engine_wake();
	/* A program with the poll grant meets the deadlines by its polls, or the grant ends. */
	else if (adapter_polling.state != POLL_PROGRAM)
		thread_sleep_shorten();
}

int engine_wake_fd_within(unsigned int first, unsigned int last)
{
	const int fd = self->wake_fd;

	if (fd <= 0 || (unsigned int)fd < first || (unsigned int)fd > last)
		return -1;
	/* wake_fd is that of the parent's thread in a child of vfork (!fd_is_owner()), and in one
	 * that a signal handler has forked while its thread was inside the adapter (orphaned). */
	return fd_is_owner() && !adapter.lock.orphaned ? fd : -1;
}
