/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "world.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/types.h>
#include <unistd.h>

#include "rand.h"
#include "require.h"

#define MAGIC  "urxe-inputs-1\n\n" /* 16 bytes with the 0 */
#define PREFIX "-artifact_prefix="
#define ROOM   (WORLD_INPUTS_MAX * (WORLD_BYTES_MAX + sizeof(uint16_t)))

/* The file. An input is its length in 16 bits, and its bytes. */
struct history {
	char magic[16];
	uint32_t used; /* bytes */
	uint8_t inputs[ROOM];
};

static const struct world *world;
static bool is_open;
static uint32_t n_inputs;
static volatile sig_atomic_t is_running; /* an input is */
static volatile sig_atomic_t n_started;  /* inputs, modulo 2^16 */
static struct history *history;          /* NULL: inputs are not recorded */
static char path[4096];
static struct rand numbers;

/* --- Random numbers: those of the product are the same in each world. */

ssize_t __wrap_getrandom(void *buffer, size_t len, unsigned flags);

ssize_t __wrap_getrandom(void *buffer, size_t len, unsigned flags)
{
	(void)flags;
	rand_fill(&numbers, buffer, len);
	return (ssize_t)len;
}

/* --- Comparisons
 *
 * libFuzzer would note the operands of each comparison, to put them into inputs. Most are of
 * addresses and states, and UBSan's. That takes as long as the rest of an input, whose bytes only
 * choose steps.
 */

#ifdef __clang__
#define UNCOUNTED __attribute__((no_sanitize("coverage")))
#else
#define UNCOUNTED
#endif

#define IGNORE_COMPARISON(name, type)                                      \
	void __wrap___sanitizer_cov_trace_##name(type a, type b);          \
	UNCOUNTED void __wrap___sanitizer_cov_trace_##name(type a, type b) \
	{                                                                  \
		(void)a;                                                   \
		(void)b;                                                   \
	}

IGNORE_COMPARISON(cmp1, uint8_t)
IGNORE_COMPARISON(cmp2, uint16_t)
IGNORE_COMPARISON(cmp4, uint32_t)
IGNORE_COMPARISON(cmp8, uint64_t)
IGNORE_COMPARISON(const_cmp1, uint8_t)
IGNORE_COMPARISON(const_cmp2, uint16_t)
IGNORE_COMPARISON(const_cmp4, uint32_t)
IGNORE_COMPARISON(const_cmp8, uint64_t)

/* --- The world */

static void open_world(void)
{
	n_inputs = 0;
	if (history)
		history->used = 0;
	numbers.state = 1;
	world->open();
	is_open = true;
}

static void close_world(void)
{
	world->close();
	is_open = false;
}

static void record_input(const uint8_t *data, uint16_t size)
{
	uint8_t *at = history->inputs + history->used;

	memcpy(at, &size, sizeof(size));
	if (size)
		memcpy(at + sizeof(size), data, size);
	history->used += (uint32_t)sizeof(size) + size;
}

static void run_input(const uint8_t *data, size_t size)
{
	n_started = (n_started + 1) & UINT16_MAX;
	is_running = true;
	if (size > world->bytes)
		size = world->bytes;
	if (is_open && n_inputs == world->inputs)
		close_world();
	if (!is_open)
		open_world();
	n_inputs++;
	if (history)
		record_input(data, (uint16_t)size);
	world->run(data, size);
	is_running = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	run_input(data, size);
	return 0;
}

uint32_t world_inputs(void)
{
	return n_inputs;
}

/* --- Processor time of an input. libFuzzer's limit is one of real time, which other programs take.
 */

static void check_progress(int signal)
{
	static sig_atomic_t last = -1;

	(void)signal;
	require(!is_running || n_started != last);
	last = n_started;
}

static void limit_inputs(void)
{
	const struct itimerval every_second = {{1, 0}, {1, 0}};

	require(signal(SIGVTALRM, check_progress) != SIG_ERR);
	require(!setitimer(ITIMER_VIRTUAL, &every_second, NULL));
}

/* --- Start and end */

static void end(void)
{
	if (is_open)
		close_world();
	if (history)
		unlink(path);
}

static struct history *map_history(int fd, int flags)
{
	struct history *h = mmap(NULL, sizeof(*h), PROT_READ | PROT_WRITE, flags, fd, 0);

	require(h != MAP_FAILED);
	close(fd);
	return h;
}

static void create_history(const char *prefix)
{
	int fd;

	snprintf(path, sizeof(path), "%shistory-%d", prefix, (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	require(fd >= 0 && !ftruncate(fd, sizeof(struct history)));
	history = map_history(fd, MAP_SHARED);
	memcpy(history->magic, MAGIC, sizeof(history->magic));
	fprintf(stderr, "inputs of the world are in %s\n", path);
}

/* NULL: the file is none of these. */
static struct history *read_history(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	struct history *h;

	if (fd < 0)
		return NULL;
	if (lseek(fd, 0, SEEK_END) != sizeof(*h)) {
		close(fd);
		return NULL;
	}
	h = map_history(fd, MAP_PRIVATE);
	require(!memcmp(h->magic, MAGIC, sizeof(h->magic)) && h->used <= ROOM);
	return h;
}

static void repeat_history(const struct history *h)
{
	const uint8_t *at = h->inputs, *last = at + h->used;
	uint16_t size;

	while ((size_t)(last - at) >= sizeof(size)) {
		memcpy(&size, at, sizeof(size));
		at += sizeof(size);
		require(size <= last - at);
		run_input(at, size);
		at += size;
	}
	end();
	fprintf(stderr, "%u inputs did no harm\n", n_inputs);
	exit(0);
}

/*
 * An input frees what earlier ones have allocated, and leaves what later ones will free. libFuzzer
 * would take most inputs for leaks, and run them twice. The sanitizer checks at the end instead.
 * The entropic schedule counts how often an input reaches each edge, which here depends on earlier
 * inputs, and takes as long as the inputs.
 */
static void add_options(int *argc, char ***argv)
{
	static char leaks[] = "-detect_leaks=0", schedule[] = "-entropic=0", max_len[32];
	char *const options[] = {leaks, schedule, max_len};
	const size_t n = sizeof(options) / sizeof(options[0]);
	char **all = calloc((size_t)*argc + n + 1, sizeof(*all));

	require(all);
	snprintf(max_len, sizeof(max_len), "-max_len=%u", world->bytes);
	all[0] = (*argv)[0];
	memcpy(all + 1, options, sizeof(options));
	memcpy(all + 1 + n, *argv + 1, ((size_t)*argc - 1) * sizeof(*all));
	*argv = all;
	*argc += (int)n;
}

void world_start(const struct world *w, int *argc, char ***argv)
{
	const struct history *h = *argc == 2 ? read_history((*argv)[1]) : NULL;

	world = w;
	require(w->inputs <= WORLD_INPUTS_MAX && w->bytes <= WORLD_BYTES_MAX);
	if (w->bounded)
		limit_inputs();
	if (h)
		repeat_history(h);
	atexit(end);
	for (int i = 1; i < *argc; i++) {
		if (strncmp((*argv)[i], PREFIX, strlen(PREFIX)))
			continue;
		create_history((*argv)[i] + strlen(PREFIX));
		add_options(argc, argv);
		return;
	}
}
