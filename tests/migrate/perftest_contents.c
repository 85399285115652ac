/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Compares the contents of perftest's buffers, which perftest does not: loaded by LD_PRELOAD at
 * both ends. PERFTEST_END is 0 at one end and 1 at the other.
 *
 * When the queue pair connects, an end fills its registered memory with its own pattern. All
 * messages of perftest come from the start of such memory, so each byte is either this end's or the
 * other's from then on. A thread compares all bytes every 100 ms, and ibv_dereg_mr compares them
 * once more. A wrong byte ends the program. `ibv_dereg_mr` prints how many bytes are the other
 * end's.
 */
#include <dlfcn.h>
#include <err.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define PERIOD     4096 /* perftest copies between offsets that differ by a multiple of it */
#define REGIONS    64
#define COMPARE_US 100000

static struct {
	struct ibv_mr *mr[REGIONS];
	unsigned n;
	bool filled;
} memory;
/* Protects `memory`, and the bytes of the regions from being freed while they are compared. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *next_function(const char *name, const char *version)
{
	void *function = dlvsym(RTLD_NEXT, name, version);

	if (!function)
		errx(1, "no %s", name);
	return function;
}

/* The byte at an offset of a region as an end fills it: bit 7 tells the end. */
static uint8_t pattern_byte(unsigned end, size_t offset)
{
	const size_t at = offset % PERIOD;

	return (uint8_t)(((at * 167 + (at >> 7) * 59) & 0x7f) | end << 7);
}

static unsigned own_end(void)
{
	const char *end = getenv("PERFTEST_END");

	return end && *end == '1';
}

static void fill_regions(void)
{
	for (unsigned i = 0; i < memory.n; i++)
		for (size_t at = 0; at < memory.mr[i]->length; at++)
			((uint8_t *)memory.mr[i]->addr)[at] = pattern_byte(own_end(), at);
}

/* Returns how many bytes are the other end's. */
static size_t compare_region(const struct ibv_mr *mr)
{
	const volatile uint8_t *bytes = mr->addr;
	size_t others = 0;

	for (size_t at = 0; at < mr->length; at++) {
		const uint8_t byte = bytes[at];

		if (byte == pattern_byte(!own_end(), at))
			others++;
		else if (byte != pattern_byte(own_end(), at))
			errx(3, "byte %zu of %zu is %02x", at, mr->length, byte);
	}
	return others;
}

static void *compare_always(void *arg)
{
	for (;; usleep(COMPARE_US)) {
		pthread_mutex_lock(&lock);
		for (unsigned i = 0; i < memory.n; i++)
			compare_region(memory.mr[i]);
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

static struct ibv_mr *add_region(struct ibv_mr *mr)
{
	pthread_mutex_lock(&lock);
	if (mr && memory.n == REGIONS)
		errx(3, "more than %d regions", REGIONS);
	if (mr)
		memory.mr[memory.n++] = mr;
	pthread_mutex_unlock(&lock);
	return mr;
}

/* verbs.h has a macro of that name. */
#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *(*reg)(struct ibv_pd *, void *, size_t, int) =
		next_function("ibv_reg_mr", "IBVERBS_1.1");

	return add_region(reg(pd, addr, length, access));
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	struct ibv_mr *(*reg)(struct ibv_pd *, void *, size_t, uint64_t, unsigned int) =
		next_function("ibv_reg_mr_iova2", "IBVERBS_1.8");

	return add_region(reg(pd, addr, length, iova, access));
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int (*modify)(struct ibv_qp *, struct ibv_qp_attr *, int) =
		next_function("ibv_modify_qp", "IBVERBS_1.1");
	pthread_t thread;

	pthread_mutex_lock(&lock);
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTR && !memory.filled) {
		fill_regions();
		memory.filled = true;
		if (pthread_create(&thread, NULL, compare_always, NULL))
			errx(3, "no thread");
	}
	pthread_mutex_unlock(&lock);
	return modify(qp, attr, mask);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int (*dereg)(struct ibv_mr *) = next_function("ibv_dereg_mr", "IBVERBS_1.1");
	int rc;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < memory.n; i++)
		if (memory.mr[i] == mr) {
			printf("\n%zu bytes of the other end, all right\n", compare_region(mr));
			memory.mr[i] = memory.mr[--memory.n];
		}
	rc = dereg(mr);
	pthread_mutex_unlock(&lock);
	return rc;
}
