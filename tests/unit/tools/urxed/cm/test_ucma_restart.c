/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* IDs, groups and events of programs survive a restart of the daemon if the programs claim them. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "descriptor_limit.h"
#include "ucma_scenes.h"

#define CLAIM UCMA_CLAIM_TIME_NS

static void hang_up(struct loop_program *p)
{
	close(p->fd);
	loop_close_events(p);
	p->event_fd = p->event_writer = -1;
	p->fd = loop_connect(&loop);
}

/* Returns the status of the welcome. */
static int claim(struct loop_program *p)
{
	hang_up(p);
	loop_hello(&loop, p);
	return loop_welcome(p);
}

static void restart(void)
{
	loop_restart(&loop);
	assert_int_equal(claim(&a), 0);
	assert_int_equal(claim(&b), 0);
}

static void connection_survives_a_restart(void **state)
{
	(void)state;
	connection_outlives(restart);
}

static void options_of_a_route_survive_a_restart(void **state)
{
	(void)state;
	options_of_a_route_outlive(restart);
}

static void connection_over_v1_survives_a_restart(void **state)
{
	(void)state;
	connection_over_v1_outlives(restart);
}

/* The REQ is lost with the old daemon; the new one repeats it. */
static void lost_request_is_repeated_after_a_restart(void **state)
{
	uint32_t id;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 56), 0);
	restart();
	loop_pass(&loop, 6 * SECOND);
	loop_run(&loop);
	assert_int_equal(get_event(&b, CMA_CONNECT_REQUEST).param.conn.private_data_len, 56);
}

/* The old daemon has executed a command, and has ended before it replied. */
static void executed_commands_succeed_again(void **state)
{
	uint32_t id, child;

	(void)state;
	loop.again = true;
	listener(5);
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	restart();
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_pass(&loop, 6 * SECOND);
	loop_run(&loop);
	child = get_event(&b, CMA_CONNECT_REQUEST).id;
	assert_int_equal(accept_it(&b, child, 0xc, LOOP_QPN + 1), 0);
	restart();
	assert_int_equal(accept_it(&b, child, 0xc, LOOP_QPN + 1), 0);
	loop_pass(&loop, 6 * SECOND);
	loop_run(&loop);
	get_event(&a, CMA_CONNECT_RESPONSE);
	assert_int_equal(accept_it(&a, id, 0, 0), 0);
	loop_run(&loop);
	restart();
	assert_int_equal(accept_it(&a, id, 0, 0), 0);
	loop_run(&loop);
	get_event(&b, CMA_ESTABLISHED);
	expect_no_event(&a);
	/* Not so a command that the program gives for a second time. */
	loop.again = false;
	assert_int_equal(accept_it(&a, id, 0, 0), -EINVAL);
}

/* Unfetched events come in their order, a request with its new ID. */
static void unfetched_events_survive_in_order(void **state)
{
	(void)state;
	request_twice();
	restart();
	accept_first();
	restart();
	assert_int_equal(get_event(&b, CMA_CONNECT_REQUEST).param.conn.qp_num, LOOP_QPN + 2);
	expect_no_event(&b);
	loop_pass(&loop, 6 * SECOND);
	loop_run(&loop);
	get_event(&a, CMA_CONNECT_RESPONSE);
}

/* Another program may get the number of an ID that was destroyed before its request was fetched. */
static void reused_number_is_not_the_request_again(void **state)
{
	uint32_t listens = listener(5), child, other;

	(void)state;
	assert_int_equal(connect_to(&a, client(RDMA_PS_TCP), LOOP_QPN, 0), 0);
	loop_run(&loop);
	child = loop.ucma.cma.next_number - 1;
	destroy(&b, child);
	loop.ucma.cma.next_number = child;
	other = create(&a, RDMA_PS_TCP, 0xd);
	assert_int_equal(other, child);
	restart();
	destroy(&b, listens);
	assert_int_equal(bind_to(&a, other, INADDR_ANY, PORT), 0);
}

/* Two IDs of a with a resolved address, whose first event the program has fetched. */
static void resolve_two(uint32_t *first, uint32_t *second)
{
	*first = create(&a, RDMA_PS_TCP, 0xa);
	*second = create(&a, RDMA_PS_TCP, 0xa);
	assert_int_equal(resolve(&a, *first), 0);
	assert_int_equal(resolve(&a, *second), 0);
	assert_int_equal(get_event(&a, CMA_ADDR_RESOLVED).id, *first);
}

/* The old daemon did not know that the program had fetched the event. */
static void fetched_events_do_not_come_again(void **state)
{
	uint32_t first, second;

	(void)state;
	resolve_two(&first, &second);
	restart();
	assert_int_equal(get_event(&a, CMA_ADDR_RESOLVED).id, second);
	restart();
	expect_no_event(&a);
	assert_int_equal(resolve_route(&a, second), 0);
	get_event(&a, CMA_ROUTE_RESOLVED);
	assert_int_equal(destroy(&a, first), 1);
	assert_int_equal(destroy(&a, second), 2);
}

static void multicast_group_survives_a_restart(void **state)
{
	(void)state;
	group_outlives(restart);
}

/* Until then its port stays bound; afterwards its peer gets a DREQ. */
static void unclaimed_ids_are_closed_after_3_seconds(void **state)
{
	uint32_t other, id;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	establish(id);
	loop_restart(&loop);
	assert_int_equal(claim(&a), 0);
	other = create(&a, RDMA_PS_TCP, 0xd);
	loop_pass(&loop, CLAIM - 1);
	assert_int_equal(bind_to(&a, other, INADDR_ANY, PORT), -EADDRNOTAVAIL);
	loop_pass(&loop, SECOND);
	assert_int_equal(loop.n, 1);
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_DISCONNECTED).uid, 0xa);
	assert_int_equal(bind_to(&a, other, INADDR_ANY, PORT), 0);
	assert_int_equal(claim(&b), -EPERM);
	b.token = 0;
	assert_int_equal(claim(&b), 0);
}

/* The start of the daemon has taken longer than the claim time. */
static void the_claim_time_begins_when_the_daemon_serves(void **state)
{
	(void)state;
	listener(5);
	establish(client(RDMA_PS_TCP));
	loop_restart(&loop);
	ucma_begin_claims(&loop.ucma, loop.now + 2 * CLAIM);
	loop_pass(&loop, 3 * CLAIM - 1);
	assert_int_equal(claim(&a), 0);
	assert_int_equal(claim(&b), 0);
	expect_no_event(&a);
}

/* The new daemon does not wait for claims of an ended process. */
static void ids_of_an_ended_process_are_closed_at_once(void **state)
{
	struct ucma_file *file = LIST_FIRST(&loop.ucma.files); /* the newest one, b's */
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	listener(5);
	establish(client(RDMA_PS_TCP));
	file->pid = pid;
	file->start = 1;
	ucma_store_file(file);
	loop_restart(&loop);
	assert_int_equal(claim(&a), 0);
	loop_pass(&loop, SECOND / 10);
	loop_run(&loop);
	get_event(&a, CMA_DISCONNECTED);
	b.token = 0;
	assert_int_equal(claim(&b), 0);
}

/* The daemon cannot find out whether the processes live. */
static void living_process_keeps_its_ids_while_descriptors_lack(void **state)
{
	struct rlimit limit;

	(void)state;
	listener(5);
	establish(client(RDMA_PS_TCP));
	loop_restart(&loop);
	limit = descriptor_limit_reach();
	loop_pass(&loop, SECOND / 10);
	descriptor_limit_restore(&limit);
	assert_int_equal(claim(&a), 0);
	assert_int_equal(claim(&b), 0);
	expect_no_event(&a);
}

/* The program had no descriptor free for the welcome; it closes the connection, and claims again.
 */
static void a_lost_claim_is_made_again(void **state)
{
	uint32_t id, first, second;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	resolve_two(&first, &second);
	restart();
	hang_up(&a);
	hang_up(&b);
	ucma_input(&loop.ucma, loop.now);
	loop_pass(&loop, CLAIM - 1);
	assert_int_equal(claim(&a), 0);
	assert_int_equal(claim(&b), 0);
	loop_pass(&loop, CLAIM);
	assert_int_equal(get_event(&a, CMA_ADDR_RESOLVED).id, second);
	expect_no_event(&a);
	establish(id);
	assert_int_equal(loop.ucma.n_departed, 0);
}

/* b connects anew, and its claim is answered once its process has its QPN leases. */
static void claim_after_the_leases(void)
{
	b.fd = loop_connect(&loop);
	loop_hello(&loop, &b);
	loop.has_claimable_leases = false;
	loop_pass(&loop, SECOND);
	assert_int_equal(loop_welcome(&b), 0);
	assert_int_equal(loop.ucma.n_departed, 0);
}

/* The process claims the IDs again while it may claim its QPN leases again, and gives that up. */
static void a_lost_claim_may_be_given_up_while_it_waits(void **state)
{
	(void)state;
	listener(5);
	restart();
	hang_up(&b);
	ucma_input(&loop.ucma, loop.now);
	loop.has_claimable_leases = true;
	loop_hello(&loop, &b);
	loop_pass(&loop, CLAIM);
	close(b.fd);
	ucma_input(&loop.ucma, loop.now);
	loop_pass(&loop, SECOND);
	assert_int_equal(loop.ucma.cma.ports.other.total, 1);
	claim_after_the_leases();
}

static void a_lost_claim_ends_after_3_seconds(void **state)
{
	uint32_t id;

	(void)state;
	listener(5);
	restart();
	id = create(&a, RDMA_PS_TCP, 0xd);
	hang_up(&b);
	ucma_input(&loop.ucma, loop.now);
	loop_pass(&loop, CLAIM - 1);
	assert_int_equal(bind_to(&a, id, INADDR_ANY, PORT), -EADDRNOTAVAIL);
	loop_pass(&loop, 1);
	assert_int_equal(bind_to(&a, id, INADDR_ANY, PORT), 0);
	b.token = 0;
	assert_int_equal(claim(&b), 0);
}

/* After its first command, a program that closes the device ends its IDs at once. */
static void ids_end_with_a_confirmed_claim(void **state)
{
	(void)state;
	listener(5);
	restart();
	create(&b, RDMA_PS_TCP, 0xb);
	assert_int_equal(claim(&b), -EPERM);
	assert_int_equal(loop.ucma.cma.ports.other.total, 0);
	b.token = 0;
	assert_int_equal(claim(&b), 0);
}

static void wrong_token_or_process_claims_nothing(void **state)
{
	struct loop_program thief = {.fd = -1, .event_fd = -1, .event_writer = -1};

	(void)state;
	listener(5);
	loop_restart(&loop);
	thief.token = b.token ^ 1;
	assert_int_equal(claim(&thief), -EPERM);
	thief.token = b.token;
	LIST_FIRST(&loop.ucma.files)->pid++; /* the one that was restored last */
	assert_int_equal(claim(&thief), -EPERM);
	LIST_FIRST(&loop.ucma.files)->pid--;
	assert_int_equal(claim(&a), 0);
	assert_int_equal(claim(&b), 0);
	thief.token = b.token;
	assert_int_equal(claim(&thief), -EPERM); /* already claimed */
	close(thief.fd);
	loop_close_events(&thief);
}

static int checkpoint(const struct loop_program *p, uint32_t command)
{
	return loop_command(&loop, p, command, NULL, 0, CM_ATTACH_BYTES, &answer);
}

/* The next daemon finds each ID as frozen as its device. */
static void frozen_ids_survive_a_restart_as_they_are(void **state)
{
	uint32_t id;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	assert_int_equal(checkpoint(&b, CM_ATTACH_FREEZE), 0);
	loop_restart(&loop);
	assert_int_equal(claim(&a), 0);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	expect_no_event(&a);
	assert_int_equal(claim(&b), 0);
	assert_int_equal(checkpoint(&b, CM_ATTACH_FREEZE), 0);
	assert_int_equal(checkpoint(&b, CM_ATTACH_THAW), 0);
	restart();
	loop_pass(&loop, 6 * SECOND);
	loop_run(&loop);
	get_event(&b, CMA_CONNECT_REQUEST);
}

/*
 * Restarts the daemon while the listener b is frozen, until all other claims have been made. So
 * long sessions keep the QPN leases of the process, too.
 */
static void restart_with_frozen_b(void)
{
	listener(5);
	assert_int_equal(checkpoint(&b, CM_ATTACH_FREEZE), 0);
	assert_false(ucma_has_frozen_file(&loop.ucma, getpid()));
	loop_restart(&loop);
	assert_int_equal(claim(&a), 0);
	loop.has_claimable_leases = true;
	assert_true(ucma_has_frozen_file(&loop.ucma, getpid()));
	loop_pass(&loop, CLAIM + SECOND);
	assert_int_equal(loop.ucma.n_departed, 1);
	assert_true(ucma_has_frozen_file(&loop.ucma, getpid()));
	assert_false(ucma_has_frozen_file(&loop.ucma, getppid()));
}

/* A frozen program makes its claim when it goes on. */
static void frozen_program_claims_its_ids_late(void **state)
{
	(void)state;
	restart_with_frozen_b();
	loop.has_claimable_leases = false;
	assert_int_equal(claim(&b), 0);
	assert_int_equal(loop.ucma.n_departed, 0);
	assert_false(ucma_has_frozen_file(&loop.ucma, getpid()));
	assert_int_equal(connect_to(&a, client(RDMA_PS_TCP), LOOP_QPN, 0), 0);
	loop_run(&loop);
	get_event(&b, CMA_CONNECT_REQUEST);
	loop_pass(&loop, UCMA_DEPARTED_NS);
	assert_int_equal(loop.ucma.n, 2);
}

/* Such a claim waits, too, and keeps the IDs as long. */
static void late_claim_waits_for_the_qpn_leases(void **state)
{
	uint8_t byte;

	(void)state;
	restart_with_frozen_b();
	hang_up(&b);
	loop_hello(&loop, &b);
	loop_pass(&loop, UCMA_DEPARTED_NS);
	assert_true(ucma_has_frozen_file(&loop.ucma, getpid()));
	assert_int_equal(recv(b.fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(loop.ucma.cma.ports.other.total, 1);
	close(b.fd);
	ucma_input(&loop.ucma, loop.now);
	loop_pass(&loop, SECOND);
	assert_int_equal(loop.ucma.n_departed, 1);
	assert_true(ucma_has_frozen_file(&loop.ucma, getpid()));
	claim_after_the_leases();
}

/* The QPN leases of the process end with its IDs. */
static void frozen_program_without_a_claim_is_forgotten(void **state)
{
	(void)state;
	restart_with_frozen_b();
	loop_pass(&loop, UCMA_DEPARTED_NS);
	assert_int_equal(loop.ucma.cma.ports.other.total, 0);
	assert_false(ucma_has_frozen_file(&loop.ucma, getpid()));
	assert_int_equal(claim(&b), -EPERM);
}

/* Before that, the program could not connect its QPs. */
static void claim_waits_for_the_qpn_leases(void **state)
{
	uint32_t id;
	uint8_t byte;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	loop_restart(&loop);
	loop.has_claimable_leases = true;
	hang_up(&a);
	loop_hello(&loop, &a);
	loop_pass(&loop, CLAIM + SECOND);
	assert_int_equal(recv(a.fd, &byte, 1, MSG_DONTWAIT), -1);
	loop.has_claimable_leases = false;
	loop_pass(&loop, 1);
	assert_int_equal(loop_welcome(&a), 0);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	b.token = 0;
	assert_int_equal(claim(&b), 0);
}

/* No second connection gets a claimed file, even while the first claim waits. */
static void second_claim_is_refused(void **state)
{
	struct loop_program second = {.token = a.token};

	(void)state;
	listener(5);
	loop_restart(&loop);
	loop.has_claimable_leases = true;
	hang_up(&a);
	loop_hello(&loop, &a);
	second.fd = loop_connect(&loop);
	loop_hello(&loop, &second);
	loop.has_claimable_leases = false;
	loop_pass(&loop, 1);
	assert_int_equal(loop_welcome(&a), 0);
	assert_int_equal(loop_welcome(&second), -EPERM);
	loop_end(&loop, &second);
	assert_int_equal(loop.ucma.n, 1);
	assert_int_equal(claim(&b), 0);
	client(RDMA_PS_TCP);
}

/* The event socket comes from the daemon: a program can send nothing to the daemon's end. */
static void daemon_makes_the_event_socket(void **state)
{
	const struct cm_attach_hello hello = {.version = CM_ATTACH_VERSION};
	int fds[UNIX_PACKET_FDS] = {open("/dev/null", O_RDWR | O_CLOEXEC), -1};
	uint8_t byte;
	int fd;

	(void)state;
	assert_int_equal(send(a.event_fd, "x", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	/* A hello with a descriptor is refused by the kernel, or ends the connection. */
	fd = loop_connect(&loop);
	ucma_input(&loop.ucma, loop.now);
	if (!unix_packet_send(fd, &hello, sizeof(hello), fds, 1)) {
		ucma_input(&loop.ucma, loop.now);
		assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	}
	close(fd);
	close(fds[0]);
}

/* Damaged records are dropped; the others are restored. */
static void damaged_record_is_dropped_alone(void **state)
{
	uint8_t byte = 0xff;
	char path[64];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/" UCMA_STORE_NAME, loop.dir);
	listener(5);
	establish(client(RDMA_PS_TCP));
	ucma_close(&loop.ucma, loop.dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	/* Changes one byte in each of the first five slots. */
	for (off_t i = 0; i < 5; i++)
		assert_int_equal(pwrite(fd, &byte, 1, 4096 + i * 1024 + 17 + i), 1);
	assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_END) - 100), 0);
	close(fd);
	loop.n = 0;
	loop_begin(&loop);
	loop_pass(&loop, CLAIM);
	assert_int_equal(loop.ucma.cma.ports.other.total, 0);
	a.token = b.token = 0;
	assert_int_equal(claim(&a), 0);
	assert_int_equal(claim(&b), 0);
	listener(5);
}

/* Lets the record file grow to so many bytes. */
static void limit_store(rlim_t size)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size < limit.rlim_max ? size : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static rlim_t store_size(void)
{
	struct stat record;

	assert_int_equal(fstat(loop.ucma.store.fd, &record), 0);
	return (rlim_t)record.st_size;
}

/* A full file system takes none of the records; they follow when it has room again. */
static void unwritten_records_follow(void **state)
{
	const rlim_t full = store_size();
	uint32_t id, other;

	(void)state;
	limit_store(full);
	id = create(&b, RDMA_PS_TCP, 0xb);
	other = create(&b, RDMA_PS_TCP, 0xd);
	assert_int_equal(bind_to(&b, id, INADDR_ANY, PORT), 0);
	destroy(&b, other);
	loop_pass(&loop, 2 * SECOND);
	limit_store(RLIM_INFINITY);
	loop_pass(&loop, 2 * SECOND);
	limit_store(full);
	restart();
	limit_store(RLIM_INFINITY);
	assert_int_equal(listen_on(&b, id, 5), 0);
	assert_int_equal(listen_on(&b, other, 5), -ENOENT);
	establish(client(RDMA_PS_TCP));
}

static void unwritten_records_follow_at_the_end_of_the_daemon(void **state)
{
	uint32_t id;

	(void)state;
	limit_store(store_size());
	id = create(&b, RDMA_PS_TCP, 0xb);
	limit_store(RLIM_INFINITY);
	restart();
	assert_int_equal(bind_to(&b, id, INADDR_ANY, PORT), 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(connection_survives_a_restart),
		TEST(options_of_a_route_survive_a_restart),
		TEST(connection_over_v1_survives_a_restart),
		TEST(lost_request_is_repeated_after_a_restart),
		TEST(executed_commands_succeed_again),
		TEST(unfetched_events_survive_in_order),
		TEST(reused_number_is_not_the_request_again),
		TEST(multicast_group_survives_a_restart),
		TEST(the_claim_time_begins_when_the_daemon_serves),
		TEST(unclaimed_ids_are_closed_after_3_seconds),
		TEST(ids_of_an_ended_process_are_closed_at_once),
		TEST(living_process_keeps_its_ids_while_descriptors_lack),
		TEST(a_lost_claim_is_made_again),
		TEST(a_lost_claim_may_be_given_up_while_it_waits),
		TEST(a_lost_claim_ends_after_3_seconds),
		TEST(ids_end_with_a_confirmed_claim),
		TEST(wrong_token_or_process_claims_nothing),
		TEST(frozen_ids_survive_a_restart_as_they_are),
		TEST(frozen_program_claims_its_ids_late),
		TEST(late_claim_waits_for_the_qpn_leases),
		TEST(frozen_program_without_a_claim_is_forgotten),
		TEST(claim_waits_for_the_qpn_leases),
		TEST(second_claim_is_refused),
		TEST(daemon_makes_the_event_socket),
		TEST(damaged_record_is_dropped_alone),
		TEST(unwritten_records_follow),
		TEST(unwritten_records_follow_at_the_end_of_the_daemon),
		TEST(fetched_events_do_not_come_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
