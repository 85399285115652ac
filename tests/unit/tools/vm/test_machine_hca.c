/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The HCA of urxe vm, which a provider double plays: completions count as work. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_hca.h"
#include "pvrdma_driver.h"
#include "vm/host/machine_hca.h"

#define NOW  1000u /* ns */
#define VA   0x100000u
#define PAGE 3 /* of the program's doorbells */

/* The linker puts this function in the place of hca_load_and_open. */
int __wrap_hca_load_and_open(const char *name, uint8_t port, const struct hca_owner *owner,
			     struct hca **hca);

int __wrap_hca_load_and_open(const char *name, uint8_t port, const struct hca_owner *owner,
			     struct hca **hca)
{
	return hca_open(&fake_hca.verbs, name, port, owner, hca);
}

/* And these: the double's descriptors are none. */
int __wrap_hca_comp_fd(const struct hca *hca);
int __wrap_hca_async_fd(const struct hca *hca);
static int comp_fd, async_fd;

int __wrap_hca_comp_fd(const struct hca *hca)
{
	(void)hca;
	return comp_fd;
}

int __wrap_hca_async_fd(const struct hca *hca)
{
	(void)hca;
	return async_fd;
}

/* The time of all clocks. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
static time_t seconds = 1;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	*ts = (struct timespec){.tv_sec = seconds};
	return 0;
}

static struct {
	struct guest g;
	struct vm_session session; /* without a daemon */
	struct machine_peers peers;
	struct machine_hca hca;
	struct cq cq;
	struct qp qp;
	struct buffer buffer;
} f;

static int setup(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	fake_hca_init();
	fake_hca.max_qp_wr = 32768;
	comp_fd = eventfd(0, EFD_CLOEXEC);
	async_fd = eventfd(0, EFD_CLOEXEC);
	guest_open(&f.g, &(struct guest_attr){.id = 1});
	f.session.attachments = 1;
	f.session.welcome.port.hca =
		(struct vnic_attach_hca){.name = "fake0", .port = 1, .generation = 1};
	assert_int_equal(machine_hca_open(&f.hca, f.g.dev, &f.session, &f.peers, HCA_WAY_HCA), 0);
	assert_non_null(f.hca.hca);
	guest_start(&f.g);
	assert_int_equal(guest_bind(&f.g, 1, &fake_gid, PV_NO_VLAN), 0);
	guest_enter_context(&f.g, PAGE);
	cq_open(&f.g, &f.cq, 64);
	buffer_open(&f.g, &f.buffer, VA, PV_PAGE, URXE_ACCESS_LOCAL_WRITE);
	qp_open(&f.g, &f.qp,
		&(struct qp_attr){.type = PV_QPT_UD, .send_cq = &f.cq, .recv_cq = &f.cq, .sge = 2});
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	machine_hca_close(&f.hca);
	guest_pages_free(&f.cq.pages);
	guest_pages_free(&f.qp.pages);
	guest_pages_free(&f.buffer.pages);
	guest_close(&f.g);
	close(comp_fd);
	close(async_fd);
	return 0;
}

/* The HCA executes a UD queue pair from INIT on. */
static void post_recv(void)
{
	const struct pvrdma_sge sge = buffer_sge(&f.buffer, 0, 128);
	struct pv_qp_attr attr = {.qp_state = URXE_QPS_INIT, .port_num = 1, .qkey = 1};

	assert_int_equal(
		qp_modify(&f.g, &f.qp, &attr,
			  URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_QKEY),
		0);
	qp_post_recv(&f.g, &f.qp, 7, &sge, 1);
	assert_int_equal(fake_hca.last_qp->n_recvs, 1);
}

/* The engine's maximum, too. */
static void a_machine_sees_the_whole_queue_size(void **state)
{
	(void)state;
	assert_int_equal(guest_caps(&f.g)->max_qp_wr, 32768);
}

/* The double has none. */
static void a_machine_sees_no_atomics_that_the_hca_lacks(void **state)
{
	(void)state;
	assert_int_equal(guest_caps(&f.g)->atomic_ops, 0);
}

/* The next poll finds nothing at the HCA, but PVRDMA has to be run. */
static void completions_that_come_with_an_event_are_work(void **state)
{
	(void)state;
	post_recv();
	assert_false(machine_hca_poll(&f.hca, NOW));
	fake_hca_complete_recv(fake_hca.last_qp, IBV_WC_SUCCESS, 64);
	fake_hca.comp_event = fake_hca.last_qp->init.recv_cq;
	machine_hca_event(&f.hca);
	assert_true(machine_hca_poll(&f.hca, NOW));
	assert_false(machine_hca_poll(&f.hca, NOW));
}

/* The machine closes the HCA before it sleeps: the HCA sends no event of its own. */
static void a_machine_does_not_sleep_with_an_hca_that_has_failed(void **state)
{
	(void)state;
	post_recv();
	fake_hca.poll_error = true;
	machine_hca_poll(&f.hca, NOW);
	assert_true(machine_hca_arm(&f.hca, NOW));
	machine_hca_follow(&f.hca, NOW);
	assert_null(f.hca.hca);
	assert_false(machine_hca_arm(&f.hca, NOW));
}

static void an_hca_that_fails_as_it_is_armed_lets_no_machine_sleep(void **state)
{
	(void)state;
	post_recv();
	fake_hca.poll_error = true;
	assert_true(machine_hca_arm(&f.hca, NOW));
}

/* The HCA comes back, and cannot be opened. */
static void return_without(int error)
{
	fake_hca.opens_to = FAKE_HCA_OPEN_DEVICE;
	fake_hca.open_error = error;
	f.session.welcome.port.hca.generation++;
	machine_hca_follow(&f.hca, NOW);
	assert_null(f.hca.hca);
}

static void an_hca_that_could_not_be_opened_for_a_moment_is_opened_later(void **state)
{
	uint64_t due;

	(void)state;
	assert_int_equal(machine_hca_deadline(&f.hca), UINT64_MAX);
	return_without(EMFILE);
	due = machine_hca_deadline(&f.hca);
	assert_in_range(due, NOW + 1, NOW + 1000000000);
	/* A later urxed has the same HCA. */
	f.session.attachments++;
	machine_hca_follow(&f.hca, due);
	assert_true(machine_hca_deadline(&f.hca) > due);
	fake_hca.opens_to = FAKE_HCA_OPEN_ALL;
	machine_hca_follow(&f.hca, due + 1);
	assert_null(f.hca.hca);
	machine_hca_follow(&f.hca, machine_hca_deadline(&f.hca));
	assert_non_null(f.hca.hca);
	assert_int_equal(machine_hca_deadline(&f.hca), UINT64_MAX);
}

static void an_hca_that_refuses_the_machine_is_not_opened_again(void **state)
{
	(void)state;
	return_without(EMFILE);
	return_without(EACCES);
	assert_int_equal(machine_hca_deadline(&f.hca), UINT64_MAX);
}

static uint32_t qps_of_hca(void)
{
	struct qp qp;

	qp_open(&f.g, &qp,
		&(struct qp_attr){.type = PV_QPT_UD, .send_cq = &f.cq, .recv_cq = &f.cq, .sge = 2});
	guest_pages_free(&qp.pages);
	return fake_hca.qps;
}

static void an_hca_whose_port_is_down_gets_no_new_queue_pairs(void **state)
{
	(void)state;
	post_recv();
	f.session.welcome.port.hca.down = 1;
	machine_hca_follow(&f.hca, NOW);
	assert_int_equal(qps_of_hca(), 1);
	fake_hca_complete_recv(fake_hca.last_qp, IBV_WC_SUCCESS, 64);
	assert_true(machine_hca_poll(&f.hca, NOW));
	f.session.welcome.port.hca.down = 0;
	machine_hca_follow(&f.hca, NOW);
	assert_int_equal(qps_of_hca(), 2);
}

/* Waits until a thread has ended, and handles that. */
static void pass_event(void)
{
	struct pollfd ready = {.fd = f.hca.epoll_fd, .events = POLLIN};

	assert_int_equal(poll(&ready, 1, -1), 1);
	machine_hca_event(&f.hca);
	machine_hca_poll(&f.hca, NOW);
}

static void start_datagrams_on(const struct qp *qp)
{
	struct pv_qp_attr attr = {.qp_state = URXE_QPS_INIT, .port_num = 1, .qkey = 1};

	assert_int_equal(
		qp_modify(&f.g, qp, &attr,
			  URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_QKEY),
		0);
	assert_int_equal(qp_to(&f.g, qp, URXE_QPS_RTR), 0);
	attr.qp_state = URXE_QPS_RTS;
	assert_int_equal(qp_modify(&f.g, qp, &attr, URXE_QP_STATE | URXE_QP_SQ_PSN), 0);
}

static void start_datagrams(void)
{
	start_datagrams_on(&f.qp);
}

/* `flow`: the path's flow label. */
static void post_datagram_on(struct qp *qp, uint8_t host, uint32_t flow)
{
	const struct pvrdma_sge sge = buffer_sge(&f.buffer, 0, 128);
	const struct pvrdma_sq_wqe_hdr header = {
		.wr_id = host,
		.num_sge = 1,
		.opcode = PVRDMA_WR_SEND,
		.send_flags = URXE_SEND_SIGNALED,
		.wr.ud = {.remote_qpn = 0x99,
			  .av = {.port_pd = f.g.pd | 1u << 24,
				 .sl_tclass_flowlabel = flow,
				 .gid_index = 1,
				 .dgid = {[10] = 0xff, 0xff, 192, 0, 2, host},
				 .dmac = {2, 3}}}};

	qp_post_send(&f.g, qp, &header, &sge);
}

static void post_datagram(uint8_t host)
{
	post_datagram_on(&f.qp, host, 0);
}

/* The kernel of the host looks for the peer's MAC in the function that waits. */
static void a_peer_without_a_mac_stops_no_machine(void **state)
{
	struct fake_qp *qp;

	(void)state;
	start_datagrams();
	qp = fake_hca.last_qp;
	fake_hca.delays = FAKE_HCA_CREATE_AH;
	post_datagram(9);
	sem_wait(&fake_hca.delayed);
	assert_false(machine_hca_poll(&f.hca, NOW));
	assert_int_equal(qp->n_sends, 0);
	sem_post(&fake_hca.go_on);
	pass_event();
	assert_int_equal(qp->n_sends, 1);
	/* The path has its handle now. */
	post_datagram(9);
	assert_int_equal(qp->n_sends, 2);
	fake_hca_complete_send(qp, IBV_WC_SUCCESS);
	fake_hca_complete_send(qp, IBV_WC_SUCCESS);
}

/* The queue pair goes on. */
static void expect_refused(uint64_t wr_id)
{
	const struct pv_qp_attr attr = {.qp_state = URXE_QPS_RTS, .cur_qp_state = URXE_QPS_SQE};
	struct pvrdma_cqe cqe;

	assert_true(cq_poll(&f.g, &f.cq, &cqe));
	assert_int_equal(cqe.wr_id, wr_id);
	assert_int_equal(cqe.status, PVRDMA_WC_LOC_QP_OP_ERR);
	assert_int_equal(qp_modify(&f.g, &f.qp, &attr, URXE_QP_STATE), 0);
}

static void a_path_that_the_hca_does_not_find_fails_for_a_while(void **state)
{
	(void)state;
	start_datagrams();
	fake_hca.no_ahs = true;
	post_datagram(9);
	pass_event();
	expect_refused(9);
	fake_hca.no_ahs = false;
	/* The kernel would look for the same peer, also with another flow label. */
	post_datagram_on(&f.qp, 9, 1);
	expect_refused(9);
	post_datagram(10);
	pass_event();
	assert_int_equal(fake_hca.last_qp->n_sends, 1);
	fake_hca_complete_send(fake_hca.last_qp, IBV_WC_SUCCESS);
	seconds += 2;
	post_datagram(9);
	pass_event();
	assert_int_equal(fake_hca.last_qp->n_sends, 2);
	fake_hca_complete_send(fake_hca.last_qp, IBV_WC_SUCCESS);
}

/* The peer is there. */
static void a_lack_of_memory_fails_no_other_path_to_the_peer(void **state)
{
	struct pvrdma_cqe cqe;

	(void)state;
	start_datagrams();
	fake_hca.no_ahs = true;
	fake_hca.ah_error = ENOMEM;
	post_datagram(9);
	pass_event();
	expect_refused(9);
	fake_hca.no_ahs = false;
	post_datagram_on(&f.qp, 9, 1);
	assert_false(cq_poll(&f.g, &f.cq, &cqe));
	pass_event();
	assert_int_equal(fake_hca.last_qp->n_sends, 1);
	fake_hca_complete_send(fake_hca.last_qp, IBV_WC_SUCCESS);
}

/* The thread that waits is the last user of an HCA that has gone. */
static void an_hca_goes_while_it_looks_for_a_peer(void **state)
{
	(void)state;
	start_datagrams();
	fake_hca.delays = FAKE_HCA_CREATE_AH;
	post_datagram(9);
	sem_wait(&fake_hca.delayed);
	f.session.welcome.port.hca =
		(struct vnic_attach_hca){.generation = f.session.welcome.port.hca.generation + 1};
	machine_hca_follow(&f.hca, NOW);
	assert_null(f.hca.hca);
	assert_int_equal(fake_hca.closed, 0);
	sem_post(&fake_hca.go_on);
	pass_event();
	assert_int_equal(fake_hca.closed, 1);
	assert_int_equal(fake_hca.ahs, 0);
}

/* The thread is the last user of a domain that the machine has deallocated. */
static void a_domain_goes_while_the_hca_looks_for_a_peer(void **state)
{
	const uint32_t pds = fake_hca.pds;

	(void)state;
	start_datagrams();
	fake_hca.delays = FAKE_HCA_CREATE_AH;
	post_datagram(9);
	sem_wait(&fake_hca.delayed);
	qp_close(&f.g, &f.qp);
	buffer_close(&f.g, &f.buffer);
	assert_int_equal(guest_handle_command(&f.g, PV_CMD_DESTROY_PD, f.g.pd), 0);
	assert_int_equal(fake_hca.pds, pds);
	sem_post(&fake_hca.go_on);
	pass_event();
	assert_int_equal(fake_hca.pds, pds - 1);
	assert_int_equal(fake_hca.ahs, 0);
}

static void a_machine_ends_while_the_hca_looks_for_a_peer(void **state)
{
	(void)state;
	start_datagrams();
	fake_hca.delays = FAKE_HCA_CREATE_AH;
	post_datagram(9);
	sem_wait(&fake_hca.delayed);
	sem_post(&fake_hca.go_on);
	machine_hca_close(&f.hca);
	assert_int_equal(fake_hca.closed, 1);
	assert_int_equal(fake_hca.ahs, 0);
}

static void init_rc(const struct qp *qp)
{
	const struct pv_qp_attr init = {.qp_state = URXE_QPS_INIT, .port_num = 1};

	assert_int_equal(
		qp_modify(&f.g, qp, &init,
			  URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_ACCESS_FLAGS),
		0);
}

static void open_rc(struct qp *qp)
{
	qp_open(&f.g, qp,
		&(struct qp_attr){.type = PV_QPT_RC, .send_cq = &f.cq, .recv_cq = &f.cq, .sge = 2});
	init_rc(qp);
}

/* The driver begins the transition to RTR. */
static void connect_to(const struct qp *qp, uint8_t host)
{
	union pv_request request = {
		.modify_qp = {.qp_handle = qp->handle,
			      .attr_mask = URXE_QP_STATE | URXE_QP_AV | URXE_QP_PATH_MTU |
					   URXE_QP_DEST_QPN | URXE_QP_RQ_PSN |
					   URXE_QP_MAX_DEST_RD_ATOMIC | URXE_QP_MIN_RNR_TIMER,
			      .attrs = {.qp_state = URXE_QPS_RTR,
					.path_mtu = URXE_MTU_1024,
					.dest_qp_num = 0x99,
					.ah_attr = {.dgid = {[10] = 0xff, 0xff, 192, 0, 2, host},
						    .ah_flags = 1,
						    .port_num = 1,
						    .sgid_index = 1,
						    .dmac = {2, 3}}}}};

	guest_begin_command(&f.g, PV_CMD_MODIFY_QP, &request);
}

/* Whether the response to the last command has come. */
static bool was_answered(void)
{
	const union pv_response *response = guest_at(&f.g, f.g.response);

	return response->hdr.response == f.g.token;
}

/* A new queue pair connects, while the HCA creates no address handle. Returns the error of the
 * response. */
static int connect_without_handles(uint8_t host, int ah_error)
{
	const union pv_response *response = guest_at(&f.g, f.g.response);
	struct qp rc;

	fake_hca.no_ahs = true;
	fake_hca.ah_error = ah_error;
	open_rc(&rc);
	connect_to(&rc, host);
	pass_event();
	assert_true(was_answered());
	guest_pages_free(&rc.pages);
	return response->hdr.err;
}

/* Connections use no handle: only the search for the peer counts. */
static void a_connection_needs_its_peer_and_no_handle(void **state)
{
	(void)state;
	assert_int_equal(connect_without_handles(9, ENOSPC), 0);
	assert_int_equal(connect_without_handles(10, ENOMEM), 0);
	assert_int_equal(connect_without_handles(11, EHOSTUNREACH), EHOSTUNREACH);
}

/* Threads that wait end one by one. */
static void end_threads(unsigned n)
{
	while (n--) {
		sem_post(&fake_hca.go_on);
		pass_event();
	}
}

static void datagrams_to_many_peers_leave_room_for_a_connection(void **state)
{
	struct qp qps[ADDRESS_HANDLE_JOBS], rc;

	(void)state;
	fake_hca.delays = FAKE_HCA_CREATE_AH;
	open_rc(&rc);
	for (uint8_t i = 0; i < ADDRESS_HANDLE_JOBS; i++) {
		qp_open(&f.g, &qps[i],
			&(struct qp_attr){
				.type = PV_QPT_UD, .send_cq = &f.cq, .recv_cq = &f.cq, .sge = 2});
		start_datagrams_on(&qps[i]);
		post_datagram_on(&qps[i], 10 + i, 0);
	}
	connect_to(&rc, 9);
	for (unsigned i = 0; i < ADDRESS_HANDLE_JOBS; i++)
		sem_wait(&fake_hca.delayed);
	assert_int_equal(fake_hca.ah_calls[9], 1);
	assert_false(was_answered());
	end_threads(ADDRESS_HANDLE_JOBS + 1);
	assert_true(was_answered());
	for (unsigned i = 0; i < ADDRESS_HANDLE_JOBS; i++)
		guest_pages_free(&qps[i].pages);
	guest_pages_free(&rc.pages);
}

/* The kernel looks for the peer again, and may have dropped the MAC of the handle. */
static void each_connection_waits_for_its_peer(void **state)
{
	struct qp rc;

	(void)state;
	open_rc(&rc);
	connect_to(&rc, 9);
	pass_event();
	assert_true(was_answered());
	assert_int_equal(fake_hca.ahs, 1);
	assert_int_equal(qp_to(&f.g, &rc, URXE_QPS_RESET), 0);
	init_rc(&rc);
	seconds++;
	fake_hca.delays = FAKE_HCA_CREATE_AH;
	connect_to(&rc, 9);
	assert_false(was_answered());
	sem_wait(&fake_hca.delayed);
	end_threads(1);
	assert_true(was_answered());
	assert_int_equal(fake_hca.ahs, 1);
	guest_pages_free(&rc.pages);
}

/* The kernel looks for the same peer for both. */
static void paths_to_one_peer_wait_for_one_thread(void **state)
{
	struct qp other;

	(void)state;
	qp_open(&f.g, &other,
		&(struct qp_attr){.type = PV_QPT_UD, .send_cq = &f.cq, .recv_cq = &f.cq, .sge = 2});
	start_datagrams_on(&other);
	start_datagrams();
	fake_hca.delays = FAKE_HCA_CREATE_AH;
	post_datagram_on(&other, 9, 1);
	post_datagram(9);
	sem_wait(&fake_hca.delayed);
	assert_int_equal(fake_hca.ah_calls[9], 1);
	fake_hca.delays = FAKE_HCA_PROMPT;
	end_threads(1);
	assert_int_equal(fake_hca.last_qp->n_sends, 1);
	assert_int_equal(fake_hca.ahs, 2);
	guest_pages_free(&other.pages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(completions_that_come_with_an_event_are_work, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_machine_sees_the_whole_queue_size, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_machine_sees_no_atomics_that_the_hca_lacks, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_machine_does_not_sleep_with_an_hca_that_has_failed, setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_hca_that_fails_as_it_is_armed_lets_no_machine_sleep, setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_hca_that_could_not_be_opened_for_a_moment_is_opened_later, setup,
			teardown),
		cmocka_unit_test_setup_teardown(an_hca_that_refuses_the_machine_is_not_opened_again,
						setup, teardown),
		cmocka_unit_test_setup_teardown(an_hca_whose_port_is_down_gets_no_new_queue_pairs,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_peer_without_a_mac_stops_no_machine, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_path_that_the_hca_does_not_find_fails_for_a_while,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_lack_of_memory_fails_no_other_path_to_the_peer,
						setup, teardown),
		cmocka_unit_test_setup_teardown(an_hca_goes_while_it_looks_for_a_peer, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_domain_goes_while_the_hca_looks_for_a_peer, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_machine_ends_while_the_hca_looks_for_a_peer,
						setup, teardown),
		cmocka_unit_test_setup_teardown(datagrams_to_many_peers_leave_room_for_a_connection,
						setup, teardown),
		cmocka_unit_test_setup_teardown(each_connection_waits_for_its_peer, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_connection_needs_its_peer_and_no_handle, setup,
						teardown),
		cmocka_unit_test_setup_teardown(paths_to_one_peer_wait_for_one_thread, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
