/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program with connections of rdma_cm, which does to itself what a checkpointer does to a
 * program. Its memory lies in an arena; librdmacm's own variables are saved, too. Its peer is the
 * same program, and neither knows nor notices.
 *
 *   cm_checkpoint run ADDRESS
 *   cm_checkpoint restore STREAM MEMORY MAPS
 *
 * It takes commands from standard input, and answers each by a line. Connections have numbers:
 *
 *   listen               on a port of urxed's choice; the answer is the port
 *   begin N ADDRESS PORT sends a connection request
 *   await N              until that request is accepted
 *   accept N             fetches a connection request, and accepts it; waits until it is
 * established events               the number of unfetched events: 0, or 1 for one or more send N,
 * receive N    a message with known contents disconnect N disconnected N       fetches the event
 *   destroy N
 *   queue                a queue pair of urxe0 without a connection
 *   shared               a shared receive queue of urxe0
 *   group, joined        joins a multicast group, or fetches the event of it and leaves the group
 *   save STREAM MEMORY MAPS   then "resume", or the process is killed
 *   storm N              N times: stops the device while a thread opens and closes event channels
 *   close                destroys the listener and the event channel
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "arena.h"
#include "checkpointer.h"

#define CONNECTIONS 8
#define BYTES       5000
#define TIMEOUT_MS  60000

struct connection {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint32_t sent, received;
	uint8_t send[BYTES], receive[BYTES];
};

/* librdmacm's variables. */
struct variables {
	uint8_t *at;
	size_t size;
	uint8_t *copy;
};

/* The root of the arena. */
struct program {
	char address[64];
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *member;
	struct connection connections[CONNECTIONS];
	struct variables variables;
	void *liburxe; /* address of one of its functions */
};

static struct program *program;

/* --- librdmacm's variables: the writable part of the library, but what the linker has protected.
 */

static int find_variables(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct variables *v = arg;
	uint8_t *base = (uint8_t *)info->dlpi_addr, *protected_end = NULL;

	(void)size;
	if (!strstr(info->dlpi_name, "librdmacm"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_W) {
			v->at = base + p->p_vaddr;
			v->size = p->p_memsz;
		} else if (p->p_type == PT_GNU_RELRO) {
			protected_end = base + p->p_vaddr + p->p_memsz;
		}
	}
	if (protected_end > v->at) {
		v->size -= (size_t)(protected_end - v->at);
		v->at = protected_end;
	}
	return 1;
}

/* --- Events. */

static bool has_event(int timeout_ms)
{
	struct pollfd fd = {.fd = program->channel->fd, .events = POLLIN};

	return poll(&fd, 1, timeout_ms) == 1;
}

/* The caller acknowledges the event. NULL: no such event. */
static struct rdma_cm_event *get_event(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	if (!has_event(TIMEOUT_MS) || rdma_get_cm_event(program->channel, &event))
		return NULL;
	if (event->event == type && !event->status)
		return event;
	warnx("%s (%d) instead of %s", rdma_event_str(event->event), event->status,
	      rdma_event_str(type));
	rdma_ack_cm_event(event);
	return NULL;
}

static bool await(enum rdma_cm_event_type type, const struct rdma_cm_id *id)
{
	struct rdma_cm_event *event = get_event(type);
	bool right = event && event->id == id;

	if (event)
		rdma_ack_cm_event(event);
	return right;
}

/* --- Connections. */

static bool make_qp(struct connection *c)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};

	if (rdma_create_qp(c->id, NULL, &attr))
		return false;
	c->mr = ibv_reg_mr(c->id->pd, c, sizeof(*c), IBV_ACCESS_LOCAL_WRITE);
	return c->mr && !rdma_post_recv(c->id, NULL, c->receive, BYTES, c->mr);
}

static struct rdma_conn_param param(void)
{
	return (struct rdma_conn_param){.responder_resources = 1,
					.initiator_depth = 1,
					.retry_count = 7,
					.rnr_retry_count = 7};
}

static struct sockaddr_in sockaddr(const char *address, const char *port)
{
	const struct addrinfo hints = {.ai_family = AF_INET, .ai_flags = AI_NUMERICHOST};
	struct addrinfo *found;
	struct sockaddr_in in;

	if (getaddrinfo(address, port, &hints, &found))
		errx(1, "%s", address);
	memcpy(&in, found->ai_addr, sizeof(in));
	freeaddrinfo(found);
	return in;
}

static const char *listen_any(void)
{
	struct sockaddr_in in = sockaddr(program->address, "0");
	static char port[8];

	if (rdma_create_id(program->channel, &program->listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(program->listener, (struct sockaddr *)&in) ||
	    rdma_listen(program->listener, 8))
		return strerror(errno);
	snprintf(port, sizeof(port), "%u", be16toh(rdma_get_src_port(program->listener)));
	return port;
}

static const char *begin(struct connection *c, const char *address, const char *port)
{
	struct rdma_conn_param p = param();
	struct sockaddr_in in = sockaddr(address, port);

	if (rdma_create_id(program->channel, &c->id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(c->id, NULL, (struct sockaddr *)&in, TIMEOUT_MS) ||
	    !await(RDMA_CM_EVENT_ADDR_RESOLVED, c->id) || rdma_resolve_route(c->id, TIMEOUT_MS) ||
	    !await(RDMA_CM_EVENT_ROUTE_RESOLVED, c->id) || !make_qp(c) || rdma_connect(c->id, &p))
		return "cannot connect";
	return "done";
}

static const char *accept_request(struct connection *c)
{
	struct rdma_cm_event *event = get_event(RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_conn_param p = param();

	if (!event)
		return "no request";
	c->id = event->id;
	rdma_ack_cm_event(event);
	if (!make_qp(c) || rdma_accept(c->id, &p))
		return strerror(errno);
	return await(RDMA_CM_EVENT_ESTABLISHED, c->id) ? "done" : "not established";
}

/* --- Messages. */

static void fill(uint8_t *bytes, uint32_t number)
{
	for (uint32_t i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)(i * 7 + number * 31 + i / 251);
}

static const char *send_message(struct connection *c)
{
	struct ibv_wc wc;

	fill(c->send, ++c->sent);
	if (rdma_post_send(c->id, NULL, c->send, BYTES, c->mr, IBV_SEND_SIGNALED) ||
	    rdma_get_send_comp(c->id, &wc) != 1)
		return strerror(errno);
	return wc.status == IBV_WC_SUCCESS ? "done" : ibv_wc_status_str(wc.status);
}

static const char *receive_message(struct connection *c)
{
	static uint8_t expected[BYTES];
	struct ibv_wc wc;

	if (rdma_get_recv_comp(c->id, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		return "no message";
	fill(expected, ++c->received);
	if (wc.byte_len != BYTES || memcmp(c->receive, expected, BYTES))
		return "wrong contents";
	return rdma_post_recv(c->id, NULL, c->receive, BYTES, c->mr) ? strerror(errno) : "done";
}

/* rdma_destroy_id waits until the program has acknowledged as many events as were reported. */
static const char *destroy(struct connection *c)
{
	rdma_destroy_qp(c->id);
	if (ibv_dereg_mr(c->mr) || rdma_destroy_id(c->id))
		return strerror(errno);
	*c = (struct connection){0};
	return "done";
}

/* --- A queue pair that nobody uses. */

static struct ibv_context *open_urxe0(void)
{
	for (struct ibv_device **list = list_devices(); *list; list++)
		if (!strcmp(ibv_get_device_name(*list), "urxe0"))
			return ibv_open_device(*list);
	return NULL;
}

static struct ibv_pd *make_pd(void)
{
	struct ibv_context *context = open_urxe0();

	return context ? ibv_alloc_pd(context) : NULL;
}

static const char *make_queue(void)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};
	struct ibv_pd *pd = make_pd();
	struct ibv_context *context = pd ? pd->context : NULL;

	attr.send_cq = attr.recv_cq = pd ? ibv_create_cq(context, 2, NULL, NULL, 0) : NULL;
	return attr.send_cq && ibv_create_qp(pd, &attr) ? "done" : strerror(errno);
}

static const char *make_shared_queue(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_pd *pd = make_pd();

	return pd && ibv_create_srq(pd, &attr) ? "done" : strerror(errno);
}

/* --- A multicast group. */

static const char *join_group(void)
{
	struct sockaddr_in own = sockaddr(program->address, "0"),
			   group = sockaddr("239.1.2.3", "0");

	if (rdma_create_id(program->channel, &program->member, NULL, RDMA_PS_UDP) ||
	    rdma_bind_addr(program->member, (struct sockaddr *)&own) ||
	    rdma_join_multicast(program->member, (struct sockaddr *)&group, program))
		return strerror(errno);
	return has_event(TIMEOUT_MS) ? "done" : "no event";
}

static const char *leave_group(void)
{
	struct sockaddr_in group = sockaddr("239.1.2.3", "0");
	struct rdma_cm_event *event = get_event(RDMA_CM_EVENT_MULTICAST_JOIN);

	if (!event || event->id != program->member || event->param.ud.private_data != program)
		return "no event of the group";
	rdma_ack_cm_event(event);
	if (rdma_leave_multicast(program->member, (struct sockaddr *)&group) ||
	    rdma_destroy_id(program->member))
		return strerror(errno);
	return "done";
}

/* --- Commands. */

static const char *save(const char *stream, const char *memory, const char *maps)
{
	struct variables *v = &program->variables;
	int rc = CALL(quiesce)(5000);

	if (rc)
		return result("", rc);
	rc = checkpointer_save(stream, maps);
	memcpy(v->copy, v->at, v->size);
	arena_save(memory, program);
	return result("saved", rc);
}

/* Opens rdma_cm and closes it again, with pauses. */
static void *open_channels(void *ends)
{
	while (!*(atomic_bool *)ends) {
		struct rdma_event_channel *channel = rdma_create_event_channel();

		usleep(1000);
		if (channel)
			rdma_destroy_event_channel(channel);
		usleep(1000);
	}
	return NULL;
}

static const char *storm(int n)
{
	static atomic_bool ends;
	pthread_t opener;
	int rc = 0;

	ends = false;
	if (pthread_create(&opener, NULL, open_channels, &ends))
		errx(1, "pthread_create");
	for (int i = 0; !rc && i < n; i++) {
		rc = CALL(quiesce)(5000);
		if (!rc)
			rc = CALL(resume)();
		usleep(500);
	}
	ends = true;
	pthread_join(opener, NULL);
	return result("stormed", rc);
}

static const char *close_all(void)
{
	if (program->listener && rdma_destroy_id(program->listener))
		return strerror(errno);
	rdma_destroy_event_channel(program->channel);
	return "done";
}

static const char *obey_for(struct connection *c, char *const word[4])
{
	if (!strcmp(word[0], "begin"))
		return begin(c, word[2], word[3]);
	if (!strcmp(word[0], "await"))
		return await(RDMA_CM_EVENT_ESTABLISHED, c->id) ? "done" : "not established";
	if (!strcmp(word[0], "accept"))
		return accept_request(c);
	if (!strcmp(word[0], "send"))
		return send_message(c);
	if (!strcmp(word[0], "receive"))
		return receive_message(c);
	if (!strcmp(word[0], "disconnect"))
		return rdma_disconnect(c->id) ? strerror(errno) : "done";
	if (!strcmp(word[0], "disconnected"))
		return await(RDMA_CM_EVENT_DISCONNECTED, c->id) ? "done" : "not disconnected";
	if (!strcmp(word[0], "destroy"))
		return destroy(c);
	return "?";
}

static const char *obey(char *line)
{
	char *word[4] = {0};
	int n = 0;

	for (char *at = strtok(line, " \n"); at && n < 4; at = strtok(NULL, " \n"))
		word[n++] = at;
	if (!n)
		return "?";
	if (!strcmp(word[0], "listen"))
		return listen_any();
	if (!strcmp(word[0], "events"))
		return has_event(0) ? "1" : "0";
	if (!strcmp(word[0], "queue"))
		return make_queue();
	if (!strcmp(word[0], "shared"))
		return make_shared_queue();
	if (!strcmp(word[0], "group"))
		return join_group();
	if (!strcmp(word[0], "joined"))
		return leave_group();
	if (!strcmp(word[0], "save") && n == 4)
		return save(word[1], word[2], word[3]);
	if (!strcmp(word[0], "resume"))
		return result("resumed", CALL(resume)());
	if (!strcmp(word[0], "storm") && n == 2)
		return storm(atoi(word[1]));
	if (!strcmp(word[0], "close"))
		return close_all();
	return n > 1 ? obey_for(&program->connections[atoi(word[1]) % CONNECTIONS], word) : "?";
}

/* --- Start. */

static void run(const char *address)
{
	list_devices();
	arena_enter();
	program = calloc(1, sizeof(*program));
	snprintf(program->address, sizeof(program->address), "%s", address);
	program->channel = rdma_create_event_channel();
	if (!program->channel)
		err(1, "rdma_create_event_channel");
	if (!dl_iterate_phdr(find_variables, &program->variables))
		errx(1, "no librdmacm");
	program->variables.copy = malloc(program->variables.size);
	program->liburxe = checkpointer_function("urxe_checkpoint_save");
	dprintf(1, "ready\n");
	take_commands(obey);
}

/* Of the memory before arena_enter, which is not restored. */
static void set_devices(struct ibv_device *device)
{
	for (int i = 0; i < CONNECTIONS; i++)
		if (program->connections[i].id)
			program->connections[i].id->verbs->device = device;
	if (program->listener && program->listener->verbs)
		program->listener->verbs->device = device;
}

static void restore(const char *stream, const char *memory, const char *maps)
{
	struct ibv_device **list = list_devices();
	struct variables now = {0};

	reserve_addresses(maps);
	program = arena_load(memory);
	if (program->liburxe != checkpointer_function("urxe_checkpoint_save") ||
	    !dl_iterate_phdr(find_variables, &now) || now.at != program->variables.at ||
	    now.size != program->variables.size)
		errx(1, "the libraries have other addresses than in the saved process");
	memcpy(now.at, program->variables.copy, now.size);
	set_devices(list[0]);
	checkpointer_restore(stream);
	take_commands(obey);
}

int main(int argc, char **argv)
{
	fix_addresses(argv);
	if (argc == 3 && !strcmp(argv[1], "run"))
		run(argv[2]);
	else if (argc == 5 && !strcmp(argv[1], "restore"))
		restore(argv[2], argv[3], argv[4]);
	else
		errx(1, "usage");
	return 0;
}
