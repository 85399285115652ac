/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A requester of the copy transport whose peer writes anything into the shared memory at any time,
 * also between the requester's check and its copy. The requester must copy only to and from the
 * proven peer process, and only memory that the request names. All requests must complete in order;
 * refused copies go in packets.
 *
 * The input is a script: a byte for each step, and bytes for its arguments.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rxe/rxe.h>
#include <vnic/regs.h>

#include "adapter/adapter.h"
#include "engine/crc.h"
#include "pair.h"
#include "require.h"
#include "samehost/peer.h"
#include "samehost/published.h"
#include "script.h"
#include "vnic_loop.h"

#define MTU       1500
#define QPN       0x2000u /* node 1's first QPN */
#define STEPS     200
#define ROOM      65536u /* bytes of each node's memory that requests name */
#define POSTED    32
#define LIVES     1234u /* a thread number */
#define SCRIBBLES 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n_local,
				 const struct iovec *remote, unsigned long n_remote,
				 unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long n_local,
				const struct iovec *remote, unsigned long n_remote,
				unsigned long flags);

enum step { POST, SETTLE, PUBLISH, SCRIBBLE, MEANWHILE, REGISTER, WITHDRAW, MEET_ANEW, STEP_KINDS };

/* A change of bytes in the shared memory. */
struct scribble {
	uint32_t where;
	uint32_t value;
};

static struct {
	struct script script;
	struct vnic_loop *loop;
	struct vnic_inbox *inbox;    /* of the peer */
	struct published *published; /* the peer's published memory */
	struct pair *pair;
	struct endpoint end[2];
	uint32_t keys[2];   /* of a region with one extent at each end */
	struct urxe_mr *mr; /* a second region of the peer, or NULL */
	bool awake;         /* the peer's engine thread polls */
	uint32_t lengths[POSTED], first, next;
	bool hostile; /* the shared memory differs from what the peer's engine published */
	struct scribble meanwhile[SCRIBBLES];
	uint32_t n_meanwhile;
	long result;  /* of the next copy: an error, or a maximum of bytes; 0 = all bytes */
	bool copying; /* the current system call is the engine's copy */
} w;

/* Entries of the list of pieces that the peer's regions use, and pieces of its second region. */
#define PIECES 64
#define PARTS  8

/* --- The shared memory */

/* Changes the entry of the QP, or the tables that lead to the entry. */
static void write_to_qp(struct urxe_copy_table *table, uint32_t word, uint32_t value)
{
	const uint32_t qpn = w.end[1].qpn;
	uint8_t *chunk = &table->chunks[qpn / URXE_COPY_CHUNK];

	if (word % 9 == 8)
		*chunk = (uint8_t)value;
	else if (*chunk && *chunk <= URXE_COPY_CHUNKS)
		((uint32_t *)&table->qps[*chunk - 1][qpn % URXE_COPY_CHUNK])[word % 9] = value;
}

/* Changes the header, the entries of the QP and of a key, or the tokens of reached peers. */
static void write_to(const struct scribble *s)
{
	struct urxe_copy_table *table = &w.published->table;
	uint32_t key = w.mr ? urxe_mr_key(w.mr) : w.keys[1];
	uint32_t word = s->where >> 3;

	w.hostile = true;
	switch (s->where & 7) {
	case 0:
	case 1: ((uint32_t *)w.published)[word % 10] = s->value; break;
	case 2: ((uint32_t *)&table->state)[word % 2] = s->value; break;
	case 3: write_to_qp(table, word, s->value); break;
	case 4:
	case 5:
		((uint32_t *)&table->grants[(key >> 8) % URXE_COPY_GRANTS])[word % 16] = s->value;
		break;
	case 6: ((uint32_t *)w.published->reached)[word % 64] = s->value; break;
	case 7:
		if (word & 1)
			((uint32_t *)table->pieces)[word / 2 % (4 * PIECES)] = s->value;
		else
			((uint32_t *)&w.published->copying)[word / 2 % 2] = s->value;
		break;
	}
}

static struct scribble read_scribble(void)
{
	static const uint32_t values[] = {0, 1, LIVES, 0x40000000, INT32_MAX, UINT32_MAX, ROOM};
	const uint32_t n = sizeof(values) / sizeof(values[0]);
	struct scribble s = {.where = script_get8(&w.script)};
	uint8_t value = script_get8(&w.script);

	s.value = value < n ? values[value] : script_get32(&w.script);
	return s;
}

/* Copies the table of the peer's engine into the shared memory. */
static void publish(void)
{
	struct urxe_copy_table *table = &w.published->table;
	const struct urxe_copy_table *from = w.pair->node[1]->table;

	/* The peer's QPNs are one lease, in the first chunk. */
	memcpy(table, from, offsetof(struct urxe_copy_table, qps));
	memcpy(table->qps[0], from->qps[0], sizeof(table->qps[0]));
	memcpy(table->chunks, from->chunks, sizeof(table->chunks));
	memcpy(table->pieces, from->pieces, PIECES * sizeof(table->pieces[0]));
	table->state.owner = (uint32_t)getpid();
}

/* --- Copies, in place of the system calls */

static bool is_ours(const struct iovec *piece)
{
	uintptr_t at = (uintptr_t)piece->iov_base - (uintptr_t)w.pair->node[0]->mem;

	return at < ROOM && piece->iov_len <= ROOM - at;
}

/* The iovecs that a copy has not consumed. */
struct rest {
	const struct iovec *remote, *local;
	size_t in_remote, in_local; /* bytes of the first one that are consumed */
};

/* Copies bytes that are contiguous at both ends, at most `length`; returns their number. */
static size_t move_some(struct rest *rest, size_t length, bool write)
{
	const struct urxe_extent theirs = {w.pair->node[1]->mem, w.pair->node[1]->mem_size};
	uint8_t *remote = (uint8_t *)rest->remote->iov_base + rest->in_remote;
	uint8_t *local = (uint8_t *)rest->local->iov_base + rest->in_local;
	uintptr_t at = (uintptr_t)remote - (uintptr_t)theirs.addr;
	size_t n = length;
	bool there;

	require(is_ours(rest->local));
	if (n > rest->remote->iov_len - rest->in_remote)
		n = rest->remote->iov_len - rest->in_remote;
	if (n > rest->local->iov_len - rest->in_local)
		n = rest->local->iov_len - rest->in_local;
	require(n);
	there = at < theirs.length && n <= theirs.length - at;
	/* The address is in the peer's memory, unless the shared memory was changed. */
	require(w.hostile || there);
	if (!write)
		memset(local, 0xdd, n);
	else if (there)
		memcpy(remote, local, n);
	return n;
}

static void consume(struct rest *rest, size_t n)
{
	rest->in_remote += n;
	rest->in_local += n;
	if (rest->in_remote == rest->remote->iov_len) {
		rest->remote++;
		rest->in_remote = 0;
	}
	if (rest->in_local == rest->local->iov_len) {
		rest->local++;
		rest->in_local = 0;
	}
}

/* Executes the copy of one request. */
static void move(struct rest *rest, size_t length, bool write)
{
	for (size_t done = 0, n; done < length; done += n) {
		/* The last 8 bytes of a WRITE have an iovec of their own. */
		if (write && done < length - 8 && length > 8)
			require(rest->local->iov_len - rest->in_local <= length - 8 - done);
		n = move_some(rest, length - done, write);
		consume(rest, n);
	}
	require(!rest->in_remote && !rest->in_local);
}

/* Reads of the peer's token return the published token, true or false. */
static ssize_t look(const struct iovec *local, const struct iovec *remote)
{
	memcpy(local->iov_base, &w.published->token, sizeof(w.published->token));
	return (ssize_t)(local->iov_len == remote->iov_len ? local->iov_len : 0);
}

static ssize_t copy_or_fail(bool write, pid_t pid, const struct iovec *local,
			    const struct iovec *remote, unsigned long n_remote,
			    unsigned long n_local)
{
	struct rest rest = {.remote = remote, .local = local};
	uint32_t at = w.pair->node[0]->send_cq.tail;
	long result = w.result, length = 0;

	require(pid == getpid());
	w.result = 0;
	if (result < 0) {
		errno = (int)-result;
		return -1;
	}
	/* From the oldest outstanding request on. */
	for (; rest.remote < remote + n_remote; at++) {
		move(&rest, w.lengths[at % POSTED], write);
		length += w.lengths[at % POSTED];
	}
	require(rest.remote == remote + n_remote && rest.local == local + n_local);
	return result && result < length ? result : length;
}

ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n_local,
				 const struct iovec *remote, unsigned long n_remote,
				 unsigned long flags)
{
	require(!flags);
	/* Other writes invalidate the iovec array of a peer's copy; this peer makes no copies. */
	return w.copying ? copy_or_fail(true, pid, local, remote, n_remote, n_local)
			 : (ssize_t)local->iov_len;
}

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long n_local,
				const struct iovec *remote, unsigned long n_remote,
				unsigned long flags)
{
	require(!flags);
	return w.copying ? copy_or_fail(false, pid, local, remote, n_remote, n_local)
			 : look(local, remote);
}

/* --- Both ends: node 0 is the requester, and node 1 writes anything */

static const struct urxe_copy_table *table_of(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	const struct urxe_copy_table *table = NULL;

	if (ctx == w.pair->node[0])
		table = peers_copy_ops.table(&adapter_peers, mac, qpn);
	/* All changes except for the last one, which happens during the copy. */
	while (table && w.n_meanwhile > 1)
		write_to(&w.meanwhile[--w.n_meanwhile]);
	return table;
}

static void withdrawn(void *ctx)
{
	if (ctx == w.pair->node[0])
		peers_copy_ops.withdrawn(&adapter_peers);
}

static bool settled(void *ctx)
{
	return ctx != w.pair->node[0] || peers_copy_ops.settled(&adapter_peers);
}

static uint32_t copy(void *ctx, const struct urxe_copy_job *job)
{
	uint32_t n;

	(void)ctx;
	while (w.n_meanwhile)
		write_to(&w.meanwhile[--w.n_meanwhile]);
	w.copying = true;
	n = peers_copy_ops.copy(&adapter_peers, job);
	w.copying = false;
	return n;
}

/* Whether the peer polls, from the script: the peer is in the requester's own process, which never
 * counts as polling. */
static bool polls_or_wake(void *ctx, uint64_t now)
{
	(void)ctx;
	return peers_copy_ops.polls_or_wake(&adapter_peers, now) || w.awake;
}

static const struct urxe_copy_ops ops = {
	.table = table_of,
	.copy = copy,
	.polls_or_wake = polls_or_wake,
	.withdrawn = withdrawn,
	.settled = settled,
};

/* Introduces the requester to itself, because this process plays the peer, too. */
static void meet(void)
{
	struct vnic_attach_welcome who = {.mtu = MTU, .qpn_first = QPN};
	int fds[VNIC_INBOX_FDS];

	tx_destroy(&adapter.tx);
	memset(w.published, 0, VNIC_INBOX_PUBLISHED_SIZE);
	require(peers_publish(&adapter_peers, w.published, VNIC_BLOCK(QPN)));
	publish();
	memcpy(who.mac, w.pair->node[1]->mac, sizeof(who.mac));
	adapter_init_peers();
	require(!tx_init(&adapter.tx, w.loop->driver, &adapter.uplink, &adapter_peers, &who));
	vnic_inbox_fds(w.inbox, fds);
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		fds[i] = dup(fds[i]);
	w.hostile = false;
	require(!tx_add_inbox(&adapter.tx, who.mac, QPN, false, fds));
}

static void start(void)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);

	w.pair = pair_create(&(struct pair_attr){.seed = 1, .copy_ops = &ops});
	w.first = w.next = 0;
	w.n_meanwhile = 0;
	w.result = 0;
	w.mr = NULL;
	w.awake = false;
	for (unsigned side = 0; side < 2; side++)
		w.keys[side] =
			urxe_mr_key(node_reg(w.pair->node[side], NODE_PD, NODE_ACCESS, 0, ROOM));
	conn_open(w.pair, &conn, w.end);
	meet();
}

/* Initializes the world once for all scripts. */
static void begin(void)
{
	if (w.loop)
		return;
	require(!crc_select(crc_fastest()));
	require(!vnic_loop_open(MTU, &w.loop) && !vnic_inbox_create(MTU, &w.inbox));
	*(uint32_t *)((uint8_t *)w.loop->bars + VNIC_REG_BYPASS) = 1;
	w.published = vnic_inbox_published(w.inbox);
}

/* --- The script */

static void post(void)
{
	static const uint8_t opcodes[] = {URXE_WR_RDMA_WRITE, URXE_WR_RDMA_READ, URXE_WR_RDMA_WRITE,
					  URXE_WR_FETCH_ADD};
	struct node *node = w.pair->node[0], *peer = w.pair->node[1];
	uint8_t what = script_get8(&w.script);
	uint32_t length = script_get16(&w.script) % (ROOM / 2);
	uint32_t offset = script_get16(&w.script) % (ROOM / 2);
	struct urxe_send_wr wr = {
		.wr_id = w.next,
		.opcode = opcodes[what & 3],
		.flags = URXE_SEND_SIGNALED,
		.n_segs = 1,
		.rkey = w.mr && what & 4 ? urxe_mr_key(w.mr) : w.keys[1] ^ (what & 8 ? 1 : 0),
		.remote_addr = peer->iova + (offset & ~7u),
	};
	struct urxe_seg seg;

	if (wr.opcode == URXE_WR_FETCH_ADD)
		length = 8;
	w.awake = what & 16;
	wr.cqes_unpolled = what & 32;
	seg = node_seg(node, offset, length);
	seg.lkey = w.keys[0];
	wr.segs = &seg;
	if (w.next - w.first == POSTED || urxe_post_send(w.end[0].qp, &wr))
		return;
	w.lengths[w.next++ % POSTED] = length;
}

static void connect_anew(void)
{
	const struct urxe_qp_attr reset = {.state = URXE_QPS_RESET};
	const struct conn_attr conn = conn_default(URXE_QPT_RC);

	for (unsigned side = 0; side < 2; side++)
		require(!urxe_qp_modify(w.end[side].qp, w.pair->now, &reset, URXE_QP_STATE));
	for (unsigned side = 0; side < 2; side++)
		conn_bring_up(w.pair, &conn, side, &w.end[side], &w.end[!side]);
}

static void collect(void)
{
	bool failed = false;
	struct urxe_wc wc;

	while (node_poll(&w.pair->node[0]->send_cq, &wc)) {
		require(w.first != w.next && wc.wr_id == w.first);
		require(!failed || wc.status == URXE_WC_WR_FLUSH_ERR);
		failed |= wc.status != URXE_WC_SUCCESS;
		w.first++;
	}
	if (failed)
		connect_anew();
}

static void settle(void)
{
	pair_settle(w.pair);
	collect();
	require(w.first == w.next);
}

/* Pieces of odd lengths, in reverse order. */
static struct urxe_mr *reg_pieces(struct node *node)
{
	struct urxe_extent extents[PARTS];
	struct urxe_mr_attr attr = {
		.pd = NODE_PD, .access = NODE_ACCESS, .iova = node->iova, .extents = extents};
	struct urxe_mr *mr;

	for (uint32_t i = 0; i < PARTS; i++) {
		extents[i] = (struct urxe_extent){
			node->mem + (PARTS - 1 - i) * ((ROOM / 2 / PARTS)), (ROOM / 2 / PARTS) - i};
		attr.length += extents[i].length;
	}
	attr.n_extents = PARTS;
	require(!urxe_mr_reg(node->dev, &attr, &mr));
	return mr;
}

static void register_memory(void)
{
	struct node *peer = w.pair->node[1];

	if (w.mr)
		require(!urxe_mr_dereg(w.mr));
	w.mr = NULL;
	if (script_get8(&w.script) & 1)
		w.mr = reg_pieces(peer);
}

/* Withdraws rights of the requester, whatever copy the peer publishes. */
static void withdraw(void)
{
	struct urxe_mr *mr = node_reg(w.pair->node[0], NODE_PD, NODE_ACCESS, 0, ROOM);

	require(!urxe_mr_dereg(mr));
}

static void step(void)
{
	static const long results[] = {0, -EFAULT, -EPERM, -ESRCH, 1, 20000};

	switch (script_get8(&w.script) % STEP_KINDS) {
	case POST: post(); break;
	case SETTLE: settle(); break;
	case PUBLISH: publish(); break;
	case SCRIBBLE: {
		struct scribble s = read_scribble();

		write_to(&s);
		break;
	}
	case MEANWHILE:
		if (w.n_meanwhile < SCRIBBLES)
			w.meanwhile[w.n_meanwhile++] = read_scribble();
		w.result = results[script_get8(&w.script) % (sizeof(results) / sizeof(results[0]))];
		break;
	case REGISTER: register_memory(); break;
	case WITHDRAW: withdraw(); break;
	case MEET_ANEW: meet(); break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	w.script = (struct script){data, size};
	begin();
	start();
	for (unsigned i = 0; i < STEPS && w.script.left; i++)
		step();
	settle();
	pair_destroy(w.pair);
	return 0;
}
