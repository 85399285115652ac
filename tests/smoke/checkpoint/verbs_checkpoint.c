/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program that does to itself what a checkpointer does to a program. Its memory, with the objects
 * of libibverbs and librxe, lies in an arena, which is written to a file and put back into another
 * process. Its peer is the same program, and neither knows nor notices.
 *
 *   verbs_checkpoint run DEVICE GID_INDEX SIDE [events|shared|plain|sends]
 *   verbs_checkpoint restore STREAM MEMORY MAPS [damaged]
 *
 * One thread exchanges messages (workload.h); the other one takes commands from standard input, and
 * answers each by a line:
 *
 *   connect ADDRESS  the peer's line
 *   pause, go        posts no more requests, or posts again
 *   report           for each connection: posted, completed, received, counter
 *   sleep            waits until the thread sleeps in ibv_get_cq_event
 *   hold, free       the thread stops before it reads an event that has come, or goes on
 *   event            the next asynchronous event of the device
 *   resolve_id       gets an event of the ID of rdma_cm, which is not used otherwise
 *   destroy_id       destroys the ID, which has reported as many events
 *   save STREAM MEMORY MAPS [MS]   then "resume", or the process is killed
 *   storm N [MS]     N times: stops the device while the thread runs, saves, and goes on
 *   misuse           calls the functions in wrong states
 *   close            destroys all objects
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena.h"
#include "asleep.h"
#include "checkpointer.h"
#include "descriptor_count.h"
#include "workload.h"

#define QUIESCE_MS 60000
#define EVENT_MS   60000

/* The root of the arena. */
struct program {
	struct workload *work;
	int gid_index;
	bool events;
	bool connected;
	bool empty;         /* the armed CQs were empty: the thread waits for an event next, */
	_Atomic bool waits; /* and calls ibv_get_cq_event */
	_Atomic bool hold;  /* it shall stop between two calls, */
	_Atomic bool held;  /* and has done so */
	_Atomic bool ends;
	pthread_mutex_t lock;   /* around workload_step */
	void *librxe, *liburxe; /* addresses of one function of each */
};

static struct program *program;
static pid_t worker_tid;
static pthread_t worker;

/* --- The thread that exchanges messages. */

static void step(void)
{
	pthread_mutex_lock(&program->lock);
	while (workload_step(program->work) && (program->events || !program->hold))
		;
	program->empty = program->events;
	pthread_mutex_unlock(&program->lock);
}

static void await_event(void)
{
	program->waits = true;
	workload_wait(program->work);
	program->empty = false;
	program->waits = false;
}

static void *run_work(void *unused)
{
	(void)unused;
	worker_tid = gettid();
	while (!program->ends) {
		while (program->hold && !program->ends) {
			program->held = true;
			usleep(100);
		}
		program->held = false;
		/* The main thread may have seen `held` of the previous stop. */
		if (program->hold)
			continue;
		/* The thread of a saved program may have been in this call. */
		if (program->empty && !program->ends) {
			await_event();
			continue;
		}
		if (program->events)
			workload_arm(program->work);
		step();
	}
	return NULL;
}

static void start_work(void)
{
	program->held = false;
	program->ends = false;
	if (pthread_create(&worker, NULL, run_work, NULL))
		errx(1, "pthread_create");
	while (!*(volatile pid_t *)&worker_tid)
		usleep(100);
}

static bool sleeps_for_event(void)
{
	return program->waits && asleep_stays(worker_tid) && program->waits;
}

/*
 * Returns when the thread is between two calls, or sleeps for an event. An event may wake it at any
 * time; then it stops before its next verbs call.
 */
static void hold_work(void)
{
	program->hold = true;
	while (!program->held && !sleeps_for_event())
		usleep(100);
}

/* Holds the thread after it has found its armed CQs empty, and waits for the event of the next
 * completion. */
static const char *hold_before_event(void)
{
	struct pollfd event = {.fd = program->work->channel->fd, .events = POLLIN};

	hold_work();
	while (!program->held || !program->empty) {
		program->hold = false;
		hold_work();
	}
	return poll(&event, 1, EVENT_MS) == 1 ? "done" : "no event";
}

/* --- Commands. */

static void print_address(const struct address *a)
{
	const uint8_t *bytes = (const uint8_t *)a;

	for (size_t i = 0; i < sizeof(*a); i++)
		dprintf(1, "%02x", bytes[i]);
	dprintf(1, "\n");
}

static void connect_to(const char *text)
{
	struct address peer;
	uint8_t *bytes = (uint8_t *)&peer;

	for (size_t i = 0; i < sizeof(peer); i++)
		if (sscanf(text + 2 * i, "%2hhx", &bytes[i]) != 1)
			errx(1, "not an address");
	workload_connect(program->work, &peer, program->gid_index);
	program->connected = true;
	start_work();
}

static void report(void)
{
	const struct workload *w = program->work;

	for (int i = 0; i < CONNECTIONS; i++) {
		const struct connection *c = &w->connections[i];

		dprintf(1, "%s%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, i ? ", " : "",
			c->posted, c->completed, c->received, workload_counter(w, i));
	}
	dprintf(1, "%s\n", w->broken ? " broken" : "");
}

static const char *save(const char *stream, const char *memory, const char *maps, int ms)
{
	int rc;

	hold_work();
	rc = CALL(quiesce)((uint32_t)ms);
	if (rc) {
		program->hold = false;
		return result("", rc);
	}
	/* An event before may have woken the thread. From now on no event comes. */
	hold_work();
	rc = checkpointer_save(stream, maps);
	arena_save(memory, program);
	return result("saved", rc);
}

static const char *storm(int n, int ms)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), rc = 0;

	for (int i = 0; !rc && i < n; i++) {
		rc = CALL(quiesce)((uint32_t)ms);
		if (!rc)
			rc = CALL(save)(null);
		if (!rc)
			rc = CALL(resume)();
		usleep(1000);
	}
	close(null);
	return result("stormed", rc);
}

static const char *take_event(void)
{
	struct ibv_context *context = program->work->context;
	struct pollfd ready = {.fd = context->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	if (poll(&ready, 1, EVENT_MS) != 1 || ibv_get_async_event(context, &event))
		return "no event";
	ibv_ack_async_event(&event);
	return ibv_event_type_str(event.event_type);
}

static void *resume_elsewhere(void *unused)
{
	(void)unused;
	return (void *)(intptr_t)CALL(resume)();
}

/* A child that the thread forks after it has stopped the device. */
static bool child_cannot_go_on(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		_exit(CALL(save)(null) == -EPERM && CALL(resume)() == -EPERM ? 0 : 1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

static const char *misuse(void)
{
	pthread_t thread;
	void *rc;

	if (CALL(save)(1) != -EINVAL || CALL(resume)() != -EINVAL)
		return "save or resume without quiesce";
	if (CALL(restore)(-1) != -EBUSY)
		return "restore beside an open device";
	if (CALL(quiesce)(QUIESCE_MS))
		return result("", -1);
	if (CALL(quiesce)(10) != -EALREADY)
		return "quiesce twice";
	if (CALL(save)(-1) != -EBADF)
		return "save to no descriptor";
	pthread_create(&thread, NULL, resume_elsewhere, NULL);
	pthread_join(thread, &rc);
	if ((intptr_t)rc != -EPERM)
		return "resume in another thread";
	if (!child_cannot_go_on())
		return "save or resume in a child";
	return CALL(resume)() ? "resume" : "refused";
}

static const char *close_all(void)
{
	program->ends = true;
	program->hold = true;
	if (program->events)
		pthread_cancel(worker);
	pthread_join(worker, NULL);
	workload_close(program->work);
	return has_rings() ? "a ring is still mapped" : "done";
}

static const char *obey(char *line)
{
	char *word[5] = {0};
	int n = 0;

	for (char *at = strtok(line, " \n"); at && n < 5; at = strtok(NULL, " \n"))
		word[n++] = at;
	if (!n)
		return "?";
	if (!strcmp(word[0], "connect")) {
		connect_to(word[1]);
	} else if (!strcmp(word[0], "pause") || !strcmp(word[0], "go")) {
		pthread_mutex_lock(&program->lock);
		program->work->paused = word[0][0] == 'p';
		workload_step(program->work);
		pthread_mutex_unlock(&program->lock);
	} else if (!strcmp(word[0], "sleep")) {
		while (!program->waits)
			usleep(100);
		asleep_await(worker_tid);
	} else if (!strcmp(word[0], "hold")) {
		return hold_before_event();
	} else if (!strcmp(word[0], "free")) {
		program->hold = false;
	} else if (!strcmp(word[0], "event")) {
		return take_event();
	} else if (!strcmp(word[0], "resolve_id")) {
		workload_resolve(program->work);
	} else if (!strcmp(word[0], "destroy_id")) {
		workload_destroy_id(program->work);
	} else if (!strcmp(word[0], "save") && n >= 4) {
		return save(word[1], word[2], word[3], word[4] ? atoi(word[4]) : QUIESCE_MS);
	} else if (!strcmp(word[0], "resume")) {
		int rc = CALL(resume)();

		program->hold = false;
		return result("resumed", rc);
	} else if (!strcmp(word[0], "storm")) {
		return storm(atoi(word[1]), word[2] ? atoi(word[2]) : QUIESCE_MS);
	} else if (!strcmp(word[0], "misuse")) {
		return misuse();
	} else if (!strcmp(word[0], "close")) {
		return close_all();
	} else if (!strcmp(word[0], "report")) {
		report();
		return NULL;
	} else {
		return "?";
	}
	return "done";
}

/* --- Start. */

static enum work work_of(const char *option)
{
	if (!strcmp(option, "sends"))
		return WORK_SENDS;
	if (!strcmp(option, "shared"))
		return WORK_SHARED;
	return strcmp(option, "plain") ? WORK_ALL : WORK_PLAIN;
}

static void run(const char *device, int gid_index, uint8_t side, const char *option)
{
	const bool events = !strcmp(option, "events");

	list_devices();
	arena_enter();
	program = calloc(1, sizeof(*program));
	pthread_mutex_init(&program->lock, NULL);
	program->gid_index = gid_index;
	program->events = events;
	program->work = workload_open(device, gid_index, side, events, work_of(option));
	program->librxe = (void *)program->work->context->ops.post_send;
	program->liburxe = checkpointer_function("urxe_checkpoint_save");
	print_address(&program->work->self);
	take_commands(obey);
}

/* --- Restorations that fail. */

/* The stream has these bytes; the restoration fails, and leaves no descriptor. */
static void must_fail(const uint8_t *bytes, size_t length, int error, const char *what)
{
	unsigned int before = descriptor_count(), after;
	int memory = memfd_create("stream", MFD_CLOEXEC), fd, rc;

	/* The lowest free number may be that of a saved descriptor. */
	fd = fcntl(memory, F_DUPFD_CLOEXEC, 100);
	close(memory);
	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length || lseek(fd, 0, SEEK_SET))
		err(1, "memfd");
	rc = CALL(restore)(fd);
	close(fd);
	after = descriptor_count();
	if (rc != -error || !CALL(error)()[0])
		errx(1, "%s: %d, '%s'", what, rc, CALL(error)());
	if (before != after)
		errx(1, "%s: %u descriptors, %u before", what, after, before);
}

static uint8_t *read_file(const char *path, size_t *length)
{
	static uint8_t bytes[4 << 20];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

	if (n <= 0 || n == sizeof(bytes))
		err(1, "%s", path);
	close(fd);
	*length = (size_t)n;
	return bytes;
}

static void move_page(void *from, void *to)
{
	if (mremap(from, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		err(1, "mremap");
}

static void fail_to_restore(const char *path)
{
	const struct workload *w = program->work;
	void *elsewhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t length;
	uint8_t *stream = read_file(path, &length);

	for (size_t n = 0; n < length; n += length / 16 + 1)
		must_fail(stream, n, EBADMSG, "truncated stream");
	for (size_t at = 0; at < length; at += length / 32 + 1) {
		stream[at] ^= 0x10;
		must_fail(stream, length, EBADMSG, "damaged stream");
		stream[at] ^= 0x10;
	}
	stream[8]++;
	must_fail(stream, length, EPROTONOSUPPORT, "later version");
	stream[8]--;
	dup2(1, w->context->cmd_fd);
	must_fail(stream, length, EEXIST, "descriptor in use");
	close(w->context->cmd_fd);
	move_page(w->connections[0].region, elsewhere);
	must_fail(stream, length, EFAULT, "missing memory");
	move_page(elsewhere, w->connections[0].region);
	move_page(w->holed, elsewhere);
	must_fail(stream, length, EFAULT, "missing memory of a region with a hole");
	move_page(elsewhere, w->holed);
}

/* Another process has a number of the stream until a line of standard input comes. */
static void fail_once(const char *path)
{
	size_t length;
	const uint8_t *stream = read_file(path, &length);
	char line[2];

	must_fail(stream, length, EEXIST, "a number in use");
	dprintf(1, "%s\n", CALL(error)());
	if (read(0, line, 1) != 1)
		errx(1, "no line");
}

/* `failure`: which restorations have to fail first; NULL: none. */
static void restore(const char *stream, const char *memory, const char *maps, const char *failure)
{
	struct ibv_device **list = list_devices();

	reserve_addresses(maps);
	program = arena_load(memory);
	check_addresses(program->liburxe, program->librxe);
	/* Of the memory before arena_enter, which is not restored. */
	program->work->context->device = list[0];
	program->work->second->device = list[0];
	workload_map(program->work);
	if (failure && !strcmp(failure, "number"))
		fail_once(stream);
	else if (failure)
		fail_to_restore(stream);
	checkpointer_restore(stream);
	program->hold = false;
	start_work();
	take_commands(obey);
}

int main(int argc, char **argv)
{
	fix_addresses(argv);
	if (argc >= 5 && !strcmp(argv[1], "run"))
		run(argv[2], atoi(argv[3]), (uint8_t)atoi(argv[4]), argc > 5 ? argv[5] : "");
	else if (argc >= 5 && !strcmp(argv[1], "restore"))
		restore(argv[2], argv[3], argv[4], argv[5]);
	else
		errx(1, "usage");
	return 0;
}
