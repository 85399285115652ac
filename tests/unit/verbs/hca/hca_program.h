/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program's commands on a device whose HCA is the provider double (fake_hca.h). No daemon and no
 * engine thread run. The test links with --wrap of adapter_open, adapter_ref, adapter_unref and
 * hca_verbs_find.
 */
#ifndef URXE_TESTS_UNIT_VERBS_HCA_PROGRAM_H
#define URXE_TESTS_UNIT_VERBS_HCA_PROGRAM_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <hca/hca.h>

#include "adapter/adapter.h"
#include "attach/attach.h"
#include "daemon/adapter_hca.h"
#include "daemon/port_attributes.h"
#include "fake_hca.h"
#include "loop_adapter.h"
#include "queues/publish.h"
#include "uverbs/ucontext.h"
#include "uverbs/uverbs.h"
#include "uverbs/uverbs_command.h"

#define SRQ_HANDLE 0x22u

#define REPLY 128 /* bytes for any reply, with the driver's part */

/* Descriptors of the program's context, and of its asynchronous events. */
static int device = -1, events = -1;
static uint32_t pd;

/* --- In place of the daemon and libibverbs. */

int __wrap_adapter_open(uint32_t *generation);
bool __wrap_adapter_ref(uint32_t *generation);
void __wrap_adapter_unref(uint32_t generation);
const struct hca_verbs *__wrap_hca_verbs_find(void);

/* Uses that began in this process, and have not ended. */
static int uses;

bool __wrap_adapter_ref(uint32_t *generation)
{
	*generation = adapter_fork_generation;
	uses++;
	return true;
}

int __wrap_adapter_open(uint32_t *generation)
{
	__wrap_adapter_ref(generation);
	return 0;
}

void __wrap_adapter_unref(uint32_t generation)
{
	if (generation == adapter_fork_generation)
		uses--;
}

const struct hca_verbs *__wrap_hca_verbs_find(void)
{
	return &fake_hca.verbs;
}

/* --- The program. */

/* The reply's first word, mostly a handle, is in *first. A negative errno value: the command
 * failed. */
static int command(uint32_t number, const void *request, size_t size, uint32_t *first)
{
	uint8_t buffer[512] __attribute__((aligned(8)));
	struct ib_uverbs_cmd_hdr hdr = {.command = number, .out_words = REPLY / 4};
	uint32_t reply[REPLY / 4] = {0};
	const uint64_t response = (uintptr_t)reply;
	const size_t count = sizeof(hdr) + size;

	hdr.in_words = (uint16_t)(count / 4);
	memcpy(buffer, &hdr, sizeof(hdr));
	memcpy(buffer + sizeof(hdr), request, size);
	/* Requests with a reply begin with its address. */
	if (first)
		memcpy(buffer + sizeof(hdr), &response, sizeof(response));
	if (uverbs_write(uverbs_file_lookup(device), device, buffer, count) < 0)
		return -errno;
	if (first)
		*first = reply[0];
	return 0;
}

#define COMMAND(id, request, first) \
	command(IB_USER_VERBS_CMD_##id, &(request), sizeof(request), first)

static void open_context(void)
{
	const struct ib_uverbs_get_context get = {0};
	const struct ib_uverbs_alloc_pd alloc = {0};

	device = uverbs_file_open(O_CLOEXEC);
	assert_true(device >= 0);
	assert_int_equal(COMMAND(GET_CONTEXT, get, (uint32_t *)&events), 0);
	assert_int_equal(COMMAND(ALLOC_PD, alloc, &pd), 0);
}

static void close_own(int fd)
{
	fd_remove(fd);
	close(fd);
}

static inline bool is_readable(int fd)
{
	struct pollfd look = {.fd = fd, .events = POLLIN};

	return poll(&look, 1, 0) == 1;
}

static inline void expect_event(uint64_t element, uint32_t type)
{
	struct ib_uverbs_async_event_desc event;

	assert_true(is_readable(events));
	assert_int_equal(read(events, &event, sizeof(event)), sizeof(event));
	assert_int_equal(event.element, element);
	assert_int_equal(event.event_type, type);
}

/* --- Shared receive queues. */

static uint32_t srq;

static inline int create_srq(void)
{
	const struct ib_uverbs_create_srq request = {.user_handle = SRQ_HANDLE,
						     .pd_handle = pd,
						     .max_wr = 8,
						     .max_sge = 1,
						     .srq_limit = 4};

	return COMMAND(CREATE_SRQ, request, &srq);
}

/* --- The adapter. */

static void set_hca(const char *name)
{
	struct vnic_attach_hca *hca = &adapter.welcome.port.hca;

	*hca = (struct vnic_attach_hca){.port = 1, .generation = hca->generation + 1};
	strcpy(hca->name, name);
	adapter_lock();
	adapter_hca_renew();
	adapter_unlock();
}

/* Another daemon, with this P_Key at index 0. */
static inline void attach_to_daemon_with(uint16_t pkey)
{
	uint16_t before[VNIC_ATTACH_PKEYS];

	adapter_lock();
	memcpy(before, adapter.welcome.pkeys, sizeof(before));
	adapter.welcome.pkeys[0] = pkey;
	port_pkeys_changed(before);
	adapter_unlock();
}

/* What the engine thread does when the HCA's descriptors become readable. */
static inline void handle_hca_events(void)
{
	adapter_lock();
	hca_handle_events(adapter.hca.hca);
	adapter_publish();
	adapter_unlock();
}

/* cmocka's handler of SIGSEGV would go on, with the lock taken. */
static inline void end_by_faults(void)
{
	signal(SIGSEGV, SIG_DFL);
}

/* --- Both. */

/* Opens the adapter with an HCA whose port has the GID fake_gid, as urxe0's, and a context. */
static struct vnic_loop *open_with_hca(uint16_t mtu)
{
	struct vnic_loop *loop = loop_adapter_open(mtu);

	adapter.welcome.port.gids[0].valid = true;
	memcpy(adapter.welcome.port.gids[0].raw, fake_gid.raw, sizeof(fake_gid.raw));
	assert_int_equal(port_set_attributes(), 0);
	set_hca("fake0");
	assert_non_null(adapter.hca.hca);
	open_context();
	return loop;
}

static void close_with_hca(struct vnic_loop *loop)
{
	close_own(events);
	close_own(device);
	set_hca("");
	loop_adapter_close(loop);
}

#endif
