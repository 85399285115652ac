/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Asynchronous events of queue pairs and CQs: when the program gets them. */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop_cq.h"
#include "objects/comp_channel.h"
#include "queues/publish.h"
#include "queues/verbs_qp.h"

#define MTU    1500
#define HANDLE 0x11u

ssize_t __real_send(int socket, const void *buffer, size_t length, int flags);
ssize_t __wrap_send(int socket, const void *buffer, size_t length, int flags);

static struct loop_cq device;
static int events;
static struct rxe_queue_buf no_receives;
/* `dirty`: nothing of the queue pair is published. */
static struct qp qp = {
	.object = {.type = OBJECT_QP, .file = &device.context},
	.recv.wq.ring.buf = &no_receives,
	.dirty = true,
};
static uint32_t visible; /* completions that the program found at the last event */

ssize_t __wrap_send(int socket, const void *buffer, size_t length, int flags)
{
	visible = queue_producer(&device.cq.ring);
	return __real_send(socket, buffer, length, flags);
}

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static bool no_memory;

void *__wrap_realloc(void *memory, size_t size)
{
	return no_memory ? NULL : __real_realloc(memory, size);
}

static int setup(void **state)
{
	(void)state;
	loop_cq_open(&device, MTU, 1, HANDLE);
	assert_int_equal(comp_channel_create(sizeof(struct comp_channel_event), true, NULL,
					     &device.context.async, &events),
			 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	urxe_qp_destroy(qp.qp);
	fd_remove(events);
	close(events);
	loop_cq_close(&device);
	return 0;
}

/* A queue pair with one receive more than the CQ has room for. */
static void create_qp(void)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_INIT, .port = 1};
	const struct urxe_qp_init init = {
		.ctx = &qp,
		.type = URXE_QPT_UD,
		.qpn = 0x100,
		.send_cq = device.cq.cq,
		.recv_cq = device.cq.cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 16},
	};
	const struct urxe_recv_wr wr = {.wr_id = 1};

	assert_int_equal(urxe_qp_create(adapter.dev, &init, &qp.qp), 0);
	assert_int_equal(
		urxe_qp_modify(qp.qp, 0, &attr,
			       URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_QKEY),
		0);
	for (uint32_t i = 0; i <= queue_capacity(&device.cq.ring); i++)
		assert_int_equal(urxe_post_recv(urxe_qp_rq(qp.qp), &wr), 0);
}

/* Its flushed receives overflow the CQ, which causes the event. */
static void fail_qp(void)
{
	const struct urxe_qp_attr error = {.state = URXE_QPS_ERR};

	assert_int_equal(urxe_qp_modify(qp.qp, 0, &error, URXE_QP_STATE), 0);
}

/* A program that gets the event, and then polls the CQ until it is empty, misses none. */
static void an_event_comes_after_the_completions_before_it(void **state)
{
	struct comp_channel_event event;

	(void)state;
	create_qp();
	adapter_lock();
	fail_qp();
	adapter_publish();
	adapter_unlock();
	assert_int_equal(recv(events, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
	assert_int_equal(event.type, URXE_ASYNC_CQ_ERR);
	assert_int_equal(event.element, HANDLE);
	assert_int_equal(visible, queue_capacity(&device.cq.ring));
	assert_int_equal(recv(events, &event, sizeof(event), MSG_DONTWAIT), -1);
	assert_true(LIST_EMPTY(&adapter.waiting_channels));
}

/* As ibv_destroy_cq, which waits for no event that the program has not read. */
static void an_event_that_is_not_sent_yet_can_be_withdrawn(void **state)
{
	struct comp_channel_event event;

	(void)state;
	create_qp();
	adapter_lock();
	fail_qp();
	assert_int_equal(
		comp_channel_withdraw(device.context.async, HANDLE, device.cq.async_events), 0);
	adapter_publish();
	adapter_unlock();
	assert_int_equal(recv(events, &event, sizeof(event), MSG_DONTWAIT), -1);
}

/* ibv_destroy_cq would wait until the program has acknowledged the event. */
static void an_event_that_is_lost_does_not_count(void **state)
{
	struct comp_channel_event event;
	uint32_t read;

	(void)state;
	create_qp();
	adapter_lock();
	no_memory = true;
	fail_qp();
	no_memory = false;
	adapter_publish();
	read = comp_channel_withdraw(device.context.async, HANDLE, device.cq.async_events);
	adapter_unlock();
	assert_int_equal(read, 0);
	assert_int_equal(recv(events, &event, sizeof(event), MSG_DONTWAIT), -1);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: later channels have memory of earlier ones. */
		CASE(an_event_that_is_lost_does_not_count),
		CASE(an_event_comes_after_the_completions_before_it),
		CASE(an_event_that_is_not_sent_yet_can_be_withdrawn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
