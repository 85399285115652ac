/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many threads on the same objects, one check a run:
 *
 *   shared  64 threads post to queue pairs that they share, and poll the two CQs of all
 *   storm   the same, also with completion channels, while others make and destroy objects,
 *           open and close contexts, break connections and read asynchronous events
 *   peers   the same between two processes
 *   close   a device's descriptor is closed under the threads that use it
 *
 * A thread has one request outstanding at a time; whoever polls its completion tells it.
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
#define EVENT_MS 20  /* how long a thread sleeps before it sees whether all is over */

#define RECEIVE (1ull << 32) /* in a wr_id: not a thread's request, but a slot */

/* What of a station's memory is whose. */
#define COUNTER   64 /* the first word counts atomics, the second of each thread is its result */
#define SOURCE(t) (COUNTER + 16 * THREADS + (t)*SIZE)
#define RESULT(t) SOURCE(THREADS + (t))
#define TARGET(t) SOURCE(2 * THREADS + (t))
#define SLOT(i)   SOURCE(3 * THREADS + (i))
#define ROOM      SOURCE(3 * THREADS + QPS * DEPTH)
#define OLD(t)    (COUNTER + 16 * (t))

struct worker {
	struct station *station;
	uint32_t number;
	sem_t done;
	bool sleeps; /* others poll for it */
	pthread_t thread;
};

/* A context with a CQ, queue pairs that all use it, and the memory of all. */
struct station {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qps[QPS];
	struct ibv_mr *mr;
	uint8_t *room;
	/* The other end's. */
	uint64_t remote_addr;
	uint32_t rkey;
	struct worker workers[THREADS];
	uint32_t n_workers;
	atomic_uint received;
	atomic_uint events;
};

static atomic_bool over;     /* threads that accompany the workers end */
static atomic_bool may_fail; /* the device may go at any time */

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

/* --- A station. */

static struct ibv_sge segment(const struct station *s, uint32_t offset, uint32_t length)
{
	return (struct ibv_sge){(uintptr_t)s->room + offset, length, s->mr->lkey};
}

/* False: the device has gone. */
static bool post_recv(struct station *s, uint32_t slot)
{
	struct ibv_sge sge = segment(s, SLOT(slot), SIZE);
	struct ibv_recv_wr wr = {.wr_id = RECEIVE | slot, .sg_list = &sge, .num_sge = 1}, *bad;

	if (!ibv_post_recv(s->qps[slot / DEPTH], &wr, &bad))
		return true;
	if (!may_fail)
		errx(1, "cannot post a receive");
	return false;
}

static void station_open(struct station *s, struct ibv_context *context, bool events)
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
		err(1, "cannot make a station");
	/* Of the threads that see an event all but one find it gone: none may sleep for the next.
	 */
	if (events && fcntl(s->channel->fd, F_SETFL, O_NONBLOCK))
		err(1, "fcntl");
	init.send_cq = init.recv_cq = s->cq;
	for (uint32_t i = 0; i < QPS; i++) {
		s->qps[i] = ibv_create_qp(s->pd, &init);
		if (!s->qps[i])
			err(1, "ibv_create_qp");
	}
}

/* Each queue pair to its neighbour. */
static void station_loop(struct station *s)
{
	s->remote_addr = (uintptr_t)s->room;
	s->rkey = s->mr->rkey;
	for (uint32_t i = 0; i < QPS; i++)
		loop_connect(s->qps[i], s->qps[i ^ 1]->qp_num);
	for (uint32_t slot = 0; slot < QPS * DEPTH; slot++)
		post_recv(s, slot);
}

static void station_close(struct station *s)
{
	for (uint32_t i = 0; i < QPS; i++)
		if (ibv_destroy_qp(s->qps[i]))
			err(1, "ibv_destroy_qp");
	if (ibv_destroy_cq(s->cq) || (s->channel && ibv_destroy_comp_channel(s->channel)) ||
	    ibv_dereg_mr(s->mr) || ibv_dealloc_pd(s->pd) || ibv_close_device(s->context))
		err(1, "cannot take a station down");
	free(s->room);
}

/* --- Completions, whoever polls them. */

static void received(struct station *s, const struct ibv_wc *wc)
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

static void completed(struct station *s, const struct ibv_wc *wc)
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

/* A few completions; false: the device has gone. */
static bool drain(struct station *s)
{
	struct ibv_wc wc[4];
	int n = ibv_poll_cq(s->cq, 4, wc);

	if (n < 0 && !may_fail)
		errx(1, "ibv_poll_cq");
	for (int i = 0; i < n; i++)
		completed(s, &wc[i]);
	return n >= 0;
}

/* Waits on the station's channel, as any number of threads may. */
static void *serve_events(void *argument)
{
	struct station *s = argument;
	struct pollfd pfd = {s->channel->fd, POLLIN, 0};
	struct ibv_cq *cq;
	void *context;

	while (!over) {
		if (ibv_req_notify_cq(s->cq, 0))
			errx(1, "ibv_req_notify_cq");
		/* What came before the CQ was armed raises no event. */
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

/* --- A worker. */

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
		if (!drain(w->station))
			return false;
		if (time(NULL) > end)
			errx(1, "thread %u waits for ever", w->number);
		/* The peer's threads share the processors with these. */
		sched_yield();
	}
	return true;
}

static bool request(struct worker *w, enum ibv_wr_opcode opcode, uint32_t local, uint32_t remote)
{
	bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct station *s = w->station;
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

/* One of each kind: what is written is read back, and each addition finds another number. */
static bool work(struct worker *w, uint32_t round)
{
	struct station *s = w->station;
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

static void *work_all(void *argument)
{
	for (uint32_t round = 0; round < ROUNDS; round++)
		if (!work(argument, round))
			break;
	return NULL;
}

static void hire(struct station *s, uint32_t n, bool sleep)
{
	s->n_workers = n;
	for (uint32_t i = 0; i < n; i++) {
		s->workers[i] = (struct worker){.station = s, .number = i, .sleeps = sleep};
		sem_init(&s->workers[i].done, 0, 0);
	}
	for (uint32_t i = 0; i < n; i++)
		start(&s->workers[i].thread, work_all, &s->workers[i]);
}

static void dismiss(struct station *s)
{
	for (uint32_t i = 0; i < s->n_workers; i++)
		join(s->workers[i].thread);
}

/* What all have done together; the other end has as many workers. */
static void check_sums(struct station *s)
{
	uint32_t sum = s->n_workers * ROUNDS;
	time_t end = time(NULL) + SECONDS;
	uint64_t adds;

	/* A send may complete before its receive is polled. */
	while (s->received < sum && time(NULL) < end)
		drain(s);
	memcpy(&adds, s->room, sizeof(adds));
	if (s->received != sum || adds != sum)
		errx(1, "%u received, %ju added, instead of %u", s->received, (uintmax_t)adds, sum);
}

static void check_shared(void)
{
	static struct station stations[2];

	for (int i = 0; i < 2; i++) {
		station_open(&stations[i], loop_open(), false);
		station_loop(&stations[i]);
	}
	for (int i = 0; i < 2; i++)
		hire(&stations[i], THREADS / 2, false);
	for (int i = 0; i < 2; i++)
		dismiss(&stations[i]);
	for (int i = 0; i < 2; i++) {
		check_sums(&stations[i]);
		station_close(&stations[i]);
	}
}

/* --- What goes on beside the workers of a storm, in their contexts. */

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq,
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

static void make_and_destroy(struct ibv_context *context)
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
	qp = make_qp(pd, cq, NULL, NULL);
	with_srq = make_qp(pd, cq, srq, NULL);
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

static void *make_for_ever(void *context)
{
	while (!over)
		make_and_destroy(context);
	return NULL;
}

static void *open_for_ever(void *unused)
{
	while (!over) {
		struct ibv_context *context = loop_open();
		struct ibv_pd *pd = ibv_alloc_pd(context);

		if (!pd || ibv_dealloc_pd(pd) || ibv_close_device(context))
			err(1, "a context that comes and goes");
	}
	return unused;
}

/* A write that its peer refuses: each is an asynchronous event there. */
static void break_once(struct ibv_context *context)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .num_sge = 1}, *bad;
	sem_t failed;
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	struct ibv_mr *mr = pd ? ibv_reg_mr(pd, &wr, sizeof(wr), 0) : NULL;
	struct ibv_qp *qps[2] = {make_qp(pd, cq, NULL, NULL), make_qp(pd, cq, NULL, &failed)};
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
	/* What nobody has read yet would go with the queue pair. */
	await_post(&failed, "asynchronous event");
	if (ibv_destroy_qp(qps[0]) || ibv_destroy_qp(qps[1]) || ibv_dereg_mr(mr) ||
	    ibv_destroy_cq(cq) || ibv_dealloc_pd(pd))
		err(1, "cannot destroy what is broken");
}

static void *break_often(void *context)
{
	for (int i = 0; i < BREAKS; i++)
		break_once(context);
	return NULL;
}

static atomic_uint broken; /* events of it */

static void *hear(void *argument)
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

/* In one context: 32 threads in all. */
struct storm {
	struct station station;
	pthread_t makers[MAKERS], breakers[BREAKERS], servers[SERVERS], opener, hearer;
	bool events;
};

static void storm_begin(struct storm *storm)
{
	struct ibv_context *context = loop_open();
	uint32_t workers = 32 - MAKERS - BREAKERS - (storm->events ? SERVERS : 0) - 2;

	station_open(&storm->station, context, storm->events);
	station_loop(&storm->station);
	for (int i = 0; i < MAKERS; i++)
		start(&storm->makers[i], make_for_ever, context);
	for (int i = 0; i < BREAKERS; i++)
		start(&storm->breakers[i], break_often, context);
	for (int i = 0; storm->events && i < SERVERS; i++)
		start(&storm->servers[i], serve_events, &storm->station);
	start(&storm->opener, open_for_ever, NULL);
	start(&storm->hearer, hear, context);
	hire(&storm->station, workers, storm->events);
}

static void storm_end(struct storm *storm)
{
	for (int i = 0; i < MAKERS; i++)
		join(storm->makers[i]);
	for (int i = 0; storm->events && i < SERVERS; i++)
		join(storm->servers[i]);
	join(storm->opener);
	join(storm->hearer);
	check_sums(&storm->station);
	if (storm->events && !storm->station.events)
		errx(1, "no event of a completion");
	station_close(&storm->station);
}

static void check_storm(void)
{
	static struct storm storms[2] = {{.events = false}, {.events = true}};

	for (int i = 0; i < 2; i++)
		storm_begin(&storms[i]);
	for (int i = 0; i < 2; i++) {
		dismiss(&storms[i].station);
		for (int j = 0; j < BREAKERS; j++)
			join(storms[i].breakers[j]);
	}
	over = true;
	for (int i = 0; i < 2; i++)
		storm_end(&storms[i]);
	if (broken != 2 * BREAKERS * BREAKS)
		errx(1, "%u events of broken connections", broken);
}

/* --- Two processes. */

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

/* Queue pair i to the other's i ^ 1, as in one process. */
static void be_peer(int fd)
{
	static struct station s;
	struct introduction self = {0}, peer;
	struct pollfd pfd = {fd, POLLIN, 0};
	char ready = 1;

	station_open(&s, loop_open(), false);
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
	hire(&s, THREADS / 2, false);
	dismiss(&s);
	exchange_send(fd, &ready, sizeof(ready));
	/* The other's sends still want receives, which are posted again when these complete. */
	while (!poll(&pfd, 1, 0))
		drain(&s);
	exchange_recv(fd, &ready, sizeof(ready));
	check_sums(&s);
	/* Acknowledgements, too, come from queue pairs that are there. */
	await_peer(fd);
	station_close(&s);
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
	be_peer(ends[0]);
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		errx(1, "the other process fails");
}

/* --- A descriptor that goes. */

/* The first of the workers is waited for, so that the others are somewhere in their work. */
static void close_once(void)
{
	static struct station s;

	station_open(&s, loop_open(), false);
	station_loop(&s);
	hire(&s, 8, false);
	while (s.received < 20)
		drain(&s);
	/* As close does; ThreadSanitizer would call that a race of this program's, which it is. */
	if (close_range((unsigned int)s.context->cmd_fd, (unsigned int)s.context->cmd_fd, 0))
		err(1, "close_range");
	dismiss(&s);
	if (ibv_alloc_pd(s.context))
		errx(1, "a device whose descriptor is closed is there");
	/* libibverbs keeps its own memory of all that; the process ends soon. */
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
		be_peer(atoi(argv[2]));
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
