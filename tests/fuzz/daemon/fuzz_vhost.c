/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hostile virtual machine at the socket of a vhost: uplink. The input sends vhost-user messages,
 * also malformed ones, writes into the rings, truncates the machine's memory and hangs up.
 *
 * DPDK's vhost library runs in a process of its own as in urxed: vhost_spawner.c executes this
 * program again. That process may die. The port in this process hands out valid frames only, never
 * waits, and has a new process for the honest machine that comes after each death, and after
 * HONEST inputs without one. The hostile machine and the process live on between other inputs
 * (world.h). The process has threads, so the same inputs may do other things when they are
 * repeated.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <netdev/shm.h>

#include "common/clock.h"
#include "require.h"
#include "script.h"
#include "urxed/vhost/vhost_main.h"
#include "urxed/vhost/vhost_process.h"
#include "urxed/vhost/vhost_spawner.h"
#include "vhost_master.h"
#include "world.h"

#define MTU       1500
#define FRAME_MAX (MTU + 18)
#define BURST     32
#define INPUTS    4096 /* of one world */
#define HONEST    64   /* an honest machine comes after so many at most */
#define STEPS     4
#define BYTES     256 /* of an input */
#define STARTS    3   /* of one connection, because each may wait for a second */
/*
 * Of one world. Each kills the process, whose start takes as long as 100 inputs; and a process that
 * lives long meets more of the machine.
 */
#define TRUNCATIONS 4
/* A call of the port that takes longer waits for its process. */
#define BLOCKED_NS (10 * NS_PER_SEC)
#define HONEST_NS  (60 * NS_PER_SEC)
/* A machine that gets no frame for so long connects again, as some have to. */
#define ATTEMPT_NS NS_PER_SEC
#define FIRST_NS   (NS_PER_SEC / 20) /* the first time sooner */
/* After so many attempts the process is killed, as if it had died of the script. */
#define ATTEMPTS 3

#define WRITE         2 /* VRING_DESC_F_WRITE */
#define NET_HEADER    12
#define BUFFERS       (MASTER_MEMORY / 2) /* where the honest machine has its buffers */
#define BUFFER        1536
#define HONEST_FRAME  64
#define SANITIZER_END 99 /* exit status after an error that a sanitizer found */

int LLVMFuzzerInitialize(int *argc, char ***argv);
bool __real_vhost_spawner_reap(pid_t pid, int *status);
bool __wrap_vhost_spawner_reap(pid_t pid, int *status);

static char folder[] = "/tmp/urxe-fuzz-XXXXXX", spec[64];
static struct vhost_process process;
static bool runs;
static uint64_t clock_ahead; /* time by which the port's clock is ahead of the kernel's */
static uint32_t sum;         /* of all received bytes, so that each is read */
static uint32_t marker;      /* of the honest machines' frames */

/* --- The port */

/* DPDK may crash; code of urxe in the process may not do what a sanitizer forbids. */
bool __wrap_vhost_spawner_reap(pid_t pid, int *status)
{
	bool ended = __real_vhost_spawner_reap(pid, status);

	require(!ended || !WIFEXITED(*status) || WEXITSTATUS(*status) != SANITIZER_END);
	return ended;
}

static uint64_t port_now(void)
{
	return now_ns() + clock_ahead;
}

static bool process_has_ended(void)
{
	struct pollfd ended = {process.pid_fd, POLLIN, 0};

	return process.pid && poll(&ended, 1, 0) == 1;
}

static void start_helper(void)
{
	const char *uplinks[] = {spec};

	/* A sanitizer in the process leaves signals alone, and its reports have their status. */
	setenv("ASAN_OPTIONS",
	       "exitcode=99:handle_segv=0:handle_sigbus=0:handle_abort=0:detect_leaks=0", 1);
	require(!vhost_spawner_start(uplinks, 1));
	unsetenv("ASAN_OPTIONS");
}

/* Looks after the process as the daemon does; the next start need not be waited for. */
static void run_process(void)
{
	bool ended = process_has_ended();

	vhost_process_event(&process, port_now());
	if (ended) {
		require(!process.pid);
		require(netdev_shm_state(process.port) == NETDEV_SHM_ABSENT);
	}
	if (!process.pid && process.restart_at > port_now())
		clock_ahead += process.restart_at - port_now();
	vhost_process_tick(&process, port_now());
	if (process.pid)
		return;
	/* The helper did not answer within a second: another one for a busy machine. */
	vhost_spawner_stop();
	start_helper();
}

/* Returns whether a frame with the marker came. */
static bool receive_frames(void)
{
	struct netdev_frame frames[BURST];
	uint32_t n = netdev_rx(process.port, port_now(), frames, BURST);
	bool found = false;

	require(n <= BURST);
	require(!n || netdev_shm_state(process.port) == NETDEV_SHM_READY);
	for (uint32_t i = 0; i < n; i++) {
		require(frames[i].len && frames[i].len <= FRAME_MAX);
		require(frames[i].wire_len == frames[i].len);
		for (uint32_t j = 0; j < frames[i].len; j++)
			sum += frames[i].data[j];
		found |= frames[i].len == HONEST_FRAME &&
			 !memcmp(frames[i].data + HONEST_FRAME - sizeof(marker), &marker,
				 sizeof(marker));
	}
	return found;
}

static void send_frames(uint32_t n, uint32_t len)
{
	uint8_t data[FRAME_MAX] = {0};
	struct netdev_frame frames[BURST];

	memcpy(data + HONEST_FRAME - sizeof(marker), &marker, sizeof(marker));
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct netdev_frame){data, len, len, 0};
	require(netdev_tx(process.port, port_now(), frames, n) <= n);
}

static bool run_port(void)
{
	const uint64_t start = now_ns();
	uint64_t counters[NETDEV_COUNTER_COUNT];
	bool found;

	run_process();
	found = receive_frames();
	netdev_counters(process.port, counters);
	netdev_wait_fd(process.port);
	require(now_ns() - start < BLOCKED_NS);
	return found;
}

/* --- The hostile machine */

struct machine {
	struct master m;
	uint32_t size; /* of its memory: it must not touch more itself */
	uint32_t starts;
	uint32_t truncations;
	int null;
};

static void connect_machine(struct machine *machine)
{
	machine->size = MASTER_MEMORY;
	machine->starts = 0;
	master_open(&machine->m, strchr(spec, '/'));
	if (machine->m.queues == MAP_FAILED || !machine->m.queues)
		machine->size = 0;
}

static void start_machine(struct machine *machine)
{
	/* After a message with a false length the process takes all further ones for its end. */
	if (machine->starts++ < STARTS && master_start(&machine->m))
		machine->starts = STARTS;
}

static void reconnect_machine(struct machine *machine)
{
	master_close(&machine->m);
	connect_machine(machine);
}

/* Has the process closed the connection, perhaps because of a malformed message? */
static bool was_hung_up(const struct machine *machine)
{
	struct pollfd end = {machine->m.fd, 0, 0};

	return poll(&end, 1, 0) == 1;
}

static uint8_t *memory_of(struct machine *machine)
{
	return (uint8_t *)machine->m.queues;
}

static void write_word(struct machine *machine, uint32_t at, uint32_t word)
{
	if (at <= machine->size && machine->size - at >= sizeof(word))
		memcpy(memory_of(machine) + at, &word, sizeof(word));
}

/* An address that the script gives relative to a place where mistakes are likely. */
static uint64_t get_address(struct script *s, const struct machine *machine)
{
	const uint64_t user = (uintptr_t)machine->m.queues;
	const uint64_t places[] = {MASTER_GPA, MASTER_GPA + MASTER_MEMORY, user,
				   user + MASTER_MEMORY, 0};
	uint64_t place = places[script_get8(s) % 5];

	return place + (uint64_t)(int64_t)(int16_t)script_get16(s);
}

static void write_descriptor(struct script *s, struct machine *machine)
{
	const uint32_t queue = script_get8(s) % MASTER_QUEUES, i = script_get8(s);
	struct vring_desc desc = {.addr = get_address(s, machine)};

	desc.len = script_get16(s);
	desc.flags = script_get8(s);
	desc.next = script_get8(s);
	if (machine->size >= sizeof(struct master_queue) * MASTER_QUEUES)
		machine->m.queues[queue].desc[i] = desc;
}

static void offer_descriptors(struct script *s, struct machine *machine)
{
	const uint32_t queue = script_get8(s) % MASTER_QUEUES;
	const uint16_t first = script_get8(s), n = script_get16(s);
	const uint64_t one = 1;

	if (machine->size >= sizeof(struct master_queue) * MASTER_QUEUES) {
		for (uint32_t i = 0; i < MASTER_SIZE; i++)
			machine->m.queues[queue].avail.ring[i] = (uint16_t)(first + i);
		machine->m.queues[queue].avail.idx = n;
	}
	/* The script may have filled or replaced the eventfd: then no kick comes, as from a
	 * machine. */
	if (machine->m.kick[queue] >= 0)
		(void)!write(machine->m.kick[queue], &one, sizeof(one));
}

static int get_fds(struct script *s, const struct machine *machine, int fds[MASTER_FDS])
{
	const struct master *m = &machine->m;
	const int choices[] = {m->memory, m->kick[0], m->call[1], machine->null, m->fd};
	const uint8_t choice = script_get8(s);
	int n = choice / 8 % (MASTER_FDS + 1);

	for (int i = 0; i < n; i++)
		fds[i] = choices[(choice + i) % 5];
	return fds[0] < 0 || (n > 1 && (m->kick[0] < 0 || m->call[1] < 0)) ? 0 : n;
}

/* Any message, whose header may lie about its length. */
static void send_message(struct script *s, struct machine *machine)
{
	const uint32_t request = script_get8(s) % VHOST_REQUESTS, sent = script_get8(s);
	const uint8_t lie = script_get8(s);
	uint8_t payload[256];
	int fds[MASTER_FDS] = {-1}, n_fds = get_fds(s, machine, fds);

	for (uint32_t i = 0; i < sent; i++)
		payload[i] = script_get8(s);
	master_send_raw(&machine->m, request, lie ? sent : script_get32(s), payload, sent, fds,
			n_fds);
}

static void send_table(struct script *s, struct machine *machine)
{
	const uint64_t size = (uint64_t)script_get16(s) << script_get8(s) % 64;
	const uint64_t offset = (uint64_t)(int64_t)(int16_t)script_get16(s);

	master_send_table(&machine->m, size, offset, machine->m.memory);
}

static void send_addresses(struct script *s, struct machine *machine)
{
	const uint32_t index = script_get8(s) % (MASTER_QUEUES + 2);
	const uint64_t desc = get_address(s, machine), used = get_address(s, machine);

	master_send_addresses(&machine->m, index, desc, used, get_address(s, machine));
}

static void send_number(struct script *s, struct machine *machine)
{
	static const uint32_t requests[] = {VHOST_SET_VRING_NUM, VHOST_SET_VRING_BASE,
					    VHOST_GET_VRING_BASE, VHOST_SET_VRING_ENABLE};
	const uint32_t request = requests[script_get8(s) % 4], index = script_get8(s) % 4;
	const uint32_t state[2] = {index, script_get16(s)};

	master_send(&machine->m, request, state, sizeof(state), NULL, 0);
}

/* The process reads beyond the end of the file then, and dies of it. */
static void truncate_memory(struct script *s, struct machine *machine)
{
	uint32_t size = script_get8(s) % 8 * 4096u;

	if (machine->truncations == TRUNCATIONS)
		return;
	machine->truncations++;
	machine->size = size;
	if (ftruncate(machine->m.memory, machine->size))
		machine->size = 0;
}

static void step(struct script *s, struct machine *machine)
{
	switch (script_get8(s) % 16) {
	case 0:
	case 1: start_machine(machine); break;
	case 2:
	case 3: send_message(s, machine); break;
	case 4: send_table(s, machine); break;
	case 5: send_addresses(s, machine); break;
	case 6: send_number(s, machine); break;
	case 7:
	case 8: write_descriptor(s, machine); break;
	case 9:
	case 10: offer_descriptors(s, machine); break;
	case 11: write_word(machine, script_get16(s), script_get32(s)); break;
	case 12: truncate_memory(s, machine); break;
	case 13: reconnect_machine(machine); break;
	case 14: send_frames(script_get8(s) % (BURST + 1), 60 + script_get16(s) % 1440); break;
	default: usleep(script_get8(s)); break;
	}
}

/* --- The honest machine */

static void fill_queues(struct master *m)
{
	uint8_t *frame = (uint8_t *)m->queues + BUFFERS + MASTER_SIZE * BUFFER + NET_HEADER;

	for (uint32_t i = 0; i < MASTER_SIZE; i++) {
		m->queues[0].desc[i] = (struct vring_desc){
			MASTER_GPA + BUFFERS + (uint64_t)i * BUFFER, BUFFER, WRITE, 0};
		m->queues[0].avail.ring[i] = (uint16_t)i;
	}
	m->queues[0].avail.idx = MASTER_SIZE;
	memcpy(frame + HONEST_FRAME - sizeof(marker), &marker, sizeof(marker));
	m->queues[1].desc[0] = (struct vring_desc){
		MASTER_GPA + (uint64_t)(frame - NET_HEADER - (uint8_t *)m->queues),
		NET_HEADER + HONEST_FRAME, 0, 0};
}

static void offer_frame(struct master *m)
{
	const uint64_t one = 1;

	__atomic_fetch_add(&m->queues[1].avail.idx, 1, __ATOMIC_RELEASE);
	require(write(m->kick[1], &one, sizeof(one)) == sizeof(one));
}

static bool machine_has_frame(const struct master *m)
{
	const uint8_t *buffer = (const uint8_t *)m->queues + BUFFERS + NET_HEADER;
	uint32_t n = __atomic_load_n(&m->queues[0].used.idx, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n && i < MASTER_SIZE; i++, buffer += BUFFER)
		if (!memcmp(buffer + HONEST_FRAME - sizeof(marker), &marker, sizeof(marker)))
			return true;
	return false;
}

/* Until a frame has passed in both directions. */
static bool exchange_frames(struct master *m, uint64_t end)
{
	const pid_t pid = process.pid;
	bool came = false, went = false;

	while (!(came && went)) {
		struct pollfd ready = {netdev_wait_fd(process.port), POLLIN, 0};

		/* A process that dies of the script takes the connection along. */
		if (now_ns() > end || process.pid != pid)
			return false;
		if (!went)
			send_frames(1, HONEST_FRAME);
		if (!came && m->queues[1].used.idx == m->queues[1].avail.idx)
			offer_frame(m);
		poll(&ready, 1, 1);
		came |= run_port();
		went |= machine_has_frame(m);
	}
	return true;
}

/* *connected: the process listened. */
static bool serve_machine(uint64_t time, bool *connected)
{
	struct master m;
	bool served;

	run_port();
	marker++;
	*connected = served = !master_open(&m, strchr(spec, '/'));
	if (served) {
		fill_queues(&m);
		served = !master_start(&m) && exchange_frames(&m, now_ns() + time);
	}
	master_close(&m);
	return served;
}

/* Whatever the inputs did, the next machine is served, perhaps by the next process. */
static void check_port(void)
{
	const uint64_t end = now_ns() + HONEST_NS;
	uint32_t attempts = 0;
	bool connected;

	if (serve_machine(FIRST_NS, &connected))
		return;
	while (!serve_machine(ATTEMPT_NS, &connected)) {
		require(now_ns() < end);
		attempts += connected;
		if (connected && attempts % ATTEMPTS == 0 && process.pid)
			vhost_spawner_kill(process.pid);
		usleep(1000);
	}
}

/* --- The world */

static struct machine machine;
static pid_t last_pid;       /* of the process that has served an honest machine */
static uint32_t last_honest; /* the input after which that was */

static void serve_honest_machine(void)
{
	master_close(&machine.m);
	check_port();
	last_pid = process.pid;
	last_honest = world_inputs();
	connect_machine(&machine);
}

static void run_input(const uint8_t *data, size_t size)
{
	struct script s = {data, size};

	if (was_hung_up(&machine))
		reconnect_machine(&machine);
	for (int i = 0; s.left && i < STEPS; i++) {
		step(&s, &machine);
		run_port();
	}
	if (process.pid != last_pid || world_inputs() - last_honest >= HONEST)
		serve_honest_machine();
}

static void start_process(void)
{
	char error[VHOST_PROCESS_ERROR];

	if (vhost_process_start(&process, spec, MTU, error)) {
		fprintf(stderr, "%s\n", error);
		abort();
	}
	runs = true;
	/* Each end of the process would be a line. */
	process.budget =
		(struct log_ratelimit){.bucket = {.since = UINT64_MAX, .spent = LOG_BURST}};
}

static void open_world(void)
{
	if (!runs)
		start_process();
	machine = (struct machine){.null = open("/dev/null", O_RDWR | O_CLOEXEC)};
	connect_machine(&machine);
	last_pid = process.pid;
	last_honest = 0;
}

static void close_world(void)
{
	master_close(&machine.m);
	close(machine.null);
	check_port();
	vhost_process_stop(&process);
	netdev_close(process.port);
	runs = false;
}

static void stop(void)
{
	if (runs)
		vhost_process_stop(&process);
	vhost_spawner_stop();
	rmdir(folder);
}

/* As the process of the port, or before this program has threads. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct world world = {INPUTS, BYTES, open_world, run_input, close_world};

	if (*argc == 3 && !strcmp((*argv)[1], VHOST_MAIN_OPTION))
		_exit(vhost_main((*argv)[2]));
	require(mkdtemp(folder));
	snprintf(spec, sizeof(spec), "vhost:%s/vm", folder);
	start_helper();
	atexit(stop);
	world_start(&world, argc, argv);
	return 0;
}
