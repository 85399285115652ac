/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The vfio-user server against a client by hand: the version, memory and interrupts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vfio_fixture.h"

/* --- VERSION */

static void commands_before_version_are_refused(void **state)
{
	struct fixture *f = *state;
	const uint32_t info[4] = {16};
	char answer[200];

	assert_int_equal(ask(f, GET_INFO, info, sizeof(info)), EINVAL);
	assert_int_equal(ask(f, RESET, NULL, 0), EINVAL);
	assert_int_equal(f->resets, 0);
	assert_int_equal(ask(f, VERSION, VFIO_OFFER, sizeof(VFIO_OFFER)), 0);
	assert_int_equal(f->body[0] | f->body[1] | f->body[2] | f->body[3], 0);
	snprintf(answer, sizeof(answer),
		 "{\"capabilities\":{\"max_msg_fds\":16,\"max_data_xfer_size\":4096,"
		 "\"max_dma_maps\":256,\"pgsizes\":%ld,\"write_multiple\":true}}",
		 sysconf(_SC_PAGESIZE));
	assert_string_equal((char *)f->body + 4, answer);
	assert_int_equal(body_size(f), 4 + strlen((char *)f->body + 4) + 1);
	assert_int_equal(ask(f, VERSION, VFIO_OFFER, sizeof(VFIO_OFFER)), EINVAL);
	assert_int_equal(ask(f, GET_INFO, info, sizeof(info)), 0);
}

static void version_is_checked(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ask(f, VERSION, "\1\0\0\0", 4), ENOTSUP);
	assert_int_equal(ask(f, VERSION, "\0\0", 2), EINVAL);
	assert_int_equal(ask(f, VERSION, "\0\0\0\0{}", 6), EINVAL); /* no NUL */
	assert_int_equal(ask(f, VERSION, "\0\0\5\0{\"write_multiple\":false}", 29), 0);
	assert_null(strstr((char *)f->body + 4, "write_multiple"));
	assert_int_equal(f->body[2], 0);
}

static void version_without_capabilities_gets_no_write_multiple(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ask(f, VERSION, "\0\0\0\0", 4), 0);
	assert_null(strstr((char *)f->body + 4, "write_multiple"));
}

static void only_msix_has_interrupts(void **state)
{
	struct fixture *f = *state;
	uint32_t info[4] = {16}, *got = (uint32_t *)f->body;

	for (uint32_t i = 0; i < 5; i++) {
		info[2] = i;
		assert_int_equal(ask(f, GET_IRQ_INFO, info, 16), 0);
		assert_int_equal(got[3], i == VFIO_PCI_MSIX_IRQ_INDEX ? VECTORS : 0);
		assert_int_equal(got[1], i == VFIO_PCI_MSIX_IRQ_INDEX ? VFIO_IRQ_INFO_EVENTFD : 0);
	}
	info[2] = 5;
	assert_int_equal(ask(f, GET_IRQ_INFO, info, 16), EINVAL);
}

/* --- Memory */

static void dma_maps_and_unmaps_change_the_guest_memory(void **state)
{
	struct fixture *f = *state;
	const uint32_t rw = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
	const uint32_t fds = count_fds();

	assert_int_equal(pwrite(f->file, "guest", 5, 2 * PAGE), 5);
	assert_int_equal(map(f, 0x100000, 4, rw, true), 0);
	assert_int_equal(f->added, 1);
	assert_memory_equal(vnic_guest_memory_range(f->memory, 0x100000, 5, true), "guest", 5);
	assert_int_equal(map(f, 0x103000, 4, rw, true), EEXIST);
	assert_int_equal(map(f, 0x200000, 4, VFIO_DMA_MAP_FLAG_READ, true), 0);
	assert_null(vnic_guest_memory_range(f->memory, 0x200000, 5, true));
	/* Without a descriptor: nothing is mapped, and its unmapping is no error. */
	assert_int_equal(map(f, 0x300000, 4, rw, false), 0);
	assert_int_equal(f->added, 2);
	assert_int_equal(unmap(f, 0x300000, 4, 0), 0);
	assert_int_equal(unmap(f, 0x101000, 1, 0), 0);
	assert_int_equal(body_size(f), 24);
	assert_int_equal(f->removed_addr, 0x101000);
	assert_int_equal(f->removed_size, PAGE);
	assert_null(vnic_guest_memory_range(f->memory, 0x101000, 1, false));
	assert_non_null(vnic_guest_memory_range(f->memory, 0x102000, 1, false));
	f->removed = 0;
	assert_int_equal(unmap(f, 0, 0, VFIO_DMA_UNMAP_FLAG_ALL), 0);
	assert_int_equal(f->removed, 1);
	assert_int_equal(f->removed_addr, 0);
	assert_int_equal(f->removed_size, UINT64_MAX);
	assert_null(vnic_guest_memory_range(f->memory, 0x200000, 1, false));
	assert_int_equal(count_fds(), fds);
}

/* A peer copies to the memory: it stays mapped, and the client gets no answer, until that ends. */
static void memory_in_use_is_unmapped_later(void **state)
{
	struct fixture *f = *state;
	const struct map m = {24, 0, 0x100000, 2 * PAGE, 0};
	uint8_t message[64];
	size_t n;

	assert_int_equal(map(f, 0x100000, 4, 3, true), 0);
	f->unsettled = true;
	n = build(f, message, DMA_UNMAP, 0, &m, 24);
	send_bytes(f, message, n, NULL, 0);
	send_bytes(f, message, n, NULL, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(vnic_vfio_server_event(f->server), 0);
		assert_true(vnic_vfio_server_is_held(f->server));
		assert_false(read_reply(f));
		assert_int_equal(f->removed, 1);
		assert_non_null(vnic_guest_memory_range(f->memory, 0x100000, 1, false));
	}
	f->unsettled = false;
	assert_int_equal(vnic_vfio_server_event(f->server), 0);
	assert_false(vnic_vfio_server_is_held(f->server));
	/* The first message's memory once more, since the driver may have registered it meanwhile.
	 */
	assert_int_equal(f->removed, 3);
	assert_true(read_reply(f));
	assert_true(read_reply(f));
	assert_false(read_reply(f));
	assert_null(vnic_guest_memory_range(f->memory, 0x100000, 1, false));
	assert_non_null(vnic_guest_memory_range(f->memory, 0x102000, 1, false));
}

static void next_client_waits_for_unsettled_unmaps(void **state)
{
	struct fixture *f = *state;
	uint8_t message[256];
	size_t n;

	assert_int_equal(map(f, 0x100000, 4, 3, true), 0);
	f->unsettled = true;
	vnic_vfio_server_disconnect(f->server);
	assert_int_equal(f->resets, 1);
	assert_non_null(vnic_guest_memory_range(f->memory, 0x100000, 1, false));
	/* The next client waits. */
	close(f->client);
	connect_client(f);
	n = build(f, message, VERSION, 0, VFIO_OFFER, sizeof(VFIO_OFFER));
	send_bytes(f, message, n, NULL, 0);
	assert_int_equal(vnic_vfio_server_event(f->server), 0);
	assert_false(read_reply(f));
	f->unsettled = false;
	assert_int_equal(vnic_vfio_server_event(f->server), 0);
	assert_null(vnic_guest_memory_range(f->memory, 0x100000, 1, false));
	assert_true(read_reply(f));
}

static void lost_memory_is_withdrawn(void **state)
{
	const uint32_t rw = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
	struct fixture *f = *state;
	volatile char *bytes;

	assert_int_equal(vnic_guest_memory_catch_faults(NULL, NULL), 0);
	assert_int_equal(map(f, 0x100000, 8, rw, true), 0);
	bytes = vnic_guest_memory_range(f->memory, 0x100000, 8 * PAGE, true);
	/* The region begins with the third page. */
	assert_int_equal(ftruncate(f->file, 4 * PAGE), 0);
	bytes[0] = 1;
	vnic_vfio_server_check_memory(f->server);
	assert_int_equal(f->lost, 0);
	bytes[5 * PAGE] = 1;
	bytes[7 * PAGE] = 1;
	vnic_vfio_server_check_memory(f->server);
	assert_int_equal(f->lost, 2);
	assert_int_equal(f->lost_addr, 0x100000 + 7 * PAGE);
	assert_int_equal(f->lost_size, PAGE);
	assert_null(vnic_guest_memory_range(f->memory, 0x100000 + 5 * PAGE, 1, false));
	assert_non_null(vnic_guest_memory_range(f->memory, 0x100000 + 6 * PAGE, 1, false));
	/* The client's view is another. */
	assert_int_equal(unmap(f, 0x100000, 8, 0), 0);
	assert_int_equal(f->removed_size, 8 * PAGE);
}

/* All regions are lost: their mappings and files end with the client's all the same. */
static void lost_memory_is_unmapped(void **state)
{
	const uint32_t fds = count_fds();
	struct fixture *f = *state;
	volatile char *bytes;

	for (int unmaps = 1; unmaps >= 0; unmaps--) {
		assert_int_equal(vnic_guest_memory_catch_faults(NULL, NULL), 0);
		assert_int_equal(ftruncate(f->file, (off_t)(PAGES * PAGE)), 0);
		assert_int_equal(map(f, 0x100000, 1, 3, true), 0);
		bytes = vnic_guest_memory_range(f->memory, 0x100000, PAGE, true);
		assert_int_equal(ftruncate(f->file, 0), 0);
		bytes[0] = 1;
		vnic_vfio_server_check_memory(f->server);
		if (unmaps)
			assert_int_equal(unmap(f, 0, 0, VFIO_DMA_UNMAP_FLAG_ALL), 0);
		else
			vnic_vfio_server_disconnect(f->server);
		assert_int_equal(count_fds(), fds - !unmaps);
	}
}

/* An unmapping that is refused withdraws nothing. */
static void refused_unmap_withdraws_nothing(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(map(f, 0, 3, 3, true), 0);
	for (uint64_t i = 1; i < VNIC_GUEST_REGIONS; i++)
		assert_int_equal(map(f, i << 20, 1, 3, true), 0);
	assert_int_equal(map(f, UINT64_C(1) << 40, 1, 3, true), ENOSPC);
	assert_int_equal(unmap(f, PAGE, 1, 0), ENOSPC);
	assert_int_equal(unmap(f, PAGE / 2, 1, 0), EINVAL);
	assert_int_equal(f->removed, 0);
}

/* An operator learns why a hypervisor does not start. */
static void a_refusal_of_memory_is_told(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(map(f, 0x100000, PAGES + 1, VFIO_DMA_MAP_FLAG_READ, true), EFBIG);
	assert_int_equal(f->refusal, -EFBIG);
	assert_int_equal(f->added, 0);
}

static void malformed_dma_maps_are_refused(void **state)
{
	struct fixture *f = *state;
	const uint32_t rw = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
	struct map m = {sizeof(m), rw, 0, 0x100000, PAGE};

	assert_int_equal(map(f, 0x100000, 4, 0, true), EINVAL);
	assert_int_equal(map(f, 0x100000, 4, rw | 8, true), EINVAL);
	assert_int_equal(map(f, 0x100000, 0, rw, true), EINVAL);
	assert_int_equal(map(f, 0x100001, 1, rw, true), EINVAL);
	assert_int_equal(map(f, UINT64_MAX - PAGE + 1, 2, rw, true), EINVAL);
	assert_int_equal(map(f, 0x100000, PAGES, rw, true), EFBIG);
	m.argsz--;
	assert_int_equal(ask_with(f, DMA_MAP, &m, sizeof(m), &f->file, 1), EINVAL);
	m.argsz++;
	m.offset = PAGE / 2;
	assert_int_equal(ask_with(f, DMA_MAP, &m, sizeof(m), &f->file, 1), EINVAL);
	m.offset = UINT64_MAX - PAGE + 1;
	assert_int_equal(ask_with(f, DMA_MAP, &m, sizeof(m), &f->file, 1), EINVAL);
	assert_int_equal(unmap(f, 0x100000, 0, 0), EINVAL);
	assert_int_equal(unmap(f, UINT64_MAX - PAGE + 1, 2, 0), EINVAL);
	assert_int_equal(unmap(f, 0x100000, 1, VFIO_DMA_UNMAP_FLAG_GET_DIRTY_BITMAP), EINVAL);
	assert_int_equal(f->added + f->removed, 0);
}

/* --- Interrupts */

static void interrupts_reach_their_eventfds(void **state)
{
	struct fixture *f = *state;
	const uint32_t before = count_fds();
	int fds[3];

	/* Before there is an eventfd: pending. */
	vnic_vfio_server_interrupt(f->server, 4);
	assert_int_equal(pending(f), 1 << 4);
	for (int i = 0; i < 3; i++)
		fds[i] = eventfd(0, EFD_CLOEXEC); /* blocking: the server must not wait */
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD, 3, 3, fds, 3), 0);
	assert_int_equal(pending(f), 0);
	assert_int_equal(take(fds[1]), 1);
	vnic_vfio_server_interrupt(f->server, 3);
	vnic_vfio_server_interrupt(f->server, 5);
	vnic_vfio_server_interrupt(f->server, VECTORS);
	vnic_vfio_server_interrupt(f->server, UINT32_MAX);
	assert_int_equal(take(fds[0]), 1);
	assert_int_equal(take(fds[1]), 0);
	assert_int_equal(take(fds[2]), 1);
	/* A full counter does not block. */
	eventfd_write(fds[0], UINT64_MAX - 1);
	vnic_vfio_server_interrupt(f->server, 3);
	take(fds[0]);
	/* Masked, then unmasked. */
	assert_int_equal(set_irqs(f, MASK | WITH_NONE, 3, 1, NULL, 0), 0);
	vnic_vfio_server_interrupt(f->server, 3);
	assert_int_equal(take(fds[0]), 0);
	assert_int_equal(pending(f), 1 << 3);
	assert_int_equal(set_irqs(f, UNMASK | WITH_BOOL, 3, 1, NULL, 0), 0);
	assert_int_equal(take(fds[0]), 1);
	/* The client may raise an interrupt itself. */
	assert_int_equal(set_irqs(f, TRIGGER | WITH_NONE, 3, 2, NULL, 0), 0);
	assert_int_equal(take(fds[0]) + take(fds[1]), 2);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_BOOL, 5, 1, NULL, 0), 0);
	assert_int_equal(take(fds[2]), 1);
	/* An eventfd is taken away; then all. */
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD, 4, 1, NULL, 0), 0);
	vnic_vfio_server_interrupt(f->server, 4);
	assert_int_equal(take(fds[1]), 0);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_NONE, 0, 0, NULL, 0), 0);
	vnic_vfio_server_interrupt(f->server, 5);
	assert_int_equal(take(fds[2]), 0);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	assert_int_equal(count_fds(), before);
}

static void malformed_set_irqs_are_refused(void **state)
{
	struct fixture *f = *state;
	struct irqs m = {20, TRIGGER | WITH_NONE, VFIO_PCI_MSIX_IRQ_INDEX, 0, 0, {0}};
	const uint32_t before = count_fds();
	int fds[3];

	for (int i = 0; i < 3; i++)
		fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD, 0, 2, fds, 3), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD, 0, 3, fds, 2), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD, VECTORS - 2, 3, fds, 3), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD, UINT32_MAX, 3, fds, 3), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD, 1, UINT32_MAX, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_NONE, 0, 1, fds, 1), EINVAL);
	assert_int_equal(set_irqs(f, MASK | WITH_FD, 0, 3, fds, 3), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD | WITH_NONE, 0, 3, fds, 3), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER | MASK | WITH_NONE, 0, 1, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER, 0, 1, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(f, WITH_NONE, 0, 1, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_NONE | 64, 0, 1, NULL, 0), EINVAL);
	/* Other files are no eventfds. */
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD, 0, 1, &f->file, 1), EINVAL);
	m.index = 5;
	assert_int_equal(ask(f, SET_IRQS, &m, 20), EINVAL);
	/* An index without vectors can only be disabled. */
	m.index = VFIO_PCI_INTX_IRQ_INDEX;
	assert_int_equal(ask(f, SET_IRQS, &m, 20), 0);
	m.count = 1;
	assert_int_equal(ask(f, SET_IRQS, &m, 20), EINVAL);
	m = (struct irqs){24, TRIGGER | WITH_BOOL, VFIO_PCI_MSIX_IRQ_INDEX, 0, 4, {0}};
	assert_int_equal(ask(f, SET_IRQS, &m, 20 + 3), EINVAL);
	assert_int_equal(ask(f, SET_IRQS, &m, 20 + 5), EINVAL);
	assert_int_equal(ask(f, SET_IRQS, &m, 20 + 4), 0);
	m.argsz = 19;
	assert_int_equal(ask(f, SET_IRQS, &m, 20 + 4), EINVAL);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	assert_int_equal(count_fds(), before);
}

#define TEST(f)        cmocka_unit_test_setup_teardown(f, vfio_setup, vfio_teardown)
#define UNVERSIONED(f) cmocka_unit_test_setup_teardown(f, vfio_setup_unversioned, vfio_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNVERSIONED(commands_before_version_are_refused),
		UNVERSIONED(version_is_checked),
		UNVERSIONED(version_without_capabilities_gets_no_write_multiple),
		TEST(only_msix_has_interrupts),
		TEST(dma_maps_and_unmaps_change_the_guest_memory),
		TEST(memory_in_use_is_unmapped_later),
		TEST(next_client_waits_for_unsettled_unmaps),
		TEST(lost_memory_is_withdrawn),
		TEST(lost_memory_is_unmapped),
		TEST(refused_unmap_withdraws_nothing),
		TEST(a_refusal_of_memory_is_told),
		TEST(malformed_dma_maps_are_refused),
		TEST(interrupts_reach_their_eventfds),
		TEST(malformed_set_irqs_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
