/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "attach/fork.h"

#include <errno.h>
#include <string.h>

#include <hca/hca.h>

#include "attach/attach_private.h"
#include "attach/engine_loop.h"
#include "daemon/recording.h"
#include "engine/clock.h"
#include "memory/mr_index.h"
#include "memory/sigbus_guard.h"
#include "objects/handle.h"
#include "objects/uverbs_file.h"
#include "poll/engine_thread.h"
#include "poll/polling.h"
#include "port/port.h"
#include "process/own_fd.h"
#include <samehost/peer.h>

#define OF_THREAD __thread __attribute__((tls_model("initial-exec")))

static OF_THREAD bool forks_inside;

static void before_fork(void)
{
	forks_inside = port_inside || pthread_mutex_lock(&port_open_lock) == EDEADLK;
	if (!forks_inside)
		port_lock();
}

static void in_parent(void)
{
	if (forks_inside)
		return;
	port_unlock();
	pthread_mutex_unlock(&port_open_lock);
}

/* Frees nothing of the engine: its objects are the parent's. */
static void forget_port(void)
{
	struct uverbs_file *file;

	LIST_FOREACH(file, &port.files, link)
	file->live = false;
	if (port.nic)
		vnic_driver_abandon(port.nic);
	peers_fork_child(&port_peers);
	vnic_inbox_abandon(port.inbox);
	if (port.hca.hca)
		hca_abandon(port.hca.hca);
	packet_group_close(port.uplink);
	tx_destroy(&port.tx);
	recording_abandon();
	engine_thread_abandon();
	sigbus_guard_fork_child();
	mr_index_forget();
	port_forget_users();
	memset(handle_counts, 0, sizeof(handle_counts));
	port = (struct port){0};
	port_polling = (struct polling){0};
	port_thread = (struct engine_thread){0};
	clock_resume();
	fd_set_owner();
}

static void in_child(void)
{
	if (!forks_inside) {
		forget_port();
		port_inside = false;
		return;
	}
	port.dead = true;
	port.reconnecting = false;
	vnic_driver_isolate(port.nic);
	vnic_inbox_isolate(port.inbox);
	packet_group_isolate(port.uplink);
	tx_isolate(&port.tx);
	recording_isolate();
	port_unlock_orphaned = forget_port;
	lock_orphan(&port.lock);
}

static void install_once(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
	fd_set_owner();
}

void port_install_fork_handlers(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install_once);
}
