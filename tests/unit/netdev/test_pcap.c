/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <netdev/netdev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- Files that live in memory */

static int make_file(const void *bytes, size_t size, char path[32])
{
	int fd = memfd_create("capture", MFD_CLOEXEC);

	assert_true(fd >= 0);
	if (size)
		assert_int_equal(pwrite(fd, bytes, size, 0), size);
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

static int try_open(const void *bytes, size_t size, struct netdev **port, char error[256])
{
	char path[32];
	int fd = make_file(bytes, size, path);
	int err = netdev_pcap_open(path, port, error, 256);

	close(fd);
	return err;
}

static struct netdev *open_bytes(const void *bytes, size_t size)
{
	struct netdev *port;
	char error[256];

	assert_int_equal(try_open(bytes, size, &port, error), 0);
	return port;
}

/* Reads to the end; returns the number of frames. */
static uint32_t drain(struct netdev *port)
{
	struct netdev_frame frame;
	uint32_t count = 0;

	while (netdev_rx(port, 0, &frame, 1)) {
		assert_in_range(frame.wire_len, frame.len, UINT32_MAX);
		count++;
	}
	assert_int_not_equal(netdev_pcap_status(port), 0);
	return count;
}

/* --- Captures by the byte. pcap: draft-ietf-opsawg-pcap; pcapng: draft-ietf-opsawg-pcapng. */

#define LE16(x) (uint8_t)(x), (uint8_t)((x) >> 8)
#define LE32(x) LE16(x), LE16((uint32_t)(x) >> 16)
#define BE16(x) (uint8_t)((x) >> 8), (uint8_t)(x)
#define BE32(x) BE16((uint32_t)(x) >> 16), BE16(x)

#define PCAP_HEADER(magic, link) \
	LE32(magic), LE16(2), LE16(4), LE32(0), LE32(0), LE32(65535), LE32(link)
#define PCAP_PACKET(s, us, cap, on) LE32(s), LE32(us), LE32(cap), LE32(on)

static const uint8_t micro_pcap[] = {PCAP_HEADER(0xa1b2c3d4, 1),
				     PCAP_PACKET(5, 7, 4, 4),
				     1,
				     2,
				     3,
				     4,
				     PCAP_PACKET(6, 999999, 2, 1500),
				     9,
				     8};

/* Section, interface with nanosecond times (if_tsresol 9), enhanced packet, simple packet. */
static const uint8_t pcapng[] = {
	LE32(0x0a0d0d0a),
	LE32(28),
	LE32(0x1a2b3c4d),
	LE16(1),
	LE16(0),
	LE32(-1),
	LE32(-1),
	LE32(28),
	LE32(1),
	LE32(32),
	LE16(1),
	LE16(0),
	LE32(0),
	LE16(9),
	LE16(1),
	9,
	0,
	0,
	0,
	LE16(0),
	LE16(0),
	LE32(32),
	LE32(6),
	LE32(36),
	LE32(0),
	LE32(1),
	LE32(5),
	LE32(3),
	LE32(60),
	7,
	6,
	5,
	0,
	LE32(36),
	LE32(3),
	LE32(20),
	LE32(4),
	1,
	1,
	2,
	3,
	LE32(20),
};

static void test_pcap_with_microseconds_is_read(void **state)
{
	struct netdev *port = open_bytes(micro_pcap, sizeof(micro_pcap));
	struct netdev_frame frame;

	(void)state;
	assert_int_equal(netdev_pcap_status(port), 0);
	assert_int_equal(netdev_tx(port, 0, &(struct netdev_frame){micro_pcap, 60}, 1), 0);
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 1);
	assert_int_equal(frame.len, 4);
	assert_int_equal(frame.wire_len, 4);
	assert_memory_equal(frame.data, "\1\2\3\4", 4);
	assert_int_equal(frame.time, 5000007000);
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 1);
	assert_int_equal(frame.len, 2);
	assert_int_equal(frame.wire_len, 1500);
	assert_int_equal(frame.time, 6999999000);
	assert_int_equal(netdev_pcap_status(port), 0);
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 0);
	assert_int_equal(netdev_pcap_status(port), 1);
	assert_string_equal(netdev_pcap_error(port), "");
	netdev_close(port);
}

static void test_big_endian_nanosecond_pcap_is_read(void **state)
{
	static const uint8_t bytes[] = {
		BE32(0xa1b23c4d), BE16(2), BE16(4), BE32(0), BE32(0),  BE32(65535),
		BE32(1),          BE32(1), BE32(2), BE32(1), BE32(64), 42,
	};
	struct netdev *port = open_bytes(bytes, sizeof(bytes));
	struct netdev_frame frame;

	(void)state;
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 1);
	assert_int_equal(frame.time, 1000000002);
	assert_int_equal(frame.wire_len, 64);
	assert_int_equal(frame.data[0], 42);
	netdev_close(port);
}

static void test_pcapng_is_read(void **state)
{
	struct netdev *port = open_bytes(pcapng, sizeof(pcapng));
	struct netdev_frame frame;

	(void)state;
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 1);
	assert_int_equal(frame.len, 3);
	assert_int_equal(frame.wire_len, 60);
	assert_memory_equal(frame.data, "\7\6\5", 3);
	assert_int_equal(frame.time, (UINT64_C(1) << 32) + 5);
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 1);
	assert_int_equal(frame.len, 4);
	assert_memory_equal(frame.data, "\1\1\2\3", 4);
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 0);
	assert_int_equal(netdev_pcap_status(port), 1);
	netdev_close(port);
}

/* A truncated file gives its whole packets, then -EBADMSG unless it ends between two packets. */
static void check_cut_short(const uint8_t *bytes, size_t size, size_t header, const size_t *ends)
{
	for (size_t cut = header; cut < size; cut++) {
		struct netdev *port = open_bytes(bytes, cut);
		uint32_t whole = 0;
		bool clean = cut == header;

		for (const size_t *end = ends; *end && *end <= cut; end++) {
			whole++;
			clean |= *end == cut;
		}
		assert_int_equal(drain(port), whole);
		assert_int_equal(netdev_pcap_status(port), clean ? 1 : -EBADMSG);
		assert_int_equal(!netdev_pcap_error(port)[0], clean);
		/* The status stays. */
		assert_int_equal(drain(port), 0);
		netdev_close(port);
	}
}

static void test_truncated_file_is_reported(void **state)
{
	(void)state;
	check_cut_short(micro_pcap, sizeof(micro_pcap), 24, (size_t[]){24 + 20, 24 + 20 + 18, 0});
	check_cut_short(pcapng, sizeof(pcapng), 28 + 32,
			(size_t[]){28 + 32 + 36, 28 + 32 + 36 + 20, 0});
}

static void test_other_files_are_refused(void **state)
{
	static const uint8_t ip_only[] = {PCAP_HEADER(0xa1b2c3d4, 101)};
	static const char prose[] =
		"Call me Ishmael. Some years ago, never mind how long precisely";
	struct netdev *port = NULL;
	char error[256], tiny[8];

	(void)state;
	assert_int_equal(try_open("", 0, &port, error), -EINVAL);
	assert_non_null(strstr(error, "not a capture file"));
	assert_int_equal(try_open(prose, sizeof(prose), &port, error), -EINVAL);
	assert_non_null(strstr(error, "not a capture file"));
	assert_int_equal(try_open(micro_pcap, 23, &port, error), -EINVAL);
	assert_int_equal(try_open(ip_only, sizeof(ip_only), &port, error), -ENOTSUP);
	assert_non_null(strstr(error, "Ethernet"));
	assert_int_equal(netdev_pcap_open("/proc/nonexistent/x.pcap", &port, error, sizeof(error)),
			 -ENOENT);
	assert_non_null(strstr(error, "/proc/nonexistent/x.pcap"));
	assert_int_equal(netdev_pcap_open("/", &port, error, sizeof(error)), -EINVAL);
	assert_int_equal(netdev_pcap_open("/", &port, tiny, sizeof(tiny)), -EINVAL);
	assert_int_equal(strlen(tiny), sizeof(tiny) - 1);
	assert_int_equal(netdev_pcap_open("/", &port, NULL, 0), -EINVAL);
	assert_null(port);
}

/* --- Writing */

static void test_written_capture_is_read_back(void **state)
{
	const uint64_t times[] = {0, 1, 999999999, UINT64_C(1700000000123456789)};
	struct netdev *writer, *reader;
	struct netdev_frame frame;
	uint8_t bytes[9018];
	char path[32], error[256];
	int fd = make_file(NULL, 0, path);

	(void)state;
	assert_int_equal(netdev_pcap_create(path, &writer, error, sizeof(error)), 0);
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t len = i * 977 % sizeof(bytes);

		memset(bytes, i, len);
		frame = (struct netdev_frame){bytes, len, i % 3 ? 0 : len + i, times[i % 4]};
		assert_int_equal(netdev_tx(writer, 500 + i, &frame, 1), 1);
	}
	assert_int_equal(netdev_rx(writer, 0, &frame, 1), 0);
	assert_int_equal(netdev_pcap_status(writer), 0);
	assert_string_equal(netdev_pcap_error(writer), "");
	netdev_close(writer);

	assert_int_equal(netdev_pcap_open(path, &reader, error, sizeof(error)), 0);
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t len = i * 977 % sizeof(bytes);

		assert_int_equal(netdev_rx(reader, 0, &frame, 1), 1);
		assert_int_equal(frame.len, len);
		assert_int_equal(frame.wire_len, i % 3 ? len : len + i);
		assert_true(frame.time == (times[i % 4] ? times[i % 4] : 500 + i));
		memset(bytes, i, len);
		assert_memory_equal(frame.data, bytes, len);
	}
	assert_int_equal(drain(reader), 0);
	assert_int_equal(netdev_pcap_status(reader), 1);
	netdev_close(reader);
	close(fd);
}

static void test_write_errors_are_reported(void **state)
{
	struct netdev *port = NULL;
	struct netdev_frame frame = {micro_pcap, 60};
	char error[256];

	(void)state;
	assert_int_equal(
		netdev_pcap_create("/proc/nonexistent/x.pcap", &port, error, sizeof(error)),
		-ENOENT);
	assert_non_null(strstr(error, "/proc/nonexistent/x.pcap"));
	assert_null(port);
	if (access("/dev/full", W_OK))
		skip();
	assert_int_equal(netdev_pcap_create("/dev/full", &port, error, sizeof(error)), 0);
	netdev_tx(port, 0, &frame, 1);
	assert_int_equal(netdev_pcap_status(port), -EIO);
	assert_int_not_equal(netdev_pcap_error(port)[0], 0);
	assert_int_equal(netdev_tx(port, 0, &frame, 1), 0);
	netdev_close(port);
}

/* --- Malformed files: no crash, no frame longer than the file. Run under sanitizers. */

static void read_rubbish(const uint8_t *bytes, size_t size)
{
	struct netdev *port;
	struct netdev_frame frame;
	char error[256];
	uint64_t total = 0, sum = 0;

	if (try_open(bytes, size, &port, error)) {
		assert_int_not_equal(error[0], 0);
		return;
	}
	while (netdev_rx(port, 0, &frame, 1)) {
		for (uint32_t i = 0; i < frame.len; i++)
			sum += frame.data[i];
		total += frame.len;
	}
	assert_in_range(total, 0, size);
	assert_in_range(sum, 0, total * UINT8_MAX);
	assert_int_not_equal(netdev_pcap_status(port), 0);
	netdev_close(port);
}

static void spoil_and_read(const uint8_t *good, size_t size)
{
	uint8_t bytes[512];

	for (int round = 0; round < 3000; round++) {
		size_t length = size + rand() % 64;

		for (size_t i = 0; i < length; i++)
			bytes[i] = i < size ? good[i] : rand();
		for (int hits = rand() % 6; hits >= 0; hits--)
			bytes[4 + rand() % (length - 4)] = rand() % 3 ? rand() : 0xff;
		read_rubbish(bytes, length);
	}
}

static void test_random_bytes_do_no_harm(void **state)
{
	uint8_t bytes[256];

	(void)state;
	srand(1);
	for (int round = 0; round < 1000; round++) {
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = rand();
		read_rubbish(bytes, rand() % sizeof(bytes));
	}
	spoil_and_read(micro_pcap, sizeof(micro_pcap));
	spoil_and_read(pcapng, sizeof(pcapng));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pcap_with_microseconds_is_read),
		cmocka_unit_test(test_big_endian_nanosecond_pcap_is_read),
		cmocka_unit_test(test_pcapng_is_read),
		cmocka_unit_test(test_truncated_file_is_reported),
		cmocka_unit_test(test_other_files_are_refused),
		cmocka_unit_test(test_written_capture_is_read_back),
		cmocka_unit_test(test_write_errors_are_reported),
		cmocka_unit_test(test_random_bytes_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
