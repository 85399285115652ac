/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "attach/fork.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include <hca/hca.h>

#include "adapter/adapter.h"
#include "attach/attach_private.h"
#include "attach/engine_thread.h"
#include "attach/main_thread.h"
#include "daemon/recording.h"
#include "engine/clock.h"
#include "memory/mr_index.h"
#include "memory/sigbus_guard.h"
#include "objects/handle.h"
#include "objects/uverbs_file.h"
#include "poll/engine_wake.h"
#include "poll/polling.h"
#include "process/cancellation.h"
#include "process/emulated_fd.h"
#include "process/fork_handlers.h"
#include <samehost/peer.h>

#define OF_THREAD __thread __attribute__((tls_model("initial-exec")))

/* Number of calls of fork in progress in signal handlers that have interrupted this thread while it
 * held the locks, perhaps in an outer call of fork. */
static OF_THREAD unsigned int forks_inside;
/* This thread's call of fork holds the locks. */
static OF_THREAD bool locked;

static void before_fork(void)
{
	if (adapter_inside || pthread_mutex_lock(&adapter_open_lock) == EDEADLK) {
		forks_inside++;
		return;
	}
	adapter_lock();
	locked = true;
}

static void in_parent(void)
{
	if (forks_inside) {
		forks_inside--;
		return;
	}
	if (!locked)
		return;
	locked = false;
	adapter_unlock();
	pthread_mutex_unlock(&adapter_open_lock);
}

/* In a forked child: closes the child's descriptors and mappings of the parent's adapter, and
 * clears `adapter`. Frees nothing of the engine: its objects are the parent's. */
static void forget_adapter(void)
{
	const int cancel = cancellation_disable();
	struct uverbs_file *file;

	LIST_FOREACH(file, &adapter.files, link)
	{
		file->live = file->was_live = false;
		comp_channels_abandon(file);
	}
	if (adapter.nic)
		vnic_driver_abandon(adapter.nic);
	peers_fork_child(&adapter_peers);
	vnic_inbox_abandon(adapter.inbox);
	if (adapter.hca.hca)
		hca_abandon(adapter.hca.hca);
	packet_group_close(adapter.uplink);
	tx_destroy(&adapter.tx);
	recording_abandon();
	engine_thread_abandon();
	sigbus_guard_fork_child();
	mr_index_forget();
	adapter_forget_users();
	memset(handle_counts, 0, sizeof(handle_counts));
	/* The generation grows, because the daemon to which the child attaches later knows nothing
	 * of what the parent has told its own daemon. */
	adapter = (struct adapter){.daemon_generation = adapter.daemon_generation + 1};
	/* A command that a signal handler has interrupted goes on in the child, and may use these
	 * lists. */
	TAILQ_INIT(&adapter.dirty_cqs);
	TAILQ_INIT(&adapter.dirty_qps);
	adapter_polling = (struct polling){0};
	adapter_thread = (struct engine_thread){0};
	main_thread_fork_child();
	clock_resume();
	fd_set_owner();
	cancellation_restore(cancel);
}

static void in_child(void)
{
	if (!forks_inside) {
		if (!locked)
			return;
		forget_adapter();
		locked = adapter_inside = false;
		return;
	}
	forks_inside--;
	adapter.dead = true;
	adapter.reconnecting = false;
	/* The interrupted thread may wait for the end of a reconnection, and no other thread of the
	 * child would end that wait. */
	atomic_fetch_add(&adapter.reconnects_ended, 1);
	vnic_driver_isolate(adapter.nic);
	vnic_inbox_isolate(adapter.inbox);
	packet_group_isolate(adapter.uplink);
	tx_isolate(&adapter.tx);
	recording_isolate();
	adapter_unlock_orphaned = forget_adapter;
	lock_orphan(&adapter.lock);
}

void adapter_enable_fork_handlers(void)
{
	static const struct fork_handlers handlers = {before_fork, in_parent, in_child};

	fork_handlers_enable(FORK_ADAPTER, &handlers);
}
