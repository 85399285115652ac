/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * pvrdma_path WHAT SIZE prints the seconds of a step within the device process of a virtual
 * machine, the median of many SENDs of SIZE bytes. One thread plays two drivers, both devices and
 * the cable.
 *
 * doorbell         from the write of the doorbell register to the message's frame
 * completion       from this frame to the receive completion in the machine's memory, and the
 * interrupt engine-post      as doorbell, of the engine alone: from urxe_post_send to the frame
 * engine-complete  as completion, of the engine alone: from the frame to its callback
 * register         the command that registers SIZE bytes of the machine's memory
 * poll             a look at the rings of SIZE queue pairs without requests, as a process without
 * doorbells needs
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/laps.h"
#include "lib/two.h"
#include "pair.h"
#include "pvrdma_driver.h"

#define MTU        4200
#define ROOM       (MTU + 18)
#define BURST      32
#define SEND_MAX   4096u /* one frame */
#define WARM_UP    200
#define TABLE      512u /* pages of a table of a page directory, and tables of a directory */
#define POLLED_QPS 64u  /* queue pairs of a call of pvrdma_poll */
#define MEMORY     (2u * SEND_MAX)

static struct urxe_frame frames[BURST];
static uint8_t room[BURST][ROOM];

static void lay_out_frames(void)
{
	for (uint32_t i = 0; i < BURST; i++)
		frames[i] = (struct urxe_frame){.data = room[i], .room = ROOM};
}

/* The time of laps that contain nothing but the clock. */
static double clock_cost(void)
{
	struct laps laps = {0};

	for (unsigned i = 0; i < LAPS_MAX; i++)
		laps_since(&laps, bench_now());
	return laps_median(&laps);
}

/* --- The device */

static struct guest guest[2];
static struct cq cq[2];
static struct qp qp[2];
static struct buffer buffer[2];

static void open_guest(unsigned i, uint32_t size)
{
	const struct guest_attr attr = {.id = (uint8_t)(1 + i), .mtu = MTU};
	const struct qp_attr qp_attr = {.type = URXE_QPT_RC, .send_cq = &cq[i], .recv_cq = &cq[i]};

	guest_open(&guest[i], &attr);
	guest_start(&guest[i]);
	cq_open(&guest[i], &cq[i], 64);
	qp_open(&guest[i], &qp[i], &qp_attr);
	buffer_open(&guest[i], &buffer[i], 0x100000, size, URXE_ACCESS_LOCAL_WRITE);
}

static void open_guests(uint32_t size)
{
	for (unsigned i = 0; i < 2; i++)
		open_guest(i, size);
	for (unsigned i = 0; i < 2; i++)
		qp_connect(&guest[i], &qp[i], &guest[!i], &qp[!i]);
}

static void expect_completion(unsigned of)
{
	struct pvrdma_cqe cqe;

	if (!cq_poll(&guest[of], &cq[of], &cqe) || cqe.status)
		errx(1, "the message has failed");
}

static void write_requests(uint32_t size)
{
	const struct pvrdma_sge from = buffer_sge(&buffer[0], 0, size),
				to = buffer_sge(&buffer[1], 0, size);
	const struct pvrdma_sq_wqe_hdr header = {
		.num_sge = 1, .opcode = PVRDMA_WR_SEND, .send_flags = URXE_SEND_SIGNALED};

	qp_post_recv(&guest[1], &qp[1], 1, &to, 1);
	if (!qp_write_send(&guest[0], &qp[0], &header, &from))
		errx(1, "the ring is full");
	cq_arm(&guest[1], &cq[1], false);
}

static uint32_t ring_doorbell(void)
{
	pvrdma_reg_write(guest[0].dev, guest[0].now, PV_BAR_UAR, PVRDMA_UAR_QP_OFFSET,
			 qp[0].handle | PV_UAR_QP_SEND);
	return pvrdma_output(guest[0].dev, guest[0].now, frames, BURST);
}

static void receive(uint32_t n)
{
	pvrdma_input(guest[1].dev, guest[1].now, frames, n);
	pvrdma_flush(guest[1].dev);
}

static void acknowledge(void)
{
	uint32_t handle, n = pvrdma_output(guest[1].dev, guest[1].now, frames, BURST);

	pvrdma_input(guest[0].dev, guest[0].now, frames, n);
	pvrdma_flush(guest[0].dev);
	expect_completion(0);
	expect_completion(1);
	if (!guest_notification(&guest[1], &handle))
		errx(1, "no notification");
}

static void pass_time_of_guests(void)
{
	guest[0].now += 1000;
	guest[1].now += 1000;
}

/* Transfers messages; a lap is one step of each. */
static void by_devices(uint32_t size, struct laps *sends, struct laps *receives)
{
	open_guests(size);
	for (unsigned i = 0; i < WARM_UP + LAPS_MAX; i++) {
		double start;
		uint32_t n;

		write_requests(size);
		start = bench_now();
		n = ring_doorbell();
		if (i >= WARM_UP)
			laps_since(sends, start);
		start = bench_now();
		receive(n);
		if (i >= WARM_UP)
			laps_since(receives, start);
		acknowledge();
		pass_time_of_guests();
	}
}

/* --- The engine alone */

static void by_engines(uint32_t size, struct laps *sends, struct laps *receives)
{
	const struct pair_attr attr = {.seed = 1, .mtu = MTU, .mem_size = MEMORY};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct pair *pair = pair_create(&attr);
	struct endpoint ends[2];

	conn.path_mtu = URXE_MTU_4096;
	conn_open(pair, &conn, ends);
	for (unsigned i = 0; i < WARM_UP + LAPS_MAX; i++) {
		const struct urxe_seg from = node_seg(pair->node[0], 0, size),
				      to = node_seg(pair->node[1], 0, size);
		const struct urxe_recv_wr recv = {.n_segs = 1, .segs = &to};
		const struct urxe_send_wr send = {.opcode = URXE_WR_SEND,
						  .n_segs = 1,
						  .segs = &from,
						  .flags = URXE_SEND_SIGNALED};
		struct urxe_wc wc;
		double start;
		uint32_t n;

		if (urxe_post_recv(ends[1].rq, &recv))
			errx(1, "urxe_post_recv");
		start = bench_now();
		if (urxe_post_send(ends[0].qp, &send))
			errx(1, "urxe_post_send");
		n = urxe_output(pair->node[0]->dev, pair->now, frames, BURST);
		if (i >= WARM_UP)
			laps_since(sends, start);
		start = bench_now();
		urxe_input(pair->node[1]->dev, pair->now, frames, n);
		if (i >= WARM_UP)
			laps_since(receives, start);
		n = urxe_output(pair->node[1]->dev, pair->now, frames, BURST);
		urxe_input(pair->node[0]->dev, pair->now, frames, n);
		if (!node_poll(&pair->node[0]->send_cq, &wc) || wc.status ||
		    !node_poll(&pair->node[1]->recv_cq, &wc) || wc.status)
			errx(1, "the message has failed");
		pair->now += 1000;
	}
	pair_destroy(pair);
}

/* --- Figures of messages */

typedef void transfer(uint32_t size, struct laps *sends, struct laps *receives);

static double of_message(uint32_t size, transfer *run, bool sends)
{
	struct laps laps[2] = {0};

	if (!size || size > SEND_MAX)
		errx(2, "SIZE is from 1 to %u", SEND_MAX);
	run(size, &laps[0], &laps[1]);
	return laps_median(&laps[!sends]) - clock_cost();
}

static double doorbell(uint32_t size)
{
	return of_message(size, by_devices, true);
}

static double completion(uint32_t size)
{
	return of_message(size, by_devices, false);
}

static double engine_post(uint32_t size)
{
	return of_message(size, by_engines, true);
}

static double engine_complete(uint32_t size)
{
	return of_message(size, by_engines, false);
}

/* --- Other figures */

/* A directory with `pages` entries, which all name few pages. */
static uint64_t make_directory(struct guest *g, uint32_t pages)
{
	struct pages some;
	uint64_t dir = guest_page(g), *tables = guest_at(g, dir);

	guest_pages(g, TABLE, &some);
	for (uint32_t at = 0; at < pages; at += TABLE) {
		uint64_t *table;

		tables[at / TABLE] = guest_page(g);
		table = guest_at(g, tables[at / TABLE]);
		for (uint32_t i = 0; i < TABLE && at + i < pages; i++)
			table[i] = some.addr[i];
	}
	guest_pages_free(&some);
	return dir;
}

static double register_memory(uint32_t size)
{
	const uint32_t pages = (uint32_t)(((uint64_t)size + PV_PAGE - 1) / PV_PAGE);
	struct pv_cmd_create_mr create = {.start = 0x100000, .length = size, .nchunks = pages};
	const struct guest_attr attr = {.id = 1};
	struct guest *g = &guest[0];
	struct laps laps = {0};
	uint32_t handle, key;

	if (!size || pages > TABLE * TABLE)
		errx(2, "SIZE is at most 1 GiB");
	guest_open(g, &attr);
	guest_start(g);
	create.pd_handle = g->pd;
	create.pdir_dma = make_directory(g, pages);
	for (unsigned i = 0; i < 20; i++) {
		double start = bench_now();

		if (mr_create(g, &create, &handle, &key))
			errx(1, "the command has failed");
		laps_since(&laps, start);
		guest_handle_command(g, PV_CMD_DESTROY_MR, handle);
	}
	return laps_median(&laps);
}

static double poll_rings(uint32_t count)
{
	const struct guest_attr attr = {.id = 1};
	const struct qp_attr qp_attr = {.type = URXE_QPT_RC, .send_cq = &cq[0], .recv_cq = &cq[0]};
	struct laps laps = {0};
	struct qp one;

	guest_open(&guest[0], &attr);
	guest_start(&guest[0]);
	cq_open(&guest[0], &cq[0], 64);
	for (uint32_t i = 0; i < count; i++) {
		qp_open(&guest[0], &one, &qp_attr);
		qp_connect(&guest[0], &one, &guest[0], &one);
	}
	for (unsigned i = 0; i < LAPS_MAX; i++) {
		double start = bench_now();

		for (uint32_t seen = 0; seen < count; seen += POLLED_QPS)
			pvrdma_poll(guest[0].dev, guest[0].now);
		laps_since(&laps, start);
	}
	return laps_median(&laps) - clock_cost();
}

static const struct figure {
	const char *name;
	double (*measure)(uint32_t size);
} figures[] = {
	{"doorbell", doorbell},        {"completion", completion},
	{"engine-post", engine_post},  {"engine-complete", engine_complete},
	{"register", register_memory}, {"poll", poll_rings},
};

int main(int argc, char **argv)
{
	if (argc != 3)
		errx(2, "usage: pvrdma_path WHAT SIZE");
	lay_out_frames();
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		if (strcmp(argv[1], figures[i].name))
			continue;
		printf("%.9g\n", figures[i].measure((uint32_t)strtoul(argv[2], NULL, 10)));
		return 0;
	}
	errx(2, "no figure '%s'", argv[1]);
}
