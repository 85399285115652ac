/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Commands of two programs to /dev/infiniband/rdma_cm, as urxed receives them, with any bytes;
 * messages of peers, time, deaths of programs and restarts of daemons. After all programs have
 * ended, no ID, port or connection may remain.
 */
#include "ucma_loop.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NS UINT64_C(1000000000)

struct input {
	const uint8_t *data;
	size_t left;
};

static uint8_t next(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->data++;
}

/* Sends a command of zeros with some bytes of the script. IDs are small, so a byte may name one. */
static void command(struct loop *l, struct loop_program *p, struct input *in)
{
	uint8_t bytes[512] = {0}, number = next(in) % 32, n = next(in) % 16;
	uint16_t size = (uint16_t)(next(in) * 2);
	struct loop_answer answer;
	int rc;

	while (n--) {
		uint16_t at = (uint16_t)(next(in) | next(in) << 8);

		bytes[at % sizeof(bytes)] = next(in);
	}
	/* A wrong number of read events harms only the program itself. */
	p->fetched = next(in) ? p->fetched : (uint64_t)next(in) << next(in) % 64;
	rc = loop_command(l, p, number, bytes, size, next(in) * 4u, &answer);
	require(rc <= 0 && rc > -4096);
	require(answer.reply.out <= CM_ATTACH_BYTES);
}

/* Starts the next daemon, from which the programs claim their state. */
static void restart(struct loop *l, struct loop_program programs[2])
{
	loop_restart(l);
	for (int i = 0; i < 2; i++) {
		close(programs[i].fd);
		loop_close_events(&programs[i]);
		programs[i].fd = loop_connect(l);
		loop_hello(l, &programs[i]);
		require(!loop_welcome(&programs[i]));
	}
}

static void step(struct loop *l, struct loop_program programs[2], struct input *in)
{
	uint8_t what = next(in);
	struct loop_program *p = &programs[what & 1];

	switch (what >> 1 & 7) {
	case 0: loop_run(l); return;
	case 1: loop_pass(l, next(in) * NS / 4); return;
	case 2: l->n = 0; return; /* all messages in flight are lost */
	case 3:
		if (what & 16) {
			restart(l, programs);
			return;
		}
		loop_end(l, p);
		*p = loop_start(l);
		return;
	default: command(l, p, in); return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct loop l;
	struct loop_program programs[2];
	struct input in = {data, size};
	uint64_t rounds = 0;

	loop_open(&l);
	programs[0] = loop_start(&l);
	programs[1] = loop_start(&l);
	while (in.left)
		step(&l, programs, &in);
	loop_end(&l, &programs[0]);
	loop_end(&l, &programs[1]);
	require(!l.ucma.n);
	while (cm_next_deadline(l.ucma.cma.cm) != CM_NEVER) {
		require(++rounds < 100000);
		loop_run(&l);
		loop_pass(&l, NS);
	}
	require(!cm_conns(l.ucma.cma.cm));
	require(!l.ucma.cma.ports.n);
	loop_close(&l);
	return 0;
}
