/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two processes, parent and child, of which each copies to the other one by samehost/peer.h. */
#ifndef URXE_TEST_PEER_PAIR_H
#define URXE_TEST_PEER_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rxe/rxe.h>
#include <vnic/regs.h>

#include "adapter/adapter.h"
#include "objects/settle.h"
#include "process/emulated_fd.h"
#include "samehost/published.h"
#include "vnic_loop.h"

#define MTU         1500
#define PARENT      1u /* indices of the two processes */
#define CHILD       5u
#define QPN(of)     ((of) << 12)
#define LATER_BLOCK (100u << 12)
#define PAGE        4096u
#define AREA        (16 * PAGE)
#define SKIP        77
#define AGAIN       "again" /* argument with which the child executes this program again */

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};

/* The destination of writes, at the same address in each process. */
static _Alignas(4096) uint8_t area[AREA];
/* Memory that both processes share. */
static struct {
	/* How far the test is. 1: the child can reach its parent; 2: both can reach each other;
	 * above: set by the test. */
	_Atomic uint32_t step;
	_Atomic int32_t tid;     /* of the newest engine thread; 0: it is not published yet */
	_Atomic uint32_t copied; /* 1 + the number of parts that the child's copy has copied */
} * shared;

static struct {
	struct vnic_loop *loop;
	struct vnic_inbox *inbox[2]; /* inboxes of the parent and of the child */
	pid_t pid;                   /* of the child */
	uint32_t generation;         /* the first one of the child's references */
	void (*before_write)(
		void); /* called in this process after all checks, before process_vm_writev */
	void (*after_read)(void);
	bool later_block; /* the child reaches a QP in a later block of the parent's QPNs */
} w;

ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n_local,
				 const struct iovec *remote, unsigned long n_remote,
				 unsigned long flags);
ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n_local,
				 const struct iovec *remote, unsigned long n_remote,
				 unsigned long flags);

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long n_local,
				const struct iovec *remote, unsigned long n_remote,
				unsigned long flags);
ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long n_local,
				const struct iovec *remote, unsigned long n_remote,
				unsigned long flags);

ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n_local,
				 const struct iovec *remote, unsigned long n_remote,
				 unsigned long flags)
{
	if (w.before_write)
		w.before_write();
	return __real_process_vm_writev(pid, local, n_local, remote, n_remote, flags);
}

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long n_local,
				const struct iovec *remote, unsigned long n_remote,
				unsigned long flags)
{
	ssize_t n = __real_process_vm_readv(pid, local, n_local, remote, n_remote, flags);

	if (w.after_read)
		w.after_read();
	return n;
}

static inline void await_step(uint32_t step)
{
	while (atomic_load(&shared->step) < step) {
		if (w.pid)
			assert_int_equal(waitpid(w.pid, NULL, WNOHANG), 0);
		sched_yield();
	}
}

/* --- The two processes. */

/* Stands for a process's engine thread: publishes itself, and then sleeps. */
static inline void *live(void *arg)
{
	peers_publish_thread(&adapter_peers);
	atomic_store(&shared->tid, gettid());
	pause();
	return arg;
}

/* This process publishes itself in its inbox, and its engine thread runs. */
static inline void publish(uint32_t process)
{
	struct vnic_inbox *inbox = w.inbox[process == CHILD];
	pthread_t thread;

	assert_non_null(peers_publish(&adapter_peers, vnic_inbox_published(inbox), process));
	atomic_store(&shared->tid, 0);
	assert_int_equal(pthread_create(&thread, NULL, live, NULL), 0);
	while (!atomic_load(&shared->tid))
		sched_yield();
}

static inline struct published *published_by_child(void)
{
	return vnic_inbox_published(w.inbox[1]);
}

/* The QPN by which the other process is reached. */
static inline uint32_t qpn_of(uint32_t process)
{
	return QPN(process) + (process == PARENT && w.later_block ? LATER_BLOCK : 0);
}

/* In process `from`: opens its sending side, with the inbox of process `to`. */
static inline void open_way(uint32_t from, uint32_t to)
{
	struct vnic_attach_welcome who = {.mtu = MTU, .qpn_first = QPN(from)};
	int fds[VNIC_INBOX_FDS];

	memcpy(who.mac, mac, sizeof(mac));
	assert_int_equal(
		tx_init(&adapter.tx, w.loop->driver, &adapter.uplink, &adapter_peers, &who), 0);
	vnic_inbox_fds(w.inbox[to == CHILD], fds);
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		fds[i] = dup(fds[i]);
	assert_int_equal(tx_add_inbox(&adapter.tx, mac, qpn_of(to), false, fds), 0);
}

/*
 * The child publishes itself and connects to the parent, and the parent to the child; then the
 * child calls `then`.
 */
static inline void start_child(void (*then)(void))
{
	publish(PARENT);
	w.pid = fork();
	assert_true(w.pid >= 0);
	if (w.pid) {
		await_step(1);
		w.generation = published_by_child()->table.references;
		open_way(PARENT, CHILD);
		atomic_store(&shared->step, 2);
		return;
	}
	peers_fork_child(&adapter_peers);
	publish(CHILD);
	open_way(CHILD, PARENT);
	atomic_store(&shared->step, 1);
	await_step(2);
	then();
	pause();
	_exit(0);
}

static inline int open_world(void **state)
{
	(void)state;
	atomic_store(&shared->step, 0);
	atomic_store(&shared->copied, 0);
	memset(area, 0, sizeof(area));
	memset(&w, 0, sizeof(w));
	adapter_init_peers();
	assert_int_equal(vnic_loop_open(MTU, &w.loop), 0);
	*(uint32_t *)((uint8_t *)w.loop->bars + VNIC_REG_BYPASS) = 1;
	for (int i = 0; i < 2; i++)
		assert_int_equal(vnic_inbox_create(MTU, &w.inbox[i]), 0);
	return 0;
}

static inline int end_process(void)
{
	int status = 0;

	if (w.pid) {
		kill(w.pid, SIGKILL);
		assert_int_equal(waitpid(w.pid, &status, 0), w.pid);
	}
	w.pid = 0;
	return status;
}

static inline int close_world(void **state)
{
	(void)state;
	end_process();
	tx_destroy(&adapter.tx);
	peers_done(&adapter_peers);
	for (int i = 0; i < 2; i++)
		vnic_inbox_destroy(w.inbox[i]);
	vnic_loop_close(w.loop);
	return 0;
}

/* --- Copies. */

static inline uint32_t other(void)
{
	return adapter.tx.process == PARENT ? CHILD : PARENT;
}

static inline const struct urxe_copy_table *table_of(uint32_t process)
{
	return peers_copy_ops.table(&adapter_peers, mac, qpn_of(process));
}

/* Executes the copy; returns how many parts were copied to or from that process. */
static inline uint32_t run_to(uint32_t process, struct urxe_copy_job *job)
{
	const struct urxe_copy_table *table = table_of(process);
	uint32_t done;

	if (!table)
		return 0;
	job->state = table->state.word;
	done = peers_copy_ops.copy(&adapter_peers, job);
	return done;
}

static inline uint32_t run(struct urxe_copy_job *job)
{
	return run_to(other(), job);
}

/* Copies between `local` and the other process's area. */
static inline bool copy(bool write, uint8_t *local, uint32_t offset, uint32_t length)
{
	const struct urxe_extent extent = {local, length};
	const struct urxe_remote_extent remote = {(uintptr_t)area + offset, length};
	const struct urxe_copy_part part = {&remote, 1, 1, &extent};

	return run(&(struct urxe_copy_job){.parts = &part, .n_parts = 1, .write = write});
}

/* Copies two pages of the child's area to two places here; `generation` counts from the child's
 * first one. */
static inline bool pull_from(const struct peer *sender, uint64_t address, uint32_t generation,
			     uint8_t to[2 * PAGE])
{
	const struct urxe_extent extents[] = {{to, 100}, {to + 200, 2 * PAGE - 100}};
	const struct urxe_reference reference = {
		.address = address,
		.length = 2 * PAGE,
		.packets = 2,
		.generation = w.generation + generation,
		.sender = (struct peer *)sender,
	};

	return peer_pull(NULL, &reference, extents, 2);
}

static inline bool pull(uint64_t address, uint32_t generation, uint8_t to[2 * PAGE])
{
	return pull_from(tx_peer(&adapter.tx, mac, QPN(CHILD)), address, generation, to);
}

/* --- Rights that the parent withdraws during the child's copy. */

/* Withdraws the rights as the engine does. */
static inline void withdraw(void)
{
	struct urxe_copy_table *table =
		&((struct published *)vnic_inbox_published(w.inbox[0]))->table;

	__atomic_fetch_add(&table->state.epoch, 1, __ATOMIC_SEQ_CST);
	peers_copy_ops.withdrawn(&adapter_peers);
}

static inline bool settled(void)
{
	return peers_copy_ops.settled(&adapter_peers);
}

static inline void await_settled(void)
{
	while (!settled())
		sched_yield();
}

/* Whether the kernel permits process_vm_readv(2), which a container may forbid. Also lets the child
 * access the memory of its parent. */
static inline bool is_process_vm_permitted(void)
{
	uint8_t from = 0, to;
	const struct iovec there = {&from, 1}, here = {&to, 1};

	/* Yama otherwise forbids a child to access its parent. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

#endif
