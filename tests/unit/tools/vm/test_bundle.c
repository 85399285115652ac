/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The bundle that a device process hands to the process that replaces it, of earlier versions:
 * bundles/vVERSION/bundle. Each descriptor must return in its own place.
 *
 * `test_tools_bundle --write FILE` writes a stream of the current version, to be kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kept_stream.h"
#include "vm/replace/bundle.h"

#define FIRST_EVENTFDS 2u /* descriptors of function 0; function 1 has one */

static char function_bytes[BUNDLE_FUNCTIONS][8] = {"nic-bits", "hca-bits"};

/* --- An example, with a file for each descriptor: the file's size is its number. */

static int numbered_file(off_t number)
{
	const int fd = memfd_create("numbered", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, number), 0);
	return fd;
}

static off_t number_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_size;
}

static void make_function(struct vnic_vfio_handover *h, uint32_t n_fds, off_t first, char *bytes)
{
	h->n_fds = n_fds;
	for (uint32_t i = 0; i < n_fds; i++)
		h->fds[i] = numbered_file(first + i);
	h->length = sizeof(function_bytes[0]);
	h->stream = malloc(h->length);
	memcpy(h->stream, bytes, h->length);
}

static void make_example(struct bundle *b)
{
	*b = (struct bundle){
		.options = {.mac = {2, 3, 4, 5, 6, 7},
			    .mtu = 8900,
			    .roce_v1 = true,
			    .map_doorbells = true},
		.listeners = {numbered_file(10), numbered_file(11)},
		.replace_listener = numbered_file(12),
		.doorbells = numbered_file(13),
		.link = {.joined = true,
			 .mtu = 9000,
			 .sent = 0x12345678,
			 .socket = numbered_file(14),
			 .fds = {.memory = numbered_file(15),
				 .wake = numbered_file(16),
				 .kick = numbered_file(17)}},
	};
	make_function(&b->functions[0], FIRST_EVENTFDS, 20, function_bytes[0]);
	make_function(&b->functions[1], 1, 30, function_bytes[1]);
}

static void encode(const struct bundle *b, uint8_t **stream, size_t *length, int fds[BUNDLE_FDS],
		   uint32_t *n_fds)
{
	assert_int_equal(bundle_encode(b, stream, length, fds, n_fds), 0);
}

/* --- The test */

static void expect_function(const struct vnic_vfio_handover *h, uint32_t n_fds, off_t first,
			    const char *bytes)
{
	assert_int_equal(h->n_fds, n_fds);
	for (uint32_t i = 0; i < n_fds; i++)
		assert_int_equal(number_of(h->fds[i]), first + i);
	assert_int_equal(h->length, sizeof(function_bytes[0]));
	assert_memory_equal(h->stream, bytes, h->length);
}

static void expect_example(const struct bundle *b)
{
	static const uint8_t mac[] = {2, 3, 4, 5, 6, 7};

	assert_memory_equal(b->options.mac, mac, sizeof(mac));
	assert_int_equal(b->options.mtu, 8900);
	assert_true(b->options.roce_v1 && b->options.map_doorbells);
	assert_int_equal(number_of(b->listeners[0]), 10);
	assert_int_equal(number_of(b->listeners[1]), 11);
	assert_int_equal(number_of(b->replace_listener), 12);
	assert_int_equal(number_of(b->doorbells), 13);
	assert_true(b->link.joined);
	assert_int_equal(b->link.mtu, 9000);
	assert_int_equal(b->link.sent, 0x12345678);
	assert_int_equal(number_of(b->link.socket), 14);
	assert_int_equal(number_of(b->link.fds.memory), 15);
	assert_int_equal(number_of(b->link.fds.wake), 16);
	assert_int_equal(number_of(b->link.fds.kick), 17);
	expect_function(&b->functions[0], FIRST_EVENTFDS, 20, function_bytes[0]);
	expect_function(&b->functions[1], 1, 30, function_bytes[1]);
}

/* The decoder owns the descriptors that it gets. */
static void decode_kept(uint32_t version, const int fds[BUNDLE_FDS], uint32_t n_fds)
{
	int copies[BUNDLE_FDS];
	struct bundle b;
	uint8_t *stream;
	size_t length;

	for (uint32_t i = 0; i < n_fds; i++)
		copies[i] = dup(fds[i]);
	stream = kept_stream_of_version(BUNDLES, version, "bundle", &length);
	assert_int_equal(bundle_decode(&b, stream, length, copies, n_fds), 0);
	free(stream);
	expect_example(&b);
	bundle_close(&b);
}

static void test_bundles_of_each_version_are_decoded(void **state)
{
	int fds[BUNDLE_FDS];
	struct bundle b;
	uint32_t n_fds, newest;
	uint8_t *stream;
	size_t length;

	(void)state;
	make_example(&b);
	encode(&b, &stream, &length, fds, &n_fds);
	newest = kept_stream_version(stream);
	free(stream);
	for (uint32_t version = 1; version <= newest; version++)
		decode_kept(version, fds, n_fds);
	bundle_close(&b);
}

static int write_bundle(const char *path)
{
	int fds[BUNDLE_FDS];
	struct bundle b;
	uint32_t n_fds;
	uint8_t *stream;
	size_t length;

	make_example(&b);
	encode(&b, &stream, &length, fds, &n_fds);
	kept_stream_write(path, stream, length);
	free(stream);
	bundle_close(&b);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bundles_of_each_version_are_decoded),
	};

	if (argc == 3 && !strcmp(argv[1], "--write"))
		return write_bundle(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
