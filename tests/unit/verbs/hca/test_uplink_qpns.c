/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * To which QPNs of the HCA the uplink receives packets: the engine's ones, in each way in which the
 * engine begins to execute a queue pair. The test plays the program, the engine thread and the
 * daemon; a provider double plays the HCA.
 */
#include "daemon/uplink_qpns.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/port_attributes.h"
#include "hca_program.h"
#include "process/settings.h"
#include "queues/publish.h"
#include "queues/verbs_qp.h"

#define MTU      1500
#define CHANGES  16
#define RECEIVES 3

static struct vnic_loop *loop;
static const uint8_t other_host[16] = {[10] = 0xff, 0xff, 192, 0, 2, 9};

/* --- The daemon. */

static struct {
	uint32_t flags; /* of the QPN that was added, or changed, last */
	uint32_t qpn;
	uint32_t changes;         /* messages QPN_SET so far */
	uint32_t heard;           /* those that the daemon had read when it answered last */
	enum ibv_qp_state at_hca; /* the state of the HCA's queue pair at the last QPN_SET */
	bool deaf;                /* it reads no messages at the moment */
	bool missed;              /* a QPN_SET while it was deaf; the next question waits for it */
	bool slow;                /* it has not handled the last QPN_SET */
	bool peer_is_here;        /* the answer to QPN_QUERY */
	bool no_next_hop;         /* the answer to RESOLVE */
	bool number_is_anothers;  /* the answer to QPN_ADD */
} urxed;

int __wrap_vnic_driver_add_qpn(struct vnic_driver *drv, uint32_t qpn, uint32_t flags);
int __wrap_vnic_driver_set_qpn(struct vnic_driver *drv, uint32_t qpn, uint32_t flags);
bool __wrap_vnic_driver_qpns_handled(const struct vnic_driver *drv);
int __wrap_vnic_driver_remove_qpn(struct vnic_driver *drv, uint32_t qpn);
int __wrap_vnic_driver_query_qpn(struct vnic_driver *drv, const uint8_t dgid[16], uint32_t qpn);
int __wrap_vnic_driver_register(struct vnic_driver *drv, uint32_t local_qpn, const uint8_t dgid[16],
				uint32_t qpn);
int __wrap_vnic_driver_unregister(struct vnic_driver *drv, uint32_t local_qpn,
				  const uint8_t dgid[16], uint32_t qpn);
int __wrap_vnic_driver_resolve(struct vnic_driver *drv, uint8_t sgid_index, const uint8_t dgid[16],
			       struct vnic_next_hop *hop);
int __wrap_adapter_request_inbox(const uint8_t mac[6], uint32_t qpn);

int __wrap_vnic_driver_add_qpn(struct vnic_driver *drv, uint32_t qpn, uint32_t flags)
{
	(void)drv;
	urxed.qpn = qpn;
	urxed.flags = flags;
	return urxed.number_is_anothers ? -EACCES : 0;
}

int __wrap_vnic_driver_set_qpn(struct vnic_driver *drv, uint32_t qpn, uint32_t flags)
{
	(void)drv;
	if (urxed.deaf) {
		urxed.missed = true;
		return -EAGAIN;
	}
	assert_int_equal(qpn, urxed.qpn);
	urxed.flags = flags;
	urxed.changes++;
	urxed.at_hca = fake_hca.qps ? fake_hca.last_qp->attr.qp_state : IBV_QPS_RESET;
	return 0;
}

bool __wrap_vnic_driver_qpns_handled(const struct vnic_driver *drv)
{
	(void)drv;
	return !urxed.slow;
}

int __wrap_vnic_driver_remove_qpn(struct vnic_driver *drv, uint32_t qpn)
{
	(void)drv;
	(void)qpn;
	return 0;
}

int __wrap_vnic_driver_query_qpn(struct vnic_driver *drv, const uint8_t dgid[16], uint32_t qpn)
{
	(void)drv;
	(void)dgid;
	(void)qpn;
	if (urxed.missed)
		urxed.deaf = false;
	urxed.heard = urxed.changes;
	return urxed.peer_is_here ? 0 : -ENOENT;
}

int __wrap_vnic_driver_register(struct vnic_driver *drv, uint32_t local_qpn, const uint8_t dgid[16],
				uint32_t qpn)
{
	(void)drv;
	(void)local_qpn;
	(void)dgid;
	(void)qpn;
	return 0;
}

int __wrap_vnic_driver_unregister(struct vnic_driver *drv, uint32_t local_qpn,
				  const uint8_t dgid[16], uint32_t qpn)
{
	return __wrap_vnic_driver_register(drv, local_qpn, dgid, qpn);
}

int __wrap_vnic_driver_resolve(struct vnic_driver *drv, uint8_t sgid_index, const uint8_t dgid[16],
			       struct vnic_next_hop *hop)
{
	(void)drv;
	(void)sgid_index;
	(void)dgid;
	*hop = (struct vnic_next_hop){.mac = {2, [5] = 9}};
	return urxed.no_next_hop ? -EHOSTUNREACH : 0;
}

int __wrap_adapter_request_inbox(const uint8_t mac[6], uint32_t qpn)
{
	(void)mac;
	(void)qpn;
	return -ENOENT;
}

static bool is_received(void)
{
	return urxed.flags & VNIC_QPN_UPLINK;
}

/* --- The program. */

static uint32_t qp_handle;

static int setup(void **state)
{
	(void)state;
	memset(&urxed, 0, sizeof(urxed));
	fake_hca_init();
	loop = open_with_hca(MTU);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_with_hca(loop);
	unsetenv("URXE_HCA_GONE");
	settings_read();
	return 0;
}

static void create_qp_of(uint8_t type)
{
	const struct ib_uverbs_create_cq create_cq = {.cqe = 10, .comp_channel = -1};
	struct ib_uverbs_create_qp create = {.pd_handle = pd,
					     .max_send_wr = RECEIVES,
					     .max_recv_wr = RECEIVES,
					     .max_send_sge = 1,
					     .max_recv_sge = 1,
					     .qp_type = type};
	struct ib_uverbs_modify_qp init = {
		.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS),
		.qp_state = IBV_QPS_INIT,
		.port_num = 1};
	uint32_t cq;

	assert_int_equal(COMMAND(CREATE_CQ, create_cq, &cq), 0);
	create.send_cq_handle = create.recv_cq_handle = cq;
	assert_int_equal(COMMAND(CREATE_QP, create, &qp_handle), 0);
	init.qp_handle = qp_handle;
	assert_int_equal(COMMAND(MODIFY_QP, init, NULL), 0);
}

static void create_qp(void)
{
	create_qp_of(IBV_QPT_RC);
}

static struct qp *qp_of_program(void)
{
	return (struct qp *)handle_find(&uverbs_file_lookup(device)->handles, OBJECT_QP, qp_handle);
}

/* The HCA gets receive requests, if it executes the queue pair. */
static void post_receives(void)
{
	adapter_lock();
	for (uint64_t i = 0; i < RECEIVES; i++) {
		const struct urxe_recv_wr wr = {.wr_id = i};

		assert_int_equal(urxe_post_recv(qp_of_program()->recv.rq, &wr), 0);
	}
	urxe_offload_refill(qp_of_program()->recv.rq);
	adapter_unlock();
}

static int try_to_connect_qp(const uint8_t dgid[16])
{
	struct ib_uverbs_modify_qp rtr = {
		.qp_handle = qp_handle,
		.attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 0x77,
		.dest = {.is_global = 1, .port_num = 1}};

	memcpy(rtr.dest.dgid, dgid, sizeof(rtr.dest.dgid));
	return COMMAND(MODIFY_QP, rtr, NULL);
}

static void connect_qp(const uint8_t dgid[16])
{
	assert_int_equal(try_to_connect_qp(dgid), 0);
}

static void change_state(enum ibv_qp_state to)
{
	const struct ib_uverbs_modify_qp modify = {
		.qp_handle = qp_handle, .attr_mask = IBV_QP_STATE, .qp_state = to};

	assert_int_equal(COMMAND(MODIFY_QP, modify, NULL), 0);
}

/* The HCA refuses the region, so the engine executes the connections of the domain. */
static void register_region_alone(void)
{
	static uint8_t memory[64];
	const struct ib_uverbs_reg_mr request = {.start = (uintptr_t)memory,
						 .length = sizeof(memory),
						 .hca_va = (uintptr_t)memory,
						 .pd_handle = pd,
						 .access_flags = IBV_ACCESS_LOCAL_WRITE};
	uint32_t mr;

	fake_hca.mr_error = EOPNOTSUPP;
	assert_int_equal(COMMAND(REG_MR, request, &mr), 0);
}

static void open_offloaded_qp(void)
{
	create_qp();
	post_receives();
	connect_qp(other_host);
	assert_true(urxe_qp_offloaded(qp_of_program()->qp));
	assert_int_equal(fake_hca.last_qp->n_recvs, RECEIVES);
}

static void open_engine_qp(void)
{
	register_region_alone();
	create_qp();
	connect_qp(other_host);
	assert_false(urxe_qp_offloaded(qp_of_program()->qp));
}

/* --- Commands. */

static void the_uplink_leaves_the_packets_of_offloaded_queue_pairs_to_the_hca(void **state)
{
	(void)state;
	open_offloaded_qp();
	assert_int_equal(urxed.qpn, fake_hca.last_qp->ibv.qp_num);
	assert_int_equal(urxed.changes, 0);
	assert_false(is_received());
	change_state(IBV_QPS_ERR);
	assert_int_equal(urxed.changes, 0);
}

/* The program may ask its peer for messages when the command returns. */
static void the_uplink_receives_the_packets_of_the_engine(void **state)
{
	(void)state;
	open_engine_qp();
	assert_true(is_received());
	assert_int_equal(urxed.heard, 1);
	assert_true(urxed.flags & VNIC_QPN_REACHABLE);
	change_state(IBV_QPS_RESET);
	assert_false(is_received());
	assert_true(urxed.flags & VNIC_QPN_REACHABLE);
	assert_int_equal(urxed.changes, 2);
}

static void queue_pairs_in_error_receive_nothing(void **state)
{
	(void)state;
	open_engine_qp();
	change_state(IBV_QPS_ERR);
	assert_false(is_received());
}

/* The engine reaches such peers by inboxes, copies and the switch. */
static void peers_of_this_host_need_no_uplink(void **state)
{
	struct vnic_attach_port moved;

	(void)state;
	urxed.peer_is_here = true;
	create_qp();
	connect_qp(fake_gid.raw);
	assert_false(urxe_qp_offloaded(qp_of_program()->qp));
	assert_int_equal(urxed.changes, 0);
	/* The address moves to another host. */
	moved = adapter.welcome.port;
	memcpy(moved.gids[0].raw, other_host, sizeof(moved.gids[0].raw));
	adapter_lock();
	port_changed(&moved);
	adapter_unlock();
	assert_true(is_received());
}

/* The program may ask its peer for messages when the command returns, also if the daemon did not
 * read when the command asked it first. */
static void a_command_waits_for_a_daemon_that_did_not_read(void **state)
{
	(void)state;
	register_region_alone();
	create_qp();
	urxed.deaf = true;
	connect_qp(other_host);
	assert_false(urxe_qp_offloaded(qp_of_program()->qp));
	assert_true(is_received());
	assert_int_equal(urxed.heard, 1);
}

/* A stopped daemon does not delay a command that ends the packets, nor another thread that needs
 * the lock. */
static void a_daemon_that_does_not_read_is_told_later(void **state)
{
	(void)state;
	open_engine_qp();
	urxed.deaf = true;
	change_state(IBV_QPS_RESET);
	assert_true(urxed.deaf);
	assert_true(is_received());
	assert_true(adapter.uplink_qpns_late);
	adapter_lock();
	uplink_qpns_update();
	assert_true(adapter.uplink_qpns_late);
	urxed.deaf = false;
	uplink_qpns_update();
	adapter_unlock();
	assert_false(is_received());
	assert_false(adapter.uplink_qpns_late);
}

static pid_t child;

/* Parent and child return from the handler into the call of the HCA, which ends then. */
static void fork_in_handler(int number)
{
	child = fork();
	if (!child)
		signal(SIGSEGV, SIG_DFL);
	sem_post(&fake_hca.go_on);
	(void)number;
}

static void a_child_forked_during_a_command_tells_its_parents_daemon_nothing(void **state)
{
	const struct itimerval soon = {.it_value = {.tv_usec = 10000}};
	int rc, status;

	(void)state;
	create_qp();
	post_receives();
	fake_hca.delays = FAKE_HCA_MODIFY_QP;
	signal(SIGALRM, fork_in_handler);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	rc = try_to_connect_qp(other_host);
	if (!child)
		_exit(rc == -EIO ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(rc, 0);
}

/* --- Take-overs. */

static int take_over(enum hca_taker taker)
{
	struct urxe_offload_refusal refusal;
	int rc;

	adapter_lock();
	adapter.hca.take_over.due = 0;
	rc = adapter_hca_take_over(taker, &refusal);
	adapter_unlock();
	return rc;
}

static void abandon(void)
{
	adapter_lock();
	adapter_hca_abandon(TAKER_QUIESCE);
	adapter_unlock();
}

/* The HCA's queue pair enters the error state, and its receive requests are not back yet. */
static void stop_qp(void)
{
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	while (fake_hca.last_qp->attr.qp_state != IBV_QPS_ERR)
		assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
}

static void return_receives(void)
{
	for (uint32_t i = 0; i < RECEIVES; i++)
		fake_hca_complete_recv(fake_hca.last_qp, IBV_WC_WR_FLUSH_ERR, 0);
}

static bool is_engines(void)
{
	return !urxe_qp_offloaded(qp_of_program()->qp);
}

static void the_uplink_receives_before_the_hca_stops(void **state)
{
	(void)state;
	open_offloaded_qp();
	stop_qp();
	assert_true(is_received());
	assert_int_equal(urxed.at_hca, IBV_QPS_RTR);
	return_receives();
	assert_int_equal(take_over(TAKER_QUIESCE), 0);
	assert_true(is_engines());
	assert_true(is_received());
	assert_int_equal(urxed.changes, 1);
}

static void open_offloaded_ud_qp(void)
{
	create_qp_of(IBV_QPT_UD);
	post_receives();
	change_state(IBV_QPS_RTR);
	assert_true(urxe_qp_offloaded(qp_of_program()->qp));
}

/* Nothing repeats a datagram that neither the HCA nor the uplink receives. */
static void the_hca_receives_datagrams_until_the_uplink_does(void **state)
{
	(void)state;
	open_offloaded_ud_qp();
	urxed.slow = true;
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	adapter.hca.take_over.uplink_until = UINT64_MAX;
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	assert_true(is_received());
	assert_int_equal(fake_hca.last_qp->attr.qp_state, IBV_QPS_RTR);
	urxed.slow = false;
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	assert_int_equal(fake_hca.last_qp->attr.qp_state, IBV_QPS_ERR);
	return_receives();
	assert_int_equal(take_over(TAKER_QUIESCE), 0);
	assert_true(is_engines());
}

static void the_hca_receives_datagrams_until_the_daemon_reads(void **state)
{
	(void)state;
	open_offloaded_ud_qp();
	urxed.deaf = true;
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	assert_int_equal(fake_hca.last_qp->attr.qp_state, IBV_QPS_RTR);
	urxed.deaf = false;
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	assert_true(is_received());
	assert_int_equal(fake_hca.last_qp->attr.qp_state, IBV_QPS_ERR);
}

/* Queue pairs must not end with the HCA because of a stopped daemon. */
static void a_take_over_does_not_wait_long_for_the_daemon(void **state)
{
	(void)state;
	open_offloaded_ud_qp();
	urxed.slow = true;
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	assert_int_equal(fake_hca.last_qp->attr.qp_state, IBV_QPS_RTR);
	assert_true(adapter.hca.take_over.uplink_until);
	adapter.hca.take_over.uplink_until = 1;
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	assert_int_equal(fake_hca.last_qp->attr.qp_state, IBV_QPS_ERR);
}

static void an_abandoned_take_over_leaves_the_packets_to_the_hca_again(void **state)
{
	(void)state;
	open_offloaded_qp();
	fake_hca.last_qp->attr.rq_psn = 5; /* the peer sends */
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	assert_true(is_received());
	assert_int_equal(fake_hca.last_qp->attr.qp_state, IBV_QPS_RTR);
	abandon();
	assert_false(is_received());
}

/* The program's poll takes the last receive request, and the engine goes on at once. */
static void a_stopped_queue_pair_that_goes_on_is_received(void **state)
{
	(void)state;
	open_offloaded_qp();
	stop_qp();
	abandon();
	assert_true(adapter.hca.qps_stopped);
	assert_true(is_received());
	return_receives();
	adapter_lock();
	hca_poll(adapter.hca.hca);
	adapter_unlock();
	assert_true(is_engines());
	assert_true(is_received());
	adapter_lock();
	adapter_hca_finish();
	adapter_unlock();
	assert_false(adapter.hca.qps_stopped);
	assert_true(is_received());
	assert_int_equal(urxed.changes, 1);
}

/* The engine thread polls the HCA. */
static void a_stopped_queue_pair_that_the_engine_thread_finishes_is_received(void **state)
{
	(void)state;
	open_offloaded_qp();
	stop_qp();
	abandon();
	return_receives();
	adapter_lock();
	adapter_hca_finish();
	adapter_unlock();
	assert_true(is_engines());
	assert_true(is_received());
}

static void the_uplink_receives_when_the_hca_goes(void **state)
{
	(void)state;
	setenv("URXE_HCA_GONE", "engine", 1);
	settings_read();
	create_qp();
	connect_qp(other_host);
	assert_false(is_engines());
	set_hca("");
	assert_true(is_engines());
	assert_int_equal(qp_state(qp_of_program()), URXE_QPS_RTR);
	assert_true(is_received());
}

/* Without URXE_HCA_GONE the queue pair fails. The program changes its environment too late. */
static void queue_pairs_that_end_with_the_hca_are_not_received(void **state)
{
	(void)state;
	open_offloaded_qp();
	setenv("URXE_HCA_GONE", "engine", 1);
	assert_int_equal(take_over(TAKER_GONE), -EAGAIN);
	assert_true(is_received());
	set_hca("");
	assert_int_equal(qp_state(qp_of_program()), URXE_QPS_ERR);
	assert_false(is_received());
}

/* --- The HCA's port goes down and comes back. */

static void lease_qpns(void)
{
	struct lease_block *block = calloc(1, sizeof(*block));

	assert_non_null(block);
	block->qpn_first = 0x800000;
	adapter_lock();
	leases_add(&adapter.leases, block);
	adapter_unlock();
}

static void set_port(bool down)
{
	struct vnic_attach_port port = adapter.welcome.port;

	port.hca.down = down;
	adapter_lock();
	port_changed(&port);
	if (adapter_hca_stale())
		adapter_hca_renew();
	adapter_unlock();
}

/* The HCA's own retries decide. The engine's new queue pairs have QPNs that the uplink receives. */
static void queue_pairs_stay_at_an_hca_whose_port_is_down(void **state)
{
	const struct qp *first;

	(void)state;
	lease_qpns();
	open_offloaded_qp();
	first = qp_of_program();
	set_port(true);
	assert_int_equal(qp_state(first), URXE_QPS_RTR);
	assert_true(urxe_qp_offloaded(first->qp));
	create_qp();
	assert_false(urxe_offload_has_qp(qp_of_program()->qp));
	assert_int_equal(urxed.qpn, 0x800000);
	connect_qp(other_host);
	assert_true(is_engines());
	set_port(false);
	assert_true(urxe_qp_offloaded(first->qp));
	assert_true(is_engines());
	assert_int_equal(qp_state(qp_of_program()), URXE_QPS_RTR);
	open_offloaded_qp();
}

/* A peer that connects when the port is active again has to use the engine, too. */
static void datagram_queue_pairs_of_the_engine_are_reachable(void **state)
{
	(void)state;
	lease_qpns();
	create_qp_of(IBV_QPT_UD);
	assert_int_equal(urxed.flags, 0);
	set_port(true);
	create_qp_of(IBV_QPT_UD);
	assert_int_equal(urxed.flags, VNIC_QPN_REACHABLE);
}

static void the_engine_takes_over_while_the_port_is_down(void **state)
{
	const struct qp *first;

	(void)state;
	setenv("URXE_HCA_GONE", "engine", 1);
	settings_read();
	create_qp();
	connect_qp(other_host);
	first = qp_of_program();
	assert_true(urxe_qp_offloaded(first->qp));
	set_port(true);
	assert_null(adapter.hca.hca);
	assert_false(urxe_qp_offloaded(first->qp));
	assert_int_equal(qp_state(first), URXE_QPS_RTR);
	assert_true(is_received());
	set_port(false);
	assert_false(urxe_qp_offloaded(first->qp));
	assert_int_equal(qp_state(first), URXE_QPS_RTR);
	open_offloaded_qp();
}

static uint64_t dropped_packets(void)
{
	const struct urxe_counters *counters = urxe_dev_counters(adapter.dev);
	uint64_t n = 0;

	for (int i = 0; i < URXE_DROP_COUNT; i++)
		n += counters->drop[i];
	return n;
}

/* A packet, here an invalid one, comes while the engine thread waits for the daemon. */
static void the_engine_receives_during_a_take_over(void **state)
{
	uint8_t packet[64] = {[12] = 0x89, 0x15};
	uint64_t before;

	(void)state;
	setenv("URXE_HCA_GONE", "engine", 1);
	settings_read();
	create_qp();
	connect_qp(other_host);
	memcpy(packet, adapter.welcome.mac, 6);
	assert_int_equal(vnic_device_rx(loop->device, 0, packet, sizeof(packet)), 0);
	before = dropped_packets();
	urxed.slow = true;
	set_port(true);
	assert_false(urxe_qp_offloaded(qp_of_program()->qp));
	assert_int_equal(dropped_packets(), before + 1);
}

/* The HCA's retries decide, as without URXE_HCA_GONE. */
static void queue_pairs_that_the_engine_cannot_take_over_stay(void **state)
{
	const struct hca *before = adapter.hca.hca;

	(void)state;
	setenv("URXE_HCA_GONE", "engine", 1);
	settings_read();
	urxed.no_next_hop = true;
	create_qp();
	connect_qp(other_host);
	for (int i = 0; i < 2; i++) {
		set_port(true);
		assert_false(adapter_hca_stale());
		assert_true(urxe_qp_offloaded(qp_of_program()->qp));
		assert_false(is_received());
		set_port(false);
		assert_false(adapter_hca_stale());
	}
	assert_ptr_equal(adapter.hca.hca, before);
	assert_int_equal(qp_state(qp_of_program()), URXE_QPS_RTR);
	set_hca("");
	assert_int_equal(qp_state(qp_of_program()), URXE_QPS_ERR);
}

/* The engine takes over from the HCA that goes, and another process has the queue pair's number. */
static void create_unknown_qp(void)
{
	setenv("URXE_HCA_GONE", "engine", 1);
	settings_read();
	urxed.number_is_anothers = true;
	create_qp_of(IBV_QPT_UD);
	change_state(IBV_QPS_RTR);
}

/* The switch would drop the packets of a queue pair that the engine executes with that number. */
static void queue_pairs_with_the_number_of_another_process_stay(void **state)
{
	(void)state;
	create_unknown_qp();
	set_port(true);
	assert_true(urxe_qp_offloaded(qp_of_program()->qp));
	assert_int_equal(take_over(TAKER_QUIESCE), -EOPNOTSUPP);
	abandon();
	assert_int_equal(qp_state(qp_of_program()), URXE_QPS_RTR);
}

/* Only that queue pair ends with the HCA, and does not stop the next take-over. */
static void one_unknown_number_ends_no_other_queue_pair(void **state)
{
	const struct qp *unknown, *known;

	(void)state;
	create_unknown_qp();
	unknown = qp_of_program();
	urxed.number_is_anothers = false;
	create_qp();
	connect_qp(other_host);
	known = qp_of_program();
	set_hca("");
	assert_int_equal(qp_state(unknown), URXE_QPS_ERR);
	assert_int_equal(unknown->async_events, 1);
	assert_int_equal(qp_state(known), URXE_QPS_RTR);
	assert_int_equal(known->async_events, 0);
	set_hca("fake0");
	create_qp();
	connect_qp(other_host);
	assert_true(urxe_qp_offloaded(qp_of_program()->qp));
	set_port(true);
	assert_false(urxe_qp_offloaded(qp_of_program()->qp));
	assert_int_equal(qp_state(qp_of_program()), URXE_QPS_RTR);
}

/* --- Another daemon. */

static uint32_t flags_for_next_daemon(void)
{
	urxed.flags = 0;
	adapter_lock();
	adapter.reconnecting = true;
	uplink_qpns_update();
	told_qp_tell_all(adapter.nic, &adapter.added_qps);
	adapter.reconnecting = false;
	adapter_unlock();
	return urxed.flags;
}

static void another_daemon_learns_which_queue_pairs_are_the_engines(void **state)
{
	(void)state;
	open_offloaded_qp();
	assert_int_equal(flags_for_next_daemon(), VNIC_QPN_REACHABLE);
	stop_qp();
	abandon();
	assert_int_equal(flags_for_next_daemon(), VNIC_QPN_REACHABLE | VNIC_QPN_UPLINK);
}

/* The engine begins while no daemon reads. */
static void changes_without_a_daemon_reach_the_next_one(void **state)
{
	(void)state;
	open_offloaded_qp();
	adapter_lock();
	adapter.reconnecting = true;
	adapter_unlock();
	stop_qp();
	assert_int_equal(urxed.changes, 0);
	return_receives();
	assert_int_equal(take_over(TAKER_QUIESCE), 0);
	assert_int_equal(flags_for_next_daemon(), VNIC_QPN_REACHABLE | VNIC_QPN_UPLINK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_uplink_leaves_the_packets_of_offloaded_queue_pairs_to_the_hca),
		TEST(the_uplink_receives_the_packets_of_the_engine),
		TEST(queue_pairs_in_error_receive_nothing),
		TEST(peers_of_this_host_need_no_uplink),
		TEST(a_command_waits_for_a_daemon_that_did_not_read),
		TEST(a_daemon_that_does_not_read_is_told_later),
		TEST(a_child_forked_during_a_command_tells_its_parents_daemon_nothing),
		TEST(the_uplink_receives_before_the_hca_stops),
		TEST(the_hca_receives_datagrams_until_the_uplink_does),
		TEST(the_hca_receives_datagrams_until_the_daemon_reads),
		TEST(a_take_over_does_not_wait_long_for_the_daemon),
		TEST(an_abandoned_take_over_leaves_the_packets_to_the_hca_again),
		TEST(a_stopped_queue_pair_that_goes_on_is_received),
		TEST(a_stopped_queue_pair_that_the_engine_thread_finishes_is_received),
		TEST(the_uplink_receives_when_the_hca_goes),
		TEST(queue_pairs_that_end_with_the_hca_are_not_received),
		TEST(queue_pairs_stay_at_an_hca_whose_port_is_down),
		TEST(datagram_queue_pairs_of_the_engine_are_reachable),
		TEST(the_engine_takes_over_while_the_port_is_down),
		TEST(the_engine_receives_during_a_take_over),
		TEST(queue_pairs_that_the_engine_cannot_take_over_stay),
		TEST(queue_pairs_with_the_number_of_another_process_stay),
		TEST(one_unknown_number_ends_no_other_queue_pair),
		TEST(another_daemon_learns_which_queue_pairs_are_the_engines),
		TEST(changes_without_a_daemon_reach_the_next_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
