/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Commands of a program that the HCA may refuse. The test plays the program and the daemon; a
 * provider double plays the HCA.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/quiesce.h"
#include "daemon/port_attributes.h"
#include "hca_program.h"
#include "process/log.h"
#include "slow_thread.h"

#define MTU 1500

static struct vnic_loop *loop;
static int urxed_error;    /* the daemon's answer to a question for a next hop */
static int added_qp_error; /* the result when the daemon is to be told a QPN */

int __wrap_vnic_driver_resolve(struct vnic_driver *drv, uint8_t sgid_index, const uint8_t dgid[16],
			       struct vnic_next_hop *hop);

int __wrap_vnic_driver_resolve(struct vnic_driver *drv, uint8_t sgid_index, const uint8_t dgid[16],
			       struct vnic_next_hop *hop)
{
	(void)drv;
	(void)sgid_index;
	(void)dgid;
	if (!urxed_error)
		*hop = (struct vnic_next_hop){.mac = {2, [5] = 9}};
	return urxed_error;
}

int __wrap_told_qp_add(uint32_t qpn, bool reachable, struct told_qp **added);

int __wrap_told_qp_add(uint32_t qpn, bool reachable, struct told_qp **added)
{
	(void)qpn;
	(void)reachable;
	(void)added;
	return added_qp_error;
}

static int setup(void **state)
{
	(void)state;
	fake_hca_init();
	slow_thread_init();
	urxed_error = -ENETUNREACH;
	added_qp_error = -EEXIST;
	loop = open_with_hca(MTU);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_with_hca(loop);
	assert_int_equal(fake_hca.pds + fake_hca.ahs, 0);
	return 0;
}

/* --- Address handles: the HCA finds next hops itself. */

static uint32_t ah;

static int create_ah(void)
{
	const struct ib_uverbs_create_ah request = {
		.pd_handle = pd,
		.attr = {.grh.dgid = {[10] = 0xff, 0xff, 192, 0, 2, 9},
			 .is_global = 1,
			 .port_num = 1}};

	return COMMAND(CREATE_AH, request, &ah);
}

static int destroy_ah(void)
{
	const struct ib_uverbs_destroy_ah request = {.ah_handle = ah};

	return COMMAND(DESTROY_AH, request, NULL);
}

static int dealloc_pd(void)
{
	const struct ib_uverbs_dealloc_pd request = {.pd_handle = pd};

	return COMMAND(DEALLOC_PD, request, NULL);
}

static void a_destination_that_neither_finds_has_no_handle(void **state)
{
	(void)state;
	fake_hca.no_ahs = true;
	assert_int_equal(create_ah(), -EHOSTUNREACH);
	fake_hca.no_ahs = false;
	assert_int_equal(create_ah(), 0);
	assert_int_equal(destroy_ah(), 0);
	assert_int_equal(dealloc_pd(), 0);
}

static void a_destination_that_the_hca_finds_has_a_handle(void **state)
{
	(void)state;
	assert_int_equal(create_ah(), 0);
	assert_int_equal(fake_hca.ahs, 1);
}

/* The engine can send to it. */
static void a_destination_that_urxed_finds_has_a_handle(void **state)
{
	(void)state;
	urxed_error = 0;
	fake_hca.no_ahs = true;
	assert_int_equal(create_ah(), 0);
}

static void a_destination_needs_urxed_while_no_hca_is_open(void **state)
{
	(void)state;
	set_hca("");
	assert_int_equal(create_ah(), -ENETUNREACH);
}

/* The HCA would refuse the first datagram. */
static void a_destination_needs_urxed_if_the_hca_lacks_the_source_gid(void **state)
{
	(void)state;
	fake_hca.gid_index = UINT8_MAX + 1;
	adapter_lock();
	hca_read_gids(adapter.hca.hca);
	adapter_unlock();
	assert_int_equal(create_ah(), -ENETUNREACH);
	urxed_error = 0;
	assert_int_equal(create_ah(), 0);
}

/* --- While the HCA looks for the next hop. */

static int slow_rc;

static void *create_slowly(void *arg)
{
	slow_rc = create_ah();
	return arg;
}

static void a_domain_stays_meanwhile(void **state)
{
	pthread_t thread = start_slow(FAKE_HCA_CREATE_AH, create_slowly);
	const int rc = dealloc_pd();

	(void)state;
	let_go_on(thread);
	assert_int_equal(rc, -EBUSY);
	assert_int_equal(slow_rc, 0);
	assert_int_equal(destroy_ah(), 0);
	assert_int_equal(dealloc_pd(), 0);
}

static void an_hca_that_goes_finds_no_next_hop(void **state)
{
	pthread_t thread = start_slow(FAKE_HCA_CREATE_AH, create_slowly);

	(void)state;
	set_hca("");
	let_go_on(thread);
	assert_int_equal(slow_rc, -ENETUNREACH);
}

static void a_closed_context_gets_no_handle(void **state)
{
	pthread_t thread = start_slow(FAKE_HCA_CREATE_AH, create_slowly);

	(void)state;
	close_own(device);
	let_go_on(thread);
	assert_int_equal(slow_rc, -EIO);
	close_own(events);
	/* teardown() closes those of another context. */
	open_context();
}

/* --- Changes of a queue pair. */

static int create_qp(uint8_t type, uint32_t *qp)
{
	const struct ib_uverbs_create_cq create_cq = {.cqe = 10, .comp_channel = -1};
	struct ib_uverbs_create_qp create = {.pd_handle = pd,
					     .max_send_wr = 1,
					     .max_recv_wr = 1,
					     .max_send_sge = 1,
					     .max_recv_sge = 1,
					     .qp_type = type};
	uint32_t cq;
	int rc = COMMAND(CREATE_CQ, create_cq, &cq);

	create.send_cq_handle = create.recv_cq_handle = cq;
	return rc ? rc : COMMAND(CREATE_QP, create, qp);
}

static int modify_qp(uint32_t qp, uint8_t state, uint32_t mask)
{
	const struct ib_uverbs_modify_qp modify = {.qp_handle = qp,
						   .attr_mask = IBV_QP_STATE | mask,
						   .qp_state = state,
						   .port_num = 1};

	return COMMAND(MODIFY_QP, modify, NULL);
}

/* Whether the log of the change names path migration. */
static bool logs_migration(uint32_t qp)
{
	const int error_output = dup(STDERR_FILENO);
	char log[1024] = "";
	int ends[2];

	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	log_level = LOG_INFO;
	dup2(ends[1], STDERR_FILENO);
	assert_int_equal(modify_qp(qp, IBV_QPS_RTR, 0), -EOPNOTSUPP);
	dup2(error_output, STDERR_FILENO);
	log_level = LOG_NONE;
	(void)!read(ends[0], log, sizeof(log) - 1);
	close(error_output);
	close(ends[0]);
	close(ends[1]);
	return strstr(log, "path migration");
}

/* It would send the reader of the log to an attribute that the program does not set. */
static void a_change_that_the_hca_refuses_is_no_path_migration(void **state)
{
	uint32_t qp;

	(void)state;
	assert_int_equal(create_qp(IBV_QPT_UD, &qp), 0);
	assert_int_equal(modify_qp(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
			 0);
	fake_hca.modify_error = EOPNOTSUPP;
	assert_false(logs_migration(qp));
}

/* --- A queue pair that the HCA refuses, so that the engine has it. */

static void lease_block(uint32_t qpn)
{
	struct lease_block *block = calloc(1, sizeof(*block));

	assert_non_null(block);
	block->qpn_first = qpn;
	adapter_lock();
	leases_add(&adapter.leases, block);
	adapter_unlock();
}

/* Connects a queue pair of the engine with the HCA's GID to a peer on another host. */
static int connect_engine_qp(void)
{
	struct ib_uverbs_modify_qp modify = {
		.attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 0x77,
		.dest = {.dgid = {[10] = 0xff, 0xff, 192, 0, 2, 9}, .is_global = 1, .port_num = 1}};

	lease_block(0x1000);
	fake_hca.no_qps = true;
	urxed_error = 0;
	assert_int_equal(create_qp(IBV_QPT_RC, &modify.qp_handle), 0);
	assert_int_equal(modify_qp(modify.qp_handle, IBV_QPS_INIT,
				   IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
			 0);
	return COMMAND(MODIFY_QP, modify, NULL);
}

/* It takes the packets from the network, so the engine would receive nothing. */
static void an_hca_in_hardware_leaves_other_hosts_no_connection_of_the_engine(void **state)
{
	(void)state;
	assert_int_not_equal(connect_engine_qp(), -ENETUNREACH);
	close_with_hca(loop);
	fake_hca.vendor_id = 0x2c9;
	loop = open_with_hca(MTU);
	assert_int_equal(connect_engine_qp(), -ENETUNREACH);
}

/* Old kernels' rdma_rxe and mana_ib both have vendor ID 0; rdma_rxe has the file in sysfs. */
static void an_hca_without_vendor_id_is_software_if_sysfs_names_a_parent(void **state)
{
	char *const dir = fake_hca.device.ibdev_path;
	char parent[sizeof(fake_hca.device.ibdev_path) + sizeof("/parent")];

	(void)state;
	close_with_hca(loop);
	fake_hca.vendor_id = 0;
	strcpy(dir, "/tmp/urxe-hca-XXXXXX");
	assert_non_null(mkdtemp(dir));
	loop = open_with_hca(MTU);
	assert_int_equal(connect_engine_qp(), -ENETUNREACH);
	close_with_hca(loop);
	snprintf(parent, sizeof(parent), "%s/parent", dir);
	assert_int_equal(mkdir(parent, 0700), 0);
	loop = open_with_hca(MTU);
	assert_int_equal(rmdir(parent), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_not_equal(connect_engine_qp(), -ENETUNREACH);
}

/* The peer may be one of them, whose packets come by the switch. */
static void an_hca_in_hardware_leaves_machines_the_connections_of_the_engine(void **state)
{
	(void)state;
	close_with_hca(loop);
	fake_hca.vendor_id = 0x2c9;
	loop = open_with_hca(MTU);
	adapter_lock();
	adapter.welcome.port.machines = 1;
	adapter_unlock();
	assert_int_not_equal(connect_engine_qp(), -ENETUNREACH);
}

/* urxed knows a leased number, also if the process could not tell it the queue pair. */
static void a_leased_number_lets_the_engine_go_on(void **state)
{
	uint32_t qp;

	(void)state;
	lease_block(0x1000);
	fake_hca.no_qps = true;
	added_qp_error = -ENOMEM;
	assert_int_equal(create_qp(IBV_QPT_UD, &qp), 0);
	assert_int_equal(fake_hca.qps, 0);
	assert_int_equal(quiesce_begin(60000), 0);
	assert_int_equal(quiesce_end(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_destination_that_neither_finds_has_no_handle),
		TEST(a_destination_that_the_hca_finds_has_a_handle),
		TEST(a_destination_that_urxed_finds_has_a_handle),
		TEST(a_destination_needs_urxed_while_no_hca_is_open),
		TEST(a_destination_needs_urxed_if_the_hca_lacks_the_source_gid),
		TEST(a_domain_stays_meanwhile),
		TEST(an_hca_that_goes_finds_no_next_hop),
		TEST(a_closed_context_gets_no_handle),
		TEST(a_change_that_the_hca_refuses_is_no_path_migration),
		TEST(an_hca_in_hardware_leaves_other_hosts_no_connection_of_the_engine),
		TEST(an_hca_in_hardware_leaves_machines_the_connections_of_the_engine),
		TEST(an_hca_without_vendor_id_is_software_if_sysfs_names_a_parent),
		TEST(a_leased_number_lets_the_engine_go_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
