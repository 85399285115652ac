/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "peer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <rxe/rxe.h>
#include <vnic/inbox.h>

#include "log.h"
#include "port.h"
#include "rseq.h"

/* Processes that may reach the memory of one. More of them send packets. */
#define SLOTS 256
/* Looks at a slot before its holder is looked for, and how often then. */
#define SPINS    1000
#define LOOK_NS  50000
#define PATIENCE 20000 /* looks until it is told, 1 s */
/* Copies that are begun anew for having been interrupted, before the request goes in packets. */
#define TRIES 16

/* Whose it is, and by which thread it is inside. */
struct peer_slot {
	_Alignas(64) _Atomic int32_t pid; /* 0: free */
	_Atomic int32_t inside;           /* the thread; 0: none */
	_Atomic uint64_t born;            /* of pid, as /proc has it */
};

struct peer_page {
	/* Written before the process gives its inbox to the daemon. */
	uint64_t token;   /* 0: no direct transport */
	uint64_t witness; /* address in the process at which the token stands once more */
	uint64_t pid_ns;  /* in which pid is meant */
	int32_t pid;
	_Atomic uint32_t used_slots; /* from the first; only grows */
	struct peer_slot slots[SLOTS];
	/*
	 * state.owner is the thread that keeps it alive: a word of its robust list. The
	 * kernel marks it when that thread ends, be it that the process is killed or that
	 * it executes another program, and before the process ID may be another's.
	 */
	struct urxe_direct_table table;
};

static_assert(sizeof(struct peer_page) <= VNIC_INBOX_SHARED, "fits what inboxes have for it");

enum standing { UNKNOWN, WELCOME, REFUSED };

struct peer {
	struct peer_page *page;
	struct peer_slot *slot;
	enum standing standing;
};

/* Us. */
static struct {
	struct peer_page *page; /* NULL: nobody reaches us, nor do we others */
	uint64_t token;
	uint64_t pid_ns;
	uint64_t born;
	int32_t pid;
	struct peer *visited; /* that we are inside of */
} self;

static __thread __attribute__((tls_model("initial-exec"))) int32_t thread;

static int32_t this_thread(void)
{
	if (!thread)
		thread = gettid();
	return thread;
}

/* --- Processes, as /proc has them. */

struct process_stat {
	char state;
	uint64_t born; /* ticks since the system started */
};

/* False: there is none. */
static bool read_stat(const char *path, struct process_stat *stat)
{
	char text[1024], *end;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	/* The name, in brackets, may have any character. */
	end = strrchr(text, ')');
	/* Field 3, and field 22 behind 18 others. */
	return end && sscanf(end + 1,
			     " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			     "%*s %*s %" SCNu64,
			     &stat->state, &stat->born) == 2;
}

static bool lives(int32_t pid, uint64_t born)
{
	char path[32];
	struct process_stat now;

	if (kill(pid, 0) && errno == ESRCH)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	/* Where nothing can be seen, it may. */
	return !read_stat(path, &now) || now.born == born;
}

/*
 * Whether the thread that says that it is inside cannot be copying. One that is stopped is
 * not in the middle of a system call, and if it has yet to make it, it will find the state
 * of the table another one (rseq.h). A debugger's stop (t) may be anywhere.
 */
static bool is_harmless(const struct peer_slot *slot, int32_t inside)
{
	int32_t pid = atomic_load(&slot->pid);
	struct process_stat now;
	char path[48];

	if (!lives(pid, atomic_load(&slot->born)))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, inside);
	if (!read_stat(path, &now))
		return access("/proc/self/stat", R_OK) == 0;
	return strchr("TZX", now.state) != NULL;
}

/* --- Our own page. */

static bool wanted(void)
{
	const char *transport = getenv("URXE_TRANSPORT");

	return !transport || strcmp(transport, "packet") != 0;
}

static bool know_self(void)
{
	struct process_stat now;
	struct stat ns;

	if (getrandom(&self.token, sizeof(self.token), GRND_NONBLOCK) != sizeof(self.token) ||
	    !self.token || !read_stat("/proc/self/stat", &now) || stat("/proc/self/ns/pid", &ns))
		return false;
	self.pid = getpid();
	self.pid_ns = ns.st_ino;
	self.born = now.born;
	return true;
}

struct urxe_direct_table *peer_page_init(void *memory)
{
	struct peer_page *page = memory;

	if (!wanted() || !rseq_usable() || !know_self())
		return NULL;
	page->token = self.token;
	page->witness = (uintptr_t)&self.token;
	page->pid_ns = self.pid_ns;
	page->pid = self.pid;
	self.page = page;
	return &page->table;
}

void peer_page_done(void)
{
	self.page = NULL;
}

void peer_in_child(void)
{
	thread = 0;
	self.page = NULL;
	self.pid = 0; /* slots are the parent's */
}

/*
 * The kernel follows the list when the thread ends. It is the thread's own instead of
 * glibc's, which serves robust mutexes: this thread has none.
 */
void peer_live(void)
{
	static struct robust_list entry;
	static struct robust_list_head head;
	uint32_t *owner;

	if (!self.page)
		return;
	owner = &self.page->table.state.owner;
	entry.next = &head.list;
	head.list.next = &entry;
	head.futex_offset = (long)((uintptr_t)owner - (uintptr_t)&entry);
	head.list_op_pending = NULL;
	if (syscall(SYS_set_robust_list, &head, sizeof(head)))
		return;
	__atomic_store_n(owner, (uint32_t)this_thread(), __ATOMIC_RELEASE);
}

static void await(const struct peer_slot *slot)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	int32_t inside;

	for (uint32_t looks = 0; (inside = atomic_load(&slot->inside)); looks++) {
		if (looks < SPINS)
			continue;
		if (is_harmless(slot, inside))
			return;
		if (looks == SPINS + PATIENCE)
			log_warning("process %d is in our memory for long: what it may still reach "
				    "cannot be given back yet",
				    atomic_load(&slot->pid));
		nanosleep(&pause, NULL);
	}
}

/* The table was changed before: who enters from now on sees that. */
static void drain(void *ctx)
{
	uint32_t n = atomic_load(&self.page->used_slots);

	(void)ctx;
	for (uint32_t i = 0; i < n && i < SLOTS; i++)
		await(&self.page->slots[i]);
}

/* --- Others. */

struct peer *peer_open(void *page)
{
	struct peer *peer = calloc(1, sizeof(*peer));

	if (peer)
		peer->page = page;
	return peer;
}

void peer_close(struct peer *peer)
{
	if (peer && peer->slot && atomic_load(&peer->slot->pid) == self.pid) {
		atomic_store(&peer->slot->inside, 0);
		atomic_store(&peer->slot->pid, 0);
	}
	free(peer);
}

static bool take_slot(struct peer *peer, uint32_t i)
{
	struct peer_slot *slot = &peer->page->slots[i];
	int32_t pid = atomic_load(&slot->pid);
	uint32_t used = atomic_load(&peer->page->used_slots);

	if (pid && lives(pid, atomic_load(&slot->born)))
		return false;
	if (!atomic_compare_exchange_strong(&slot->pid, &pid, self.pid))
		return false;
	atomic_store(&slot->inside, 0);
	atomic_store(&slot->born, self.born);
	while (used <= i && !atomic_compare_exchange_weak(&peer->page->used_slots, &used, i + 1))
		;
	peer->slot = slot;
	return true;
}

static bool is_alive(const struct peer_page *page)
{
	uint32_t owner = __atomic_load_n(&page->table.state.owner, __ATOMIC_ACQUIRE);

	return owner & FUTEX_TID_MASK && !(owner & FUTEX_OWNER_DIED);
}

/* Whether the kernel lets us at the memory of that process, and it is that process. */
static bool try_memory(const struct peer_page *page)
{
	uint64_t token = 0;
	struct iovec here = {&token, sizeof(token)};
	struct iovec there = {(void *)(uintptr_t)page->witness, sizeof(token)};

	return page->token && page->pid_ns == self.pid_ns &&
	       process_vm_readv(page->pid, &here, 1, &there, 1, 0) == sizeof(token) &&
	       token == page->token;
}

static void meet(struct peer *peer)
{
	bool taken = false;

	peer->standing = REFUSED;
	if (!try_memory(peer->page))
		return;
	for (uint32_t i = 0; i < SLOTS && !taken; i++)
		taken = take_slot(peer, i);
	if (taken)
		peer->standing = WELCOME;
}

static const struct urxe_direct_table *enter(void *ctx, const struct urxe_path *path, uint32_t qpn)
{
	struct peer *peer = egress_peer(&port.egress, path->dmac, qpn);

	(void)ctx;
	if (!peer || peer->standing == REFUSED || !is_alive(peer->page))
		return NULL;
	if (peer->standing == UNKNOWN)
		meet(peer);
	if (peer->standing != WELCOME)
		return NULL;
	/* Sequentially consistent: before all that is read of the table. */
	atomic_store(&peer->slot->inside, this_thread());
	self.visited = peer;
	return &peer->page->table;
}

static void leave(void *ctx)
{
	(void)ctx;
	atomic_store_explicit(&self.visited->slot->inside, 0, memory_order_release);
}

/* The kernel copies piece by piece, in order: the last one is stored after the rest. */
static unsigned long remote_pieces(struct iovec pieces[2], uint64_t addr, uint64_t length,
				   bool write)
{
	const uint64_t last = sizeof(uint64_t);

	pieces[0] = (struct iovec){(void *)(uintptr_t)addr, length};
	if (!write || length <= last)
		return 1;
	pieces[0].iov_len -= last;
	pieces[1] = (struct iovec){(void *)(uintptr_t)(addr + length - last), last};
	return 2;
}

static bool copy(void *ctx, const struct urxe_direct_copy *job)
{
	const struct peer_page *page = self.visited->page;
	struct iovec local[URXE_MAX_SGE], remote[2];
	struct rseq_call call = {
		.number = job->write ? SYS_process_vm_writev : SYS_process_vm_readv,
		.pid = page->pid,
		.local = local,
		.n_local = job->n_local,
		.remote = remote,
	};
	uint64_t length = 0;
	long rc = RSEQ_INTERRUPTED;

	(void)ctx;
	for (uint32_t i = 0; i < job->n_local; i++) {
		local[i] = (struct iovec){job->local[i].addr, job->local[i].length};
		length += job->local[i].length;
	}
	call.n_remote = remote_pieces(remote, job->remote, length, job->write);
	for (int i = 0; i < TRIES && rc == RSEQ_INTERRUPTED; i++)
		rc = rseq_call(&call, &page->table.state.word, job->state);
	if (rc == -ESRCH || rc == -EPERM)
		self.visited->standing = REFUSED;
	return rc == (long)length;
}

const struct urxe_direct_ops peer_ops = {
	.enter = enter,
	.leave = leave,
	.copy = copy,
	.drain = drain,
};
