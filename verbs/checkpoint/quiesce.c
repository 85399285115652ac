/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The checkpointer's thread holds adapter_open_lock, adapter.lock, and the locks of all open
 * rdma_cm devices from quiesce_begin to quiesce_end: a process whose locks are held is at a
 * consistent point, and every other thread that would change something waits for them. The thread
 * takes all locks by attempts, so their order cannot lead to a deadlock. If the process has no
 * daemon, or the lock of an rdma_cm device is not free within 1 ms, the thread frees all locks
 * before the next attempt.
 */
#include "checkpoint/quiesce.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "adapter/adapter.h"
#include "checkpoint/checkpoint_save.h"
#include "checkpoint/image/checkpoint_error.h"
#include "checkpoint/rdmacm_freeze.h"
#include "daemon/adapter_hca.h"
#include "engine/clock.h"
#include "objects/verbs_mr.h"
#include "poll/due_events.h"
#include "poll/engine_run.h"
#include "poll/engine_wake.h"
#include "queues/publish.h"
#include <samehost/peer.h>

/* Pause between two attempts to take a lock, or to stop the engine. */
#define PAUSE_NS 20000
/* Pause between two attempts to stop the device: other threads may take all locks meanwhile. */
#define LONG_PAUSE_NS 1000000
/* Time in which urxed has to answer the thaw of its rdma_cm devices. */
#define THAW_MS 1000

static struct process_save saved;
static struct frozen_devices rdmacm;
static atomic_bool quiesced;
static pthread_t holder; /* the thread that holds the locks; valid while `quiesced` */
static pid_t process;    /* that thread's process: a forked child has these variables, too */

static uint64_t deadline_after(uint32_t ms)
{
	return clock_monotonic() + ms * UINT64_C(1000000);
}

static void pause_until_next_attempt(long ns)
{
	const struct timespec pause = {.tv_nsec = ns};

	nanosleep(&pause, NULL);
}

/* Takes adapter_open_lock, by attempts. 0, or -ETIMEDOUT at the deadline. */
static int lock_opens(uint64_t deadline)
{
	int rc;

	while ((rc = pthread_mutex_trylock(&adapter_open_lock)) == EBUSY &&
	       clock_monotonic() < deadline)
		pause_until_next_attempt(PAUSE_NS);
	if (rc == EBUSY)
		return checkpoint_fail(-ETIMEDOUT, "a thread opens or closes the device, or the "
						   "engine thread attaches to urxed");
	return 0;
}

/* Takes adapter.lock by attempts, because a thread that waits in lock_take() could not give up.
 * False: the lock was not free until the deadline. */
static bool lock_adapter(uint64_t deadline)
{
	while (!adapter_trylock()) {
		if (clock_monotonic() >= deadline)
			return false;
		pause_until_next_attempt(PAUSE_NS);
	}
	return true;
}

static int fail_to_lock_adapter(void)
{
	return checkpoint_fail(-ETIMEDOUT, "a thread runs the engine all the time");
}

/* With adapter.lock. 0; -EIO: the device is dead; -EBUSY: the engine thread looks for another
 * daemon. */
static int check_daemon(void)
{
	if (adapter.dead)
		return checkpoint_fail(-EIO, "the device is dead");
	if (adapter.reconnecting)
		return checkpoint_fail(-EBUSY, "no urxed runs");
	return 0;
}

/* With adapter_open_lock. 0; -ENODEV: the process has no open device; -ETIMEDOUT: adapter.lock was
 * not free until the deadline; or an error of check_daemon(). */
static int check_adapter(uint64_t deadline)
{
	int rc;

	if (!adapter.dev)
		return checkpoint_fail(-ENODEV, "the process has no open device");
	if (!lock_adapter(deadline))
		return fail_to_lock_adapter();
	rc = check_daemon();
	adapter_unlock();
	return rc;
}

/* --- Queue pairs of the HCA. */

static int refuse_hca(const struct urxe_offload_refusal *refusal)
{
	/* Without a next hop the engine cannot execute the queue pair, so --way engine would not
	 * help. */
	const char *with = refusal->reason == URXE_OFFLOAD_NO_NEXT_HOP
				   ? ""
				   : "; with --way engine the HCA executes no queue pair";

	if (!refusal->qpn)
		return checkpoint_fail(-EOPNOTSUPP,
				       "the engine cannot go on with the HCA's queue "
				       "pairs: %s%s",
				       adapter_hca_refusal(refusal), with);
	return checkpoint_fail(-EOPNOTSUPP,
			       "queue pair %#x: the engine cannot go on with it in place of the "
			       "HCA: %s%s",
			       refusal->qpn, adapter_hca_refusal(refusal), with);
}

/* With adapter.lock: the engine takes over the HCA's queue pairs. 0; -EBUSY: another attempt may
 * succeed; -EOPNOTSUPP: the engine cannot go on with one of them, or (also without an HCA) urxed
 * knows no next hop to the address of an address handle. */
static int stop_hca(void)
{
	struct urxe_offload_refusal refusal;
	int rc = save_check_addresses();

	if (rc)
		return rc;
	rc = adapter_hca_take_over(TAKER_QUIESCE, &refusal);
	if (rc == -EAGAIN)
		return checkpoint_fail(-EBUSY, "%s", adapter_hca_refusal(&refusal));
	if (rc == -EIO)
		return checkpoint_fail(-EBUSY, "the HCA has failed");
	return rc ? refuse_hca(&refusal) : 0;
}

/*
 * With adapter.lock: brings the device to a point at which it can be saved, and saves the engine
 * (save_prepare). Handles packets that have arrived, so that fewer are lost. 0; -EBUSY: another
 * attempt may succeed; or another negative errno value.
 */
static int freeze_device(void)
{
	uint64_t now = clock_now();
	int rc = check_daemon();

	if (rc)
		return rc;
	if (adapter.nic_users)
		return checkpoint_fail(-EBUSY, "a thread waits for an answer of urxed");
	engine_run(now);
	tx_send_ack(&adapter.tx);
	if (due_events_any())
		return checkpoint_fail(-EBUSY, "a thread sends an event of a completion queue");
	if (!peers_settled(&adapter_peers))
		return checkpoint_fail(-EBUSY, "another process copies registered memory");
	rc = stop_hca();
	if (rc)
		return rc;
	/* Publishes the completions of requests that the take-over has ended: the stream has no
	 * unpublished ones. */
	adapter_publish();
	mr_free_released();
	rc = save_prepare(&saved, &rdmacm, now);
	if (rc)
		save_free(&saved);
	return rc;
}

/* Calls freeze_device(), and returns its result. Meanwhile all threads send completion events at
 * once, not after the release of adapter.lock: an event that is due then could not be saved. */
static int freeze_adapter(void)
{
	int rc;

	due_events_begin_drain();
	rc = freeze_device();
	due_events_end_drain();
	return rc;
}

/* Lets the engine run again, and peers copy. */
static void thaw_adapter(void)
{
	save_free(&saved);
	urxe_copy_rights_publish(adapter.dev);
	engine_run(clock_now());
	engine_wake();
}

/* With adapter.lock, which the function releases: undoes freeze_adapter(). Abandons the take-over
 * first, which passes completions of the HCA to the engine: thaw_adapter() publishes them. */
static void give_up(void)
{
	adapter_hca_abandon(TAKER_QUIESCE);
	thaw_adapter();
	adapter_unlock();
}

/* Another thread had adapter.lock until the deadline, so this thread cannot undo the freeze: the
 * engine thread does (adapter.stop_abandoned). Returns -ETIMEDOUT. */
static int give_up_unlocked(void)
{
	atomic_store(&adapter.stop_abandoned, true);
	engine_wake();
	return fail_to_lock_adapter();
}

/*
 * Whether another attempt may succeed while this thread keeps adapter_open_lock and the locks of
 * the rdma_cm devices. If the daemon has ended, it may not: the engine thread needs
 * adapter_open_lock to find another one. Nor if a thread has opened or closed an rdma_cm device:
 * `rdmacm` lacks the device, or has one too many.
 */
static bool may_keep_locks(void)
{
	return !adapter.reconnecting && frozen_devices_are_current(&rdmacm);
}

/* Repeats freeze_adapter() until the deadline. Returns 0 with adapter.lock held, else an error
 * without it. -EBUSY: the deadline has passed, or attempts with the other locks held cannot
 * succeed; -ETIMEDOUT: adapter.lock was not free. */
static int freeze_until(uint64_t deadline)
{
	int rc;

	if (!lock_adapter(deadline))
		return fail_to_lock_adapter();
	while ((rc = freeze_adapter()) == -EBUSY && may_keep_locks() &&
	       clock_monotonic() < deadline) {
		adapter_unlock();
		pause_until_next_attempt(PAUSE_NS);
		if (!lock_adapter(deadline))
			return give_up_unlocked();
	}
	if (rc)
		give_up();
	return rc;
}

/* Releases adapter_open_lock before it thaws the rdma_cm devices, so that the wait for urxed delays
 * no other thread. */
static void free_opens(uint64_t deadline)
{
	struct frozen_devices devices = rdmacm;

	rdmacm = (struct frozen_devices){0};
	pthread_mutex_unlock(&adapter_open_lock);
	rdmacm_thaw(&devices, deadline);
}

/* One attempt to take all locks and to stop the device. 0, or a negative errno value: then the
 * thread has no lock. -EBUSY: another attempt may succeed. */
static int stop_device(uint64_t deadline)
{
	int rc = lock_opens(deadline);

	if (rc)
		return rc;
	rc = check_adapter(deadline);
	if (!rc)
		rc = rdmacm_freeze(&rdmacm, deadline);
	if (!rc)
		rc = freeze_until(deadline);
	if (rc)
		free_opens(deadline);
	return rc;
}

int quiesce_begin(uint32_t timeout_ms)
{
	uint64_t deadline = deadline_after(timeout_ms);
	int rc;

	if (quiesced && process == getpid())
		return checkpoint_fail(-EALREADY, "the device is stopped already");
	while ((rc = stop_device(deadline)) == -EBUSY && clock_monotonic() < deadline)
		pause_until_next_attempt(LONG_PAUSE_NS);
	if (rc)
		return rc == -EBUSY ? -ETIMEDOUT : rc;
	holder = pthread_self();
	process = getpid();
	quiesced = true;
	return 0;
}

/* 0; -EINVAL: the device is not stopped; -EPERM: the parent of this process has stopped it. */
static int check_quiesced(void)
{
	if (!quiesced)
		return checkpoint_fail(-EINVAL, "the device is not stopped");
	if (process != getpid())
		return checkpoint_fail(-EPERM, "the parent process has stopped the device");
	return 0;
}

int quiesce_save(int fd)
{
	int rc = check_quiesced();

	return rc ? rc : save_write(&saved, fd);
}

int quiesce_end(void)
{
	int rc = check_quiesced();

	if (rc)
		return rc;
	if (!pthread_equal(holder, pthread_self()))
		return checkpoint_fail(-EPERM, "another thread has stopped the device");
	quiesced = false;
	thaw_adapter();
	adapter_unlock();
	free_opens(deadline_after(THAW_MS));
	return 0;
}
