/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fork, exec, descriptors and signals of a process with an open device; one check in each run:
 *
 * - fork: a child cannot change its parent's device, and opens a device of its own
 * - fork_init: a child has registered memory after ibv_fork_init, which the program finds by a
 * handle of libibverbs, as NCCL does
 * - handler: a signal handler forks while its thread polls and posts; the child ends in the
 *   handler, or returns from it and then opens a device of its own
 * - stop: a thread forks while another one stops the device, as for a checkpoint
 * - exec: an executed program inherits no descriptor
 * - ranges: after close_range, closefrom, close of all numbers downwards, and dup2 over the
 *   library's descriptors, the device is closed and can be opened again
 * - numbers: duplicated descriptors, and a descriptor number that another file takes over
 * - passing: events and commands on descriptors that were passed to another process
 * - signals: signals interrupt calls without pause
 * - last_thread: the process ends with the last thread of the program, after its main thread
 * - last_cm: the same if the main thread is cancelled, and only rdma_cm is open
 * - last_pending: as last_thread, while a signal that all threads of the program block is pending
 * - last_after_close: as last_thread, after the program has closed rdma_cm by closing all numbers
 * - small_stack: a thread with the smallest stack opens the device and rdma_cm
 * - no_thread: the device cannot be opened at the limit of processes
 * - drop: after the program has given up root, its device connects new queue pairs
 * - gone: a removed device returns errors, raises one event, flushes requests and can be closed
 */
#include <dirent.h>
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>

#include "loop.h"

#define WAIT_MS 60000
/* Numbers of the library's descriptors, with a limit above them. */
#define LOWEST  1024
#define HIGHEST 8191
/* User and group without rights. */
#define UNPRIVILEGED 65534

extern char **environ;

struct device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp; /* in the error state: requests are flushed at once */
	struct ibv_mr *mr;
	char room[64];
};

static bool try_open(struct device *d)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	d->context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	if (list)
		ibv_free_device_list(list);
	return d->context;
}

static void fill(struct device *d)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 8, .max_recv_wr = 8}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	d->pd = ibv_alloc_pd(d->context);
	d->channel = ibv_create_comp_channel(d->context);
	d->cq = d->channel ? ibv_create_cq(d->context, 64, NULL, d->channel, 0) : NULL;
	init.send_cq = init.recv_cq = d->cq;
	d->qp = d->pd && d->cq ? ibv_create_qp(d->pd, &init) : NULL;
	d->mr = d->pd ? ibv_reg_mr(d->pd, d->room, sizeof(d->room), IBV_ACCESS_LOCAL_WRITE) : NULL;
	if (!d->qp || !d->mr ||
	    ibv_modify_qp(d->qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		err(1, "cannot bring a QP to INIT");
	attr.qp_state = IBV_QPS_ERR;
	if (ibv_modify_qp(d->qp, &attr, IBV_QP_STATE))
		err(1, "cannot make objects");
}

static void open_device(struct device *d)
{
	if (!try_open(d))
		err(1, "cannot open the device");
	fill(d);
}

static void close_device(struct device *d)
{
	if (ibv_destroy_qp(d->qp) || ibv_dereg_mr(d->mr) || ibv_destroy_cq(d->cq) ||
	    ibv_destroy_comp_channel(d->channel) || ibv_dealloc_pd(d->pd) ||
	    ibv_close_device(d->context))
		err(1, "cannot take the device down");
}

/* Posts a send and waits for the event of its completion. */
static void work(struct device *d)
{
	struct ibv_send_wr wr = {.wr_id = 7, .opcode = IBV_WR_SEND}, *bad;
	struct pollfd pfd = {d->channel->fd, POLLIN, 0};
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	int n;

	if (ibv_req_notify_cq(d->cq, 0) || ibv_post_send(d->qp, &wr, &bad))
		err(1, "cannot post");
	do
		n = poll(&pfd, 1, WAIT_MS);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		errx(1, "no event");
	if (ibv_get_cq_event(d->channel, &cq, &context) || cq != d->cq)
		err(1, "no event is read");
	ibv_ack_cq_events(cq, 1);
	if (ibv_poll_cq(d->cq, 1, &wc) != 1 || wc.wr_id != 7)
		errx(1, "no completion");
}

static void expect_child(pid_t child, const char *what)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child)
		err(1, "no child");
	if (status)
		errx(1, "%s: status %#x", what, (unsigned int)status);
}

/* Descriptors of the process beside standard input, output and error. */
static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int n = 0;

	if (!dir)
		err(1, "/proc/self/fd");
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.' && atoi(entry->d_name) > 2;
	closedir(dir);
	return n - 1; /* without the directory's descriptor */
}

/* Descriptors that the program began with. */
static int inherited;

/* In the child: inherited objects return errors, and a device of its own works. */
static int child_of(struct device *d)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_port_attr port;
	static struct device own;

	if (!ibv_query_port(d->context, 1, &port) || ibv_alloc_pd(d->context) ||
	    !ibv_modify_qp(d->qp, &attr, IBV_QP_STATE))
		return 1;
	ibv_dereg_mr(d->mr);
	close(d->channel->fd);
	ibv_close_device(d->context);
	if (count_descriptors() != inherited)
		return 2;
	open_device(&own);
	work(&own);
	close_device(&own);
	return 0;
}

/* Forks twice, as daemons do. The second child has none of the library's descriptors, so its own
 * stay open. */
static int grandchild(void)
{
	pid_t child = fork();

	if (!child)
		_exit(fcntl(0, F_GETFD) < 0);
	expect_child(child, "the child's child");
	return 0;
}

static void watch(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		err(1, "epoll_ctl");
}

/* Once parent and child have closed a channel, the kernel has removed it from the epoll set. */
static void check_epoll_beside_child(void)
{
	static struct device d;
	struct epoll_event event;
	int epoll = epoll_create1(EPOLL_CLOEXEC), ends[2];
	char byte = 0;
	pid_t child;

	open_device(&d);
	watch(epoll, d.channel->fd);
	watch(epoll, d.context->async_fd);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		err(1, "socketpair");
	child = fork();
	if (!child) {
		close(ends[0]);
		close(d.channel->fd);
		ibv_close_device(d.context);
		_exit(write(ends[1], &byte, 1) != 1 || read(ends[1], &byte, 1));
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 1)
		errx(1, "a child does not close the device");
	close_device(&d);
	if (epoll_wait(epoll, &event, 1, 100))
		errx(1, "an event of a channel that is closed");
	close(ends[0]);
	expect_child(child, "a child that has closed the device");
	close(epoll);
}

static void check_fork(void)
{
	static struct device d;
	pid_t child;

	open_device(&d);
	work(&d);
	for (int i = 0; i < 5; i++) {
		child = fork();
		if (!child)
			_exit(child_of(&d));
		expect_child(child, "the child");
		work(&d);
	}
	if (system("true"))
		errx(1, "no shell");
	work(&d);
	child = fork();
	if (!child)
		_exit(grandchild());
	expect_child(child, "a child that forks");
	close_device(&d);
	check_epoll_beside_child();
}

static void check_fork_init(void)
{
	static struct device d;
	void *library = dlopen("libibverbs.so.1", RTLD_NOW);
	int (*fork_init)(void) = NULL;
	pid_t child;

	if (library)
		fork_init = (__typeof__(fork_init))dlvsym(library, "ibv_fork_init", "IBVERBS_1.1");
	if (!fork_init || fork_init())
		errx(1, "no ibv_fork_init");
	open_device(&d);
	child = fork();
	if (!child)
		_exit(*(volatile char *)d.room);
	expect_child(child, "a child that reads registered memory");
	close_device(&d);
}

#define HANDLER_FORKS     100
#define HANDLER_PERIOD_US 2000

static volatile sig_atomic_t handler_forks;
static volatile pid_t handler_child; /* 0: this is the child; -1: no child */

/* Every second child returns to the interrupted call. */
static void fork_in_handler(int number)
{
	(void)number;
	if (handler_child >= 0)
		return;
	handler_child = fork();
	if (!handler_child && ++handler_forks % 2)
		_exit(0);
}

static void poll_and_post(struct device *d)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_wc wc;

	for (int i = 0; i < 100; i++)
		if (ibv_poll_cq(d->cq, 1, &wc) < 0)
			errx(1, "cannot poll");
	/* Ignored: the queue may be full. */
	(void)ibv_post_send(d->qp, &wr, &bad);
}

static void check_fork_in_handler(void)
{
	const struct itimerval period = {{0, HANDLER_PERIOD_US}, {0, HANDLER_PERIOD_US}};
	const struct sigaction act = {.sa_handler = fork_in_handler, .sa_flags = SA_RESTART};
	static struct device d;

	open_device(&d);
	handler_child = -1;
	if (sigaction(SIGALRM, &act, NULL) || setitimer(ITIMER_REAL, &period, NULL))
		err(1, "no timer");
	while (handler_forks < HANDLER_FORKS) {
		poll_and_post(&d);
		if (!handler_child)
			_exit(child_of(&d));
		if (handler_child > 0) {
			expect_child(handler_child, "a child that a handler has forked");
			handler_forks++;
			handler_child = -1;
		}
	}
	close_device(&d);
}

#define STOPS 1000

static volatile bool stopped;

static void *fork_children(void *unused)
{
	while (!stopped) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		expect_child(child, "a child beside a checkpointer");
	}
	return unused;
}

/* fork() calls the handlers of rdma_cm first, because their device was opened last. */
static void check_stop(void)
{
	int (*quiesce)(unsigned int timeout_ms) =
		(int (*)(unsigned int))dlsym(RTLD_DEFAULT, "urxe_checkpoint_quiesce");
	int (*resume)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "urxe_checkpoint_resume");
	static struct device d;
	pthread_t thread;
	int stops = 0;

	open_device(&d);
	if (!quiesce || !resume || open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC) < 0)
		err(1, "cannot prepare the checkpointer");
	alarm(WAIT_MS / 1000); /* ends a program whose threads wait for each other */
	if (pthread_create(&thread, NULL, fork_children, NULL))
		errx(1, "no thread");
	for (int i = 0; i < STOPS; i++) {
		const bool quiet = !quiesce(WAIT_MS);

		stops += quiet;
		if (quiet && resume())
			errx(1, "the device does not go on");
	}
	if (!stops)
		errx(1, "the device never stopped");
	stopped = true;
	pthread_join(thread, NULL);
	alarm(0);
	work(&d);
	close_device(&d);
}

/* Executes a program by each exec function; the program checks arguments and environment. */
static void execute(int which)
{
	static char *const argv[] = {
		"sh", "-c", "test \"$* $WORD\" = 'one two three'", "sh", "one", "two", NULL};
	static char *const envp[] = {"WORD=three", NULL};

	putenv(envp[0]);
	switch (which) {
	case 0: execl("/bin/sh", argv[0], argv[1], argv[2], argv[3], "one", "two", NULL); break;
	case 1: execlp("sh", argv[0], argv[1], argv[2], argv[3], "one", "two", NULL); break;
	case 2:
		execle("/bin/sh", argv[0], argv[1], argv[2], argv[3], "one", "two", NULL, envp);
		break;
	case 3: execv("/bin/sh", argv); break;
	case 4: execvp("sh", argv); break;
	case 5: execve("/bin/sh", argv, envp); break;
	case 6: execvpe("sh", argv, envp); break;
	case 7: fexecve(open("/bin/sh", O_RDONLY | O_CLOEXEC), argv, envp); break;
	case 8: execveat(AT_FDCWD, "/bin/sh", argv, envp, 0); break;
	}
	_exit(127);
}

static void check_exec_functions(void)
{
	for (int which = 0; which < 9; which++) {
		pid_t child = fork();

		if (!child)
			execute(which);
		expect_child(child, "a program that was given arguments");
	}
}

static void check_exec(void)
{
	char before[16], *const argv[] = {"verbs_process", "count", before, NULL};
	static struct device d;
	pid_t child;

	snprintf(before, sizeof(before), "%d", count_descriptors());
	open_device(&d);
	work(&d);
	child = fork();
	if (!child) {
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	expect_child(child, "a program executed after fork");
	if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ))
		errx(1, "posix_spawn");
	expect_child(child, "a program that was spawned");
	check_exec_functions();
	work(&d);
	close_device(&d);
}

/*
 * As programs do that become daemons: the library's own descriptors go first, then the device. By
 * then the engine thread sleeps, which it never does for long while a queue pair is in the error
 * state.
 */
static void close_downwards(struct device *d)
{
	if (ibv_destroy_qp(d->qp))
		err(1, "cannot destroy the queue pair");
	usleep(100000);
	for (int fd = HIGHEST; fd > 2; fd--)
		close(fd);
}

/* A silent file takes the number of each descriptor of the library but one, then the device is
 * closed. */
static void close_replaced(struct device *d)
{
	int ends[2], refused = 0;

	if (ibv_destroy_qp(d->qp) || pipe(ends))
		err(1, "cannot prepare the replacement");
	usleep(100000);
	for (int fd = LOWEST; fd <= HIGHEST; fd++) {
		if (fcntl(fd, F_GETFD) < 0 || dup2(ends[0], fd) == fd)
			continue;
		if (errno != EBUSY || close(fd) != -1 || errno != EBADF)
			err(1, "descriptor %d", fd);
		refused++;
	}
	if (refused != 1)
		errx(1, "%d descriptors cannot be replaced", refused);
	close(d->context->cmd_fd);
	closefrom(3);
}

/* The program closes the library's descriptors first, and the device later. */
static void close_high_ranges(struct device *d)
{
	if (ibv_destroy_qp(d->qp))
		err(1, "cannot destroy the queue pair");
	usleep(100000);
	if (close_range(LOWEST, ~0u, 0))
		err(1, "close_range");
	closefrom(LOWEST);
	close(d->context->cmd_fd);
	closefrom(3);
}

static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		err(1, "getrlimit");
	if (limit.rlim_cur > HIGHEST)
		return;
	limit.rlim_cur = HIGHEST + 1;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		err(1, "cannot raise the limit of descriptors");
}

static void check_ranges(void)
{
	static struct device d[6];

	raise_limit();
	alarm(60); /* ends a program that waits for ever in close() */
	open_device(&d[0]);
	work(&d[0]);
	if (close_range(3, ~0u, 0))
		err(1, "close_range");
	open_device(&d[1]);
	work(&d[1]);
	closefrom(3);
	open_device(&d[2]);
	work(&d[2]);
	close_downwards(&d[2]);
	open_device(&d[3]);
	work(&d[3]);
	close_replaced(&d[3]);
	open_device(&d[4]);
	work(&d[4]);
	close_high_ranges(&d[4]);
	open_device(&d[5]);
	work(&d[5]);
	close_device(&d[5]);
	if (count_descriptors())
		errx(1, "%d descriptors are left", count_descriptors());
}

/* The library may not take a file of the program for the device that had an earlier number. */
static void check_a_raw_close(void)
{
	static struct device closed, d;
	struct ibv_comp_channel *channel;
	int null;

	open_device(&closed);
	open_device(&d);
	syscall(SYS_close, closed.context->cmd_fd);
	channel = ibv_create_comp_channel(d.context);
	null = open("/dev/null", O_WRONLY);
	if (!channel || null < 0)
		err(1, "no descriptors");
	if (write(null, "abc", 3) != 3)
		err(1, "the program's file is taken for a device");
	close(null);
	ibv_destroy_comp_channel(channel);
	work(&d);
	close_device(&d);
}

static void check_numbers(void)
{
	static struct device d, other;
	int ends[2], copy, number;
	char text[4];

	open_device(&d);
	copy = dup(d.context->cmd_fd);
	if (copy < 0 || pipe(ends))
		err(1, "no descriptors");
	close(d.context->cmd_fd);
	number = d.context->cmd_fd;
	/* Another file takes the descriptor number; the duplicate keeps the device. */
	if (dup2(ends[1], number) != number || write(number, "abc", 3) != 3 ||
	    read(ends[0], text, 3) != 3 || memcmp(text, "abc", 3))
		err(1, "a number that was a device's is not the new file's");
	if (dup2(copy, number) != number)
		err(1, "dup2");
	close(copy);
	work(&d);
	close_device(&d);
	/* dup2 onto the descriptor of an open device closes the device. */
	open_device(&other);
	number = other.context->cmd_fd;
	if (dup2(ends[1], number) != number || write(number, "abc", 3) != 3 ||
	    read(ends[0], text, 3) != 3)
		err(1, "a device that was replaced still takes what is written");
	open_device(&d);
	work(&d);
	close_device(&d);
	check_a_raw_close();
}

/* Sends descriptors, or, with to_send NULL, receives as many. */
static void pass(int end, const int *to_send, int *received, int n)
{
	union {
		char room[CMSG_SPACE(3 * sizeof(int))];
		struct cmsghdr align;
	} control;
	const size_t size = (size_t)n * sizeof(int);
	char byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.room,
			     .msg_controllen = CMSG_SPACE(size)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	*c = (struct cmsghdr){CMSG_LEN(size), SOL_SOCKET, SCM_RIGHTS};
	if (to_send) {
		memcpy(CMSG_DATA(c), to_send, size);
		if (sendmsg(end, &msg, 0) != 1)
			err(1, "cannot pass descriptors");
		return;
	}
	if (recvmsg(end, &msg, 0) != 1 || !CMSG_FIRSTHDR(&msg))
		err(1, "no descriptors");
	memcpy(received, CMSG_DATA(CMSG_FIRSTHDR(&msg)), size);
}

enum passed { COMPLETIONS, ASYNCHRONOUS, RDMACM, PASSED };

static bool has_event(int fd, void *event, ssize_t size)
{
	struct pollfd pfd = {fd, POLLIN, 0};

	return poll(&pfd, 1, WAIT_MS) == 1 && read(fd, event, (size_t)size) == size;
}

static bool makes_id(int fd)
{
	struct {
		struct rdma_ucm_cmd_hdr header;
		struct rdma_ucm_create_id create;
	} command = {{RDMA_USER_CM_CMD_CREATE_ID, sizeof(command.create),
		      sizeof(struct rdma_ucm_create_id_resp)},
		     {.ps = RDMA_PS_TCP, .qp_type = IBV_QPT_RC}};
	struct rdma_ucm_create_id_resp response;

	command.create.response = (uintptr_t)&response;
	return write(fd, &command, sizeof(command)) == sizeof(command);
}

/* The receiving process gets events, as from the kernel. Only the process that opened the device
 * may send commands: the kernel returns EACCES, and urxe drops them. */
static int receiver(int end)
{
	struct ib_uverbs_async_event_desc event;
	struct ib_uverbs_comp_event_desc completion;
	int fds[PASSED];

	pass(end, NULL, fds, PASSED);
	if (!has_event(fds[COMPLETIONS], &completion, sizeof(completion)) ||
	    !has_event(fds[ASYNCHRONOUS], &event, sizeof(event)))
		return 1;
	if (event.event_type != IBV_EVENT_QP_LAST_WQE_REACHED)
		return 2;
	makes_id(fds[RDMACM]);
	return 0;
}

/* A QP with an SRQ goes to the error state, which raises the event "last WQE reached". */
static void raise_event(struct device *d)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(d->pd, &attr);
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.send_cq = d->cq,
					.recv_cq = d->cq,
					.srq = srq,
					.cap = {.max_send_wr = 1}};
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *qp = srq ? ibv_create_qp(d->pd, &init) : NULL;

	if (!qp ||
	    ibv_modify_qp(qp, &to,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		err(1, "no QP with a SRQ");
	to.qp_state = IBV_QPS_ERR;
	if (ibv_modify_qp(qp, &to, IBV_QP_STATE))
		err(1, "a QP with a SRQ does not end");
}

static void check_passing(void)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	int ends[2], fds[PASSED];
	static struct device d;
	struct ibv_wc wc;
	pid_t child;

	/* Forks before it opens the device, so the child has only the descriptors that it receives.
	 */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends))
		err(1, "socketpair");
	child = fork();
	if (!child)
		_exit(receiver(ends[1]));
	open_device(&d);
	fds[COMPLETIONS] = d.channel->fd;
	fds[ASYNCHRONOUS] = d.context->async_fd;
	fds[RDMACM] = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	if (fds[RDMACM] < 0)
		err(1, "rdma_cm");
	pass(ends[0], fds, NULL, PASSED);
	if (ibv_req_notify_cq(d.cq, 0) || ibv_post_send(d.qp, &wr, &bad))
		err(1, "cannot post");
	raise_event(&d);
	expect_child(child, "another process with descriptors that were passed");
	if (!makes_id(fds[RDMACM]))
		err(1, "no command is answered after another process's");
	/* The completion whose event the other process has read. */
	if (ibv_poll_cq(d.cq, 1, &wc) != 1)
		errx(1, "no completion of what was passed");
	work(&d);
}

static pthread_t worker;
static volatile bool worked;

static void nothing(int number)
{
	(void)number;
}

static void *interrupt(void *unused)
{
	while (!worked) {
		pthread_kill(worker, SIGUSR1);
		usleep(100);
	}
	return unused;
}

static void check_signals(void)
{
	struct sigaction act = {.sa_handler = nothing};
	static struct device d;
	pthread_t thread;

	worker = pthread_self();
	if (sigaction(SIGUSR1, &act, NULL) || pthread_create(&thread, NULL, interrupt, NULL))
		errx(1, "no signals");
	for (int i = 0; i < 100; i++) {
		struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
		struct ibv_ah *ah;

		open_device(&d);
		if (ibv_query_gid(d.context, 1, 1, &to.grh.dgid))
			err(1, "no GID");
		ah = ibv_create_ah(d.pd, &to);
		if (!ah || ibv_destroy_ah(ah))
			err(1, "an address handle is interrupted");
		close_device(&d);
	}
	worked = true;
	pthread_join(thread, NULL);
}

/*
 * The caller kills the daemon when this check says so. With RDMAV_ALLOW_DISASSOC_DESTROY libibverbs
 * destroys objects of the removed device; otherwise it returns EIO, as for the kernel's devices.
 */
static void check_gone(void)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_async_event event;
	struct ibv_port_attr port;
	static struct device d;
	struct pollfd pfd = {.events = POLLIN};
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	void *context;

	open_device(&d);
	if (ibv_query_gid(d.context, 1, 1, &to.grh.dgid))
		err(1, "no GID");
	channel = ibv_create_comp_channel(d.context);
	if (!channel)
		err(1, "no channel");
	pfd.fd = d.context->async_fd;
	puts("ready");
	fflush(stdout);
	if (poll(&pfd, 1, 2 * WAIT_MS) != 1 || ibv_get_async_event(d.context, &event))
		err(1, "no event of the removal");
	if (event.event_type != IBV_EVENT_DEVICE_FATAL)
		errx(1, "%s", ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
	if (poll(&pfd, 1, 0))
		errx(1, "more than one event");
	if (!ibv_get_cq_event(channel, &cq, &context) || ibv_destroy_comp_channel(channel))
		errx(1, "an event of a CQ that does not exist");
	if (ibv_query_port(d.context, 1, &port) != EIO || ibv_alloc_pd(d.context) || errno != EIO ||
	    ibv_reg_mr(d.pd, d.room, 8, 0) || errno != EIO || ibv_create_ah(d.pd, &to) ||
	    errno != EIO || abs(ibv_post_send(d.qp, &wr, &bad)) != EIO)
		errx(1, "a device that is gone does not say EIO (errno %d)", errno);
	close_device(&d);
	if (try_open(&d))
		errx(1, "a device that is gone is opened");
	puts("closed");
	fflush(stdout);
	/* A new daemon runs now, and its device is a new one. */
	if (getchar() != '\n')
		errx(1, "nobody is there");
	open_device(&d);
	work(&d);
	close_device(&d);
}

static struct device of_threads;
static bool worker_blocks; /* a signal that comes after the main thread's end */

static void block_and_send(int number)
{
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, number);
	if (pthread_sigmask(SIG_BLOCK, &blocked, NULL) || kill(getpid(), number))
		err(1, "no signal");
}

static void *work_for_main_thread(void *main_thread)
{
	pthread_join(*(pthread_t *)main_thread, NULL);
	if (worker_blocks)
		block_and_send(SIGUSR1);
	work(&of_threads);
	return NULL;
}

static void say_end(void)
{
	puts("ended");
}

/* The device stays open: libc ends the process with its last thread, and calls say_end. */
static void check_last_thread(void)
{
	static pthread_t self;

	self = pthread_self();
	open_device(&of_threads);
	/* rdma_cm has a thread of its own. */
	if (open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC) < 0)
		err(1, "rdma_cm");
	if (atexit(say_end) || pthread_create(&worker, NULL, work_for_main_thread, &self))
		err(1, "no thread");
	pthread_exit(NULL);
}

static void check_last_pending(void)
{
	worker_blocks = true;
	block_and_send(SIGTERM);
	check_last_thread();
}

static void *cancel_main_thread(void *main_thread)
{
	pthread_cancel(*(pthread_t *)main_thread);
	return NULL;
}

static void check_last_cm(void)
{
	static pthread_t self;

	self = pthread_self();
	if (open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC) < 0)
		err(1, "rdma_cm");
	if (atexit(say_end) || pthread_create(&worker, NULL, cancel_main_thread, &self))
		err(1, "no thread");
	for (;;)
		pause();
}

/*
 * The descriptors of the thread of rdma_cm, which sleeps by then, go first, then rdma_cm. Meanwhile
 * the program can open no file, as in a sandbox: libc could not load another library.
 */
static void check_last_after_close(void)
{
	struct rlimit limit, none;

	raise_limit();
	if (open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC) < 0)
		err(1, "rdma_cm");
	usleep(100000);
	getrlimit(RLIMIT_NOFILE, &limit);
	none = (struct rlimit){0, limit.rlim_max};
	if (setrlimit(RLIMIT_NOFILE, &none))
		err(1, "setrlimit");
	for (int fd = HIGHEST; fd > 2; fd--)
		close(fd);
	setrlimit(RLIMIT_NOFILE, &limit);
	check_last_thread();
}

static void *use_device(void *d)
{
	open_device(d);
	if (open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC) < 0)
		err(1, "rdma_cm");
	work(d);
	close_device(d);
	return NULL;
}

static void check_small_stack(void)
{
	static struct device d;
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	if (pthread_attr_setstacksize(&small, (size_t)PTHREAD_STACK_MIN) ||
	    pthread_create(&thread, &small, use_device, &d) || pthread_join(thread, NULL))
		errx(1, "a thread with a small stack");
}

static void check_no_thread(void)
{
	static struct device d;

	if (setrlimit(RLIMIT_NPROC, &(struct rlimit){0, 0}))
		err(1, "setrlimit");
	if (try_open(&d))
		errx(1, "a device without a thread");
}

static void check_drop(void)
{
	static struct device d;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	struct ibv_qp *qp;

	open_device(&d);
	if (setgroups(0, NULL) || setgid(UNPRIVILEGED) || setuid(UNPRIVILEGED))
		err(1, "cannot give up root");
	init.send_cq = init.recv_cq = d.cq;
	qp = ibv_create_qp(d.pd, &init);
	if (!qp)
		err(1, "no QP");
	loop_connect(qp, qp->qp_num);
	ibv_destroy_qp(qp);
	close_device(&d);
}

static const struct {
	const char *name;
	void (*run)(void);
} checks[] = {{"fork", check_fork},
	      {"fork_init", check_fork_init},
	      {"handler", check_fork_in_handler},
	      {"stop", check_stop},
	      {"exec", check_exec},
	      {"ranges", check_ranges},
	      {"numbers", check_numbers},
	      {"passing", check_passing},
	      {"signals", check_signals},
	      {"gone", check_gone},
	      {"last_thread", check_last_thread},
	      {"last_pending", check_last_pending},
	      {"last_cm", check_last_cm},
	      {"last_after_close", check_last_after_close},
	      {"small_stack", check_small_stack},
	      {"no_thread", check_no_thread},
	      {"drop", check_drop}};

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "count"))
		return count_descriptors() != atoi(argv[2]);
	inherited = count_descriptors();
	for (size_t i = 0; argc == 2 && i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!strcmp(argv[1], checks[i].name)) {
			checks[i].run();
			return 0;
		}
	fputs("usage: verbs_process CHECK\n", stderr);
	return 2;
}
