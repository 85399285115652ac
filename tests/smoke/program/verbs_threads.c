/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many threads use the same objects; one check in each run:
 *
 *   shared  64 threads post to shared QPs and poll the two CQs of these QPs
 *   storm   the same, also with completion channels, while other threads create and destroy
 * objects, open and close contexts, break connections and read asynchronous events peers   the same
 * between two processes close   the descriptor of the device is closed while threads use the device
 *
 * A thread has one request outstanding; the thread that polls its completion wakes it.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "exchange.h"
#include "loop.h"
#include "pattern.h"

#define THREADS  64
#define QPS      8
#define DEPTH    16 /* receives of a QP */
#define ROUNDS   40
#define SIZE     2500 /* of a message: three packets */
#define CLOSES   20
#define BREAKS   20
#define SECONDS  120 /* for one request, under ThreadSanitizer on a busy machine */
#define EVENT_MS 20  /* timeout of a wait for events, after which a thread checks for the end */

#define RECEIVE (1ull << 32) /* flag in a wr_id: the number is a receive slot, not a thread */

/* Layout of an endpoint's memory. */
#define COUNTER   64 /* the first word counts atomics, the second of each thread is its result */
#define SOURCE(t) (COUNTER + 16 * THREADS + (t)*SIZE)
#define RESULT(t) SOURCE(THREADS + (t))
#define TARGET(t) SOURCE(2 * THREADS + (t))
#define SLOT(i)   SOURCE(3 * THREADS + (i))
#define ROOM      SOURCE(3 * THREADS + QPS * DEPTH)
#define OLD(t)    (COUNTER + 16 * (t))

struct worker {
	struct endpoint *endpoint;
	uint32_t number;
	sem_t done;
	bool sleeps; /* other threads poll the worker's completions */
	pthread_t thread;
};

/* A context with one CQ, the QPs that use it, and their memory. */
struct endpoint {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qps[QPS];
	struct ibv_mr *mr;
	uint8_t *room;
	/* Of the peer: */
	uint64_t remote_addr;
	uint32_t rkey;
	struct worker workers[THREADS];
	uint32_t n_workers;
	atomic_uint received;
	atomic_uint events;
};

static atomic_bool over;     /* tells the threads beside the workers to end */
static atomic_bool may_fail; /* the device may disappear at any time */

static void start(pthread_t *thread, void *(*run)(void *), void *argument)
{
	errno = pthread_create(thread, NULL, run, argument);
	if (errno)
		err(1, "pthread_create");
}

static void join(pthread_t thread)
{
	errno = pthread_join(thread, NULL);
	if (errno)
		err(1, "pthread_join");
}

/* --- An endpoint */

static struct ibv_sge segment(const struct endpoint *s, uint32_t offset, uint32_t length)
{
	return (struct ibv_sge){(uintptr_t)s->room + offset, length, s->mr->lkey};
}

/* False: the device has disappeared. */
static bool post_recv(struct endpoint *s, uint32_t slot)
{
	struct ibv_sge sge = segment(s, SLOT(slot), SIZE);
	struct ibv_recv_wr wr = {.wr_id = RECEIVE | slot, .sg_list = &sge, .num_sge = 1}, *bad;

	if (!ibv_post_recv(s->qps[slot / DEPTH], &wr, &bad))
		return true;
	if (!may_fail)
		errx(1, "cannot post a receive");
	return false;
}

static void endpoint_open(struct endpoint *s, struct ibv_context *context, bool events)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {THREADS, DEPTH, 1, 1, 0}};

	memset(s, 0, sizeof(*s));
	s->context = context;
	s->pd = ibv_alloc_pd(context);
	s->room = calloc(1, ROOM);
	s->mr = s->pd && s->room ? ibv_reg_mr(s->pd, s->room, ROOM, LOOP_ACCESS) : NULL;
	s->channel = events ? ibv_create_comp_channel(context) : NULL;
	s->cq = ibv_create_cq(context, QPS * DEPTH + THREADS, s, s->channel, 0);
	if (!s->mr || !s->cq || (events && !s->channel))
		err(1, "cannot make an endpoint");
	/* Several threads wake for one event, and only one gets it: the others must not sleep in
	 * read. */
	if (events && fcntl(s->channel->fd, F_SETFL, O_NONBLOCK))
		err(1, "fcntl");
	init.send_cq = init.recv_cq = s->cq;
	for (uint32_t i = 0; i < QPS; i++) {
		s->qps[i] = ibv_create_qp(s->pd, &init);
		if (!s->qps[i])
			err(1, "ibv_create_qp");
	}
}

/* Connects each QP to its neighbour. */
static void endpoint_loop(struct endpoint *s)
{
	s->remote_addr = (uintptr_t)s->room;
	s->rkey = s->mr->rkey;
	for (uint32_t i = 0; i < QPS; i++)
		loop_connect(s->qps[i], s->qps[i ^ 1]->qp_num);
	for (uint32_t slot = 0; slot < QPS * DEPTH; slot++)
		post_recv(s, slot);
}

static void endpoint_close(struct endpoint *s)
{
	for (uint32_t i = 0; i < QPS; i++)
		if (ibv_destroy_qp(s->qps[i]))
			err(1, "ibv_destroy_qp");
	if (ibv_destroy_cq(s->cq) || (s->channel && ibv_destroy_comp_channel(s->channel)) ||
	    ibv_dereg_mr(s->mr) || ibv_dealloc_pd(s->pd) || ibv_close_device(s->context))
		err(1, "cannot take an endpoint down");
	free(s->room);
}

/* --- Completions, polled by any thread */

static void received(struct endpoint *s, const struct ibv_wc *wc)
{
	uint32_t slot = (uint32_t)wc->wr_id;
	const uint8_t *data = s->room + SLOT(slot);
	uint32_t seed;

	memcpy(&seed, data, sizeof(seed));
	if (wc->byte_len != SIZE || seed % THREADS % QPS != (slot / DEPTH ^ 1) % QPS ||
	    pattern_differs(data + 4, seed, 4, SIZE - 4))
		errx(1, "message %u is not what was sent", seed);
	post_recv(s, slot);
	atomic_fetch_add(&s->received, 1);
}

static void completed(struct endpoint *s, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		if (!may_fail)
			errx(1, "completion: %s", ibv_wc_status_str(wc->status));
	} else if (wc->wr_id & RECEIVE) {
		received(s, wc);
		return;
	}
	if (!(wc->wr_id & RECEIVE))
		sem_post(&s->workers[wc->wr_id].done);
}

/* Polls a few completions. False: the device has disappeared. */
static bool drain(struct endpoint *s)
{
	struct ibv_wc wc[4];
	int n = ibv_poll_cq(s->cq, 4, wc);

	if (n < 0 && !may_fail)
		errx(1, "ibv_poll_cq");
	for (int i = 0; i < n; i++)
		completed(s, &wc[i]);
	return n >= 0;
}

/* Waits for events of the endpoint's channel; several threads do so. */
static void *serve_events(void *argument)
{
	struct endpoint *s = argument;
	struct pollfd pfd = {s->channel->fd, POLLIN, 0};
	struct ibv_cq *cq;
	void *context;

	while (!over) {
		if (ibv_req_notify_cq(s->cq, 0))
			errx(1, "ibv_req_notify_cq");
		/* With rdma_rxe, completions before the CQ was armed raise no event. */
		drain(s);
		if (poll(&pfd, 1, EVENT_MS) < 1)
			continue;
		if (ibv_get_cq_event(s->channel, &cq, &context)) {
			if (errno != EAGAIN)
				err(1, "ibv_get_cq_event");
			continue;
		}
		if (cq != s->cq || context != s)
			errx(1, "an event of another CQ");
		ibv_ack_cq_events(cq, 1);
		s->events++;
	}
	return NULL;
}

/* --- A worker */

static void await_post(sem_t *sem, const char *what)
{
	struct timespec until = {time(NULL) + SECONDS, 0};

	if (sem_timedwait(sem, &until))
		err(1, "no %s", what);
}

static bool await(struct worker *w)
{
	time_t end = time(NULL) + SECONDS;

	if (w->sleeps) {
		await_post(&w->done, "completion");
		return true;
	}
	while (sem_trywait(&w->done)) {
		if (!drain(w->endpoint))
			return false;
		if (time(NULL) > end)
			errx(1, "thread %u waits for ever", w->number);
		/* The peer's threads need the same CPUs. */
		sched_yield();
	}
	return true;
}

static bool request(struct worker *w, enum ibv_wr_opcode opcode, uint32_t local, uint32_t remote)
{
	bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct endpoint *s = w->endpoint;
	struct ibv_sge sge = segment(s, local, atomic ? 8 : SIZE);
	struct ibv_send_wr wr = {.wr_id = w->number,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr = {.rdma = {s->remote_addr + remote, s->rkey}}},
			   *bad;

	if (atomic) {
		wr.wr.atomic.remote_addr = s->remote_addr + remote;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = s->rkey;
	}
	errno = abs(ibv_post_send(s->qps[w->number % QPS], &wr, &bad));
	if (errno && !may_fail)
		err(1, "ibv_post_send");
	return !errno && await(w);
}

/* One request of each kind: READ returns the written bytes, and each fetch-and-add a new number. */
static bool run_round(struct worker *w, uint32_t round)
{
	struct endpoint *s = w->endpoint;
	uint32_t t = w->number, seed = round * THREADS + t;
	uint8_t *source = s->room + SOURCE(t);

	pattern_fill(source, seed, SIZE);
	memcpy(source, &seed, sizeof(seed));
	if (!request(w, IBV_WR_SEND, SOURCE(t), 0) ||
	    !request(w, IBV_WR_RDMA_WRITE, SOURCE(t), TARGET(t)) ||
	    !request(w, IBV_WR_RDMA_READ, RESULT(t), TARGET(t)) ||
	    !request(w, IBV_WR_ATOMIC_FETCH_AND_ADD, OLD(t), 0))
		return false;
	if (!may_fail && memcmp(source, s->room + RESULT(t), SIZE))
		errx(1, "thread %u: what was written is not read", t);
	return true;
}

static void *run_rounds(void *argument)
{
	for (uint32_t round = 0; round < ROUNDS; round++)
		if (!run_round(argument, round))
			break;
	return NULL;
}

static void start_workers(struct endpoint *s, uint32_t n, bool sleep)
{
	s->n_workers = n;
	for (uint32_t i = 0; i < n; i++) {
		s->workers[i] = (struct worker){.endpoint = s, .number = i, .sleeps = sleep};
		sem_init(&s->workers[i].done, 0, 0);
	}
	for (uint32_t i = 0; i < n; i++)
		start(&s->workers[i].thread, run_rounds, &s->workers[i]);
}

static void join_workers(struct endpoint *s)
{
	for (uint32_t i = 0; i < s->n_workers; i++)
		join(s->workers[i].thread);
}

/* Checks the totals of all workers; the peer has as many workers. */
static void check_sums(struct endpoint *s)
{
	uint32_t sum = s->n_workers * ROUNDS;
	time_t end = time(NULL) + SECONDS;
	uint64_t adds;

	/* A send may complete before any thread polls its receive. */
	while (s->received < sum && time(NULL) < end)
		drain(s);
	memcpy(&adds, s->room, sizeof(adds));
	if (s->received != sum || adds != sum)
		errx(1, "%u received, %ju added, instead of %u", s->received, (uintmax_t)adds, sum);
}

static void check_shared(void)
{
	static struct endpoint endpoints[2];

	for (int i = 0; i < 2; i++) {
		endpoint_open(&endpoints[i], loop_open(), false);
		endpoint_loop(&endpoints[i]);
	}
	for (int i = 0; i < 2; i++)
		start_workers(&endpoints[i], THREADS / 2, false);
	for (int i = 0; i < 2; i++)
		join_workers(&endpoints[i]);
	for (int i = 0; i < 2; i++) {
		check_sums(&endpoints[i]);
		endpoint_close(&endpoints[i]);
	}
}

/* --- Threads beside the workers of a storm, in the same contexts */

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq,
				sem_t *failed)
{
	struct ibv_qp_init_attr init = {.qp_context = failed,
					.qp_type = IBV_QPT_RC,
					.send_cq = cq,
					.recv_cq = cq,
					.srq = srq,
					.cap = {4, srq ? 0 : 4, 1, 1, 0}};
	struct ibv_qp *qp = cq ? ibv_create_qp(pd, &init) : NULL;

	if (!qp)
		err(1, "cannot make a queue pair");
	return qp;
}

static void create_and_destroy_objects(struct ibv_context *context)
{
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq = channel ? ibv_create_cq(context, 8, NULL, channel, 0) : NULL;
	struct ibv_srq *srq = pd ? ibv_create_srq(pd, &shared) : NULL;
	struct ibv_mr *mr = pd ? ibv_reg_mr(pd, &to, sizeof(to), IBV_ACCESS_LOCAL_WRITE) : NULL;
	struct ibv_mw *mw = pd ? ibv_alloc_mw(pd, IBV_MW_TYPE_1) : NULL;
	struct ibv_qp *qp, *with_srq;
	struct ibv_ah *ah;

	if (!cq || !srq || !mr || !mw || ibv_query_gid(context, 1, 1, &to.grh.dgid))
		err(1, "cannot make objects");
	qp = create_qp(pd, cq, NULL, NULL);
	with_srq = create_qp(pd, cq, srq, NULL);
	ah = ibv_create_ah(pd, &to);
	if (!ah || ibv_resize_cq(cq, 32) || ibv_req_notify_cq(cq, 0))
		err(1, "cannot make objects");
	loop_connect(qp, with_srq->qp_num);
	loop_connect(with_srq, qp->qp_num);
	if (ibv_destroy_ah(ah) || ibv_destroy_qp(qp) || ibv_destroy_qp(with_srq) ||
	    ibv_dealloc_mw(mw) || ibv_dereg_mr(mr) || ibv_destroy_srq(srq) || ibv_destroy_cq(cq) ||
	    ibv_destroy_comp_channel(channel) || ibv_dealloc_pd(pd))
		err(1, "cannot destroy an object");
}

static void *create_objects_for_ever(void *context)
{
	while (!over)
		create_and_destroy_objects(context);
	return NULL;
}

static void *open_contexts_for_ever(void *unused)
{
	while (!over) {
		struct ibv_context *context = loop_open();
		struct ibv_pd *pd = ibv_alloc_pd(context);

		if (!pd || ibv_dealloc_pd(pd) || ibv_close_device(context))
			err(1, "a context that comes and goes");
	}
	return unused;
}

/* Posts a WRITE that the responder refuses, which raises an asynchronous event there. */
static void break_connection(struct ibv_context *context)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .num_sge = 1}, *bad;
	sem_t failed;
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	struct ibv_mr *mr = pd ? ibv_reg_mr(pd, &wr, sizeof(wr), 0) : NULL;
	struct ibv_qp *qps[2] = {create_qp(pd, cq, NULL, NULL), create_qp(pd, cq, NULL, &failed)};
	struct ibv_sge sge = {(uintptr_t)&wr, 8, mr ? mr->lkey : 0};
	time_t end = time(NULL) + SECONDS;
	struct ibv_wc wc;
	int n;

	sem_init(&failed, 0, 0);
	wr.sg_list = &sge;
	wr.send_flags = IBV_SEND_SIGNALED;
	loop_connect(qps[0], qps[1]->qp_num);
	loop_connect(qps[1], qps[0]->qp_num);
	if (!mr || ibv_post_send(qps[0], &wr, &bad))
		err(1, "cannot break a connection");
	while (!(n = ibv_poll_cq(cq, 1, &wc)) && time(NULL) < end)
		;
	if (n != 1 || wc.status != IBV_WC_REM_ACCESS_ERR)
		errx(1, "a connection is not broken");
	/* Destroying the QP would drop an event that no thread has read. */
	await_post(&failed, "asynchronous event");
	if (ibv_destroy_qp(qps[0]) || ibv_destroy_qp(qps[1]) || ibv_dereg_mr(mr) ||
	    ibv_destroy_cq(cq) || ibv_dealloc_pd(pd))
		err(1, "cannot destroy what is broken");
}

static void *break_connections(void *context)
{
	for (int i = 0; i < BREAKS; i++)
		break_connection(context);
	return NULL;
}

static atomic_uint broken; /* asynchronous events of broken connections */

static void *read_async_events(void *argument)
{
	struct ibv_context *context = argument;
	struct pollfd pfd = {context->async_fd, POLLIN, 0};
	struct ibv_async_event event;

	while (!over) {
		if (poll(&pfd, 1, EVENT_MS) < 1)
			continue;
		if (ibv_get_async_event(context, &event))
			err(1, "ibv_get_async_event");
		if (event.event_type != IBV_EVENT_QP_ACCESS_ERR)
			errx(1, "%s", ibv_event_type_str(event.event_type));
		sem_post(event.element.qp->qp_context);
		broken++;
		ibv_ack_async_event(&event);
	}
	return NULL;
}

#define MAKERS   4
#define BREAKERS 2
#define SERVERS  4

/* 32 threads in one context. */
struct storm {
	struct endpoint endpoint;
	pthread_t makers[MAKERS], breakers[BREAKERS], servers[SERVERS], opener, hearer;
	bool events;
};

static void storm_begin(struct storm *storm)
{
	struct ibv_context *context = loop_open();
	uint32_t workers = 32 - MAKERS - BREAKERS - (storm->events ? SERVERS : 0) - 2;

	endpoint_open(&storm->endpoint, context, storm->events);
	endpoint_loop(&storm->endpoint);
	for (int i = 0; i < MAKERS; i++)
		start(&storm->makers[i], create_objects_for_ever, context);
	for (int i = 0; i < BREAKERS; i++)
		start(&storm->breakers[i], break_connections, context);
	for (int i = 0; storm->events && i < SERVERS; i++)
		start(&storm->servers[i], serve_events, &storm->endpoint);
	start(&storm->opener, open_contexts_for_ever, NULL);
	start(&storm->hearer, read_async_events, context);
	start_workers(&storm->endpoint, workers, storm->events);
}

static void storm_end(struct storm *storm)
{
	for (int i = 0; i < MAKERS; i++)
		join(storm->makers[i]);
	for (int i = 0; storm->events && i < SERVERS; i++)
		join(storm->servers[i]);
	join(storm->opener);
	join(storm->hearer);
	check_sums(&storm->endpoint);
	if (storm->events && !storm->endpoint.events)
		errx(1, "no event of a completion");
	endpoint_close(&storm->endpoint);
}

static void check_storm(void)
{
	static struct storm storms[2] = {{.events = false}, {.events = true}};

	for (int i = 0; i < 2; i++)
		storm_begin(&storms[i]);
	for (int i = 0; i < 2; i++) {
		join_workers(&storms[i].endpoint);
		for (int j = 0; j < BREAKERS; j++)
			join(storms[i].breakers[j]);
	}
	over = true;
	for (int i = 0; i < 2; i++)
		storm_end(&storms[i]);
	if (broken != 2 * BREAKERS * BREAKS)
		errx(1, "%u events of broken connections", broken);
}

/* --- Two processes */

struct introduction {
	uint32_t qpns[QPS];
	uint64_t addr;
	uint32_t rkey;
};

static void await_peer(int fd)
{
	char ready = 1;

	exchange_send(fd, &ready, sizeof(ready));
	exchange_recv(fd, &ready, sizeof(ready));
}

/* Connects QP i to the peer's QP i ^ 1. */
static void run_peer(int fd)
{
	static struct endpoint s;
	struct introduction self = {0}, peer;
	struct pollfd pfd = {fd, POLLIN, 0};
	char ready = 1;

	endpoint_open(&s, loop_open(), false);
	for (uint32_t i = 0; i < QPS; i++)
		self.qpns[i] = s.qps[i]->qp_num;
	self.addr = (uintptr_t)s.room;
	self.rkey = s.mr->rkey;
	exchange_send(fd, &self, sizeof(self));
	exchange_recv(fd, &peer, sizeof(peer));
	s.remote_addr = peer.addr;
	s.rkey = peer.rkey;
	for (uint32_t i = 0; i < QPS; i++)
		loop_connect(s.qps[i], peer.qpns[i ^ 1]);
	for (uint32_t slot = 0; slot < QPS * DEPTH; slot++)
		post_recv(&s, slot);
	await_peer(fd);
	start_workers(&s, THREADS / 2, false);
	join_workers(&s);
	exchange_send(fd, &ready, sizeof(ready));
	/* Polls until the peer is done: its SENDs need receives, which each completion posts again.
	 */
	while (!poll(&pfd, 1, 0))
		drain(&s);
	exchange_recv(fd, &ready, sizeof(ready));
	check_sums(&s);
	/* The QPs must exist until the peer has all its ACKs. */
	await_peer(fd);
	endpoint_close(&s);
}

static void check_peers(void)
{
	char fd[16];
	int ends[2], status;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		err(1, "socketpair");
	snprintf(fd, sizeof(fd), "%d", ends[1]);
	child = fork();
	if (!child) {
		execl("/proc/self/exe", "verbs_threads", "peer", fd, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	run_peer(ends[0]);
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		errx(1, "the other process fails");
}

/* --- A descriptor that is closed */

/* Closes the descriptor after 20 messages, when all workers are busy. */
static void close_once(void)
{
	static struct endpoint s;

	endpoint_open(&s, loop_open(), false);
	endpoint_loop(&s);
	start_workers(&s, 8, false);
	while (s.received < 20)
		drain(&s);
	/* Not close(): ThreadSanitizer would report the intended race of this program. */
	if (close_range((unsigned int)s.context->cmd_fd, (unsigned int)s.context->cmd_fd, 0))
		err(1, "close_range");
	join_workers(&s);
	if (ibv_alloc_pd(s.context))
		errx(1, "a device whose descriptor is closed is there");
	/* libibverbs still holds memory of the context; the process ends soon. */
	close(s.context->async_fd);
}

static void check_close(void)
{
	may_fail = true;
	for (int i = 0; i < CLOSES; i++)
		close_once();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} checks[] = {{"shared", check_shared},
		      {"storm", check_storm},
		      {"peers", check_peers},
		      {"close", check_close}};

	if (argc == 3 && !strcmp(argv[1], "peer")) {
		run_peer(atoi(argv[2]));
		return 0;
	}
	for (size_t i = 0; argc == 2 && i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!strcmp(argv[1], checks[i].name)) {
			checks[i].run();
			return 0;
		}
	fputs("usage: verbs_threads CHECK\n", stderr);
	return 2;
}
