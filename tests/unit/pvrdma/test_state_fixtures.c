/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Streams of earlier versions of the device's state, kept as files: vVERSION/transfer-SIDE. The
 * devices of two guests in the middle of a WRITE are replaced by those of the files, and go on.
 *
 * `test_pvrdma_state_fixtures --write DIRECTORY` writes the files of the current version.
 */
#include "pair.h"

#include <stdlib.h>

#include "kept_stream.h"

#define LENGTH   100000u
#define RECEIVES 4u
#define PIECE    1000u

static void post_write(struct pair *p)
{
	const struct pvrdma_sge sge = buffer_sge(&p->buffer[0], 0, LENGTH);
	const struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_RDMA_WRITE, 4000);

	buffer_fill(&p->guest[0], &p->buffer[0], 0, LENGTH, 9);
	qp_post_send(&p->guest[0], &p->qp[0], &header, &sge);
}

/* Guest 1 has receive requests, an armed CQ, and a part of the WRITE of guest 0. */
static void build(struct pair *p)
{
	pair_open(p, &(struct pair_attr){.type = PV_QPT_RC, .net = URXE_NET_IPV4});
	for (uint64_t i = 0; i < RECEIVES; i++) {
		struct pvrdma_sge sge = buffer_sge(&p->buffer[1], 130000 + i * PIECE, PIECE);

		qp_post_recv(&p->guest[1], &p->qp[1], 70 + i, &sge, 1);
	}
	cq_arm(&p->guest[1], &p->cq[1], false);
	post_write(p);
	for (int i = 0; i < 3; i++)
		net_step(&p->net);
	assert_false(buffer_has(&p->guest[1], &p->buffer[1], 4000, LENGTH, 9));
}

/* Returns the version of the device. */
static uint32_t restore_file(struct pair *p, uint32_t version, int side)
{
	const char *const names[] = {"transfer-0", "transfer-1"};
	uint32_t newest;
	uint8_t *stream;
	size_t length;

	guest_save(&p->guest[side], &stream, &length);
	newest = kept_stream_version(stream);
	free(stream);
	stream = kept_stream_of_version(PVRDMA_STATES, version, names[side], &length);
	assert_int_equal(guest_restore(&p->guest[side], stream, length), 0);
	free(stream);
	return newest;
}

static void expect_write(struct pair *p)
{
	net_run(&p->net);
	expect_cqe(p, 0, 1, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
	assert_true(buffer_has(&p->guest[1], &p->buffer[1], 4000, LENGTH, 9));
}

/* The receive requests are those of the file. */
static void send_pieces(struct pair *p)
{
	const struct pvrdma_sq_wqe_hdr header = rdma_header(p, PVRDMA_WR_SEND, 0);
	uint32_t handle;

	for (uint64_t i = 0; i < RECEIVES; i++) {
		execute(p, &header, 0, PIECE);
		expect_cqe(p, 1, 70 + i, PVRDMA_WC_SUCCESS, PVRDMA_WC_RECV);
		assert_true(buffer_has(&p->guest[1], &p->buffer[1], 130000 + i * PIECE, PIECE, 9));
	}
	assert_true(guest_notification(&p->guest[1], &handle));
	assert_int_equal(handle, p->cq[1].handle);
}

static void test_streams_of_each_version_are_restored(void **state)
{
	struct pair p;

	(void)state;
	for (uint32_t version = 1, newest = 1; version <= newest; version++) {
		build(&p);
		for (int side = 0; side < 2; side++)
			newest = restore_file(&p, version, side);
		expect_write(&p);
		send_pieces(&p);
		pair_close(&p);
	}
}

static int write_files(const char *directory)
{
	char path[KEPT_STREAM_PATH_SIZE];
	struct pair p;

	build(&p);
	for (int side = 0; side < 2; side++) {
		uint8_t *stream;
		size_t length;

		guest_save(&p.guest[side], &stream, &length);
		require(snprintf(path, sizeof(path), "%s/transfer-%d", directory, side) <
			(int)sizeof(path));
		kept_stream_write(path, stream, length);
		free(stream);
	}
	pair_close(&p);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_streams_of_each_version_are_restored),
	};

	if (argc == 3 && !strcmp(argv[1], "--write"))
		return write_files(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
