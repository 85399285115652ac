/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The kernel's rdma_cm answers for the HCA that backs urxe0: the program sees urxe0. */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include "rdmacm/ids.h"
#include "rdmacm/kernel.h"
#include "rdmacm/rdmacm_daemon.h"
#include "rdmacm/rdmacm_event.h"
#include "rdmacm/router.h"

#define KERNEL          1000 /* descriptor of the kernel's rdma_cm */
#define KERNEL_ID       7    /* first number that the kernel gives */
#define KERNEL_GROUP    21
#define HCA_GUID        0x0200fffe00000001u
#define URXE_GUID       0x0200fffd00000001u
#define OTHER_GUID      0x0200fffe00000002u
#define HCA_PORT        2
#define HCA_INDEX       3           /* device index of the HCA */
#define IPV4            0xc0000201u /* 192.0.2.1 */
#define UNKNOWN         0xc0000202u /* an address whose GID urxe0 has of RoCE v2 only */
#define CONNECT_REQUEST 4
#define ESTABLISHED     9
#define DEVICE_REMOVAL  11
#define MULTICAST_JOIN  12
#define ADDR_CHANGE     14

/* Of the HCA's entries, urxe0 lacks the one at 9. */
static const char table[] = "mlx5_0\n"
			    "port 0200fffe00000001 2 0200fffd00000001 mlx5_0\n"
			    "pkey 0 1\n"
			    "gid 0 5 fe800000000000000200fffefe000001\n"
			    "gid 6 20 00000000000000000000ffffc0000201\n"
			    "gid 7 4 00000000000000000000ffffc0000201\n"
			    "gid 8 6 00000000000000000000ffffc0000202\n"
			    "gid 9 -1 00000000000000000000ffffc0000202\n";

/* What the kernel answers. */
static struct {
	uint32_t n_ids;
	uint64_t guid;
	uint8_t port;
	struct sockaddr_storage source;
	struct ib_uverbs_qp_attr attr;
	struct rdma_ucm_event_resp event, next_event;
	/* The GID table: the last bytes of addresses 192.0.2.0/24, 0: no entry. */
	uint8_t gid[16];
	bool v1[16];
	int gid_error; /* of each read of the table */
} kernel;

static struct rdmacm_file file, other;
static const char *hca_file; /* NULL: no descriptor is free for it */
static int is_active;        /* the result of rdmacm_kernel_has_active_hca() */
static uint32_t n_created;

ssize_t __wrap_rdmacm_kernel_read_hca(char *text, size_t size);
ssize_t __wrap_rdmacm_kernel_read_hca(char *text, size_t size)
{
	size_t n = hca_file ? strlen(hca_file) : 0;

	if (!hca_file)
		return -EMFILE;
	assert_true(n <= size);
	memcpy(text, hca_file, n);
	return (ssize_t)n;
}

int __wrap_rdmacm_kernel_read_gid(const char *device, uint8_t port, uint32_t index,
				  struct rdmacm_kernel_gid *entry);
int __wrap_rdmacm_kernel_read_gid(const char *device, uint8_t port, uint32_t index,
				  struct rdmacm_kernel_gid *entry)
{
	uint8_t gid[16] = {[10] = 0xff, 0xff, 0xc0, 0, 2, (uint8_t)kernel.gid[index]};

	if (kernel.gid_error)
		return kernel.gid_error;
	assert_string_equal(device, "mlx5_0");
	assert_int_equal(port, HCA_PORT);
	if (!kernel.gid[index])
		return -EINVAL;
	memcpy(entry->gid, gid, sizeof(gid));
	entry->v1 = kernel.v1[index];
	return 0;
}

int __wrap_rdmacm_kernel_has_active_hca(void);
int __wrap_rdmacm_kernel_has_active_hca(void)
{
	return is_active;
}

/* Replaces the daemon, which numbers IDs, and has all at one address. */
int __wrap_rdmacm_daemon_run(struct rdmacm_file *f, struct rdmacm_request *request,
			     struct rdmacm_response *response);
int __wrap_rdmacm_daemon_run(struct rdmacm_file *f, struct rdmacm_request *request,
			     struct rdmacm_response *response)
{
	const struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(IPV4)};
	struct rdma_ucm_query_addr_resp addr = {.src_size = sizeof(in)};
	struct rdma_ucm_create_id_resp resp = {0};

	(void)f;
	memcpy(&addr.src_addr, &in, sizeof(in));
	switch (request->command.command) {
	case RDMA_USER_CM_CMD_QUERY: memcpy(response->out, &addr, sizeof(addr)); return 0;
	case RDMA_USER_CM_CMD_CREATE_ID: resp.id = n_created++; break;
	}
	memcpy(response->out, &resp, sizeof(resp));
	return 0;
}

/* --- The kernel */

static void answer(uint32_t command, void *out)
{
	struct rdma_ucm_query_addr_resp addr = {
		.node_guid = kernel.guid, .port_num = kernel.port, .ibdev_index = HCA_INDEX};
	struct rdma_ucm_query_route_resp route = {
		.node_guid = kernel.guid, .port_num = kernel.port, .ibdev_index = HCA_INDEX};
	struct rdma_ucm_create_id_resp created = {.id = KERNEL_ID + kernel.n_ids};
	const struct rdma_ucm_create_id_resp group = {.id = KERNEL_GROUP};

	switch (command) {
	case RDMA_USER_CM_CMD_CREATE_ID:
		kernel.n_ids++;
		memcpy(out, &created, sizeof(created));
		break;
	case RDMA_USER_CM_CMD_QUERY:
		memcpy(&addr.src_addr, &kernel.source, sizeof(addr.src_addr));
		memcpy(out, &addr, sizeof(addr));
		break;
	case RDMA_USER_CM_CMD_QUERY_ROUTE:
		memcpy(&route.src_addr, &kernel.source, sizeof(route.src_addr));
		memcpy(out, &route, sizeof(route));
		break;
	case RDMA_USER_CM_CMD_INIT_QP_ATTR: memcpy(out, &kernel.attr, sizeof(kernel.attr)); break;
	case RDMA_USER_CM_CMD_JOIN_MCAST: memcpy(out, &group, sizeof(group)); break;
	case RDMA_USER_CM_CMD_GET_EVENT:
		memcpy(out, &kernel.event, sizeof(kernel.event));
		if (kernel.next_event.event)
			kernel.event = kernel.next_event;
		break;
	}
}

ssize_t __wrap_write(int fd, const void *buf, size_t count);
ssize_t __wrap_write(int fd, const void *buf, size_t count)
{
	uint8_t command[sizeof(struct rdma_ucm_cmd_hdr) + CM_ATTACH_BYTES];
	const uint8_t *in = command + sizeof(struct rdma_ucm_cmd_hdr);
	struct rdma_ucm_cmd_hdr hdr;
	uint64_t out = 0;

	assert_int_equal(fd, KERNEL);
	memcpy(command, buf, count);
	memcpy(&hdr, command, sizeof(hdr));
	if (rdmacm_response_at(hdr.cmd) != RDMACM_NOWHERE)
		memcpy(&out, in + rdmacm_response_at(hdr.cmd), sizeof(out));
	answer(hdr.cmd, (void *)(uintptr_t)out);
	return (ssize_t)count;
}

static void set_source(uint32_t ipv4)
{
	const struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(ipv4)};

	memcpy(&kernel.source, &in, sizeof(in));
}

/* --- The program */

static void run(uint32_t command, const void *in, uint32_t size, uint32_t out,
		struct rdmacm_response *response)
{
	struct rdmacm_request request = rdmacm_request_make(&file, command, in, size, out);

	assert_int_equal(rdmacm_route(&file, &request, response), 0);
}

/* Creates an ID, and binds it to an address of the kernel's. */
static uint32_t bind_id(uint16_t ps)
{
	const struct rdma_ucm_create_id create = {.uid = 1, .ps = ps};
	const struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(IPV4)};
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_bind bind = {.addr_size = sizeof(in)};
	struct rdmacm_response response;

	run(RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create), sizeof(resp), &response);
	memcpy(&resp, response.out, sizeof(resp));
	bind.id = resp.id;
	memcpy(&bind.addr, &in, sizeof(in));
	run(RDMA_USER_CM_CMD_BIND, &bind, sizeof(bind), 0, &response);
	return resp.id;
}

static struct rdma_ucm_query_addr_resp query(uint32_t id, uint32_t option)
{
	const struct rdma_ucm_query query = {.id = id, .option = option};
	struct rdma_ucm_query_addr_resp resp;
	struct rdmacm_response response;

	run(RDMA_USER_CM_CMD_QUERY, &query, sizeof(query), sizeof(resp), &response);
	memcpy(&resp, response.out, sizeof(resp));
	return resp;
}

static struct rdma_ucm_query_route_resp query_route(uint32_t id)
{
	const struct rdma_ucm_query query = {.id = id};
	struct rdma_ucm_query_route_resp resp;
	struct rdmacm_response response;

	run(RDMA_USER_CM_CMD_QUERY_ROUTE, &query, sizeof(query), sizeof(resp), &response);
	memcpy(&resp, response.out, sizeof(resp));
	return resp;
}

static struct ib_uverbs_qp_attr init_qp_attr(uint32_t id)
{
	const struct rdma_ucm_init_qp_attr init = {.id = id, .qp_state = IBV_QPS_RTR};
	struct ib_uverbs_qp_attr attr;
	struct rdmacm_response response;

	run(RDMA_USER_CM_CMD_INIT_QP_ATTR, &init, sizeof(init), sizeof(attr), &response);
	memcpy(&attr, response.out, sizeof(attr));
	return attr;
}

static struct rdma_ucm_event_resp get_event(struct rdmacm_file *f)
{
	const struct rdma_ucm_get_event get = {0};
	struct rdma_ucm_event_resp event;
	struct rdmacm_response response;
	struct rdmacm_request request = rdmacm_request_make(f, RDMA_USER_CM_CMD_GET_EVENT, &get,
							    sizeof(get), sizeof(event));

	assert_int_equal(rdmacm_route_kernel_event(f, &request, &response), 0);
	memcpy(&event, response.out, sizeof(event));
	return event;
}

static void expect_urxe(uint64_t guid, uint8_t port, uint32_t index)
{
	assert_int_equal(be64toh(guid), URXE_GUID);
	assert_int_equal(port, 1);
	assert_int_equal(index, UINT32_MAX);
}

static void expect_kernels(uint64_t guid, uint8_t port, uint32_t index)
{
	assert_int_equal(guid, kernel.guid);
	assert_int_equal(port, kernel.port);
	assert_int_equal(index, HCA_INDEX);
}

#define EXPECT(device, resp) expect_##device((resp).node_guid, (resp).port_num, (resp).ibdev_index)

static int setup(void **state)
{
	(void)state;
	file = other = (struct rdmacm_file){.kernel = KERNEL, .opening = 1, .socket = -1};
	memset(&kernel, 0, sizeof(kernel));
	kernel.guid = htobe64(HCA_GUID);
	kernel.port = HCA_PORT;
	set_source(IPV4);
	kernel.gid[6] = kernel.gid[7] = 1;
	kernel.gid[8] = kernel.gid[9] = 2;
	kernel.v1[6] = kernel.v1[9] = true;
	hca_file = table;
	is_active = 1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rdmacm_ids_free(&file);
	rdmacm_ids_free(&other);
	return 0;
}

/* --- Tests: the device */

static void answers_name_urxe(void **state)
{
	struct rdma_ucm_query_addr_resp addr;
	struct rdma_ucm_query_route_resp route;
	uint32_t id = bind_id(RDMA_PS_TCP);

	(void)state;
	addr = query(id, RDMA_USER_CM_QUERY_ADDR);
	EXPECT(urxe, addr);
	addr = query(id, RDMA_USER_CM_QUERY_GID);
	EXPECT(urxe, addr);
	route = query_route(id);
	EXPECT(urxe, route);
}

static void address_of_any_family_is_found(void **state)
{
	const struct sockaddr_in6 v6 = {
		.sin6_family = AF_INET6,
		.sin6_addr = {{{0xfe, 0x80, [8] = 2, 0, 0xff, 0xfe, 0xfe, 0, 0, 1}}}};
	struct rdma_ucm_query_route_resp route;

	(void)state;
	memcpy(&kernel.source, &v6, sizeof(v6));
	route = query_route(bind_id(RDMA_PS_TCP));
	EXPECT(urxe, route);
	kernel.source.ss_family = 27; /* AF_IB */
	route = query_route(bind_id(RDMA_PS_TCP));
	EXPECT(urxe, route);
}

static void path_records_stay_as_they_are(void **state)
{
	struct rdma_ucm_query_addr_resp addr = query(bind_id(RDMA_PS_TCP), RDMA_USER_CM_QUERY_PATH);

	(void)state;
	EXPECT(kernels, addr);
}

static void other_devices_of_the_kernel_stay_as_they_are(void **state)
{
	struct rdma_ucm_query_addr_resp addr;

	(void)state;
	kernel.guid = htobe64(OTHER_GUID);
	addr = query(bind_id(RDMA_PS_TCP), RDMA_USER_CM_QUERY_ADDR);
	EXPECT(kernels, addr);
	kernel.guid = htobe64(HCA_GUID);
	kernel.port = HCA_PORT - 1;
	addr = query(bind_id(RDMA_PS_TCP), RDMA_USER_CM_QUERY_ADDR);
	EXPECT(kernels, addr);
}

/* Attributes of the queue pair could then name an entry that urxe0 lacks. */
static void address_without_each_gid_of_urxe_is_the_kernels(void **state)
{
	struct rdma_ucm_query_addr_resp addr;

	(void)state;
	set_source(UNKNOWN);
	addr = query(bind_id(RDMA_PS_TCP), RDMA_USER_CM_QUERY_ADDR);
	EXPECT(kernels, addr);
	set_source(INADDR_LOOPBACK);
	addr = query(bind_id(RDMA_PS_TCP), RDMA_USER_CM_QUERY_ADDR);
	EXPECT(kernels, addr);
}

/* rdma_cm chooses a GID for a loopback address. */
static void loopback_is_of_urxe_that_has_all_gids(void **state)
{
	const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
					.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct rdma_ucm_query_addr_resp addr;

	(void)state;
	hca_file = "mlx5_0\n"
		   "port 0200fffe00000001 2 0200fffd00000001\n"
		   "pkey 0 0\n"
		   "gid 7 4 00000000000000000000ffffc0000201\n";
	set_source(INADDR_LOOPBACK);
	addr = query(bind_id(RDMA_PS_TCP), RDMA_USER_CM_QUERY_ADDR);
	EXPECT(urxe, addr);
	memcpy(&kernel.source, &v6, sizeof(v6));
	addr = query(bind_id(RDMA_PS_TCP), RDMA_USER_CM_QUERY_ADDR);
	EXPECT(urxe, addr);
}

/* As of a daemon that writes the name only, or that has no HCA. */
static void without_counterparts_the_device_is_the_kernels(void **state)
{
	static const char *const files[] = {"mlx5_0\n", "\n", ""};

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct rdma_ucm_query_addr_resp addr;

		hca_file = files[i];
		addr = query(bind_id(RDMA_PS_TCP), RDMA_USER_CM_QUERY_ADDR);
		EXPECT(kernels, addr);
	}
}

static void device_of_an_id_never_changes(void **state)
{
	uint32_t first = bind_id(RDMA_PS_TCP), second = bind_id(RDMA_PS_TCP);
	struct rdma_ucm_query_addr_resp addr;

	(void)state;
	kernel.guid = 0; /* not bound to a device yet */
	addr = query(first, RDMA_USER_CM_QUERY_ADDR);
	assert_int_equal(addr.node_guid, 0);
	kernel.guid = htobe64(HCA_GUID);
	addr = query(first, RDMA_USER_CM_QUERY_ADDR);
	EXPECT(urxe, addr);
	hca_file = "\n";
	addr = query(first, RDMA_USER_CM_QUERY_ADDR);
	EXPECT(urxe, addr);
	addr = query(second, RDMA_USER_CM_QUERY_ADDR);
	EXPECT(kernels, addr);
	hca_file = table;
	addr = query(second, RDMA_USER_CM_QUERY_ADDR);
	EXPECT(kernels, addr);
}

static void connection_request_is_of_urxe(void **state)
{
	struct rdma_ucm_query_route_resp route;
	struct rdma_ucm_event_resp event;

	(void)state;
	bind_id(RDMA_PS_TCP);
	kernel.event = (struct rdma_ucm_event_resp){
		.uid = 1, .id = KERNEL_ID + 1, .event = CONNECT_REQUEST};
	event = get_event(&file);
	route = query_route(event.id);
	EXPECT(urxe, route);
}

/* Fetches the event of a connection request to the newest listener, whose uid is 1. */
static uint32_t get_request(void)
{
	kernel.event = (struct rdma_ucm_event_resp){
		.uid = 1, .id = KERNEL_ID + 1, .event = CONNECT_REQUEST};
	return get_event(&file).id;
}

/* Makes a listener while the HCA's port is down, so that the program knows the listener's device as
 * urxe0. The kernel's first ID listens, too. */
static void listen_without_hca(void)
{
	struct rdma_ucm_listen listen = {.backlog = 1};
	struct rdmacm_response response;

	is_active = 0;
	listen.id = bind_id(RDMA_PS_TCP);
	run(RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0, &response);
}

/* Fetches that event of the kernel. Returns the result. */
static int try_event(uint32_t event, uint32_t kernel_id)
{
	const struct rdma_ucm_get_event get = {0};
	struct rdmacm_response response;
	struct rdmacm_request request =
		rdmacm_request_make(&file, RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get),
				    sizeof(struct rdma_ucm_event_resp));

	kernel.event = (struct rdma_ucm_event_resp){.uid = 1, .id = kernel_id, .event = event};
	return rdmacm_route_kernel_event(&file, &request, &response);
}

/* Before urxed knows the HCA, and at other devices, a request is refused. */
static void listener_of_urxe_gets_requests_of_its_hca(void **state)
{
	struct rdma_ucm_query_addr_resp addr;

	(void)state;
	hca_file = "\n";
	listen_without_hca();
	assert_int_equal(try_event(CONNECT_REQUEST, KERNEL_ID + 1), RDMACM_HIDDEN);
	hca_file = table;
	addr = query(get_request(), RDMA_USER_CM_QUERY_ADDR);
	EXPECT(urxe, addr);
	kernel.guid = htobe64(OTHER_GUID);
	assert_int_equal(try_event(CONNECT_REQUEST, KERNEL_ID + 2), RDMACM_HIDDEN);
}

/* urxe0 stays, and so does the listener. */
static void listener_of_urxe_outlives_its_hca(void **state)
{
	(void)state;
	listen_without_hca();
	assert_int_equal(kernel.n_ids, 1);
	assert_int_equal(try_event(DEVICE_REMOVAL, KERNEL_ID), RDMACM_HIDDEN);
	assert_int_equal(try_event(ADDR_CHANGE, KERNEL_ID), RDMACM_HIDDEN);
	is_active = 1;
	bind_id(RDMA_PS_TCP);
	assert_int_equal(try_event(DEVICE_REMOVAL, KERNEL_ID + 1), 0);
}

/* A program that waits with EPOLLET is not told again of the second event. */
static void hidden_event_does_not_delay_the_next_one(void **state)
{
	const struct rdma_ucm_get_event get = {0};
	struct rdma_ucm_event_resp event;
	struct rdmacm_response response;
	struct rdmacm_request request = rdmacm_request_make(&file, RDMA_USER_CM_CMD_GET_EVENT, &get,
							    sizeof(get), sizeof(event));
	uint32_t id;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	file.event_reader = ends[0];
	listen_without_hca();
	is_active = 1;
	id = bind_id(RDMA_PS_TCP);
	kernel.event = kernel.next_event =
		(struct rdma_ucm_event_resp){.id = KERNEL_ID, .event = DEVICE_REMOVAL};
	kernel.next_event.id = KERNEL_ID + 1;
	kernel.next_event.uid = id;
	assert_int_equal(rdmacm_get_event(&file, ends[0], &request, &response), 0);
	memcpy(&event, response.out, sizeof(event));
	assert_int_equal(event.uid, id);
	close(ends[0]);
	close(ends[1]);
}

/* A program makes the queue pairs of a listener's connections in one protection domain. */
static void connection_request_has_the_device_of_its_listener(void **state)
{
	static const char *const files[] = {"\n", "mlx5_0\n", NULL,
					    "mlx5_0\n"
					    "port 0200fffe00000001 2 0200fffd00000001 mlx5_0\n"
					    "closed\n"
					    "gid 6 20 00000000000000000000ffffc0000201\n"};
	uint32_t listener = bind_id(RDMA_PS_TCP);
	struct rdma_ucm_query_addr_resp addr;

	(void)state;
	addr = query(listener, RDMA_USER_CM_QUERY_ADDR);
	EXPECT(urxe, addr);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		hca_file = files[i];
		addr = query(get_request(), RDMA_USER_CM_QUERY_ADDR);
		EXPECT(urxe, addr);
	}
}

static void connection_request_to_the_kernels_listener_is_the_kernels(void **state)
{
	struct rdma_ucm_query_addr_resp addr;

	(void)state;
	hca_file = "mlx5_0\n";
	addr = query(bind_id(RDMA_PS_TCP), RDMA_USER_CM_QUERY_ADDR);
	EXPECT(kernels, addr);
	hca_file = table;
	addr = query(get_request(), RDMA_USER_CM_QUERY_ADDR);
	EXPECT(kernels, addr);
}

/* A listener at the wildcard has no device, and its requests come by any port. */
static void first_request_decides_for_a_listener_without_device(void **state)
{
	struct rdma_ucm_query_addr_resp addr;

	(void)state;
	bind_id(RDMA_PS_TCP);
	kernel.guid = htobe64(OTHER_GUID);
	addr = query(get_request(), RDMA_USER_CM_QUERY_ADDR);
	EXPECT(kernels, addr);
	kernel.guid = htobe64(HCA_GUID);
	addr = query(get_request(), RDMA_USER_CM_QUERY_ADDR);
	EXPECT(urxe, addr);
	hca_file = "\n";
	addr = query(get_request(), RDMA_USER_CM_QUERY_ADDR);
	EXPECT(urxe, addr);
	hca_file = table;
	set_source(UNKNOWN); /* urxe0 lacks a GID of this address */
	addr = query(get_request(), RDMA_USER_CM_QUERY_ADDR);
	EXPECT(kernels, addr);
	set_source(IPV4);
	addr = query(get_request(), RDMA_USER_CM_QUERY_ADDR);
	EXPECT(urxe, addr);
}

static void first_request_of_the_kernels_device_decides_too(void **state)
{
	struct rdma_ucm_query_addr_resp addr;

	(void)state;
	bind_id(RDMA_PS_TCP);
	hca_file = "\n";
	addr = query(get_request(), RDMA_USER_CM_QUERY_ADDR);
	EXPECT(kernels, addr);
	hca_file = table;
	addr = query(get_request(), RDMA_USER_CM_QUERY_ADDR);
	EXPECT(kernels, addr);
}

/* librdmacm moves the requests of a synchronous listener before it asks for their device. */
static void moved_connection_request_has_the_device_of_its_listener(void **state)
{
	struct rdma_ucm_query moved = {.option = RDMA_USER_CM_QUERY_ADDR};
	struct rdma_ucm_migrate_id migrate = {0};
	struct rdma_ucm_query_addr_resp addr;
	struct rdmacm_response response;
	struct rdmacm_request request;

	(void)state;
	query(bind_id(RDMA_PS_TCP), RDMA_USER_CM_QUERY_ADDR);
	hca_file = "\n";
	moved.id = migrate.id = get_request();
	request = rdmacm_request_make(&other, RDMA_USER_CM_CMD_MIGRATE_ID, &migrate,
				      sizeof(migrate), sizeof(struct rdma_ucm_migrate_resp));
	request.from = &file;
	assert_int_equal(rdmacm_route(&other, &request, &response), 0);
	request = rdmacm_request_make(&other, RDMA_USER_CM_CMD_QUERY, &moved, sizeof(moved),
				      sizeof(addr));
	assert_int_equal(rdmacm_route(&other, &request, &response), 0);
	memcpy(&addr, response.out, sizeof(addr));
	EXPECT(urxe, addr);
}

static void closed_port_gets_no_new_ids(void **state)
{
	struct rdma_ucm_query_addr_resp addr;

	(void)state;
	hca_file = "mlx5_0\n"
		   "port 0200fffe00000001 2 0200fffd00000001 mlx5_0\n"
		   "closed\n"
		   "gid 6 20 00000000000000000000ffffc0000201\n";
	addr = query(bind_id(RDMA_PS_TCP), RDMA_USER_CM_QUERY_ADDR);
	EXPECT(kernels, addr);
}

/* The device of an ID never changes, so none is chosen without the file. */
static void lack_of_descriptors_decides_no_device(void **state)
{
	const uint32_t id = bind_id(RDMA_PS_TCP);
	const struct rdma_ucm_query to_query = {.id = id, .option = RDMA_USER_CM_QUERY_ADDR};
	struct rdma_ucm_query_addr_resp addr;
	struct rdmacm_request request = rdmacm_request_make(
		&file, RDMA_USER_CM_CMD_QUERY, &to_query, sizeof(to_query), sizeof(addr));
	struct rdmacm_response response;

	(void)state;
	hca_file = NULL;
	assert_int_equal(rdmacm_route(&file, &request, &response), -EMFILE);
	hca_file = table;
	addr = query(id, RDMA_USER_CM_QUERY_ADDR);
	EXPECT(urxe, addr);
}

/* --- Tests: attributes of queue pairs */

static void set_attr(uint32_t mask, uint8_t gid_index, uint16_t pkey_index)
{
	struct ib_uverbs_ah_attr ah = {
		.grh.sgid_index = gid_index, .is_global = 1, .port_num = HCA_PORT};

	kernel.attr = (struct ib_uverbs_qp_attr){.qp_attr_mask = mask,
						 .dest_qp_num = 77,
						 .ah_attr = ah,
						 .alt_ah_attr = ah,
						 .pkey_index = pkey_index,
						 .alt_pkey_index = pkey_index,
						 .port_num = HCA_PORT,
						 .alt_port_num = HCA_PORT};
}

static void queue_pair_gets_port_and_indices_of_urxe(void **state)
{
	uint32_t id = bind_id(RDMA_PS_TCP);
	struct ib_uverbs_qp_attr attr;

	(void)state;
	query_route(id);
	set_attr(IBV_QP_AV | IBV_QP_PORT | IBV_QP_PKEY_INDEX, 7, 0);
	attr = init_qp_attr(id);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.pkey_index, 1);
	assert_int_equal(attr.ah_attr.port_num, 1);
	assert_int_equal(attr.ah_attr.grh.sgid_index, 4);
	assert_int_equal(attr.dest_qp_num, 77);
	set_attr(IBV_QP_AV | IBV_QP_ALT_PATH, 6, 0);
	attr = init_qp_attr(id);
	assert_int_equal(attr.ah_attr.grh.sgid_index, 20);
	assert_int_equal(attr.alt_port_num, 1);
	assert_int_equal(attr.alt_pkey_index, 1);
	assert_int_equal(attr.alt_ah_attr.port_num, 1);
	assert_int_equal(attr.alt_ah_attr.grh.sgid_index, 20);
}

/* urxe0 refuses such an index, as the kernel's device does if the address has gone. */
static void index_without_counterpart_is_invalid(void **state)
{
	uint32_t id = bind_id(RDMA_PS_TCP);

	(void)state;
	query_route(id);
	set_attr(IBV_QP_AV | IBV_QP_PKEY_INDEX, 9, 1);
	assert_int_equal(init_qp_attr(id).ah_attr.grh.sgid_index, UINT8_MAX);
	assert_int_equal(init_qp_attr(id).pkey_index, UINT8_MAX);
	set_attr(IBV_QP_AV | IBV_QP_PKEY_INDEX, 7, 0);
	hca_file = "mlx5_1\n"
		   "port 0200fffe00000002 2 0200fffd00000001\n"
		   "pkey 0 0\n"
		   "gid 7 4 00000000000000000000ffffc0000201\n";
	assert_int_equal(init_qp_attr(id).ah_attr.grh.sgid_index, UINT8_MAX);
	assert_int_equal(init_qp_attr(id).pkey_index, UINT8_MAX);
}

/* The kernel has given the entry to another address since the daemon has read the table. */
static void index_of_another_gid_is_invalid(void **state)
{
	uint32_t id = bind_id(RDMA_PS_TCP);

	(void)state;
	query_route(id);
	set_attr(IBV_QP_AV, 7, 0);
	kernel.gid[7] = 3;
	assert_int_equal(init_qp_attr(id).ah_attr.grh.sgid_index, UINT8_MAX);
	kernel.gid[7] = 0;
	assert_int_equal(init_qp_attr(id).ah_attr.grh.sgid_index, UINT8_MAX);
	kernel.gid[7] = 1;
	kernel.v1[7] = true;
	assert_int_equal(init_qp_attr(id).ah_attr.grh.sgid_index, UINT8_MAX);
	kernel.v1[7] = false;
	assert_int_equal(init_qp_attr(id).ah_attr.grh.sgid_index, 4);
	/* The kernel has given the index to the ID's address, and the file names another one. */
	set_attr(IBV_QP_AV, 8, 0);
	kernel.gid[8] = 1;
	assert_int_equal(init_qp_attr(id).ah_attr.grh.sgid_index, UINT8_MAX);
}

/* Then the entry counts as that of the ID's address. */
static void gid_is_compared_also_without_the_kernels_table(void **state)
{
	uint32_t id = bind_id(RDMA_PS_TCP);

	(void)state;
	query_route(id);
	kernel.gid_error = -ENOENT;
	set_attr(IBV_QP_AV, 7, 0);
	assert_int_equal(init_qp_attr(id).ah_attr.grh.sgid_index, 4);
	set_attr(IBV_QP_AV, 8, 0);
	assert_int_equal(init_qp_attr(id).ah_attr.grh.sgid_index, UINT8_MAX);
}

static void index_of_a_loopback_id_is_of_any_gid(void **state)
{
	uint32_t id;

	(void)state;
	hca_file = "mlx5_0\n"
		   "port 0200fffe00000001 2 0200fffd00000001 mlx5_0\n"
		   "gid 7 4 00000000000000000000ffffc0000201\n"
		   "gid 8 6 00000000000000000000ffffc0000202\n";
	set_source(INADDR_LOOPBACK);
	id = bind_id(RDMA_PS_TCP);
	query_route(id);
	set_attr(IBV_QP_AV, 8, 0);
	assert_int_equal(init_qp_attr(id).ah_attr.grh.sgid_index, 6);
	kernel.gid[8] = 1;
	assert_int_equal(init_qp_attr(id).ah_attr.grh.sgid_index, UINT8_MAX);
}

/* The transition to RTS needs no table. */
static void attributes_without_index_need_no_file(void **state)
{
	uint32_t id = bind_id(RDMA_PS_TCP);
	const struct rdma_ucm_init_qp_attr init = {.id = id, .qp_state = IBV_QPS_RTR};
	struct rdmacm_request request =
		rdmacm_request_make(&file, RDMA_USER_CM_CMD_INIT_QP_ATTR, &init, sizeof(init),
				    sizeof(struct ib_uverbs_qp_attr));
	struct rdmacm_response response;

	(void)state;
	query_route(id);
	hca_file = NULL;
	set_attr(IBV_QP_PORT, 7, 0);
	assert_int_equal(init_qp_attr(id).port_num, 1);
	set_attr(IBV_QP_AV, 7, 0);
	assert_int_equal(rdmacm_route(&file, &request, &response), -EMFILE);
	hca_file = table;
	kernel.gid_error = -EMFILE;
	assert_int_equal(rdmacm_route(&file, &request, &response), -EMFILE);
}

static void queue_pair_of_another_device_keeps_its_attributes(void **state)
{
	uint32_t id = bind_id(RDMA_PS_TCP);
	struct ib_uverbs_qp_attr attr;

	(void)state;
	kernel.guid = htobe64(OTHER_GUID);
	query_route(id);
	set_attr(IBV_QP_AV | IBV_QP_PORT | IBV_QP_PKEY_INDEX, 7, 0);
	attr = init_qp_attr(id);
	assert_memory_equal(&attr, &kernel.attr, sizeof(attr));
}

/* --- Tests: events with an address handle */

static void set_event(uint32_t type, uint32_t number)
{
	kernel.event = (struct rdma_ucm_event_resp){.uid = 1, .id = number, .event = type};
	kernel.event.param.ud.ah_attr = (struct ib_uverbs_ah_attr){
		.grh.sgid_index = 7, .is_global = 1, .port_num = HCA_PORT};
}

static void expect_ah(struct rdma_ucm_event_resp event, uint8_t port, uint8_t index)
{
	assert_int_equal(event.param.ud.ah_attr.port_num, port);
	assert_int_equal(event.param.ud.ah_attr.grh.sgid_index, index);
}

static uint32_t join(uint32_t id)
{
	const struct rdma_ucm_join_mcast join = {.id = id};
	struct rdma_ucm_create_id_resp resp;
	struct rdmacm_response response;

	run(RDMA_USER_CM_CMD_JOIN_MCAST, &join, sizeof(join), sizeof(resp), &response);
	memcpy(&resp, response.out, sizeof(resp));
	return resp.id;
}

static void established_datagrams_go_by_urxe(void **state)
{
	(void)state;
	query_route(bind_id(RDMA_PS_UDP));
	set_event(ESTABLISHED, KERNEL_ID);
	expect_ah(get_event(&file), 1, 4);
}

/* Private data takes the place of the address handle in events of connections. */
static void event_of_a_connection_stays_as_it_is(void **state)
{
	struct rdma_ucm_event_resp event;

	(void)state;
	query_route(bind_id(RDMA_PS_TCP));
	set_event(ESTABLISHED, KERNEL_ID);
	event = get_event(&file);
	assert_memory_equal(&event, &kernel.event, sizeof(event));
}

static void multicast_goes_by_urxe(void **state)
{
	uint32_t id = bind_id(RDMA_PS_UDP), number;
	struct rdma_ucm_event_resp event;

	(void)state;
	query_route(id);
	number = join(id);
	set_event(MULTICAST_JOIN, KERNEL_GROUP);
	event = get_event(&file);
	assert_int_equal(event.id, number);
	expect_ah(event, 1, 4);
}

static void group_of_another_device_stays_as_it_is(void **state)
{
	uint32_t id = bind_id(RDMA_PS_UDP);

	(void)state;
	kernel.guid = htobe64(OTHER_GUID);
	query_route(id);
	join(id);
	set_event(MULTICAST_JOIN, KERNEL_GROUP);
	expect_ah(get_event(&file), HCA_PORT, 7);
}

/* The program moves the ID to another channel before it fetches the event. */
static void group_moves_with_its_id(void **state)
{
	uint32_t id = bind_id(RDMA_PS_UDP);
	const struct rdma_ucm_migrate_id migrate = {.id = id};
	struct rdmacm_request request =
		rdmacm_request_make(&other, RDMA_USER_CM_CMD_MIGRATE_ID, &migrate, sizeof(migrate),
				    sizeof(struct rdma_ucm_migrate_resp));
	struct rdmacm_response response;

	(void)state;
	query_route(id);
	join(id);
	request.from = &file;
	assert_int_equal(rdmacm_route(&other, &request, &response), 0);
	set_event(MULTICAST_JOIN, KERNEL_GROUP);
	expect_ah(get_event(&other), 1, 4);
	assert_null(rdmacm_id_find_group(&file, KERNEL_GROUP));
}

static void left_group_is_forgotten(void **state)
{
	uint32_t id = bind_id(RDMA_PS_UDP);
	struct rdma_ucm_destroy_id leave;
	struct rdmacm_response response;

	(void)state;
	query_route(id);
	leave = (struct rdma_ucm_destroy_id){.id = join(id)};
	assert_non_null(rdmacm_id_find_group(&file, KERNEL_GROUP));
	run(RDMA_USER_CM_CMD_LEAVE_MCAST, &leave, sizeof(leave),
	    sizeof(struct rdma_ucm_destroy_id_resp), &response);
	assert_null(rdmacm_id_find_group(&file, KERNEL_GROUP));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(answers_name_urxe, setup, teardown),
		cmocka_unit_test_setup_teardown(address_of_any_family_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(path_records_stay_as_they_are, setup, teardown),
		cmocka_unit_test_setup_teardown(other_devices_of_the_kernel_stay_as_they_are, setup,
						teardown),
		cmocka_unit_test_setup_teardown(address_without_each_gid_of_urxe_is_the_kernels,
						setup, teardown),
		cmocka_unit_test_setup_teardown(loopback_is_of_urxe_that_has_all_gids, setup,
						teardown),
		cmocka_unit_test_setup_teardown(without_counterparts_the_device_is_the_kernels,
						setup, teardown),
		cmocka_unit_test_setup_teardown(device_of_an_id_never_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(connection_request_is_of_urxe, setup, teardown),
		cmocka_unit_test_setup_teardown(listener_of_urxe_gets_requests_of_its_hca, setup,
						teardown),
		cmocka_unit_test_setup_teardown(listener_of_urxe_outlives_its_hca, setup, teardown),
		cmocka_unit_test_setup_teardown(hidden_event_does_not_delay_the_next_one, setup,
						teardown),
		cmocka_unit_test_setup_teardown(connection_request_has_the_device_of_its_listener,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			connection_request_to_the_kernels_listener_is_the_kernels, setup, teardown),
		cmocka_unit_test_setup_teardown(first_request_decides_for_a_listener_without_device,
						setup, teardown),
		cmocka_unit_test_setup_teardown(first_request_of_the_kernels_device_decides_too,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			moved_connection_request_has_the_device_of_its_listener, setup, teardown),
		cmocka_unit_test_setup_teardown(closed_port_gets_no_new_ids, setup, teardown),
		cmocka_unit_test_setup_teardown(lack_of_descriptors_decides_no_device, setup,
						teardown),
		cmocka_unit_test_setup_teardown(queue_pair_gets_port_and_indices_of_urxe, setup,
						teardown),
		cmocka_unit_test_setup_teardown(index_without_counterpart_is_invalid, setup,
						teardown),
		cmocka_unit_test_setup_teardown(index_of_another_gid_is_invalid, setup, teardown),
		cmocka_unit_test_setup_teardown(gid_is_compared_also_without_the_kernels_table,
						setup, teardown),
		cmocka_unit_test_setup_teardown(index_of_a_loopback_id_is_of_any_gid, setup,
						teardown),
		cmocka_unit_test_setup_teardown(attributes_without_index_need_no_file, setup,
						teardown),
		cmocka_unit_test_setup_teardown(queue_pair_of_another_device_keeps_its_attributes,
						setup, teardown),
		cmocka_unit_test_setup_teardown(established_datagrams_go_by_urxe, setup, teardown),
		cmocka_unit_test_setup_teardown(event_of_a_connection_stays_as_it_is, setup,
						teardown),
		cmocka_unit_test_setup_teardown(multicast_goes_by_urxe, setup, teardown),
		cmocka_unit_test_setup_teardown(group_of_another_device_stays_as_it_is, setup,
						teardown),
		cmocka_unit_test_setup_teardown(group_moves_with_its_id, setup, teardown),
		cmocka_unit_test_setup_teardown(left_group_is_forgotten, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
