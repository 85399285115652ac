/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Work requests in librxe's rings, valid and invalid; and the rings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "queues/librxe_ring.h"
#include "queues/wqe.h"

#define MAX_SGE 4

/* An element of a ring, with room for the excessive lengths that an invalid request states. */
static union {
	struct rxe_send_wqe send;
	struct rxe_recv_wqe recv;
	uint8_t bytes[4096];
} element;

static const struct wqe_limits rc = {URXE_QPT_RC, MAX_SGE, 64};
static const struct wqe_limits ud = {URXE_QPT_UD, MAX_SGE, 64};

static int reset(void **state)
{
	(void)state;
	memset(&element, 0, sizeof(element));
	return 0;
}

/* A program changes only the opcode and the key of a request that it has used before. */
static void data_of_local_requests_is_ignored(void **state)
{
	static const uint32_t opcodes[] = {URXE_WR_BIND_MW, URXE_WR_LOCAL_INV};
	struct rxe_send_wqe *wqe = &element.send;
	struct send_request got;

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		wqe->wr.opcode = opcodes[i % 2];
		wqe->wr.send_flags = URXE_SEND_SIGNALED | (i < 2 ? 0 : URXE_SEND_INLINE);
		wqe->dma.num_sge = MAX_SGE + 1;
		wqe->dma.length = 8;
		assert_int_equal(wqe_read_send(&got, wqe, &rc), 0);
		assert_int_equal(got.wr.flags, URXE_SEND_SIGNALED);
		assert_int_equal(got.wr.n_segs, 0);
		assert_int_equal(got.wr.inline_len, 0);
	}
}

static void write_request_is_read_from_its_wqe(void **state)
{
	struct rxe_send_wqe *wqe = &element.send;
	struct send_request got;

	(void)state;
	wqe->wr.wr_id = 0x1122334455667788;
	wqe->wr.opcode = URXE_WR_RDMA_WRITE_IMM;
	wqe->wr.send_flags = URXE_SEND_SIGNALED | 0x100;
	wqe->wr.ex.imm_data = 0xdeadbeef;
	wqe->wr.wr.rdma.remote_addr = 0x1000;
	wqe->wr.wr.rdma.rkey = 7;
	wqe->dma.num_sge = 2;
	wqe->dma.length = 30;
	wqe->dma.sge[0] = (struct rxe_sge){0x2000, 10, 1};
	wqe->dma.sge[1] = (struct rxe_sge){0x3000, 20, 2};
	assert_int_equal(wqe_read_send(&got, wqe, &rc), 0);
	assert_int_equal(got.wr.wr_id, 0x1122334455667788);
	assert_int_equal(got.wr.opcode, URXE_WR_RDMA_WRITE_IMM);
	assert_int_equal(got.wr.flags, URXE_SEND_SIGNALED);
	assert_int_equal(got.wr.imm, 0xdeadbeef);
	assert_int_equal(got.wr.remote_addr, 0x1000);
	assert_int_equal(got.wr.rkey, 7);
	assert_int_equal(got.wr.n_segs, 2);
	assert_int_equal(got.wr.segs[1].addr, 0x3000);
	assert_int_equal(got.wr.segs[1].length, 20);
	assert_int_equal(got.wr.segs[1].lkey, 2);
	/* The request has been copied: the ring's element may change now. */
	memset(&element, 0xff, sizeof(element));
	assert_int_equal(got.wr.segs[0].addr, 0x2000);
}

/*
 * As ibv_wr_set_inline_data leaves the element: without the inline flag, but with a length and no
 * segments.
 */
static void reads_inline_data(void **state)
{
	struct rxe_send_wqe *wqe = &element.send;
	struct send_request got;

	(void)state;
	wqe->wr.opcode = URXE_WR_SEND;
	wqe->dma.length = 5;
	memcpy(wqe->dma.inline_data, "hello", 5);
	assert_int_equal(wqe_read_send(&got, wqe, &rc), 0);
	assert_int_equal(got.wr.flags, URXE_SEND_INLINE);
	assert_int_equal(got.wr.inline_len, 5);
	assert_memory_equal(got.wr.inline_data, "hello", 5);
	wqe->dma.length = rc.max_inline + 1;
	assert_int_equal(wqe_read_send(&got, wqe, &rc), -22);
	/* A message of 0 bytes is valid. */
	wqe->dma.length = 0;
	assert_int_equal(wqe_read_send(&got, wqe, &rc), 0);
	assert_int_equal(got.wr.flags, 0);
	assert_int_equal(got.wr.n_segs, 0);
}

static void reads_an_atomic(void **state)
{
	struct rxe_send_wqe *wqe = &element.send;
	struct send_request got;

	(void)state;
	wqe->wr.opcode = URXE_WR_COMPARE_SWAP;
	wqe->wr.wr.atomic.remote_addr = 0x1008;
	wqe->wr.wr.atomic.rkey = 9;
	wqe->wr.wr.atomic.compare_add = 1;
	wqe->wr.wr.atomic.swap = 2;
	assert_int_equal(wqe_read_send(&got, wqe, &rc), 0);
	assert_int_equal(got.wr.remote_addr, 0x1008);
	assert_int_equal(got.wr.rkey, 9);
	assert_int_equal(got.wr.compare_add, 1);
	assert_int_equal(got.wr.swap, 2);
}

static void bind_request_is_read_from_its_wqe(void **state)
{
	struct rxe_send_wqe *wqe = &element.send;
	struct send_request got;

	(void)state;
	wqe->wr.opcode = URXE_WR_BIND_MW;
	wqe->wr.wr.mw.addr = 0x123456789000;
	wqe->wr.wr.mw.length = 0x100000001;
	wqe->wr.wr.mw.mr_lkey = 0x11;
	wqe->wr.wr.mw.mw_rkey = 0x2201;
	wqe->wr.wr.mw.rkey = 0x2202;
	wqe->wr.wr.mw.access = URXE_ACCESS_REMOTE_READ | 1u << 31;
	assert_int_equal(wqe_read_send(&got, wqe, &rc), 0);
	assert_int_equal(got.wr.bind.addr, 0x123456789000);
	assert_int_equal(got.wr.bind.length, 0x100000001);
	assert_int_equal(got.wr.bind.mr_key, 0x11);
	assert_int_equal(got.wr.bind.mw_key, 0x2201);
	assert_int_equal(got.wr.bind.tag, 2);
	assert_int_equal(got.wr.bind.access, URXE_ACCESS_REMOTE_READ | 1u << 31); /* the engine's */
}

/* The offsets of Linux 6.2's headers: fields of 8, 4, 4, 1 and 1 bytes. */
static void reads_a_flush(void **state)
{
	static const uint8_t part[] = {0,    0x10, 0, 0, 0, 0, 0, 0, 0x20,
				       0x30, 0,    0, 7, 0, 0, 0, 2, 1};
	struct rxe_send_wqe *wqe = &element.send;
	struct send_request got;

	(void)state;
	wqe->wr.opcode = URXE_WR_FLUSH;
	memcpy(&wqe->wr.wr, part, sizeof(part));
	assert_int_equal(wqe_read_send(&got, wqe, &rc), 0);
	assert_int_equal(got.wr.remote_addr, 0x1000);
	assert_int_equal(got.wr.rkey, 7);
	assert_int_equal(got.wr.flush.length, 0x3020);
	assert_int_equal(got.wr.flush.placement, URXE_FLUSH_PERSISTENT);
	assert_int_equal(got.wr.flush.selectivity, URXE_FLUSH_KEY);
}

/* The data lie in the ring, as ibv_wr_atomic_write leaves them, or in a segment. */
static void reads_an_atomic_write(void **state)
{
	struct rxe_send_wqe *wqe = &element.send;
	struct send_request got;

	(void)state;
	wqe->wr.opcode = URXE_WR_ATOMIC_WRITE;
	wqe->wr.wr.rdma.remote_addr = 0x1008;
	wqe->wr.wr.rdma.rkey = 9;
	wqe->dma.length = 8;
	assert_int_equal(wqe_read_send(&got, wqe, &rc), 0);
	assert_int_equal(got.wr.remote_addr, 0x1008);
	assert_int_equal(got.wr.rkey, 9);
	assert_int_equal(got.wr.flags, URXE_SEND_INLINE);
	assert_int_equal(got.wr.inline_len, 8);
	assert_ptr_equal(got.wr.inline_data, wqe->dma.inline_data);
	wqe->dma.num_sge = 1;
	wqe->dma.sge[0] = (struct rxe_sge){0x2000, 8, 1};
	assert_int_equal(wqe_read_send(&got, wqe, &rc), 0);
	assert_int_equal(got.wr.flags, 0);
	assert_int_equal(got.wr.n_segs, 1);
	assert_int_equal(got.wr.segs[0].addr, 0x2000);
}

static void reads_invalidations(void **state)
{
	static const uint32_t opcodes[] = {URXE_WR_LOCAL_INV, URXE_WR_SEND_INV};
	struct rxe_send_wqe *wqe = &element.send;
	struct send_request got;

	(void)state;
	for (int i = 0; i < 2; i++) {
		wqe->wr.opcode = opcodes[i];
		wqe->wr.ex.invalidate_rkey = 0x12345678;
		assert_int_equal(wqe_read_send(&got, wqe, &rc), 0);
		assert_int_equal(got.wr.opcode, opcodes[i]);
		assert_int_equal(got.wr.invalidate_key, 0x12345678);
	}
}

static void reads_inline_data_in_place(void **state)
{
	struct rxe_send_wqe *wqe = &element.send;
	struct send_request got;

	(void)state;
	wqe->wr.opcode = URXE_WR_SEND;
	wqe->wr.send_flags = URXE_SEND_INLINE;
	wqe->dma.length = 64;
	wqe->dma.num_sge = 1000; /* not looked at */
	assert_int_equal(wqe_read_send(&got, wqe, &rc), 0);
	assert_int_equal(got.wr.inline_len, 64);
	assert_int_equal(got.wr.n_segs, 0);
	assert_ptr_equal(got.wr.inline_data, wqe->dma.inline_data);
}

static void reads_a_datagram_by_number_or_address(void **state)
{
	struct rxe_send_wqe *wqe = &element.send;
	struct send_request got;

	(void)state;
	wqe->wr.opcode = URXE_WR_SEND;
	wqe->wr.wr.ud.remote_qpn = 5;
	wqe->wr.wr.ud.remote_qkey = 6;
	wqe->wr.wr.ud.ah_num = 3;
	assert_int_equal(wqe_read_send(&got, wqe, &ud), 0);
	assert_int_equal(got.ah, 3);
	assert_int_equal(got.wr.remote_qpn, 5);
	assert_int_equal(got.wr.remote_qkey, 6);

	wqe->wr.wr.ud.ah_num = 0;
	wqe->wr.wr.ud.av.grh.sgid_index = 2;
	wqe->wr.wr.ud.av.grh.hop_limit = 64;
	wqe->wr.wr.ud.av.grh.flow_label = 0xfff12345;
	wqe->wr.wr.ud.av.grh.dgid.raw[15] = 8;
	wqe->wr.wr.ud.av.dmac[5] = 9;
	assert_int_equal(wqe_read_send(&got, wqe, &ud), 0);
	assert_int_equal(got.ah, 0);
	assert_ptr_equal(got.wr.path, &got.path);
	assert_int_equal(got.path.sgid_index, 2);
	assert_int_equal(got.path.hop_limit, 64);
	assert_int_equal(got.path.flow_label, 0x12345);
	assert_int_equal(got.path.dgid.raw[15], 8);
	assert_int_equal(got.path.dmac[5], 9);
	/* A connected QP uses its own path, not the request's. */
	assert_int_equal(wqe_read_send(&got, wqe, &rc), 0);
	assert_null(got.wr.path);
}

static void malformed_send_wqes_are_refused(void **state)
{
	struct rxe_send_wqe *wqe = &element.send;
	struct send_request got;

	(void)state;
	wqe->wr.wr_id = 77;
	wqe->wr.opcode = URXE_WR_SEND;
	wqe->dma.num_sge = MAX_SGE;
	assert_int_equal(wqe_read_send(&got, wqe, &rc), 0);
	wqe->dma.num_sge = MAX_SGE + 1;
	assert_int_equal(wqe_read_send(&got, wqe, &rc), -22);
	assert_int_equal(got.wr.wr_id, 77);
	wqe->dma.num_sge = UINT32_MAX;
	assert_int_equal(wqe_read_send(&got, wqe, &rc), -22);
	wqe->wr.send_flags = URXE_SEND_INLINE;
	wqe->dma.length = 65;
	assert_int_equal(wqe_read_send(&got, wqe, &rc), -22);
	wqe->wr.send_flags = 0;
	wqe->dma.num_sge = 0;
	for (uint32_t opcode = URXE_WR_SEND_INV + 1; opcode < 300; opcode++) {
		if (opcode == URXE_WR_FLUSH || opcode == URXE_WR_ATOMIC_WRITE)
			continue;
		wqe->wr.opcode = opcode;
		assert_int_equal(wqe_read_send(&got, wqe, &rc), -22);
	}
}

static void receive_with_too_many_segments_is_refused(void **state)
{
	struct rxe_recv_wqe *wqe = &element.recv;
	struct recv_request got;

	(void)state;
	wqe->wr_id = 42;
	wqe->dma.num_sge = 1;
	wqe->dma.sge[0] = (struct rxe_sge){0x5000, 100, 3};
	assert_int_equal(wqe_read_recv(&got, wqe, MAX_SGE), 0);
	assert_int_equal(got.wr.wr_id, 42);
	assert_int_equal(got.wr.n_segs, 1);
	assert_int_equal(got.wr.segs[0].length, 100);
	wqe->dma.num_sge = MAX_SGE + 1;
	assert_int_equal(wqe_read_recv(&got, wqe, MAX_SGE), -22);
	assert_int_equal(got.wr.wr_id, 42);
	/* The copy is bounded although the ring states too many segments. */
	wqe->dma.num_sge = URXE_MAX_SGE + 1;
	assert_int_equal(wqe_read_recv(&got, wqe, UINT32_MAX), -22);
}

static void rings_stack_downwards(void **state)
{
	struct ring_space space = {.top = 1 << 20};
	struct queue queue;
	int fd = memfd_create("rings", 0);

	(void)state;
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(queue_create(&queue, &space, fd, 100, 200), 0);
	assert_int_equal(queue_capacity(&queue), 127);
	assert_int_equal(queue.buf->index_mask, 127);
	assert_int_equal(queue.buf->log2_elem_size, 8);
	assert_int_equal(queue_mminfo(&queue).offset, space.offset);
	assert_int_equal(space.offset + queue_mminfo(&queue).size, 1 << 20);
	queue_destroy(&queue, &space);
	assert_int_equal(queue_create(&queue, &space, fd, 1 << 20, 200), -12);
	ring_space_close(&space);
	close(fd);
}

static void indices_are_masked(void **state)
{
	struct ring_space space = {.top = 1 << 20};
	struct work_queue wq = {0};
	int fd = memfd_create("rings", 0);

	(void)state;
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(queue_create(&wq.ring, &space, fd, 7, 64), 0);
	wq.ring.buf->producer_index = 5;
	assert_int_equal(work_queue_posted(&wq), 5);
	/* An index out of range is masked: the access stays in the ring. */
	wq.ring.buf->producer_index = 0xfffffff3;
	wq.ring.buf->index_mask = UINT32_MAX;
	assert_int_equal(work_queue_posted(&wq), 3);
	wq.cursor = 6;
	assert_int_equal(work_queue_posted(&wq), 5);
	work_queue_release(&wq, 11);
	assert_int_equal(wq.ring.buf->consumer_index, 3);
	/* After a reset the ring is empty, and its indices continue. */
	work_queue_drop(&wq, 20);
	assert_int_equal(work_queue_posted(&wq), 0);
	assert_int_equal(wq.ring.buf->consumer_index, 3);
	work_queue_release(&wq, 21);
	assert_int_equal(wq.ring.buf->consumer_index, 4);
	queue_destroy(&wq.ring, &space);
	ring_space_close(&space);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(data_of_local_requests_is_ignored, reset),
		cmocka_unit_test_setup(write_request_is_read_from_its_wqe, reset),
		cmocka_unit_test_setup(reads_inline_data, reset),
		cmocka_unit_test_setup(reads_an_atomic, reset),
		cmocka_unit_test_setup(bind_request_is_read_from_its_wqe, reset),
		cmocka_unit_test_setup(reads_invalidations, reset),
		cmocka_unit_test_setup(reads_a_flush, reset),
		cmocka_unit_test_setup(reads_an_atomic_write, reset),
		cmocka_unit_test_setup(reads_inline_data_in_place, reset),
		cmocka_unit_test_setup(reads_a_datagram_by_number_or_address, reset),
		cmocka_unit_test_setup(malformed_send_wqes_are_refused, reset),
		cmocka_unit_test_setup(receive_with_too_many_segments_is_refused, reset),
		cmocka_unit_test(rings_stack_downwards),
		cmocka_unit_test(indices_are_masked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
