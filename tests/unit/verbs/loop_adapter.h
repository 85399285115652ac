/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An adapter with an engine and a NIC within the test's process, and without a daemon. */
#ifndef URXE_TESTS_UNIT_VERBS_LOOP_ADAPTER_H
#define URXE_TESTS_UNIT_VERBS_LOOP_ADAPTER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "adapter/adapter.h"
#include "attach/attach_private.h"
#include "attach/fork.h"
#include "engine/crc.h"
#include "poll/engine_wake.h"
#include "process/emulated_fd.h"
#include "vnic_loop.h"

static inline struct vnic_loop *loop_adapter_open(uint16_t mtu)
{
	struct vnic_loop *loop;

	assert_int_equal(crc_load(), 0);
	adapter_enable_fork_handlers();
	fd_set_owner();
	adapter = (struct adapter){
		.welcome = {.mac = {2, 0, 0, 0, 0, 1}, .mtu = mtu, .pkeys = {0xffff}}};
	adapter.welcome.port.link_mtu = mtu;
	TAILQ_INIT(&adapter.dirty_cqs);
	TAILQ_INIT(&adapter.dirty_qps);
	adapter_init_peers();
	assert_int_equal(vnic_loop_open(mtu, &loop), 0);
	adapter.nic = loop->driver;
	assert_int_equal(tx_init(&adapter.tx, adapter.nic, &adapter.uplink, &adapter_peers,
				 &adapter.welcome),
			 0);
	assert_int_equal(adapter_make_engine(NULL), 0);
	adapter_thread.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return loop;
}

static inline void loop_adapter_close(struct vnic_loop *loop)
{
	urxe_dev_destroy(adapter.dev);
	leases_clear(&adapter.leases);
	tx_destroy(&adapter.tx);
	vnic_loop_close(loop);
	close(adapter_thread.wake_fd);
}

#endif
