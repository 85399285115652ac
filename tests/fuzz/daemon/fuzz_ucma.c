/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Commands of two programs to /dev/infiniband/rdma_cm, as urxed receives them, with any bytes;
 * messages of peers, time, deaths of programs and restarts of daemons. Programs are also frozen,
 * saved, and restored from records with any bytes. After all programs have ended, no ID, port or
 * connection may remain.
 */
#include "state_patch.h"
#include "ucma_loop.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NS UINT64_C(1000000000)

#define RECORDS 8

/* The last records that a frozen program was given. */
static struct {
	uint8_t bytes[CM_ATTACH_BYTES];
	uint32_t len;
} records[RECORDS];
static uint32_t n_records;

/* Some numbers of the record change, and its checksum is right. */
static void restore(struct loop *l, struct loop_program *p, struct script *in)
{
	uint32_t i = script_get8(in) % RECORDS;
	struct loop_answer answer;
	uint8_t bytes[CM_ATTACH_BYTES];
	int rc;

	memcpy(bytes, records[i].bytes, sizeof(bytes));
	if (records[i].len)
		state_patch(in, bytes, records[i].len);
	rc = loop_command(l, p, CM_ATTACH_RESTORE, bytes, records[i].len, sizeof(p->token),
			  &answer);
	require(rc <= 0 && rc > -4096);
	if (!rc && answer.reply.out == sizeof(p->token))
		memcpy(&p->token, answer.out, sizeof(p->token));
}

static void save(struct loop *l, const struct loop_program *p)
{
	uint32_t i = n_records % RECORDS;
	struct loop_answer answer;

	if (loop_command(l, p, CM_ATTACH_SAVE, NULL, 0, CM_ATTACH_BYTES, &answer) ||
	    !answer.reply.out)
		return;
	records[i].len = answer.reply.out;
	memcpy(records[i].bytes, answer.out, sizeof(records[i].bytes));
	n_records++;
}

static void checkpoint(struct loop *l, struct loop_program *p, struct script *in)
{
	struct loop_answer answer;

	switch (script_get8(in) % 4) {
	case 0: loop_command(l, p, CM_ATTACH_FREEZE, NULL, 0, 0, &answer); return;
	case 1: save(l, p); return;
	case 2: restore(l, p, in); return;
	default: loop_command(l, p, CM_ATTACH_THAW, NULL, 0, 0, &answer); return;
	}
}

/* Sends a command of zeros with some bytes of the script. IDs are small, so a byte may name one. */
static void command(struct loop *l, struct loop_program *p, struct script *in)
{
	uint8_t bytes[512] = {0}, number = script_get8(in) % 32, n = script_get8(in) % 16;
	uint16_t size = (uint16_t)(script_get8(in) * 2);
	struct loop_answer answer;
	int rc;

	while (n--) {
		uint16_t at = (uint16_t)(script_get8(in) | script_get8(in) << 8);

		bytes[at % sizeof(bytes)] = script_get8(in);
	}
	/* A wrong number of read events harms only the program itself. */
	p->fetched =
		script_get8(in) ? p->fetched : (uint64_t)script_get8(in) << script_get8(in) % 64;
	rc = loop_command(l, p, number, bytes, size, script_get8(in) * 4u, &answer);
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

static void step(struct loop *l, struct loop_program programs[2], struct script *in)
{
	uint8_t what = script_get8(in);
	struct loop_program *p = &programs[what & 1];

	switch (what >> 1 & 7) {
	case 0: loop_run(l); return;
	case 1: loop_pass(l, script_get8(in) * NS / 4); return;
	case 2:
		if (what & 32)
			checkpoint(l, p, in);
		else
			l->n = 0; /* all messages in flight are lost */
		return;
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
	struct script in = {data, size};
	uint64_t rounds = 0;

	memset(records, 0, sizeof(records));
	n_records = 0;

	loop_open(&l);
	programs[0] = loop_start(&l);
	programs[1] = loop_start(&l);
	while (in.left)
		step(&l, programs, &in);
	loop_end(&l, &programs[0]);
	loop_end(&l, &programs[1]);
	require(!l.ucma.n);
	/* A restarted daemon waits for claims before the time of a departed program begins. */
	loop_pass(&l, UCMA_CLAIM_TIME_NS);
	loop_pass(&l, UCMA_DEPARTED_NS);
	require(LIST_EMPTY(&l.ucma.files));
	while (cm_next_deadline(l.ucma.cma.cm) != CM_NEVER) {
		require(++rounds < 100000);
		loop_run(&l);
		loop_pass(&l, NS);
	}
	require(!cm_conns(l.ucma.cma.cm));
	require(!l.ucma.cma.ports.ephemeral.total && !l.ucma.cma.ports.other.total);
	loop_close(&l);
	return 0;
}
