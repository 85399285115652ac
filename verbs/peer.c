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
#include <sys/queue.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <rxe/rxe.h>
#include <vnic/attach.h>
#include <vnic/inbox.h>

#include "log.h"
#include "port.h"
#include "rseq.h"
#include "vigil.h"

/* Processes that may reach the memory of one. More of them send packets. */
#define SLOTS 256
/* Looks at a slot before its holder is looked for, and how often then. */
#define SPINS    1000
#define LOOK_NS  50000
#define PATIENCE 20000 /* looks until it is told, 1 s */
/* CPU time of a thread that no copy takes: of URXE_DIRECT_MAX bytes, tens of times. */
#define LYING_S 1
/* Copies that are begun anew for having been interrupted, before the request goes in packets. */
#define TRIES 16

/* Whose it is, and by which thread it is inside. */
struct peer_slot {
	_Alignas(64) _Atomic int32_t pid; /* 0: free */
	_Atomic int32_t inside;           /* the thread; 0: none */
	_Atomic uint64_t born;            /* of pid, as /proc has it */
};

struct peer_book {
	_Atomic uint32_t used; /* slots, from the first; only grows */
	struct peer_slot slots[SLOTS];
};

struct peer_card {
	/* Written before the process gives its inbox to the daemon. */
	uint64_t token;   /* 0: no direct transport */
	uint64_t witness; /* address in the process at which the token stands once more */
	uint64_t pid_ns;  /* in which pid is meant */
	int32_t pid;
	uint32_t turns; /* of the engine's thread in its vigils; counts on */
	/*
	 * state.owner is the thread that keeps it alive: a word of its robust list. The
	 * kernel marks it when that thread ends, be it that the process is killed or that
	 * it executes another program, and before the process ID may be another's.
	 * 0: nobody is to come in.
	 */
	struct urxe_direct_table table;
};

static_assert(sizeof(struct peer_card) <= VNIC_INBOX_PUBLISHED_SIZE &&
		      sizeof(struct peer_book) <= VNIC_INBOX_SHARED_SIZE,
	      "fit what inboxes have for them");

static_assert(VNIC_LEASE_QPNS == URXE_DIRECT_CHUNK && VNIC_LEASES_MAX <= URXE_DIRECT_CHUNKS,
	      "each QP of a process has its place");

enum standing { UNKNOWN, WELCOME, REFUSED };

struct peer {
	const struct peer_card *card;
	struct peer_book *book;
	struct peer_slot *slot;
	int32_t pid; /* as proven: what the card says may be another by now */
	bool own;
	enum standing standing;
	struct vnic_outbox *outbox; /* that wakes it */
	struct vigil vigil;
};

/* Us. */
static struct {
	struct peer_card *card; /* NULL: nobody reaches us, nor do we others */
	struct peer_book *book;
	bool closed; /* to all, for good */
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

/* Times in ticks. */
struct process_stat {
	char state;
	uint64_t user, system; /* on a CPU */
	uint64_t born;         /* since the system started */
};

/* False: there is none. */
static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	return true;
}

static bool read_stat(const char *path, struct process_stat *stat)
{
	char text[1024], *end;

	if (!read_text(path, text, sizeof(text)))
		return false;
	/* The name, in brackets, may have any character. */
	end = strrchr(text, ')');
	/* Fields 3, 14, 15 and 22. */
	return end && sscanf(end + 1,
			     " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64
			     " %*s %*s %*s %*s %*s %*s %" SCNu64,
			     &stat->state, &stat->user, &stat->system, &stat->born) == 4;
}

static bool lives(int32_t pid, uint64_t born)
{
	char path[32];
	struct process_stat now;

	/* One that we may not signal is another user's. */
	if (kill(pid, 0))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	/* Where nothing can be seen, it may. */
	return !read_stat(path, &now) || now.born == born;
}

/* Whether a thread is seen to wait, or to be stopped, where it does not copy. */
static bool is_elsewhere(int32_t pid, int32_t tid)
{
	char path[48], text[256];
	long number;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	/* "running", or the number of the system call, -1 where it is in none. */
	if (!read_text(path, text, sizeof(text)) || sscanf(text, "%ld", &number) != 1)
		return false;
	return number != SYS_process_vm_writev && number != SYS_process_vm_readv;
}

enum presence { AWAY, MAYBE_INSIDE, LYING };

/*
 * Of a thread that says that it is inside, and has said so since it had used so many ticks of CPU
 * time; 0 = not known yet. One that is stopped (T) is not in the middle of a system call, a
 * debugger's stop (t) may be at its beginning. Whoever has yet to make the call will find the
 * state of the table another one (rseq.h).
 */
static enum presence look_at(const struct peer_slot *slot, int32_t inside, uint64_t *ticks)
{
	int32_t pid = atomic_load(&slot->pid);
	struct process_stat now;
	char path[48];

	if (inside == this_thread() || !lives(pid, atomic_load(&slot->born)))
		return AWAY;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, inside);
	if (!read_stat(path, &now))
		return access("/proc/self/stat", R_OK) == 0 ? AWAY : MAYBE_INSIDE;
	if (strchr("TZX", now.state) || is_elsewhere(pid, inside))
		return AWAY;
	now.user += now.system + 1;
	if (!*ticks)
		*ticks = now.user;
	return now.user - *ticks > (uint64_t)(LYING_S * sysconf(_SC_CLK_TCK)) ? LYING
									      : MAYBE_INSIDE;
}

/* --- Our own card and book. */

/* Whether URXE_TRANSPORT says that no memory is copied between processes. */
static bool packets_only(void)
{
	const char *transport = getenv("URXE_TRANSPORT");

	return transport && !strcmp(transport, "packet");
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

struct urxe_direct_table *peer_init(void *card, void *book)
{
	if (packets_only() || !rseq_usable() || !know_self())
		return NULL;
	self.card = card;
	self.book = book;
	self.closed = false;
	self.card->token = self.token;
	self.card->witness = (uintptr_t)&self.token;
	self.card->pid_ns = self.pid_ns;
	self.card->pid = self.pid;
	return &self.card->table;
}

void peer_done(void)
{
	self.card = NULL;
}

void peer_in_child(void)
{
	thread = 0;
	self.card = NULL;
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

	if (!self.card)
		return;
	owner = &self.card->table.state.owner;
	entry.next = &head.list;
	head.list.next = &entry;
	head.futex_offset = (long)((uintptr_t)owner - (uintptr_t)&entry);
	head.list_op_pending = NULL;
	if (syscall(SYS_set_robust_list, &head, sizeof(head)))
		return;
	__atomic_store_n(owner, (uint32_t)this_thread(), __ATOMIC_RELEASE);
}

void peer_turn(void)
{
	if (self.card)
		__atomic_store_n(&self.card->turns, self.card->turns + 1, __ATOMIC_RELAXED);
}

/* False: who says that he is inside cannot be. */
static bool await(const struct peer_slot *slot)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	int32_t inside = atomic_load(&slot->inside);
	uint64_t ticks = 0;

	/* Another thread than before has come in since, and the one before is out. */
	for (uint32_t looks = 0; inside && atomic_load(&slot->inside) == inside; looks++) {
		enum presence presence;

		if (looks < SPINS)
			continue;
		/* Who copies may take milliseconds, and longer. */
		egress_vacate(&port.egress);
		presence = look_at(slot, inside, &ticks);
		if (presence != MAYBE_INSIDE)
			return presence == AWAY;
		if (looks == SPINS + PATIENCE)
			log_warning("process %d is in our memory for long: what it may still reach "
				    "cannot be given back yet",
				    atomic_load(&slot->pid));
		nanosleep(&pause, NULL);
	}
	return true;
}

static bool await_all(void)
{
	uint32_t n = atomic_load(&self.book->used);
	bool all = true;

	for (uint32_t i = 0; i < n && i < SLOTS; i++)
		all &= await(&self.book->slots[i]);
	return all;
}

/*
 * The table was changed before: who enters from now on sees that. Where somebody lies, nobody
 * enters from now on, and only those who are inside by then are still waited for.
 */
static void drain(void *ctx)
{
	(void)ctx;
	if (self.closed || await_all())
		return;
	log_warning("a process says that it is in our memory, and is not: all comes in packets "
		    "now");
	__atomic_store_n(&self.card->table.state.owner, 0, __ATOMIC_SEQ_CST);
	self.closed = true;
	await_all();
}

/* --- Others. */

struct peer *peer_open(struct vnic_outbox *outbox, bool own)
{
	struct peer *peer = malloc(sizeof(*peer));

	if (!peer)
		return NULL;
	*peer = (struct peer){
		.outbox = outbox,
		.card = vnic_outbox_published(outbox),
		.book = vnic_outbox_shared(outbox),
		.own = own,
	};
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
	struct peer_slot *slot = &peer->book->slots[i];
	int32_t pid = atomic_load(&slot->pid);
	uint32_t used = atomic_load(&peer->book->used);

	if (pid && lives(pid, atomic_load(&slot->born)))
		return false;
	if (!atomic_compare_exchange_strong(&slot->pid, &pid, self.pid))
		return false;
	atomic_store(&slot->inside, 0);
	atomic_store(&slot->born, self.born);
	while (used <= i && !atomic_compare_exchange_weak(&peer->book->used, &used, i + 1))
		;
	peer->slot = slot;
	return true;
}

static bool is_alive(uint64_t word)
{
	union urxe_direct_state state = {.word = word};

	return state.owner & FUTEX_TID_MASK && !(state.owner & FUTEX_OWNER_DIED);
}

/* Whether the kernel lets us at the memory of that process, and it is that process. */
static bool try_memory(struct peer *peer)
{
	const struct peer_card *card = peer->card;
	uint64_t token = 0, told = __atomic_load_n(&card->token, __ATOMIC_ACQUIRE);
	struct iovec here = {&token, sizeof(token)};
	struct iovec there = {(void *)__atomic_load_n(&card->witness, __ATOMIC_RELAXED),
			      sizeof(token)};

	/* Nobody else has us write to our own memory. */
	peer->pid = __atomic_load_n(&card->pid, __ATOMIC_RELAXED);
	return told && __atomic_load_n(&card->pid_ns, __ATOMIC_RELAXED) == self.pid_ns &&
	       peer->own == (peer->pid == self.pid) &&
	       process_vm_readv(peer->pid, &here, 1, &there, 1, 0) == sizeof(token) &&
	       token == told;
}

static void meet(struct peer *peer)
{
	bool taken = false;

	peer->standing = REFUSED;
	/* So may a look at whether each that has a slot still lives. */
	egress_vacate(&port.egress);
	if (!try_memory(peer))
		return;
	for (uint32_t i = 0; i < SLOTS && !taken; i++)
		taken = take_slot(peer, i);
	if (taken)
		peer->standing = WELCOME;
}

static const struct urxe_direct_table *enter(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	struct peer *peer = egress_peer(&port.egress, mac, qpn);

	(void)ctx;
	if (!peer || peer->standing == REFUSED ||
	    !is_alive(__atomic_load_n(&peer->card->table.state.word, __ATOMIC_ACQUIRE)))
		return NULL;
	if (peer->standing == UNKNOWN)
		meet(peer);
	if (peer->standing != WELCOME)
		return NULL;
	/* Sequentially consistent: before all that is read of the table. */
	atomic_store(&peer->slot->inside, this_thread());
	self.visited = peer;
	return &peer->card->table;
}

static void leave(void *ctx)
{
	(void)ctx;
	atomic_store_explicit(&self.visited->slot->inside, 0, memory_order_release);
}

/* The pieces of a copy, as the kernel is given them. */
struct pieces {
	struct iovec local[URXE_DIRECT_EXTENTS + URXE_DIRECT_PARTS];
	struct iovec remote[URXE_DIRECT_PARTS];
	uint32_t n_local;
};

static uint64_t length_of(const struct urxe_direct_part *part)
{
	uint64_t length = 0;

	for (uint32_t i = 0; i < part->n_local; i++)
		length += part->local[i].length;
	return length;
}

/*
 * The kernel copies piece by piece of our own memory, in order: the last one of a WRITE is stored
 * after the rest. Pieces of the other's would do the same, but it looks up the pages of each.
 */
static void add_local(struct pieces *pieces, const struct urxe_direct_part *part, uint64_t rest)
{
	for (uint32_t i = 0; i < part->n_local; i++) {
		uint8_t *addr = part->local[i].addr;
		uint64_t left = part->local[i].length;

		if (rest && rest < left) {
			pieces->local[pieces->n_local++] = (struct iovec){addr, rest};
			addr += rest;
			left -= rest;
			rest = 0;
		}
		pieces->local[pieces->n_local++] = (struct iovec){addr, left};
		rest -= rest < left ? rest : left;
	}
}

static void lay_out(struct pieces *pieces, const struct urxe_direct_copy *job)
{
	const uint64_t last = sizeof(uint64_t);

	pieces->n_local = 0;
	for (uint32_t i = 0; i < job->n_parts; i++) {
		const struct urxe_direct_part *part = &job->parts[i];
		uint64_t length = length_of(part);

		pieces->remote[i] = (struct iovec){(void *)(uintptr_t)part->remote, length};
		add_local(pieces, part, job->write && length > last ? length - last : length);
	}
}

/* How many of them so many bytes are; more come after one that was copied half. */
static uint32_t parts_of(const struct pieces *pieces, uint32_t n, long bytes)
{
	uint32_t whole = 0;

	while (whole < n && bytes >= (long)pieces->remote[whole].iov_len)
		bytes -= (long)pieces->remote[whole++].iov_len;
	return whole;
}

static uint32_t copy_by_call(const struct urxe_direct_copy *job)
{
	const struct peer_card *card = self.visited->card;
	struct pieces pieces;
	struct rseq_call call = {
		.number = job->write ? SYS_process_vm_writev : SYS_process_vm_readv,
		.pid = self.visited->pid,
		.local = pieces.local,
		.remote = pieces.remote,
		.n_remote = job->n_parts,
	};
	long rc = RSEQ_INTERRUPTED;

	lay_out(&pieces, job);
	call.n_local = pieces.n_local;
	for (int i = 0; i < TRIES && rc == RSEQ_INTERRUPTED; i++)
		rc = rseq_call(&call, &card->table.state.word, job->state);
	if (rc == -ESRCH || rc == -EPERM)
		self.visited->standing = REFUSED;
	return parts_of(&pieces, job->n_parts, rc);
}

static uint32_t copy(void *ctx, const struct urxe_direct_copy *job)
{
	(void)ctx;
	/* It may have died, or closed its memory, since we have entered. */
	if (!is_alive(job->state))
		return 0;
	/* It may take milliseconds, and any number of them may follow. */
	egress_vacate(&port.egress);
	return copy_by_call(job);
}

/* Of our own process never: it is our program that keeps the core busy. */
static bool awake(void *ctx, uint64_t now)
{
	struct peer *peer = self.visited;
	uint32_t turns = __atomic_load_n(&peer->card->turns, __ATOMIC_RELAXED);

	(void)ctx;
	if (peer->own)
		return false;
	if (vigil_look(&peer->vigil, turns, now))
		return true;
	if (vigil_rouse(&peer->vigil, now))
		vnic_outbox_wake(peer->outbox);
	return false;
}

const struct urxe_direct_ops peer_ops = {
	.enter = enter,
	.leave = leave,
	.copy = copy,
	.awake = awake,
	.drain = drain,
};
