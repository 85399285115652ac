/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* libpcap reads the files that the pcapng writer writes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <netdev/netdev.h>

#include "capture/pcapng.h"
#include "capture/pcapng_reader.h"

#define PACKETS 300
#define T0      UINT64_C(1795308088123456789)

static char path[] = "/tmp/test-pcapng-XXXXXX";
static struct pcapng w;
static uint8_t data[PCAPNG_FRAME_MAX + 1];

static struct pcapng_packet packet(uint32_t i)
{
	static const char *const names[] = {"one", "another", "a third"};
	static const char *const comments[] = {"", "a", "ab\"\xc3\xa4", "four"};

	memset(data, (int)i, sizeof(data));
	return (struct pcapng_packet){
		.interface = names[i % 3],
		.time = T0 + i,
		.direction = i & 1 ? PCAPNG_INBOUND : PCAPNG_OUTBOUND,
		.data = data,
		.len = 14 + i,
		.comment = comments[i % 4],
	};
}

static void written_packets_are_read_back_by_libpcap(void **state)
{
	FILE *out = fdopen(mkstemp(path), "w");
	struct netdev_frame frame;
	struct netdev *port;
	char error[256];
	uint32_t i;

	(void)state;
	assert_non_null(out);
	assert_int_equal(pcapng_begin(&w, out, "test", "one"), 0);
	for (i = 0; i < PACKETS; i++) {
		struct pcapng_packet p = packet(i);

		assert_int_equal(pcapng_put(&w, &p), 0);
	}
	assert_int_equal(w.n, 3);
	pcapng_end(&w);
	fclose(out);
	assert_int_equal(netdev_pcap_open(path, &port, error, sizeof(error)), 0);
	for (i = 0; i < PACKETS; i++) {
		struct pcapng_packet p = packet(i);

		assert_int_equal(netdev_rx(port, 0, &frame, 1), 1);
		assert_int_equal(frame.time, p.time);
		assert_int_equal(frame.len, p.len);
		assert_memory_equal(frame.data, p.data, p.len);
	}
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 0);
	assert_int_equal(netdev_pcap_status(port), 1);
	netdev_close(port);
	unlink(path);
}

static void too_long_packets_and_comments_are_refused(void **state)
{
	char *text = malloc(PCAPNG_TEXT_MAX + 2), *written = NULL;
	struct pcapng_packet p = packet(0);
	size_t size;
	FILE *out = open_memstream(&written, &size);

	(void)state;
	assert_int_equal(pcapng_begin(&w, out, "test", "one"), 0);
	p.len = PCAPNG_FRAME_MAX;
	memset(text, 'x', PCAPNG_TEXT_MAX + 1);
	text[PCAPNG_TEXT_MAX] = '\0';
	p.comment = p.interface = text;
	assert_int_equal(pcapng_put(&w, &p), 0);
	p.len++;
	assert_int_equal(pcapng_put(&w, &p), -EMSGSIZE);
	p.len = 14;
	text[PCAPNG_TEXT_MAX] = 'x';
	text[PCAPNG_TEXT_MAX + 1] = '\0';
	assert_int_equal(pcapng_put(&w, &p), -EMSGSIZE);
	pcapng_end(&w);
	fclose(out);
	free(written);
	free(text);
}

/* A name that comes again in another section, too. */
static void any_number_of_interfaces_can_be_written(void **state)
{
	const uint32_t n = 2 * PCAPNG_INTERFACES + 2;
	char sections[] = "/tmp/test-pcapng-sections-XXXXXX", name[16], error[256];
	FILE *out = fdopen(mkstemp(sections), "w+");
	struct pcapng_packet p = packet(0);
	struct pcapng_reader reader;
	struct pcapng_block block;
	struct netdev_frame frame;
	struct netdev *port;
	uint8_t *bytes;
	long size;

	(void)state;
	assert_int_equal(pcapng_begin(&w, out, "test", "one"), 0);
	p.interface = name;
	for (uint32_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%u", i % (n - 1));
		assert_int_equal(pcapng_put(&w, &p), 0);
	}
	pcapng_end(&w);
	size = ftell(out);
	bytes = malloc((size_t)size);
	rewind(out);
	assert_int_equal(fread(bytes, (size_t)size, 1, out), 1);
	fclose(out);
	pcapng_reader_begin(&reader, bytes, (size_t)size);
	for (uint32_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%u", i % (n - 1));
		assert_int_equal(pcapng_reader_next(&reader, &block), 0);
		assert_string_equal(block.interface, name);
	}
	assert_int_equal(pcapng_reader_next(&reader, &block), 0);
	assert_int_equal(block.kind, PCAPNG_END);
	pcapng_reader_end(&reader);
	free(bytes);
	assert_int_equal(netdev_pcap_open(sections, &port, error, sizeof(error)), 0);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(netdev_rx(port, 0, &frame, 1), 1);
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 0);
	netdev_close(port);
	unlink(sections);
}

static void a_full_disk_is_an_error(void **state)
{
	FILE *out = fopen("/dev/full", "w");

	(void)state;
	setvbuf(out, NULL, _IONBF, 0);
	assert_int_equal(pcapng_begin(&w, out, "test", "one"), -ENOSPC);
	fclose(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_packets_are_read_back_by_libpcap),
		cmocka_unit_test(too_long_packets_and_comments_are_refused),
		cmocka_unit_test(any_number_of_interfaces_can_be_written),
		cmocka_unit_test(a_full_disk_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
