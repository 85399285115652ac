/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A virtual machine by hand migrates between two device processes while it exchanges messages.
 *
 * migrating_vm PATH1 PATH2 MOVES MAC PORT SIZE ITERATIONS DOORBELLS1 DOORBELLS2: the sockets of
 * both processes, the MAC of the peer's host, the arguments of ibv_rc_pingpong, which listens on
 * this host, and the options --doorbells of both processes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "hand_made_vm.h"
#include "require.h"

#define PEER 2 /* the peer has the address 10.0.0.2 */

#define MOVES_MAX 100
#define QUARTERS  4
/* Far more than on a busy machine. */
#define MEDIAN_MAX_MS 5000

static const char *paths[2];

/* Times of each move, ms. */
static double device_ms[MOVES_MAX];  /* both functions stop, are saved, restored, and run */
static double message_ms[MOVES_MAX]; /* from RUNNING to the return of the message on its way */

/* --- Times */

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void report(const char *what, double *ms, uint32_t n)
{
	qsort(ms, n, sizeof(*ms), compare);
	printf("%s: median %.1f ms, %.1f to %.1f\n", what, ms[n / 2], ms[0], ms[n - 1]);
	require(ms[n / 2] < MEDIAN_MAX_MS);
}

/* --- Migration */

static void set_states(struct vfio_client clients[2], enum vfio_state state)
{
	for (int i = 0; i < 2; i++)
		require(!vfio_set_state(&clients[i], state));
}

static bool lists_page(const struct pages *pages, uint64_t addr)
{
	for (uint32_t i = 0; i < pages->n; i++)
		if (pages->addr[i] == addr)
			return true;
	return false;
}

/* Pages that drivers write: a hypervisor sees that by the processor. */
static bool is_drivers(const struct hand_made_vm *m, uint64_t addr)
{
	const struct guest *g = &m->guest;

	return lists_page(&m->qp.pages, addr) || lists_page(&m->send.pages, addr) ||
	       addr == m->cq.pages.addr[0] || addr == g->request || addr == m->nic.rings ||
	       addr == m->nic.frame || addr == m->nic.shared || addr == m->recv.pages.addr[0];
}

static uint64_t address_of_page(uint32_t page)
{
	return page < VM_PAGES / 2 ? page * PV_PAGE : GUEST_HIGH + (page - VM_PAGES / 2) * PV_PAGE;
}

/* Adds the pages that the functions have written since the last call. */
static void take_logs(struct hand_made_vm *m, uint64_t log[VM_PAGES / 64])
{
	for (int i = 0; i < 2; i++) {
		vfio_take_log(&m->clients[i], 0, GUEST_SMALL, log);
		vfio_take_log(&m->clients[i], GUEST_HIGH, GUEST_SMALL, log + VM_PAGES / 128);
	}
}

/* Copies pages that differ: all of them are in the log or the drivers'. */
static void copy_changes(const struct hand_made_vm *m, struct guest *to, const uint64_t *log)
{
	uint32_t logged = 0;

	for (uint32_t page = 0; page < VM_PAGES; page++) {
		const uint64_t addr = address_of_page(page);
		const bool marked = log[page / 64] >> page % 64 & 1;

		logged += marked;
		if (!memcmp(guest_at(to, addr), guest_at(&m->guest, addr), PV_PAGE))
			continue;
		require(marked || is_drivers(m, addr));
		memcpy(guest_at(to, addr), guest_at(&m->guest, addr), PV_PAGE);
	}
	require(logged && logged < VM_PAGES / 2);
}

static void copy_all(const struct guest *from, const struct guest *to)
{
	for (uint32_t page = 0; page < VM_PAGES; page++)
		memcpy(guest_at(to, address_of_page(page)), guest_at(from, address_of_page(page)),
		       PV_PAGE);
}

/* The hypervisor gives up after it has read all state, and the machine goes on where it is. */
static void abandon(struct hand_made_vm *m)
{
	uint8_t *stream;
	size_t length;

	set_states(m->clients, VFIO_STATE_PRE_COPY);
	set_states(m->clients, VFIO_STATE_STOP_COPY);
	for (int i = 0; i < 2; i++) {
		stream = NULL;
		length = 0;
		vfio_read_stream(&m->clients[i], &stream, &length);
		free(stream);
	}
	set_states(m->clients, VFIO_STATE_RUNNING);
}

/* A stream that lacks its end is refused, and the function can be used after a reset. */
static void offer_truncated(struct vfio_client *client, const uint8_t *stream, size_t length)
{
	require(!vfio_set_state(client, VFIO_STATE_RESUMING));
	require(!vfio_write_stream(client, stream, length - 1));
	require(vfio_set_state(client, VFIO_STATE_STOP) == EBADMSG);
	require(vfio_get_state(client) == VFIO_STATE_ERROR);
	vfio_reset(client);
}

static void map_doorbells(struct hand_made_vm *m, bool mapped)
{
	vm_map_doorbells(m);
	require(!m->guest.attr.uar == !mapped);
}

static void migrate(struct hand_made_vm *m, const char *path, bool mapped, uint32_t move)
{
	double stopped, saved, resumed, runs;
	struct vfio_client clients[2];
	uint64_t log[VM_PAGES / 64] = {0};
	uint8_t *streams[2] = {NULL, NULL};
	size_t lengths[2] = {0, 0};
	struct guest copy;

	guest_open_copy(&m->guest, &copy);
	vm_connect_clients(&copy, clients, path);
	for (int i = 0; i < 2; i++)
		require(!vfio_start_log(&m->clients[i]));
	set_states(m->clients, VFIO_STATE_PRE_COPY);
	copy_all(&m->guest, &copy);
	vm_exchange(m, 3);
	take_logs(m, log);
	copy_changes(m, &copy, log);
	memset(log, 0, sizeof(log));
	/* A message, or the rest of its return, is on its way while the machine moves. */
	vm_post(m);
	vm_wait_returned(m, m->size / QUARTERS * (move % QUARTERS));
	stopped = now_ms();
	set_states(m->clients, VFIO_STATE_STOP_COPY);
	for (int i = 0; i < 2; i++)
		vfio_read_stream(&m->clients[i], &streams[i], &lengths[i]);
	saved = now_ms();
	take_logs(m, log);
	copy_changes(m, &copy, log);
	for (int i = 0; i < 2; i++)
		offer_truncated(&clients[i], streams[i], lengths[i]);
	resumed = now_ms();
	for (int i = 0; i < 2; i++) {
		require(!vfio_set_state(&clients[i], VFIO_STATE_RESUMING));
		require(!vfio_write_stream(&clients[i], streams[i], lengths[i]));
		require(!vfio_set_state(&clients[i], VFIO_STATE_STOP));
		free(streams[i]);
	}
	set_states(clients, VFIO_STATE_RUNNING);
	runs = now_ms();
	for (int i = 0; i < 2; i++) {
		vfio_client_close(&m->clients[i]);
		m->clients[i] = clients[i];
	}
	vnic_guest_memory_destroy(m->guest.memory);
	munmap(m->guest.bytes, GUEST_MEMORY);
	close(m->guest.fd);
	m->guest = copy;
	m->guest.client = &m->clients[1];
	map_doorbells(m, mapped);
	vm_finish(m);
	device_ms[move] = saved - stopped + runs - resumed;
	message_ms[move] = now_ms() - runs;
	vm_check_nic(m);
}

int main(int argc, char **argv)
{
	static struct hand_made_vm m;
	uint32_t moves, iterations, qpn;
	struct pvrdma_cqe cqe;
	bool mapped[2];

	require(argc == 10 && atoi(argv[3]) > 0 && atoi(argv[3]) <= MOVES_MAX);
	paths[0] = argv[1];
	paths[1] = argv[2];
	moves = (uint32_t)atoi(argv[3]);
	m.size = (uint32_t)atoi(argv[6]);
	m.peer = PEER;
	iterations = (uint32_t)atoi(argv[7]);
	for (int i = 0; i < 2; i++)
		mapped[i] = !strcmp(argv[8 + i], "mapped");
	vm_start(&m, paths[0]);
	map_doorbells(&m, mapped[0]);
	vm_connect_qp(&m, (uint16_t)atoi(argv[5]), argv[4]);
	qpn = m.qp.qpn;
	vm_exchange(&m, 5);
	for (uint32_t i = 1; i <= moves; i++) {
		if (i % 3 == 0) {
			vm_post(&m);
			abandon(&m);
			vm_finish(&m);
			vm_exchange(&m, 2);
		}
		migrate(&m, paths[i % 2], mapped[i % 2], i - 1);
		vm_exchange(&m, 2);
	}
	require(qp_query(&m.guest, &m.qp, NULL) == URXE_QPS_RTS && m.qp.qpn == qpn);
	require(m.message < iterations);
	vm_exchange(&m, iterations - m.message);
	require(!cq_poll(&m.guest, &m.cq, &cqe));
	report("both functions stop, are saved, restored and run", device_ms, moves);
	report("from RUNNING to the end of the message on its way", message_ms, moves);
	printf("%u moves, %u messages\n", moves, m.message);
	return 0;
}
