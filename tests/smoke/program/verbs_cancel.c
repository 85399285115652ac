/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread that pthread_cancel(3) is to end uses the device, its files, memory of the device, and
 * the functions for checkpointers. It ends at the program's next cancellation point and not in
 * these calls: urxe's locks would stay taken, and its descriptors open. Afterwards the other thread
 * uses the device. A thread that waits for an event of rdma_cm ends there.
 */
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "checkpoint/checkpoint.h"
#include "descriptor_count.h"
#include "loop.h"

#define REMOTE_QPN 0x777777

#define GID_INDEX 1

static struct ibv_context *context;
static union ibv_gid gid;
/* The step of the thread that is to be cancelled; NULL after the last one. */
static const char *volatile step;

static void use_device(void)
{
	static const struct loop_retries retries = {.timeout = 14, .retry_cnt = 7};
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	struct ibv_qp *qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_wc wc;

	if (!qp)
		err(1, "cannot create a queue pair");
	loop_connect_to(qp, REMOTE_QPN, &gid, &retries);
	if (ibv_post_send(qp, &wr, &bad) || ibv_poll_cq(cq, 1, &wc) < 0)
		err(1, "cannot post or poll");
	if (ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_dealloc_pd(pd))
		err(1, "cannot destroy the objects");
}

/* The C library's stat() and fstat() are no cancellation points. */
static void look_at_device(void)
{
	char path[128];
	struct stat by_fd, by_path;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", context->device->dev_name);
	if (fstat(context->cmd_fd, &by_fd) || stat(path, &by_path))
		err(1, "cannot look at the device");
	if (!S_ISCHR(by_path.st_mode) || by_fd.st_rdev != by_path.st_rdev)
		errx(1, "%s is no device, or not that of the descriptor", path);
}

/* Nor is shmdt(), for which the library reads the mappings of the process. */
static void detach_registered_memory(void)
{
	const size_t length = 3 * (size_t)sysconf(_SC_PAGESIZE);
	int segment = shmget(IPC_PRIVATE, length, 0600);
	void *memory = segment < 0 ? (void *)-1 : shmat(segment, NULL, 0);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_mr *mr;

	if (memory == (void *)-1 || shmctl(segment, IPC_RMID, NULL) || !pd)
		err(1, "cannot get memory");
	mr = ibv_reg_mr(pd, memory, length, IBV_ACCESS_LOCAL_WRITE);
	if (!mr || shmdt(memory) || ibv_dereg_mr(mr) || ibv_dealloc_pd(pd))
		err(1, "cannot register and detach memory");
}

/* Exported by the preloaded library. */
static void *checkpoint_function(const char *name)
{
	void *function = dlsym(RTLD_DEFAULT, name);

	if (!function)
		errx(1, "no function %s", name);
	return function;
}
#define CHECKPOINT(name) ((__typeof__(&name))checkpoint_function(#name))

/* An ID of rdma_cm, so that the library asks the daemon, and waits for its answer. */
static void checkpoint(struct rdma_event_channel *channel, int stream)
{
	struct rdma_cm_id *id;

	step = "rdma_create_id";
	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		err(1, "cannot create an ID of rdma_cm");
	step = "urxe_checkpoint_quiesce";
	if (CHECKPOINT(urxe_checkpoint_quiesce)(30000))
		errx(1, "%s", CHECKPOINT(urxe_checkpoint_error)());
	step = "urxe_checkpoint_save";
	if (CHECKPOINT(urxe_checkpoint_save)(stream))
		errx(1, "%s", CHECKPOINT(urxe_checkpoint_error)());
	step = "urxe_checkpoint_resume";
	if (CHECKPOINT(urxe_checkpoint_resume)())
		errx(1, "%s", CHECKPOINT(urxe_checkpoint_error)());
	step = "rdma_destroy_id";
	if (rdma_destroy_id(id))
		err(1, "cannot destroy the ID of rdma_cm");
}

/* What the thread needs, and what it must not open itself: open() is a cancellation point. */
struct needs {
	struct rdma_event_channel *channel;
	int stream, empty;
};

/* With a kernel, too, the thread would end here: close() is a cancellation point. */
static void close_device(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ibv_close_device(context);
	pthread_setcancelstate(state, NULL);
}

static void *run_when_cancelled(void *arg)
{
	const struct needs *needs = arg;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(state, NULL);
	step = "a verbs call";
	use_device();
	step = "stat";
	look_at_device();
	step = "shmdt";
	detach_registered_memory();
	checkpoint(needs->channel, needs->stream);
	close_device();
	step = "urxe_checkpoint_restore";
	if (CHECKPOINT(urxe_checkpoint_restore)(needs->empty) != -EBADMSG)
		errx(1, "the library has restored an empty stream");
	step = NULL;
	pthread_testcancel();
	return arg;
}

/* False: the thread ended in a call. */
static bool run_cancelled_thread(void)
{
	struct needs needs = {.channel = rdma_create_event_channel(),
			      .stream = open("/dev/null", O_WRONLY | O_CLOEXEC),
			      .empty = memfd_create("stream", MFD_CLOEXEC)};
	unsigned int before, after;
	pthread_t thread;
	void *result;

	if (!needs.channel || needs.stream < 0 || needs.empty < 0)
		err(1, "cannot open what the thread needs");
	context = loop_open();
	use_device();
	ibv_close_device(context);
	before = descriptor_count();
	context = loop_open();
	if (pthread_create(&thread, NULL, run_when_cancelled, &needs) ||
	    pthread_join(thread, &result))
		errx(1, "cannot start a thread");
	if (step) {
		warnx("the thread ended in %s", step);
		return false;
	}
	if (result != PTHREAD_CANCELED)
		errx(1, "the thread was not cancelled");
	after = descriptor_count();
	if (after != before)
		errx(1, "%u descriptors after the thread, %u before", after, before);
	rdma_destroy_event_channel(needs.channel);
	return true;
}

static void *await_event(void *channel)
{
	struct rdma_cm_event *event;

	rdma_get_cm_event(channel, &event);
	return NULL;
}

static void cancel_waiter(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	pthread_t thread;
	void *result;

	if (!channel || pthread_create(&thread, NULL, await_event, channel))
		err(1, "cannot wait for an event");
	usleep(100000); /* so that the thread waits */
	if (pthread_cancel(thread) || pthread_join(thread, &result) || result != PTHREAD_CANCELED)
		errx(1, "the thread that waits for an event was not cancelled");
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	bool done;

	alarm(60); /* ends a program that waits for a lock */
	context = loop_open();
	loop_query_gid(context, &gid);
	ibv_close_device(context);
	done = run_cancelled_thread();
	context = loop_open();
	use_device();
	ibv_close_device(context);
	cancel_waiter();
	return !done;
}
