/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two sides of an RC connection answer each other's numbered messages while a virtual machine
 * moves.
 *
 * The client keeps WINDOW messages outstanding until it gets SIGTERM; the server answers each of
 * them. Messages are SENDs and WRITEs with immediate data in turn. Before every fourth message a
 * side READs the other side's pattern, before another fourth it adds 1 to the other side's counter.
 * Each side checks every byte, that messages come in order and once, that each request completes in
 * order and once, and that the counter rises by exactly 1. It prints the pauses between messages,
 * with the time since the system's boot. SIGQUIT ends a side, which tells whether requests wait.
 */
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "endpoint.h"
#include "exchange.h"
#include "pattern.h"

#define WINDOW    8
#define SIZE_MOST 65536
#define READ_SEED 4711

/* Requests that wait for their completion: each message has at most one request before it. */
#define REQUESTS (2 * WINDOW)

struct header {
	uint64_t number;
	uint64_t last; /* 1: the client sends no further message */
};

/* The memory of a side; the other side writes to `written` and `counter`. */
struct layout {
	uint8_t sent[WINDOW][SIZE_MOST];
	uint8_t received[WINDOW][SIZE_MOST];
	uint8_t written[WINDOW][SIZE_MOST];
	uint8_t pattern[SIZE_MOST];
	uint8_t read[WINDOW][SIZE_MOST];
	uint64_t counter;
	uint64_t fetched[WINDOW];
};

struct side {
	struct endpoint ep;
	struct layout *mine;
	bool client;
	uint32_t size;
	uint64_t sent, received;
	uint64_t requests[REQUESTS]; /* ids in the order of posting */
	uint64_t posted, completed;  /* requests */
	uint64_t ends[WINDOW];       /* value of `posted` behind the message of a slot */
	uint64_t added;              /* completed additions to the other side's counter */
	bool last_sent, last_received;
	double threshold_ms, longest_ms;
	double heard_at; /* time of the last message, s */
};

static volatile sig_atomic_t stopping;

static void stop(int number)
{
	(void)number;
	stopping = 1;
}

/* The side of this process; written before SIGQUIT can come. */
static const struct side *this_side;

static void tell_and_end(int number)
{
	static const char waits[] = "verbs_flow: ended: requests wait for their completions\n";
	static const char idle[] = "verbs_flow: ended: no request waits for its completion\n";
	const char *text = this_side->completed == this_side->posted ? idle : waits;

	(void)number;
	(void)!write(STDERR_FILENO, text, strlen(text));
	_exit(1);
}

/* --- Requests */

enum request { SENT = 1, WRITTEN, READ, ADDED };

static uint64_t request_id(enum request kind, uint64_t number)
{
	return (uint64_t)kind << 56 | number;
}

static uint64_t remote_of(const struct side *s, const void *place)
{
	return s->ep.remote_addr + (uint64_t)((const uint8_t *)place - s->ep.memory);
}

static void post_request(struct side *s, struct ibv_send_wr *wr, void *place, uint32_t size)
{
	struct ibv_sge sge = {(uintptr_t)place, size, s->ep.mr->lkey};
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	s->requests[s->posted++ % REQUESTS] = wr->wr_id;
	errno = ibv_post_send(s->ep.qp, wr, &bad);
	if (errno)
		err(1, "cannot post a request");
}

static void post_read(struct side *s)
{
	struct ibv_send_wr wr = {.wr_id = request_id(READ, s->sent), .opcode = IBV_WR_RDMA_READ};
	uint8_t *place = s->mine->read[s->sent % WINDOW];

	memset(place, 0, s->size);
	wr.wr.rdma.remote_addr = remote_of(s, s->mine->pattern);
	wr.wr.rdma.rkey = s->ep.rkey;
	post_request(s, &wr, place, s->size);
}

static void post_addition(struct side *s)
{
	struct ibv_send_wr wr = {.wr_id = request_id(ADDED, s->sent),
				 .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};

	wr.wr.atomic.remote_addr = remote_of(s, &s->mine->counter);
	wr.wr.atomic.rkey = s->ep.rkey;
	wr.wr.atomic.compare_add = 1;
	post_request(s, &wr, &s->mine->fetched[s->sent % WINDOW], sizeof(uint64_t));
}

static void post_message(struct side *s, bool last)
{
	const uint64_t slot = s->sent % WINDOW;
	const bool writes = s->sent % 2;
	uint8_t *data = s->mine->sent[slot];
	const struct header header = {s->sent, last};
	struct ibv_send_wr wr = {.wr_id = request_id(writes ? WRITTEN : SENT, s->sent),
				 .opcode = writes ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND,
				 .imm_data = (uint32_t)s->sent};

	if (s->sent % 4 == 2)
		post_read(s);
	if (s->sent % 4 == 3)
		post_addition(s);
	pattern_fill(data, (uint32_t)s->sent, s->size);
	memcpy(data, &header, sizeof(header));
	wr.wr.rdma.remote_addr = remote_of(s, s->mine->written[slot]);
	wr.wr.rdma.rkey = s->ep.rkey;
	post_request(s, &wr, data, s->size);
	s->ends[slot] = s->posted;
	s->sent++;
	s->last_sent = last;
}

/* --- Completions */

static void check_bytes(const uint8_t *data, uint64_t seed, uint32_t from, uint32_t size,
			const char *what, uint64_t number)
{
	uint32_t wrong = pattern_differs(data + from, (uint32_t)seed, from, size - from);

	if (wrong)
		errx(1, "%u bytes of %s %llu are wrong", wrong, what, (unsigned long long)number);
}

static void complete_request(struct side *s, const struct ibv_wc *wc)
{
	const uint64_t number = wc->wr_id & 0xffffffffffffff;

	if (s->completed == s->posted || wc->wr_id != s->requests[s->completed % REQUESTS])
		errx(1, "request %llx completes out of turn", (unsigned long long)wc->wr_id);
	s->completed++;
	if (wc->wr_id >> 56 == READ)
		check_bytes(s->mine->read[number % WINDOW], READ_SEED, 0, s->size, "READ", number);
	if (wc->wr_id >> 56 == ADDED && s->mine->fetched[number % WINDOW] != s->added++)
		errx(1, "the counter is %llu, not %llu",
		     (unsigned long long)s->mine->fetched[number % WINDOW],
		     (unsigned long long)s->added - 1);
}

static double seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void note_pause(struct side *s)
{
	const double now = seconds(CLOCK_MONOTONIC);
	const double ms = s->received ? (now - s->heard_at) * 1e3 : 0;

	s->heard_at = now;
	if (ms > s->longest_ms)
		s->longest_ms = ms;
	if (ms >= s->threshold_ms)
		printf("pause of %.1f ms until %.4f, before message %llu\n", ms,
		       seconds(CLOCK_BOOTTIME), (unsigned long long)s->received);
}

/* Receives have the number of their message as id, because each message takes one. */
static void receive_message(struct side *s, const struct ibv_wc *wc)
{
	const uint64_t slot = s->received % WINDOW;
	const bool writes = s->received % 2;
	const uint8_t *data = writes ? s->mine->written[slot] : s->mine->received[slot];
	struct header header;

	note_pause(s);
	memcpy(&header, data, sizeof(header));
	if (wc->wr_id != s->received || header.number != s->received || wc->byte_len != s->size ||
	    writes != (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) ||
	    (writes && wc->imm_data != (uint32_t)s->received))
		errx(1, "receive %llu has message %llu of %u bytes, not message %llu",
		     (unsigned long long)wc->wr_id, (unsigned long long)header.number, wc->byte_len,
		     (unsigned long long)s->received);
	check_bytes(data, s->received, sizeof(header), s->size, "message", s->received);
	s->received++;
	s->last_received |= header.last;
	endpoint_post_recv(&s->ep, s->received + WINDOW - 1,
			   (uint32_t)(s->mine->received[slot] - s->ep.memory), s->size);
}

static void handle_completion(struct side *s)
{
	const struct ibv_wc wc = endpoint_success(&s->ep);

	if (wc.opcode & IBV_WC_RECV)
		receive_message(s, &wc);
	else
		complete_request(s, &wc);
}

/* --- The conversation */

/* A slot is free if its requests have completed, and the answer to its message came. */
static bool may_send(const struct side *s)
{
	if (s->last_sent || s->completed < s->ends[s->sent % WINDOW])
		return false;
	return s->client ? s->sent - s->received < WINDOW : s->sent < s->received;
}

static bool has_ended(const struct side *s)
{
	return s->last_sent && s->last_received && s->sent == s->received &&
	       s->completed == s->posted;
}

static void converse(struct side *s)
{
	while (!has_ended(s)) {
		while (may_send(s))
			post_message(s, s->client ? stopping
						  : s->last_received && s->sent + 1 == s->received);
		if (!has_ended(s))
			handle_completion(s);
	}
}

/* Both sides must have the same counts before one of them destroys its queue pair. */
static void compare_counts(const struct side *s, int fd)
{
	const uint64_t mine[] = {s->sent, s->added};
	uint64_t theirs[2];

	exchange_send(fd, mine, sizeof(mine));
	exchange_recv(fd, theirs, sizeof(theirs));
	if (theirs[0] != s->received || theirs[1] != s->mine->counter)
		errx(1, "%llu messages came of %llu, and %llu additions of %llu",
		     (unsigned long long)s->received, (unsigned long long)theirs[0],
		     (unsigned long long)s->mine->counter, (unsigned long long)theirs[1]);
}

static void usage(void)
{
	errx(2, "usage: verbs_flow [-d DEVICE] [-g GID_INDEX] [-p PORT] [-s SIZE] [-t TIMEOUT] "
		"[-P MS] [HOST]");
}

int main(int argc, char **argv)
{
	struct endpoint_attr attr = {.device = "urxe0",
				     .type = IBV_QPT_RC,
				     .gid_index = 1,
				     .mtu = IBV_MTU_1024,
				     .events = true,
				     .size = sizeof(struct layout)};
	struct side s = {.size = 3000, .threshold_ms = 20};
	const char *port = "18600";
	int fd;

	for (int c; (c = getopt(argc, argv, "d:g:p:s:t:P:")) != -1;) {
		switch (c) {
		case 'd': attr.device = optarg; break;
		case 'g': attr.gid_index = (uint8_t)atoi(optarg); break;
		case 'p': port = optarg; break;
		case 's': s.size = (uint32_t)atoi(optarg); break;
		case 't': attr.timeout = (uint8_t)atoi(optarg); break;
		case 'P': s.threshold_ms = atof(optarg); break;
		default: usage();
		}
	}
	if (s.size < sizeof(struct header) || s.size > SIZE_MOST)
		usage();
	s.client = optind < argc;
	this_side = &s;
	signal(SIGTERM, s.client ? stop : SIG_IGN);
	signal(SIGQUIT, tell_and_end);
	setlinebuf(stdout);
	fd = exchange_open(s.client ? argv[optind] : NULL, port);
	endpoint_open(&s.ep, &attr, fd);
	s.mine = (struct layout *)s.ep.memory;
	memset(s.mine, 0, sizeof(*s.mine));
	pattern_fill(s.mine->pattern, READ_SEED, s.size);
	for (uint64_t i = 0; i < WINDOW; i++)
		endpoint_post_recv(&s.ep, i, (uint32_t)(s.mine->received[i] - s.ep.memory), s.size);
	exchange_send(fd, "r", 1);
	exchange_recv(fd, &(char){0}, 1);
	puts("messages flow");
	converse(&s);
	compare_counts(&s, fd);
	endpoint_close(&s.ep);
	printf("%llu messages each way, all bytes right; longest pause %.1f ms\n",
	       (unsigned long long)s.sent, s.longest_ms);
	return 0;
}
