/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The vfio-user server against a client by hand: the PCI function, its configuration space and its
 * BARs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vfio_fixture.h"

/* --- Information */

static void device_has_two_bars_and_a_config_space(void **state)
{
	static const uint64_t sizes[] = {4096, 4096, 8192, 0, 0, 0, 0, 256, 0};
	struct fixture *f = *state;
	uint32_t info[8] = {16}, *got = (uint32_t *)f->body;
	uint64_t size;

	assert_int_equal(ask(f, GET_INFO, info, 16), 0);
	assert_int_equal(body_size(f), 16);
	assert_int_equal(got[1], VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET);
	assert_int_equal(got[2], 9);
	assert_int_equal(got[3], 5);
	for (uint32_t i = 0; i < 9; i++) {
		info[0] = 32;
		info[2] = i;
		assert_int_equal(ask(f, GET_REGION_INFO, info, 32), 0);
		assert_int_equal(got[0], 32);
		assert_int_equal(got[1], sizes[i] ? 3 : 0);
		assert_int_equal(got[2], i);
		memcpy(&size, got + 4, sizeof(size));
		assert_int_equal(size, sizes[i]);
	}
	info[2] = 9;
	assert_int_equal(ask(f, GET_REGION_INFO, info, 32), EINVAL);
	info[2] = 0;
	info[0] = 31;
	assert_int_equal(ask(f, GET_REGION_INFO, info, 32), EINVAL);
	info[0] = 15;
	assert_int_equal(ask(f, GET_INFO, info, 16), EINVAL);
	assert_int_equal(ask(f, GET_REGION_IO_FDS, info, 16), ENOTSUP);
}

/* BAR1 is the beginning of a file. */
static int setup_mapped(void **state)
{
	struct vnic_vfio_function mapped = vfio_function;
	int rc;

	mapped.mapped_bar = 1;
	mapped.mapped_fd = memfd_create("bar", MFD_CLOEXEC);
	assert_int_equal(ftruncate(mapped.mapped_fd, 4096), 0);
	rc = vfio_setup_function(state, &mapped);
	((struct fixture *)*state)->bar = mapped.mapped_fd;
	return rc ?: ask(*state, VERSION, VFIO_OFFER, sizeof(VFIO_OFFER));
}

static int teardown_mapped(void **state)
{
	close(((struct fixture *)*state)->bar);
	return vfio_teardown(state);
}

/* The reply about the BAR has the file: stores there cause no message. */
static void mapped_bar_has_a_file_without_messages(void **state)
{
	struct fixture *f = *state;
	/* Offset 8 of BAR1, 4 bytes, value 7. */
	static const uint32_t message[5] = {8, 0, 1, 4, 7};
	uint32_t info[8] = {32}, flags;
	char byte = 'x';

	for (info[2] = 0; info[2] < 9; info[2]++) {
		assert_int_equal(ask(f, GET_REGION_INFO, info, 32), 0);
		memcpy(&flags, f->body + 4, sizeof(flags));
		assert_int_equal(flags & VFIO_REGION_INFO_FLAG_MMAP ? 1 : 0, info[2] == 1);
		assert_int_equal(f->reply_fd >= 0, info[2] == 1);
		if (f->reply_fd < 0)
			continue;
		assert_int_equal(pwrite(f->reply_fd, &byte, 1, 8), 1);
		close(f->reply_fd);
	}
	byte = 0;
	assert_int_equal(pread(f->bar, &byte, 1, 8), 1);
	assert_int_equal(byte, 'x');
	/* An error has no descriptor. */
	info[0] = 31;
	info[2] = 1;
	assert_int_equal(ask(f, GET_REGION_INFO, info, 32), EINVAL);
	assert_int_equal(f->reply_fd, -1);
	/* The hypervisor may send messages for it all the same. */
	assert_int_equal(ask(f, REGION_WRITE, message, sizeof(message)), 0);
	assert_int_equal(f->last.value, 7);
}

/* --- Regions */

static void config_space_has_its_power_on_values(void **state)
{
	struct fixture *f = *state;
	uint8_t expected[256] = {0};

	memcpy(expected, "\xad\x15\xb0\x07\0\0\x10\0\1\0\0\2\0\0\x80", 15);
	memcpy(expected + PCI_SUBSYSTEM_VENDOR_ID, "\xae\x15\xb1\x07", 4);
	expected[PCI_CAPABILITY_LIST] = 0x40;
	memcpy(expected + 0x40, "\x11\0\x18\0\2\0\0\0\2\x10\0\0", 12);
	assert_int_equal(read_region(f, VFIO_PCI_CONFIG_REGION_INDEX, 0, 256), 0);
	assert_memory_equal(f->body + 16, expected, 256);
}

/* All ones, bit by bit: the answer of each dword, and what is left after a reset. */
static void config_space_keeps_its_read_only_bits(void **state)
{
	struct fixture *f = *state;

	for (uint32_t at = 0; at < 256; at += 4) {
		const uint32_t before = read_config(f, at, 4);
		uint32_t wanted = before;

		write_config(f, at, 4, 0xffffffff);
		switch (at) {
		case PCI_COMMAND: wanted = 0x00100506; break;
		case PCI_CACHE_LINE_SIZE: wanted |= 0xffff; break;
		case PCI_BASE_ADDRESS_0:
		case PCI_BASE_ADDRESS_1: wanted = 0xfffff000; break;
		case PCI_BASE_ADDRESS_2: wanted = 0xffffe000; break;
		case PCI_INTERRUPT_LINE: wanted = 0xff; break;
		case 0x40: wanted |= 0xc0000000; break;
		default: break;
		}
		assert_int_equal(read_config(f, at, 4), wanted);
		/* And one byte of it. */
		write_config(f, at + 1, 1, 0);
		assert_int_equal(read_config(f, at, 1), wanted & 0xff);
	}
	/* The writes to BARs without the right to access memory were resets, too. */
	f->resets = 0;
	assert_int_equal(ask(f, RESET, NULL, 0), 0);
	assert_int_equal(f->resets, 1);
	config_space_has_its_power_on_values(state);
}

static void bus_mastering_changes_are_reported_once(void **state)
{
	struct fixture *f = *state;

	/* The connection. */
	assert_int_equal(f->master_changes, 1);
	assert_false(f->master);
	f->master_changes = 0;
	write_config(f, PCI_COMMAND, 2, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	write_config(f, PCI_COMMAND, 2, PCI_COMMAND_MASTER);
	assert_int_equal(f->master_changes, 1);
	assert_true(f->master);
	write_config(f, PCI_BASE_ADDRESS_1, 4, UINT32_MAX);
	assert_int_equal(f->resets, 0);
	write_config(f, PCI_COMMAND + 1, 1, 0xff);
	write_config(f, PCI_COMMAND, 1, PCI_COMMAND_MEMORY);
	assert_int_equal(f->master_changes, 2);
	assert_false(f->master);
	/* Linux restores addresses after a suspension; the next kernel asks for the sizes. */
	write_config(f, PCI_BASE_ADDRESS_1, 4, 0xfe000000);
	write_config(f, PCI_ROM_ADDRESS, 4, UINT32_MAX);
	assert_int_equal(f->resets, 0);
	vnic_vfio_server_interrupt(f->server, 4);
	assert_int_equal(pending(f), 1 << 4);
	write_config(f, PCI_BASE_ADDRESS_1, 4, UINT32_MAX);
	assert_int_equal(f->resets, 1);
	assert_int_equal(pending(f), 0);
}

static void accesses_outside_a_region_are_refused(void **state)
{
	struct fixture *f = *state;
	const uint32_t config = VFIO_PCI_CONFIG_REGION_INDEX;

	assert_int_equal(read_region(f, config, 255, 1), 0);
	assert_int_equal(read_region(f, config, 255, 2), EINVAL);
	assert_int_equal(read_region(f, config, 256, 1), EINVAL);
	assert_int_equal(read_region(f, config, UINT64_MAX, 1), EINVAL);
	assert_int_equal(read_region(f, config, UINT64_MAX, 2), EINVAL);
	assert_int_equal(read_region(f, config, 0, 0), EINVAL);
	assert_int_equal(read_region(f, config, 0, UINT32_MAX), EINVAL);
	assert_int_equal(read_region(f, 0, 4092, 4), 0);
	assert_int_equal(read_region(f, 0, 4096, 4), EINVAL);
	assert_int_equal(read_region(f, 0, 4094, 4), EINVAL);
	assert_int_equal(read_region(f, 0, 2, 4), EINVAL); /* not aligned */
	assert_int_equal(read_region(f, 0, 0, 3), EINVAL);
	assert_int_equal(read_region(f, 0, 0, 16), EINVAL);
	for (uint32_t i = 3; i < 7; i++)
		assert_int_equal(read_region(f, i, 0, 4), EINVAL);
	assert_int_equal(read_region(f, 8, 0, 4), EINVAL);
	assert_int_equal(read_region(f, 9, 0, 4), EINVAL);
	assert_int_equal(read_region(f, UINT32_MAX, 0, 4), EINVAL);
	assert_int_equal(write_region(f, 0, 4096, 4, 0), EINVAL);
	assert_int_equal(write_region(f, config, 256, 4, 0), EINVAL);
	assert_int_equal(f->writes, 0);
}

static void bar_accesses_reach_the_device_model(void **state)
{
	struct fixture *f = *state;
	uint64_t value = 0;

	for (uint32_t size = 1; size <= 8; size *= 2) {
		assert_int_equal(read_region(f, 1, 8 * size, size), 0);
		memcpy(&value, f->body + 16, size);
		assert_int_equal(value,
				 UINT64_C(0x1122334455667788) & (UINT64_MAX >> (64 - 8 * size)));
		assert_int_equal(f->last.bar, 1);
		assert_int_equal(f->last.offset, 8 * size);
		assert_int_equal(f->last.size, size);
		assert_int_equal(write_region(f, 0, 8 * size, size, UINT64_MAX), 0);
		assert_int_equal(f->last.value, UINT64_MAX >> (64 - 8 * size));
		assert_int_equal(f->last.bar, 0);
		assert_int_equal(f->last.size, size);
	}
	/* The MSI-X table is the hypervisor's. */
	f->writes = 0;
	assert_int_equal(write_region(f, 2, 0, 4, 7), 0);
	assert_int_equal(write_region(f, 2, VECTORS * 16 - 4, 4, 7), 0);
	assert_int_equal(write_region(f, 2, 4096, 8, 7), 0);
	assert_int_equal(f->writes, 0);
	assert_int_equal(write_region(f, 2, VECTORS * 16, 4, 7), 0);
	assert_int_equal(f->writes, 1);
	assert_int_equal(read_region(f, 2, 0, 4), 0);
	assert_int_equal(f->body[16] | f->body[17] | f->body[18] | f->body[19], 0);
}

static void sizes_of_writes_are_checked(void **state)
{
	struct fixture *f = *state;
	struct access_message m = {0, 0, 4, {0}};

	assert_int_equal(ask(f, REGION_WRITE, &m, 16 + 3), EINVAL);
	assert_int_equal(ask(f, REGION_WRITE, &m, 16 + 5), EINVAL);
	assert_int_equal(ask(f, REGION_WRITE, &m, 16), EINVAL);
	m.count = 0;
	assert_int_equal(ask(f, REGION_WRITE, &m, 16), EINVAL);
	assert_int_equal(f->writes, 0);
}

struct multi {
	uint64_t count;
	struct access_message at[201];
};

static void write_multi_has_at_most_200_writes(void **state)
{
	struct fixture *f = *state;
	struct multi m = {.count = 3};

	for (uint32_t i = 0; i < 201; i++)
		m.at[i] = (struct access_message){4 * i, 0, 4, {(uint8_t)i}};
	assert_int_equal(ask(f, WRITE_MULTI, &m, 8 + 3 * 24), 0);
	assert_int_equal(body_size(f), 8);
	assert_int_equal(f->writes, 3);
	assert_int_equal(f->last.offset, 8);
	m.count = 200;
	assert_int_equal(ask(f, WRITE_MULTI, &m, 8 + 200 * 24), 0);
	assert_int_equal(f->writes, 203);
	m.count = 201;
	assert_int_equal(ask(f, WRITE_MULTI, &m, 8 + 201 * 24), EINVAL);
	m.count = 0;
	assert_int_equal(ask(f, WRITE_MULTI, &m, 8), EINVAL);
	m.count = UINT64_MAX / 24 + 1;
	assert_int_equal(ask(f, WRITE_MULTI, &m, 8 + 24), EINVAL);
	m.count = 2;
	assert_int_equal(ask(f, WRITE_MULTI, &m, 8 + 2 * 24 - 1), EINVAL);
	assert_int_equal(f->writes, 203);
	/* The second of three is wrong: the third is not executed. */
	m.count = 3;
	m.at[1].count = 9;
	assert_int_equal(ask(f, WRITE_MULTI, &m, 8 + 3 * 24), EINVAL);
	assert_int_equal(f->writes, 204);
}

/* --- Functions that the server refuses */

static void servers_of_bad_functions_are_not_created(void **state)
{
	struct fixture *f = *state;
	struct vnic_vfio_attr attr = {.function = vfio_function, .memory = f->memory};
	struct vnic_vfio_server *server;

#define REFUSED(change)                                                             \
	do {                                                                        \
		attr.function = vfio_function;                                      \
		attr.function.change;                                               \
		assert_int_equal(vnic_vfio_server_create(&attr, &server), -EINVAL); \
	} while (0)
	REFUSED(bar_size[0] = 2048);
	REFUSED(bar_size[0] = 12288);
	REFUSED(bar_size[0] = 0x80000000);
	REFUSED(bar_size[2] = 0);
	REFUSED(bar_size[2] = 4096);
	REFUSED(vectors = 0);
	REFUSED(vectors = 65);
	REFUSED(msix_bar = 6);
	REFUSED(pba_offset = 0);
	REFUSED(pba_offset = 8192);
	REFUSED(pba_offset = 4097);
	REFUSED(class_code = 0x1000000);
#undef REFUSED
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vfio_setup, vfio_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(device_has_two_bars_and_a_config_space),
		cmocka_unit_test_setup_teardown(mapped_bar_has_a_file_without_messages,
						setup_mapped, teardown_mapped),
		TEST(config_space_has_its_power_on_values),
		TEST(config_space_keeps_its_read_only_bits),
		TEST(bus_mastering_changes_are_reported_once),
		TEST(accesses_outside_a_region_are_refused),
		TEST(bar_accesses_reach_the_device_model),
		TEST(sizes_of_writes_are_checked),
		TEST(write_multi_has_at_most_200_writes),
		TEST(servers_of_bad_functions_are_not_created),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
