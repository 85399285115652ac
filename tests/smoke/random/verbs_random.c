/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes call verbs in a random sequence, and print all that they see: results, completions,
 * events, states, and a hash of their memory. The output depends on the seed alone. So outputs of
 * two devices, or of two ways of one device, may be compared. Seeds with an odd number send one
 * message at a time, some with errors; others send lists of messages without errors.
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "completion.h"
#include "draw.h"
#include "exchange.h"
#include "queue_pair.h"
#include "region.h"
#include "request.h"

#define LIST_MOST 6

struct arguments {
	const char *device;
	uint64_t seed;
	uint32_t operations;
	uint8_t gid_index;
	bool hca;
};

/* Copies between the processes begin when a connection has got an answer. */
static void connect(struct side *side, int qp)
{
	if (!queue_pair_repair(side, qp) || side_qp_type(qp) != IBV_QPT_RC)
		return;
	request_post_empty(side, qp);
	completion_await_sends(side);
	side_exchange(side);
}

static void receive(struct side *side, int qp, bool acts)
{
	if (acts)
		request_post_receives(side, qp, 1 + draw_below(LIST_MOST));
}

static void send(struct side *side, int qp, bool acts)
{
	connect(side, qp);
	if (!acts && !(side->errors && draw_one_in(8)))
		request_post_receives(side, qp, LIST_MOST);
	/* The receives are posted. */
	side_exchange(side);
	if (acts)
		request_post_sends(side, qp);
}

static void change(struct side *side, int qp, bool acts)
{
	connect(side, qp);
	if (acts && side->errors)
		queue_pair_change(side, qp);
}

static void query(struct side *side, int qp, bool acts)
{
	connect(side, qp);
	if (acts)
		queue_pair_query(side, qp);
}

static void register_region(struct side *side, int qp, bool acts)
{
	(void)qp;
	if (acts)
		region_register(side);
}

static void change_window(struct side *side, int qp, bool acts)
{
	(void)qp;
	if (acts && !side->hca)
		region_window(side);
}

static void change_srq(struct side *side, int qp, bool acts)
{
	(void)qp;
	if (acts)
		queue_pair_srq(side);
}

static const struct operation {
	const char *name;
	uint32_t weight; /* percent */
	void (*execute)(struct side *side, int qp, bool acts);
} operations[] = {
	{"register", 13, register_region},
	{"window", 10, change_window},
	{"receive", 8, receive},
	{"send", 60, send},
	{"modify", 4, change},
	{"query", 3, query},
	{"srq", 2, change_srq},
};

static const struct operation *draw_operation(void)
{
	const struct operation *operation = operations;
	uint32_t at = draw_below(100);

	while (at >= operation->weight)
		at -= operation++->weight;
	return operation;
}

static void execute(struct side *side, uint32_t number)
{
	const struct operation *operation = draw_operation();
	int actor = (int)draw_below(2), qp = (int)draw_below(QPS);

	if (side->number == 0)
		printf("operation %u: %s by %d\n", number, operation->name, actor);
	operation->execute(side, qp, side->number == actor);
	completion_settle(side);
	side_print(side);
	side_exchange(side);
}

static void run(int number, int fd, const struct arguments *arguments)
{
	static struct side side;

	side.number = number;
	side.fd = fd;
	side.errors = arguments->seed & 1;
	side.hca = arguments->hca;
	side.gid_index = arguments->gid_index;
	draw_start(arguments->seed, 0);
	side_open(&side, arguments->device);
	completion_start(&side);
	region_register_all(&side);
	side_exchange(&side);
	for (uint32_t i = 1; i <= arguments->operations; i++) {
		draw_start(arguments->seed, i);
		execute(&side, i);
	}
	side_close(&side);
}

static struct arguments parse(int argc, char **argv)
{
	struct arguments arguments = {
		.device = "urxe0", .seed = 1, .operations = 60, .gid_index = 1};

	for (int c; (c = getopt(argc, argv, "d:g:hn:s:")) != -1;) {
		switch (c) {
		case 'd': arguments.device = optarg; break;
		case 'g': arguments.gid_index = (uint8_t)strtoul(optarg, NULL, 0); break;
		case 'h': arguments.hca = true; break;
		case 'n': arguments.operations = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 's': arguments.seed = strtoull(optarg, NULL, 0); break;
		default:
			errx(2, "usage: verbs_random [-d DEVICE] [-g GID_INDEX] [-s SEED] "
				"[-n OPERATIONS] [-h]");
		}
	}
	return arguments;
}

int main(int argc, char **argv)
{
	struct arguments arguments = parse(argc, argv);
	int fd;
	pid_t child = exchange_fork(&fd);

	if (!child && prctl(PR_SET_PDEATHSIG, SIGKILL))
		err(1, "prctl");
	run(!child, fd, &arguments);
	if (!child)
		return 0;
	exchange_join(child);
	return 0;
}
