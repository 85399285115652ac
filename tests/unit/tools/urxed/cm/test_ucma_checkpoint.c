/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program that is frozen and saved goes on with its IDs, groups and events, here or at another
 * daemon. Its peer notices nothing. Damaged records and those of others leave nothing behind.
 */
#include <stdio.h>

#include "stranger.h"
#include "ucma_scenes.h"
#include "urxed/cm/ucma_record.h"

#define RECORDS_MAX 32

struct records {
	uint32_t n;
	struct {
		uint32_t len;
		uint8_t bytes[CM_ATTACH_BYTES];
	} at[RECORDS_MAX];
};

static int own(const struct loop_program *p, uint32_t command, const void *in, uint32_t size)
{
	return loop_command(&loop, p, command, in, size, CM_ATTACH_BYTES, &answer);
}

/* Saves the next n records of a frozen program. */
static void save_some(const struct loop_program *p, uint32_t n)
{
	while (n--) {
		assert_int_equal(own(p, CM_ATTACH_SAVE, NULL, 0), 0);
		assert_int_not_equal(answer.reply.out, 0);
	}
}

static struct records save(const struct loop_program *p)
{
	struct records r = {0};

	assert_int_equal(own(p, CM_ATTACH_FREEZE, NULL, 0), 0);
	while (own(p, CM_ATTACH_SAVE, NULL, 0) == 0 && answer.reply.out) {
		assert_true(r.n < RECORDS_MAX);
		r.at[r.n].len = answer.reply.out;
		memcpy(r.at[r.n++].bytes, answer.out, answer.reply.out);
	}
	assert_int_equal(answer.reply.status, 0);
	/* It stays the last one. */
	assert_int_equal(own(p, CM_ATTACH_SAVE, NULL, 0), 0);
	assert_int_equal(answer.reply.out, 0);
	return r;
}

static bool is_event_record(const struct records *r, uint32_t i)
{
	struct ucma_record record;

	return !ucma_record_read(&record, r->at[i].bytes, r->at[i].len) &&
	       record.kind == UCMA_RECORD_EVENT;
}

/* The records of events, or all others. */
static int restore_only(const struct loop_program *p, const struct records *r, bool events)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < r->n; i++)
		if (is_event_record(r, i) == events)
			rc = own(p, CM_ATTACH_RESTORE, r->at[i].bytes, r->at[i].len);
	return rc;
}

static int restore(const struct loop_program *p, const struct records *r)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < r->n; i++)
		rc = own(p, CM_ATTACH_RESTORE, r->at[i].bytes, r->at[i].len);
	return rc;
}

static void kill_program(const struct loop_program *p)
{
	close(p->fd);
	loop_close_events(p);
	ucma_input(&loop.ucma, loop.now);
}

/* The program is saved, killed, and restored after a pause. */
static void move(struct loop_program *p)
{
	const struct records r = save(p);

	kill_program(p);
	loop_run(&loop);
	loop_pass(&loop, SECOND);
	*p = loop_start(&loop);
	assert_int_equal(restore(p, &r), 0);
	assert_int_equal(own(p, CM_ATTACH_THAW, NULL, 0), 0);
}

static void move_both(void)
{
	move(&a);
	move(&b);
}

static void connection_goes_on(void **state)
{
	(void)state;
	connection_outlives(move_both);
}

static void options_of_a_route_move(void **state)
{
	(void)state;
	options_of_a_route_outlive(move_both);
}

static void connection_over_v1_moves(void **state)
{
	(void)state;
	connection_over_v1_outlives(move_both);
}

/* An HCA had chosen the number, so nothing keeps it after the end of the queue pair. */
static void connection_outlives_its_queue_pair(void **state)
{
	uint32_t id, child;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	child = establish(id);
	loop.removed_qpn = LOOP_QPN + 1;
	move(&b);
	assert_int_equal(disconnect(&a, id), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&b, CMA_DISCONNECTED).id, child);
}

/* A device keeps its name, by which a host knows it again that it has left some moves ago. */
static void device_keeps_its_token(void **state)
{
	struct records before, after;

	(void)state;
	listener(5);
	before = save(&b);
	kill_program(&b);
	b = loop_start(&loop);
	assert_int_equal(restore(&b, &before), 0);
	assert_int_equal(own(&b, CM_ATTACH_THAW, NULL, 0), 0);
	after = save(&b);
	assert_int_equal(before.at[0].len, after.at[0].len);
	assert_memory_equal(before.at[0].bytes, after.at[0].bytes, after.at[0].len);
}

/* Messages to a frozen program are lost, and its peer repeats them. */
static void peer_repeats_its_messages(void **state)
{
	uint32_t id, child;
	struct records r;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	child = establish(id);
	r = save(&b);
	assert_int_equal(disconnect(&a, id), 0);
	loop_run(&loop);
	expect_no_event(&b);
	kill_program(&b);
	assert_int_equal(loop.n, 0);
	loop_pass(&loop, 5 * SECOND); /* the DREQ again */
	loop_run(&loop);
	expect_no_event(&a);
	b = loop_start(&loop);
	assert_int_equal(restore(&b, &r), 0);
	assert_int_equal(own(&b, CM_ATTACH_THAW, NULL, 0), 0);
	loop_pass(&loop, 5 * SECOND);
	loop_run(&loop);
	assert_int_equal(get_event(&b, CMA_DISCONNECTED).id, child);
}

/* A request to a frozen listener is neither refused nor taken. */
static void request_waits_for_the_listener(void **state)
{
	struct records r;
	uint32_t id;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	r = save(&b);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 56), 0);
	loop_run(&loop);
	kill_program(&b);
	loop_pass(&loop, 5 * SECOND);
	loop_run(&loop);
	expect_no_event(&a);
	b = loop_start(&loop);
	assert_int_equal(restore(&b, &r), 0);
	assert_int_equal(own(&b, CM_ATTACH_THAW, NULL, 0), 0);
	loop_pass(&loop, 5 * SECOND);
	loop_run(&loop);
	assert_int_equal(get_event(&b, CMA_CONNECT_REQUEST).param.conn.private_data_len, 56);
}

/* In their order, a request with its new ID. */
static void unfetched_events_come_in_order(void **state)
{
	uint32_t first;

	(void)state;
	first = request_twice();
	move(&b);
	accept_first();
	loop_run(&loop);
	move(&a);
	get_event(&a, CMA_CONNECT_RESPONSE);
	assert_int_equal(accept_it(&a, first, 0, 0), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&b, CMA_CONNECT_REQUEST).param.conn.qp_num, LOOP_QPN + 2);
	assert_int_equal(get_event(&b, CMA_ESTABLISHED).uid, 0xc);
}

static void group_moves(void **state)
{
	(void)state;
	group_outlives(move_both);
}

/* The checkpoint is abandoned: a REQ that was lost comes again. */
static void abandoned_program_goes_on(void **state)
{
	uint32_t id;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 56), 0);
	loop.n = 0;
	save(&a);
	assert_int_equal(disconnect(&a, id), -EBUSY);
	assert_int_equal(own(&a, CM_ATTACH_FREEZE, NULL, 0), -EALREADY);
	loop_pass(&loop, 20 * SECOND);
	assert_int_equal(loop.n, 0);
	assert_int_equal(own(&a, CM_ATTACH_THAW, NULL, 0), 0);
	loop_pass(&loop, 5 * SECOND);
	loop_run(&loop);
	get_event(&b, CMA_CONNECT_REQUEST);
	assert_int_equal(own(&a, CM_ATTACH_THAW, NULL, 0), 0);
	assert_int_equal(own(&a, CM_ATTACH_SAVE, NULL, 0), -EINVAL);
}

/* A program that never comes back: its port is free after a while, and its peer hears nothing. */
static void departed_program_is_forgotten(void **state)
{
	uint32_t id;

	(void)state;
	listener(5);
	establish(client(RDMA_PS_TCP));
	save(&b);
	kill_program(&b);
	loop_run(&loop);
	expect_no_event(&a);
	b = loop_start(&loop);
	id = create(&b, RDMA_PS_TCP, 0xb);
	assert_int_equal(bind_to(&b, id, INADDR_ANY, PORT), -EADDRNOTAVAIL);
	loop_pass(&loop, UCMA_DEPARTED_NS - 1);
	assert_int_equal(bind_to(&b, id, INADDR_ANY, PORT), -EADDRNOTAVAIL);
	loop_pass(&loop, 1);
	loop.n = 0; /* not of this program */
	assert_int_equal(bind_to(&b, id, INADDR_ANY, PORT), 0);
	assert_int_equal(loop.ucma.n_departed, 0);
	expect_no_event(&a);
}

/* Without all its records a program cannot be restored, so its IDs end with it. */
static void only_a_saved_program_departs(void **state)
{
	uint32_t id;

	(void)state;
	listener(5);
	establish(client(RDMA_PS_TCP));
	assert_int_equal(own(&b, CM_ATTACH_FREEZE, NULL, 0), 0);
	save_some(&b, 3); /* all but the end */
	kill_program(&b);
	assert_int_equal(loop.ucma.n_departed, 0);
	b = loop_start(&loop);
	id = create(&b, RDMA_PS_TCP, 0xb);
	assert_int_equal(bind_to(&b, id, INADDR_ANY, PORT), 0);
	destroy(&b, id);
	save(&b);
	kill_program(&b); /* its device has no ID */
	assert_int_equal(loop.ucma.n_departed, 0);
	b = loop_start(&loop);
}

/* A daemon that is restarted meanwhile does not tell the peer that the program has ended. */
static void departed_program_survives_a_restart(void **state)
{
	struct records r;
	uint32_t id, child;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	child = establish(id);
	r = save(&b);
	kill_program(&b);
	loop_restart(&loop);
	close(a.fd);
	loop_close_events(&a);
	a.fd = loop_connect(&loop);
	loop_hello(&loop, &a);
	assert_int_equal(loop_welcome(&a), 0);
	loop_pass(&loop, 2 * UCMA_CLAIM_TIME_NS);
	loop_run(&loop);
	expect_no_event(&a);
	b = loop_start(&loop);
	assert_int_equal(restore(&b, &r), 0);
	assert_int_equal(own(&b, CM_ATTACH_THAW, NULL, 0), 0);
	assert_int_equal(disconnect(&b, child), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_DISCONNECTED).id, id);
}

static void snapshot_is_refused_beside_its_program(void **state)
{
	struct loop_program copy;
	struct records r;

	(void)state;
	listener(5);
	r = save(&b);
	copy = loop_start(&loop);
	assert_int_equal(restore(&copy, &r), -EEXIST);
	loop_end(&loop, &copy);
	assert_int_equal(own(&b, CM_ATTACH_THAW, NULL, 0), 0);
	establish(client(RDMA_PS_TCP));
}

/* Records name peers, in whose place another user could speak. */
static void other_user_cannot_restore(void **state)
{
	struct loop_program stranger;
	struct records r;

	(void)state;
	skip_without_root();
	listener(5);
	r = save(&b);
	kill_program(&b);
	stranger = loop_start_on(&loop, connect_as_stranger());
	assert_int_equal(restore(&stranger, &r), -EPERM);
	loop_end(&loop, &stranger);
	b = loop_start(&loop);
	assert_int_equal(restore(&b, &r), 0);
	assert_int_equal(own(&b, CM_ATTACH_THAW, NULL, 0), 0);
	establish(client(RDMA_PS_TCP));
}

/* --- Changes while records are saved. */

/* A program that claims to have fetched all events ends none of those that are saved. */
static void frozen_device_keeps_its_events(void **state)
{
	struct loop_program liar;
	struct ucma_file *file;

	(void)state;
	assert_int_equal(resolve(&a, create(&a, RDMA_PS_TCP, 0xa)), 0);
	assert_int_equal(resolve(&a, create(&a, RDMA_PS_TCP, 0xa)), 0);
	file = ucma_find_file(&loop.ucma, a.token);
	assert_int_equal(own(&a, CM_ATTACH_FREEZE, NULL, 0), 0);
	save_some(&a, 4); /* the device, both IDs, an event */
	liar = a;
	liar.fetched = UINT64_MAX - 1;
	assert_int_equal(disconnect(&liar, 0), -EBUSY);
	assert_int_equal(file->n_events, 2);
	save_some(&liar, 1);
	assert_int_equal(file->n_events, 2);
	assert_int_equal(own(&liar, CM_ATTACH_SAVE, NULL, 0), 0);
	assert_int_equal(answer.reply.out, 0);
	assert_int_equal(own(&liar, CM_ATTACH_THAW, NULL, 0), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
	get_event(&a, CMA_ADDR_RESOLVED);
}

/* Moves the ID of the first request, which b has not fetched, to another device of the process. */
static void take_request_of_b(const struct loop_program *p)
{
	const struct ucma_file *file = ucma_find_file(&loop.ucma, b.token);
	const struct rdma_ucm_migrate_id request = {
		.id = TAILQ_FIRST(&file->events)->child->id->number};
	struct loop_program from_b = *p;

	from_b.token = b.token;
	assert_int_equal(COMMAND(&from_b, MIGRATE_ID, request, 4), 0);
}

/* The process has two devices: b and a second one. */
static void move_with(struct loop_program *second)
{
	struct records of_b, of_second;

	assert_int_equal(own(second, CM_ATTACH_FREEZE, NULL, 0), 0);
	of_b = save(&b);
	assert_int_equal(own(second, CM_ATTACH_THAW, NULL, 0), 0);
	of_second = save(second);
	kill_program(&b);
	kill_program(second);
	b = loop_start(&loop);
	*second = loop_start(&loop);
	assert_int_equal(restore_only(&b, &of_b, false), 0);
	assert_int_equal(restore_only(second, &of_second, false), 0);
	assert_int_equal(restore_only(&b, &of_b, true), 0);
	assert_int_equal(restore_only(second, &of_second, true), 0);
	assert_int_equal(own(&b, CM_ATTACH_THAW, NULL, 0), 0);
	assert_int_equal(own(second, CM_ATTACH_THAW, NULL, 0), 0);
}

/* A request to b, whose new ID is of the second device already. */
static struct loop_program request_to_second_device(void)
{
	struct loop_program second = loop_start(&loop);

	assert_int_equal(connect_to(&a, client(RDMA_PS_TCP), LOOP_QPN, 0), 0);
	loop_run(&loop);
	take_request_of_b(&second);
	return second;
}

/* The event stays with the listener's device, the new ID with the other one. */
static void migrated_request_goes_on(void **state)
{
	struct loop_program second;
	uint32_t child;

	(void)state;
	listener(5);
	second = request_to_second_device();
	move_with(&second);
	child = get_event(&b, CMA_CONNECT_REQUEST).id;
	assert_int_equal(accept_it(&b, child, 0xc, LOOP_QPN + 1), -EINVAL);
	assert_int_equal(accept_it(&second, child, 0xc, LOOP_QPN + 1), 0);
	loop_run(&loop);
	get_event(&a, CMA_CONNECT_RESPONSE);
	loop_end(&loop, &second);
}

/* As before the move, the end of the listener ends the request. */
static void migrated_request_ends_with_its_listener(void **state)
{
	struct loop_program second;
	const struct ucma_file *file;
	uint32_t listens = listener(5);
	uint64_t token;

	(void)state;
	second = request_to_second_device();
	token = second.token;
	move_with(&second);
	file = ucma_find_file(&loop.ucma, token);
	assert_int_equal(file->n_ctxs, 1);
	destroy(&b, listens);
	assert_int_equal(file->n_ctxs, 0);
	loop_end(&loop, &second);
}

/* The program guesses the number of the new ID, and accepts it before it fetches the event. */
static void accepted_request_is_no_child(void **state)
{
	const struct ucma_file *file = ucma_find_file(&loop.ucma, b.token);
	uint32_t child;

	(void)state;
	listener(5);
	assert_int_equal(connect_to(&a, client(RDMA_PS_TCP), LOOP_QPN, 0), 0);
	loop_run(&loop);
	child = TAILQ_FIRST(&file->events)->child->id->number;
	assert_int_equal(accept_it(&b, child, 0xc, LOOP_QPN + 1), 0);
	move(&b);
	assert_int_equal(get_event(&b, CMA_CONNECT_REQUEST).id, child);
	loop_run(&loop);
	get_event(&a, CMA_CONNECT_RESPONSE);
}

/* Another device of the process destroys the listener, and with it the ID of a request. */
static void check_that_save_ends(bool crowded)
{
	struct loop_program second = loop_start(&loop);
	uint32_t listens = listener(5);

	assert_int_equal(connect_to(&a, client(RDMA_PS_TCP), LOOP_QPN, 0), 0);
	loop_run(&loop);
	take_request_of_b(&second);
	assert_int_equal(own(&second, CM_ATTACH_FREEZE, NULL, 0), 0);
	save_some(&second, 2); /* the device, the ID */
	loop.crowded = crowded;
	destroy(&b, listens);
	assert_int_equal(own(&second, CM_ATTACH_SAVE, NULL, 0), -EBUSY);
	loop.crowded = false;
	loop_run(&loop);
	assert_int_equal(own(&second, CM_ATTACH_SAVE, NULL, 0), -EBUSY);
	assert_int_equal(own(&second, CM_ATTACH_THAW, NULL, 0), 0);
	assert_int_equal(save(&second).n, 1);
	loop_end(&loop, &second);
}

static void save_ends_if_an_id_is_destroyed(void **state)
{
	(void)state;
	check_that_save_ends(false);
}

/* Without room for the refusal the ID waits for its end with others of its user. */
static void save_ends_if_a_request_waits_for_its_refusal(void **state)
{
	(void)state;
	check_that_save_ends(true);
}

/* The end of the records would hide that one is missing. */
static void record_that_cannot_be_written_is_an_error(void **state)
{
	const struct ucma_file *file = ucma_find_file(&loop.ucma, b.token);

	(void)state;
	listener(5);
	LIST_FIRST(&file->ctxs)->backlog = UCMA_BACKLOG_MAX + 1;
	assert_int_equal(own(&b, CM_ATTACH_FREEZE, NULL, 0), 0);
	save_some(&b, 1);
	assert_int_equal(own(&b, CM_ATTACH_SAVE, NULL, 0), -EOVERFLOW);
	assert_int_equal(own(&b, CM_ATTACH_SAVE, NULL, 0), -EBUSY);
	kill_program(&b);
	assert_int_equal(loop.ucma.n_departed, 0);
	b = loop_start(&loop);
}

/* A listener that fails to listen again keeps its backlog. */
static void second_listen_changes_nothing(void **state)
{
	uint32_t listens = listener(5);

	(void)state;
	assert_int_equal(connect_to(&a, client(RDMA_PS_TCP), LOOP_QPN, 0), 0);
	loop_run(&loop);
	assert_int_equal(listen_on(&b, listens, UCMA_BACKLOG_MAX), -EINVAL);
	get_event(&b, CMA_CONNECT_REQUEST);
	assert_int_equal(save(&b).n, 3);
	assert_int_equal(own(&b, CM_ATTACH_THAW, NULL, 0), 0);
}

static void set_afonly(uint32_t id, int32_t on)
{
	const struct {
		struct rdma_ucm_set_option option;
		int32_t value;
	} set = {{.id = id,
		  .level = RDMA_OPTION_ID,
		  .optname = RDMA_OPTION_ID_AFONLY,
		  .optlen = sizeof(on)},
		 on};

	assert_int_equal(COMMAND(&a, SET_OPTION, set, 0), 0);
}

/* The program takes the option back that has permitted the second ID. */
static void ids_of_both_families_keep_their_port(void **state)
{
	struct rdma_ucm_bind_ip bind = {
		.addr = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)}};
	uint32_t id;

	(void)state;
	bind.id = create(&a, RDMA_PS_TCP, 6);
	set_afonly(bind.id, 1);
	assert_int_equal(COMMAND(&a, BIND_IP, bind, 0), 0);
	id = create(&a, RDMA_PS_TCP, 4);
	assert_int_equal(bind_to(&a, id, INADDR_ANY, PORT), 0);
	set_afonly(bind.id, 0);
	move(&a);
	/* Not for IDs that come later. */
	assert_int_equal(bind_to(&a, create(&a, RDMA_PS_TCP, 1), INADDR_ANY, PORT), -EADDRNOTAVAIL);
	destroy(&a, bind.id);
	assert_int_equal(bind_to(&b, create(&b, RDMA_PS_TCP, 1), INADDR_ANY, PORT), -EADDRNOTAVAIL);
}

/* --- Wrong records. */

static void expect_refusal(const struct records *r, int error)
{
	struct loop_program p = loop_start(&loop);
	uint32_t ports = loop.ucma.cma.ports.other.total, conns = cm_conns(loop.ucma.cma.cm);

	assert_int_equal(restore(&p, r), error);
	loop_end(&loop, &p);
	assert_int_equal(loop.ucma.cma.ports.other.total, ports);
	assert_int_equal(cm_conns(loop.ucma.cma.cm), conns);
	assert_int_equal(loop.n, 0);
}

/* The records of a server with a connection, a waiting request and its event. Its IDs are gone. */
static struct records departed_server(void)
{
	struct records r;

	listener(5);
	establish(client(RDMA_PS_TCP));
	assert_int_equal(connect_to(&a, client(RDMA_PS_TCP), LOOP_QPN + 2, 56), 0);
	loop_run(&loop);
	r = save(&b);
	assert_int_equal(r.n, 5);
	kill_program(&b);
	b = loop_start(&loop);
	loop_pass(&loop, UCMA_DEPARTED_NS);
	loop.n = 0;
	return r;
}

static void damaged_records_are_refused(void **state)
{
	const struct records good = departed_server();
	struct records bad;

	(void)state;
	for (uint32_t i = 0; i < good.n; i++)
		for (uint32_t at = 0; at < good.at[i].len; at += 3) {
			bad = good;
			bad.at[i].bytes[at] ^= 0x40;
			/* Byte 8 is the version. */
			expect_refusal(&bad, at >= 8 && at < 12 ? -EPROTONOSUPPORT : -EBADMSG);
			bad = good;
			bad.at[i].len = at;
			expect_refusal(&bad, -EBADMSG);
		}
	expect_refusal(&(struct records){.n = 1, .at = {good.at[1]}}, -EBADMSG);
	bad = good;
	bad.at[1] = bad.at[0];
	expect_refusal(&bad, -EBADMSG);
	move(&b); /* nothing is in the way of others */
	assert_int_equal(restore(&b, &good), 0);
	assert_int_equal(own(&b, CM_ATTACH_THAW, NULL, 0), 0);
}

/* Changes one record, with a right checksum. */
static struct records with(const struct records *good, uint32_t i,
			   void (*change)(struct ucma_record *r))
{
	struct ucma_record record;
	struct records bad = *good;

	assert_int_equal(ucma_record_read(&record, bad.at[i].bytes, bad.at[i].len), 0);
	change(&record);
	bad.at[i].len = ucma_record_write(&record, bad.at[i].bytes);
	return bad;
}

static uint32_t find(const struct records *good, bool (*is)(const struct ucma_record *r))
{
	struct ucma_record record;

	for (uint32_t i = 0; i < good->n; i++) {
		assert_int_equal(ucma_record_read(&record, good->at[i].bytes, good->at[i].len), 0);
		if (is(&record))
			return i;
	}
	fail();
	return 0;
}

static bool is_connection(const struct ucma_record *r)
{
	return r->kind == UCMA_RECORD_ID && r->id.saved.connected && r->id.uid;
}

static bool is_listener(const struct ucma_record *r)
{
	return r->kind == UCMA_RECORD_ID && r->id.saved.id.state == CMA_LISTEN;
}

static bool is_event(const struct ucma_record *r)
{
	return r->kind == UCMA_RECORD_EVENT;
}

static void name_foreign_qpn(struct ucma_record *r)
{
	r->id.saved.conn.local_qpn = LOOP_QPN + LOOP_QPNS;
}

static void forge_message(struct ucma_record *r)
{
	r->id.saved.conn.sent[1] ^= 0xff; /* the management class */
}

static void name_foreign_address(struct ucma_record *r)
{
	r->id.saved.conn.channel.path.sgid[15] ^= 1;
}

static void name_wrong_state(struct ucma_record *r)
{
	r->id.saved.id.state = CMA_CONNECT;
}

static void name_missing_child(struct ucma_record *r)
{
	r->event.child = 40000;
}

static void name_missing_id(struct ucma_record *r)
{
	r->event.id = 40000;
}

static void name_listener_as_child(struct ucma_record *r)
{
	r->event.child = r->event.id;
}

static void contradictions_are_refused(void **state)
{
	const struct records good = departed_server();
	uint32_t connection = find(&good, is_connection), listens = find(&good, is_listener);
	uint32_t event = find(&good, is_event);
	struct records bad;

	(void)state;
	bad = with(&good, connection, name_foreign_qpn);
	expect_refusal(&bad, -EBADMSG);
	bad = with(&good, connection, forge_message);
	expect_refusal(&bad, -EBADMSG);
	bad = with(&good, connection, name_foreign_address);
	expect_refusal(&bad, -EADDRNOTAVAIL);
	bad = with(&good, listens, name_wrong_state);
	expect_refusal(&bad, -EBADMSG);
	bad = with(&good, event, name_missing_child);
	expect_refusal(&bad, -EBADMSG);
	bad = with(&good, event, name_missing_id);
	expect_refusal(&bad, -EBADMSG);
	bad = with(&good, event, name_listener_as_child);
	expect_refusal(&bad, -EBADMSG);
	bad = good;
	bad.at[bad.n++] = bad.at[event]; /* the request's ID has an event already */
	expect_refusal(&bad, -EBADMSG);
	bad = good;
	bad.at[bad.n++] = bad.at[connection];
	expect_refusal(&bad, -EEXIST);
}

static void read_record(const char *name, struct ucma_record *record)
{
	uint8_t bytes[CM_ATTACH_BYTES];
	char path[4096];
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), UCMA_RECORDS "/%s", name);
	file = fopen(path, "rb");
	assert_non_null(file);
	n = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	assert_int_equal(ucma_record_read(record, bytes, (uint32_t)n), 0);
}

/* Those of cm_checkpoint.c: a connection, a listener, a request, the member of a group, events. */
static void records_of_version_1_can_be_read(void **state)
{
	struct ucma_record record;
	uint32_t listeners = 0, connections = 0, requests = 0;
	char name[8];

	(void)state;
	read_record("device1", &record);
	assert_true(record.kind == UCMA_RECORD_FILE && record.file.token);
	for (int i = 1; i <= 4; i++) {
		snprintf(name, sizeof(name), "id%d", i);
		read_record(name, &record);
		assert_int_equal(record.kind, UCMA_RECORD_ID);
		listeners += is_listener(&record);
		connections +=
			is_connection(&record) && record.id.saved.conn.state == CM_ESTABLISHED;
		requests += record.id.saved.connected && !record.id.uid;
	}
	assert_true(listeners == 1 && connections == 1 && requests == 1);
	read_record("group1", &record);
	assert_int_equal(record.kind, UCMA_RECORD_GROUP);
	read_record("event1", &record);
	assert_int_equal(record.event.resp.event, CMA_MULTICAST_JOIN);
	read_record("event2", &record);
	assert_int_equal(record.event.resp.event, CMA_CONNECT_REQUEST);
	assert_int_not_equal(record.event.child, UCMA_NO_NUMBER);
}

static void claim_again(struct loop_program *p)
{
	close(p->fd);
	loop_close_events(p);
	p->fd = loop_connect(&loop);
	loop_hello(&loop, p);
	assert_int_equal(loop_welcome(p), 0);
}

/* The daemon has ended in the middle of a restoration, which failed: nothing of it stays. */
static void half_restored_program_is_forgotten_after_a_restart(void **state)
{
	const struct records good = departed_server();

	(void)state;
	assert_int_equal(restore(&b, &good), 0);
	loop_restart(&loop);
	claim_again(&a);
	assert_false(ucma_has_frozen_file(&loop.ucma, getpid()));
	loop_pass(&loop, 2 * UCMA_CLAIM_TIME_NS);
	loop_pass(&loop, 0);
	assert_int_equal(loop.ucma.n_departed, 0);
	assert_int_equal(loop.ucma.n_ended, 0);
	close(b.fd);
	loop_close_events(&b);
	b = loop_start(&loop);
	assert_int_equal(restore(&b, &good), 0);
}

static void name_full_backlog(struct ucma_record *r)
{
	r->id.backlog = UCMA_BACKLOG_MAX;
}

/* The program fetches a request, which gives back a place of a backlog that has them all. */
static void full_backlog_stays_full(void **state)
{
	const struct records good = departed_server();
	const struct records full = with(&good, find(&good, is_listener), name_full_backlog);

	(void)state;
	assert_int_equal(restore(&b, &full), 0);
	assert_int_equal(own(&b, CM_ATTACH_THAW, NULL, 0), 0);
	get_event(&b, CMA_CONNECT_REQUEST);
	assert_int_equal(save(&b).n, good.n - 1);
	assert_int_equal(own(&b, CM_ATTACH_THAW, NULL, 0), 0);
}

static bool is_group(const struct ucma_record *r)
{
	return r->kind == UCMA_RECORD_GROUP;
}

static void name_last_group(struct ucma_record *r)
{
	r->group.number = INT32_MAX;
}

static uint32_t join_and_fetch(uint32_t id)
{
	uint32_t number = join(id);

	assert_int_equal(get_event(&a, CMA_MULTICAST_JOIN).id, number);
	return number;
}

/* Greater numbers are those of the kernel's groups, so the daemon's begin anew with free ones. */
static void numbers_of_groups_begin_anew(void **state)
{
	uint32_t id = create(&a, RDMA_PS_UDP, 0xa), first, next;
	const uint64_t token = a.token;
	struct records r;

	(void)state;
	assert_int_equal(resolve(&a, id), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
	first = join_and_fetch(id);
	join_and_fetch(id);
	r = save(&a);
	/* The newest group comes first. */
	r = with(&r, find(&r, is_group), name_last_group);
	kill_program(&a);
	a = loop_start(&loop);
	assert_int_equal(restore(&a, &r), 0);
	assert_int_equal(own(&a, CM_ATTACH_THAW, NULL, 0), 0);
	next = join_and_fetch(id);
	assert_true(next < INT32_MAX && next != first);
	loop_restart(&loop);
	a.token = token;
	claim_again(&a);
	claim_again(&b);
	first = next;
	next = join_and_fetch(id);
	assert_true(next < INT32_MAX && next > first);
}

/* Another program has taken the port. */
static void taken_port_is_refused(void **state)
{
	const struct records good = departed_server();
	uint32_t id = create(&a, RDMA_PS_TCP, 0xa);

	(void)state;
	assert_int_equal(bind_to(&a, id, INADDR_ANY, PORT), 0);
	expect_refusal(&good, -EADDRNOTAVAIL);
	destroy(&a, id);
	assert_int_equal(restore(&b, &good), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(connection_goes_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(options_of_a_route_move, set_up, tear_down),
		cmocka_unit_test_setup_teardown(connection_over_v1_moves, set_up, tear_down),
		cmocka_unit_test_setup_teardown(connection_outlives_its_queue_pair, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(device_keeps_its_token, set_up, tear_down),
		cmocka_unit_test_setup_teardown(peer_repeats_its_messages, set_up, tear_down),
		cmocka_unit_test_setup_teardown(request_waits_for_the_listener, set_up, tear_down),
		cmocka_unit_test_setup_teardown(unfetched_events_come_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(group_moves, set_up, tear_down),
		cmocka_unit_test_setup_teardown(abandoned_program_goes_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(departed_program_is_forgotten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_a_saved_program_departs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(departed_program_survives_a_restart, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(snapshot_is_refused_beside_its_program, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(other_user_cannot_restore, set_up, tear_down),
		cmocka_unit_test_setup_teardown(frozen_device_keeps_its_events, set_up, tear_down),
		cmocka_unit_test_setup_teardown(migrated_request_goes_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(migrated_request_ends_with_its_listener, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(accepted_request_is_no_child, set_up, tear_down),
		cmocka_unit_test_setup_teardown(save_ends_if_an_id_is_destroyed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(save_ends_if_a_request_waits_for_its_refusal,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(record_that_cannot_be_written_is_an_error, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(second_listen_changes_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ids_of_both_families_keep_their_port, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(half_restored_program_is_forgotten_after_a_restart,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(full_backlog_stays_full, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damaged_records_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(contradictions_are_refused, set_up, tear_down),
		cmocka_unit_test(records_of_version_1_can_be_read),
		cmocka_unit_test_setup_teardown(numbers_of_groups_begin_anew, set_up, tear_down),
		cmocka_unit_test_setup_teardown(taken_port_is_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
