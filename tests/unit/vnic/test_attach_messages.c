/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests of an attached process, and notices and questions of the daemon. */
#include "attach_client.h"

/* Serves until a client has resolved one more address. */
static void resolve_one(struct daemon *d)
{
	unsigned int before = d->resolves;

	while (d->resolves == before) {
		assert_true(readable(vnic_server_fd(d->client), PATIENCE));
		assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	}
}

/* --- RESOLVE, and the end of the daemon. */

/* The descriptors of an answer do not fit; requests go on. */
static void check_without_descriptors(struct vnic_driver *drv)
{
	struct vnic_inbox *inbox;
	struct rlimit limit;
	rlim_t before;

	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	before = limit.rlim_cur;
	limit.rlim_cur = 0;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK(vnic_driver_make_inbox(drv, MTU, &inbox) == -EMFILE);
	limit.rlim_cur = before;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static void resolve_client(const char *run_dir)
{
	const uint8_t here[16] = {[15] = 7}, nowhere[16] = {1};
	const uint8_t want[6] = {2, 0, 0, 0, 3, 7};
	struct vnic_attach_welcome w;
	uint32_t lease = 0;
	struct vnic_driver *drv;
	struct vnic_next_hop hop;

	CHECK(vnic_driver_attach(run_dir, &w, &drv) == 0);
	check_without_descriptors(drv);
	CHECK(vnic_driver_lease(drv, &lease) == 0);
	CHECK(lease == 8192);
	CHECK(vnic_driver_resolve(drv, 3, here, &hop) == 0);
	/* The driver refuses an answer that is no block of QPNs. */
	lease = 0;
	CHECK(vnic_driver_lease(drv, &lease) == -EPROTO);
	CHECK(vnic_driver_add_qpn(drv, 0x456, VNIC_QPN_REACHABLE) == 0);
	CHECK(vnic_driver_add_qpn(drv, 0x456, 0) == -EEXIST);
	CHECK(vnic_driver_query_qpn(drv, (const uint8_t[16]){[15] = 7}, 0x789) == 0);
	CHECK(vnic_driver_query_qpn(drv, (const uint8_t[16]){[15] = 8}, 0x789) == -ENOENT);
	CHECK(vnic_driver_remove_qpn(drv, 0x456) == 0);
	CHECK(vnic_driver_remove_qpn(drv, 0x457) == -ENOENT);
	CHECK(!memcmp(hop.mac, want, sizeof(hop.mac)) && hop.hop_limit == 9);
	CHECK(vnic_driver_register(drv, 0x1005, here, 0x123) == 0);
	CHECK(vnic_driver_register(drv, 0x1005, here, 0x123) == 0);
	CHECK(vnic_driver_register(drv, 0x1005, here, 0x124) == -ENOSPC);
	CHECK(vnic_driver_unregister(drv, 0x1005, here, 0x123) == 0);
	CHECK(vnic_driver_resolve(drv, 3, nowhere, &hop) == -EHOSTUNREACH);
	/* The daemon ends now: both descriptors become readable, and no call hangs. */
	CHECK(readable(vnic_driver_ctl_fd(drv), PATIENCE));
	CHECK(readable(vnic_driver_irq_fd(drv), PATIENCE));
	CHECK(vnic_driver_resolve(drv, 3, here, &hop) < 0);
	CHECK(vnic_driver_register(drv, 0x1005, here, 0x123) < 0);
	vnic_driver_detach(drv);
}

static void test_request_to_an_ended_daemon_fails(void **state)
{
	struct daemon *d = *state;

	spawn(d, resolve_client);
	accept_client(d);
	d->lease = 8192;
	resolve_one(d);
	d->lease++;
	resolve_one(d);
	assert_int_equal(vnic_server_resolved(d->client, 0, NULL), -EINVAL);
	assert_int_equal(d->registered, 1);
	close(vnic_server_close(d->client));
	d->client = NULL;
	expect_exit(d, 0);
}

/* --- Messages without an answer. */

static int full[2]; /* the client tells how many messages fit the socket */

static void changing_client(const char *run_dir)
{
	const uint8_t here[16] = {[15] = 7};
	struct vnic_attach_welcome w;
	struct vnic_driver *drv;
	struct vnic_next_hop hop;
	uint32_t sent = 0;
	int rc;

	CHECK(vnic_driver_attach(run_dir, &w, &drv) == 0);
	CHECK(vnic_driver_resolve(drv, 3, here, &hop) == 0);
	/* The daemon does not read now: no call waits. */
	while (!(rc = vnic_driver_set_qpn(drv, 0x456, VNIC_QPN_REACHABLE)))
		sent++;
	CHECK(rc == -EAGAIN);
	CHECK(!vnic_driver_qpns_handled(drv));
	CHECK(write(full[1], &sent, sizeof(sent)) == sizeof(sent));
	/* The answer is that to this request. */
	CHECK(vnic_driver_resolve(drv, 3, here, &hop) == 0);
	CHECK(vnic_driver_qpns_handled(drv));
	CHECK(vnic_driver_set_qpn(drv, 0x456, VNIC_QPN_UPLINK) == 0);
	CHECK(vnic_driver_resolve(drv, 3, here, &hop) == 0);
	CHECK(vnic_driver_qpns_handled(drv));
	/* The daemon ends now. */
	CHECK(readable(vnic_driver_ctl_fd(drv), PATIENCE));
	rc = vnic_driver_set_qpn(drv, 0x456, 0);
	CHECK(rc < 0 && rc != -EAGAIN);
	vnic_driver_detach(drv);
}

static void test_unanswered_messages_arrive_in_order(void **state)
{
	struct daemon *d = *state;
	uint32_t sent;

	assert_int_equal(pipe(full), 0);
	spawn(d, changing_client);
	accept_client(d);
	resolve_one(d);
	assert_int_equal(read(full[0], &sent, sizeof(sent)), sizeof(sent));
	assert_true(sent > 0);
	resolve_one(d);
	assert_int_equal(d->sets, sent);
	assert_int_equal(d->flags, VNIC_QPN_REACHABLE);
	resolve_one(d);
	assert_int_equal(d->sets, sent + 1);
	assert_int_equal(d->flags, VNIC_QPN_UPLINK);
	close(vnic_server_close(d->client));
	d->client = NULL;
	expect_exit(d, 0);
	close(full[0]);
	close(full[1]);
}

/* --- Two threads that call the driver. */

#define ASKS 4 /* of each */

static struct vnic_driver *shared_driver;

/* The thread's number travels as the GID index. */
static void *ask_often(void *number)
{
	const uint8_t here[16] = {0};
	struct vnic_next_hop hop;

	for (int i = 0; i < ASKS; i++)
		CHECK(vnic_driver_resolve(shared_driver, *(uint8_t *)number, here, &hop) == 0);
	return NULL;
}

static void asking_client(const char *run_dir)
{
	uint8_t numbers[2] = {0, 1};
	struct vnic_attach_welcome w;
	pthread_t thread;

	CHECK(vnic_driver_attach(run_dir, &w, &shared_driver) == 0);
	CHECK(pthread_create(&thread, NULL, ask_often, &numbers[1]) == 0);
	ask_often(&numbers[0]);
	CHECK(pthread_join(thread, NULL) == 0);
	vnic_driver_detach(shared_driver);
}

static void note_asker(void *ctx, struct vnic_server_client *client,
		       const struct vnic_attach_resolve *request)
{
	struct daemon *d = ctx;

	(void)client;
	d->asker = request->sgid_index;
	d->resolves++;
}

static char state_of(pid_t pid, const char *tid)
{
	char path[64 + NAME_MAX], text[256] = {0};
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", pid, tid);
	file = fopen(path, "r");
	if (!file)
		return 'X';
	fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	/* As in proc(5), the state follows the name in parentheses. */
	return strrchr(text, ')') ? strrchr(text, ')')[2] : 'X';
}

/* Whether the child has two threads, and both sleep. */
static bool both_sleep(pid_t pid)
{
	struct dirent *entry;
	char path[32];
	int asleep = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	assert_non_null(tasks);
	while ((entry = readdir(tasks)))
		asleep += entry->d_name[0] != '.' && state_of(pid, entry->d_name) == 'S';
	closedir(tasks);
	return asleep == 2;
}

/* A thread that calls again at once waits behind a thread that waits already. */
static void test_waiting_thread_asks_before_a_repeating_one(void **state)
{
	const struct vnic_server_ops noting = {.welcome = welcome, .resolve = note_asker};
	const struct vnic_next_hop hop = {.hop_limit = 1};
	struct daemon *d = *state;
	int before = -1;

	spawn(d, asking_client);
	accept_client(d);
	for (uint32_t asked = 0; asked < 2 * ASKS; before = d->asker, asked++) {
		while (d->resolves == asked) {
			assert_true(readable(vnic_server_fd(d->client), PATIENCE));
			assert_int_equal(vnic_server_event(d->client, &noting, d), 0);
		}
		assert_int_not_equal(d->asker, before);
		/*
		 * One thread waits for its answer, the other for its turn; in the end one thread is
		 * alone.
		 */
		while (asked + 1 < 2 * ASKS && !both_sleep(d->child))
			usleep(100);
		assert_int_equal(vnic_server_resolved(d->client, 0, &hop), 0);
	}
	assert_int_equal(serve_to_end(d), -ECONNRESET);
	expect_exit(d, 0);
}

/* --- Notices. */

static void notice_client(const char *run_dir)
{
	int question;
	struct vnic_attach_port port;
	struct vnic_next_hop hop;
	struct vnic_attach_welcome w;
	struct vnic_driver *drv;

	CHECK(vnic_driver_attach(run_dir, &w, &drv) == 0);
	CHECK(w.port.up == 0 && w.port.link_mtu == MTU && !w.port.gids[5].valid);
	/* A notice that the daemon sent before its answer is in the port's state. */
	CHECK(vnic_driver_resolve(drv, 0, (const uint8_t[16]){0}, &hop) == 0);
	CHECK(readable(vnic_driver_notice_fd(drv), PATIENCE));
	CHECK(vnic_driver_notice(drv, &port, &question));
	CHECK(port.up == 1 && port.link_mtu == 1000 && port.gids[5].valid == 7);
	CHECK(!strcmp(port.hca.name, "hca0") && port.hca.port == 1 && port.hca.generation == 3);
	CHECK(port.hca.down == 1);
	CHECK(!vnic_driver_notice(drv, &port, &question));
	CHECK(!readable(vnic_driver_notice_fd(drv), 0));
	/* The daemon ends; its closed socket must not look like new notices for ever. */
	CHECK(vnic_driver_resolve(drv, 0, (const uint8_t[16]){0}, &hop) < 0);
	CHECK(readable(vnic_driver_notice_fd(drv), PATIENCE));
	CHECK(!vnic_driver_notice(drv, &port, &question));
	CHECK(vnic_driver_notice_fd(drv) == -1);
	vnic_driver_detach(drv);
}

/* Of several notices the last one counts; a notice with an MTU larger than the NIC's is ignored. */
static void test_last_valid_notice_counts(void **state)
{
	struct vnic_attach_port port = {.link_mtu = 600};
	struct daemon *d = *state;

	spawn(d, notice_client);
	accept_client(d);
	assert_int_equal(vnic_server_notice_fd(d->client), -1);
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	assert_int_equal(serve_until(d, VNIC_DEVICE_ACTIVE), 0);
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	port.link_mtu = 1000;
	port.up = 1;
	port.gids[5].valid = 7;
	port.hca = (struct vnic_attach_hca){.name = "hca0", .port = 1, .generation = 3, .down = 1};
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	port.link_mtu = MTU + 1;
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	port.link_mtu = 0;
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	/* The name of an HCA without its end, and a port without an HCA. */
	port.link_mtu = 1000;
	memset(port.hca.name, 'x', sizeof(port.hca.name));
	port.hca.port = 1;
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	port.hca.name[0] = '\0';
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	resolve_one(d);
	assert_true(readable(vnic_server_fd(d->client), PATIENCE));
	close(vnic_server_close(d->client));
	d->client = NULL;
	expect_exit(d, 0);
}

static void idle_client(const char *run_dir)
{
	int question;
	struct vnic_attach_port port;
	struct vnic_next_hop hop;
	struct vnic_attach_welcome w;
	struct vnic_driver *drv;

	CHECK(vnic_driver_attach(run_dir, &w, &drv) == 0);
	CHECK(vnic_driver_resolve(drv, 0, (const uint8_t[16]){0}, &hop) == 0);
	CHECK(vnic_driver_notice(drv, &port, &question));
	/* The socket has room again, and the daemon uses it. */
	while (port.link_mtu != 1000) {
		CHECK(readable(vnic_driver_notice_fd(drv), PATIENCE));
		CHECK(vnic_driver_notice(drv, &port, &question));
	}
	vnic_driver_detach(drv);
}

/* A client that reads no notices delays no other client, and gets the newest notice when it reads.
 */
static void test_client_gets_the_newest_unread_notice(void **state)
{
	struct vnic_attach_port port = {.link_mtu = MTU};
	struct daemon *d = *state;
	struct pollfd room;
	int ret = 0;

	spawn(d, idle_client);
	accept_client(d);
	assert_int_equal(serve_until(d, VNIC_DEVICE_ACTIVE), 0);
	for (int i = 0; !ret && i < 100000; i++)
		ret = vnic_server_notice(d->client, &port);
	assert_int_equal(ret, -EAGAIN);
	room = (struct pollfd){.fd = vnic_server_notice_fd(d->client), .events = POLLOUT};
	assert_int_equal(poll(&room, 1, 0), 0);
	resolve_one(d);
	assert_int_equal(poll(&room, 1, PATIENCE), 1);
	port.link_mtu = 1000;
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	assert_int_equal(serve_to_end(d), -ECONNRESET);
	expect_exit(d, 0);
}

static void questioned_client(const char *run_dir)
{
	struct vnic_next_hop hop;
	const struct vnic_attach_state answer = {.status = -ENOSYS};
	struct vnic_attach_port port;
	struct vnic_attach_welcome w;
	struct vnic_driver *drv;
	int question;

	CHECK(vnic_driver_attach(run_dir, &w, &drv) == 0);
	for (int i = 0; i < 2; i++) {
		CHECK(vnic_driver_resolve(drv, 0, (const uint8_t[16]){0}, &hop) == 0);
		CHECK(readable(vnic_driver_notice_fd(drv), PATIENCE));
		CHECK(!vnic_driver_notice(drv, &port, &question));
		CHECK(question >= 0);
		/* After the first question the daemon has sent the port's state. */
		if (i == 0) {
			int none;

			CHECK(vnic_driver_notice(drv, &port, &none));
			CHECK(none == -1);
		}
		CHECK(write(question, &answer, sizeof(answer)) == sizeof(answer));
		close(question);
	}
	vnic_driver_detach(drv);
}

/*
 * The daemon asks a process that reads nothing few questions, so that notices still find room, and
 * the sockets of the questions do not pile up.
 */
static void test_unread_questions_are_limited(void **state)
{
	const struct vnic_attach_port port = {.link_mtu = MTU};
	struct daemon *d = *state;
	int ends[2], asked = 0, rc;

	spawn(d, idle_client);
	accept_client(d);
	assert_int_equal(serve_until(d, VNIC_DEVICE_ACTIVE), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	/* A pending notice does not prevent a question. */
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	while (!(rc = vnic_server_query_state(d->client, ends[1])))
		asked++;
	assert_int_equal(rc, -EAGAIN);
	assert_in_range(asked, 1, 4);
	for (int i = 0; i < 16; i++)
		assert_int_equal(vnic_server_notice(d->client, &port), 0);
	close(ends[0]);
	close(ends[1]);
}

/* A question comes with the socket for its answer. */
static void test_question_arrives_with_its_answer_socket(void **state)
{
	const struct vnic_attach_port port = {.link_mtu = MTU};
	struct vnic_attach_state answer = {0};
	struct daemon *d = *state;
	int ends[2];

	spawn(d, questioned_client);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	accept_client(d);
	assert_int_equal(vnic_server_query_state(d->client, ends[1]), -ENOTCONN);
	assert_int_equal(serve_until(d, VNIC_DEVICE_ACTIVE), 0);
	assert_int_equal(vnic_server_query_state(d->client, ends[1]), 0);
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	close(ends[1]);
	resolve_one(d);
	assert_true(readable(ends[0], PATIENCE));
	assert_int_equal(read(ends[0], &answer, sizeof(answer)), sizeof(answer));
	assert_int_equal(answer.status, -ENOSYS);
	/* No other process holds the other end of that socket. */
	assert_int_equal(read(ends[0], &answer, sizeof(answer)), 0);
	close(ends[0]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_int_equal(vnic_server_query_state(d->client, ends[1]), 0);
	close(ends[1]);
	resolve_one(d);
	assert_int_equal(read(ends[0], &answer, sizeof(answer)), sizeof(answer));
	close(ends[0]);
	assert_int_equal(serve_to_end(d), -ECONNRESET);
	expect_exit(d, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DAEMON_TEST(test_request_to_an_ended_daemon_fails),
		DAEMON_TEST(test_unanswered_messages_arrive_in_order),
		DAEMON_TEST(test_last_valid_notice_counts),
		DAEMON_TEST(test_client_gets_the_newest_unread_notice),
		DAEMON_TEST(test_waiting_thread_asks_before_a_repeating_one),
		DAEMON_TEST(test_question_arrives_with_its_answer_socket),
		DAEMON_TEST(test_unread_questions_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
