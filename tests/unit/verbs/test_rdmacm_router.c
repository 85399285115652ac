/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* IDs beside a kernel that has an rdma_cm of its own: on the wildcard address, and with an HCA. */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rdmacm/ids.h"
#include "rdmacm/rdmacm_daemon.h"
#include "rdmacm/router.h"

#define KERNEL          1000 /* descriptor of the kernel's rdma_cm */
#define IB_PORT         30   /* of a struct sockaddr_ib: the end of its service ID */
#define IDS             64
#define IPV4            0xc0000201u /* 192.0.2.1 */
#define CHOSEN          40000       /* first port that the kernel chooses */
#define CHOSEN_D        50000       /* and the daemon */
#define HCA_GUID        0x0200fffe00000001u
#define OTHER_GUID      0x0200fffe00000002u
#define UID             1 /* of each ID */
#define CONNECT_REQUEST 4
#define WRITE_CM_EVENT  24 /* a command of Linux 6.17 */

/* The kernel's rdma_cm, or the daemon's. */
struct side {
	struct {
		bool exists, listens, afonly;
		struct sockaddr_storage addr; /* family 0: not bound */
	} ids[IDS];
	uint32_t n;
	uint16_t taken; /* another program's port */
	int taken_error;
	int listen_error; /* of the next command to listen */
	bool lacks_addresses, lacks_options;
	uint32_t ids_written; /* bit mask of IDs for which the program has written an event */
	uint64_t guid;        /* of the device of each ID; 0: the address decides no device */
	uint16_t choice;      /* the next port for a program that names none */
};

static const struct in6_addr ipv6 = {{{0x20, 0x01, 0x0d, 0xb8, [15] = 1}}}; /* 2001:db8::1 */

static struct side kernel, daemon_side;
static struct rdmacm_file file;
static bool late_kernel; /* the kernel's rdma_cm can be opened */
static int has_hca;      /* the result of rdmacm_kernel_has_active_hca() */

/* Replaces the run directory's file that names the HCA. */
int __wrap_rdmacm_kernel_has_active_hca(void);
int __wrap_rdmacm_kernel_has_active_hca(void)
{
	return has_hca;
}

/* Replaces the contents of that file. */
ssize_t __wrap_rdmacm_kernel_read_hca(char *text, size_t size);
ssize_t __wrap_rdmacm_kernel_read_hca(char *text, size_t size)
{
	static const char table[] = "mlx5_0\n"
				    "port 0200fffe00000001 1 0200fffd00000001 mlx5_0\n"
				    "pkey 0 0\n"
				    "gid 0 0 00000000000000000000ffffc0000201\n";

	assert_true(sizeof(table) <= size);
	memcpy(text, table, sizeof(table) - 1);
	return sizeof(table) - 1;
}

/* Replaces the opening of the kernel's rdma_cm after that of the file. */
bool __wrap_rdmacm_open_kernel(struct rdmacm_file *f);
bool __wrap_rdmacm_open_kernel(struct rdmacm_file *f)
{
	if (late_kernel)
		f->kernel = KERNEL;
	return f->kernel >= 0;
}

/* --- Commands of both */

static uint16_t port_of(const struct sockaddr_storage *addr)
{
	const uint8_t *bytes = (const uint8_t *)addr + (addr->ss_family == AF_IB ? IB_PORT : 2);

	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static void set_port(struct sockaddr_storage *addr, uint16_t port)
{
	uint8_t *bytes = (uint8_t *)addr + (addr->ss_family == AF_IB ? IB_PORT : 2);

	bytes[0] = (uint8_t)(port >> 8);
	bytes[1] = (uint8_t)port;
}

static int bind_side(struct side *side, uint32_t id, const struct sockaddr_storage *addr)
{
	struct sockaddr_storage *own = &side->ids[id].addr;

	if (own->ss_family)
		return -EINVAL;
	if (side->lacks_addresses || (port_of(addr) && port_of(addr) == side->taken))
		return side->taken_error;
	*own = *addr;
	if (!port_of(addr))
		set_port(own, side->choice++);
	return 0;
}

/* The value of an option at the address `at`, which may be unaligned. */
static bool read_flag(uint64_t at)
{
	int value;

	memcpy(&value, (const void *)(uintptr_t)at, sizeof(value));
	return value;
}

static int run_side(struct side *side, uint32_t command, const void *in, uint32_t id, void *out)
{
	const struct rdma_ucm_event_resp request = {
		.uid = UID, .id = side->n, .event = CONNECT_REQUEST};
	struct rdma_ucm_create_id_resp created = {.id = side->n};
	struct rdma_ucm_query_addr_resp addr = {
		.node_guid = side->guid, .port_num = 1, .src_size = sizeof(struct sockaddr_in6)};
	struct sockaddr_storage to = {0};
	struct rdma_ucm_resolve_addr resolve;
	struct rdma_ucm_resolve_ip resolve_ip;
	struct rdma_ucm_bind_ip bind_ip;
	struct rdma_ucm_set_option option;
	struct rdma_ucm_bind bind;
	int rc;

	switch (command) {
	case RDMA_USER_CM_CMD_CREATE_ID:
		side->ids[side->n++].exists = true;
		memcpy(out, &created, sizeof(created));
		return 0;
	case RDMA_USER_CM_CMD_DESTROY_ID: side->ids[id].exists = false; return 0;
	case RDMA_USER_CM_CMD_BIND_IP:
		memcpy(&bind_ip, in, sizeof(bind_ip));
		memcpy(&to, &bind_ip.addr, sizeof(bind_ip.addr));
		return bind_side(side, id, &to);
	case RDMA_USER_CM_CMD_BIND:
		memcpy(&bind, in, sizeof(bind));
		memcpy(&to, &bind.addr, sizeof(bind.addr));
		return bind_side(side, id, &to);
	case RDMA_USER_CM_CMD_RESOLVE_IP:
		memcpy(&resolve_ip, in, sizeof(resolve_ip));
		memcpy(&to, &resolve_ip.src_addr, sizeof(resolve_ip.src_addr));
		return bind_side(side, id, &to);
	case RDMA_USER_CM_CMD_RESOLVE_ADDR:
		memcpy(&resolve, in, sizeof(resolve));
		memcpy(&to, &resolve.src_addr, sizeof(resolve.src_addr));
		return bind_side(side, id, &to);
	case RDMA_USER_CM_CMD_QUERY:
		memcpy(&addr.src_addr, &side->ids[id].addr, sizeof(addr.src_addr));
		memcpy(out, &addr, sizeof(addr));
		return 0;
	case RDMA_USER_CM_CMD_LISTEN:
		if (side->listen_error) {
			rc = side->listen_error;
			side->listen_error = 0;
			return rc;
		}
		side->ids[id].listens = side->ids[id].addr.ss_family;
		return side->ids[id].listens ? 0 : -EINVAL;
	case RDMA_USER_CM_CMD_SET_OPTION:
		if (side->lacks_options)
			return -ENOSYS;
		memcpy(&option, in, sizeof(option));
		assert_int_equal(option.level, RDMA_OPTION_ID);
		assert_int_equal(option.optlen, sizeof(int));
		if (option.optname == RDMA_OPTION_ID_AFONLY)
			side->ids[id].afonly = read_flag(option.optval);
		return 0;
	case RDMA_USER_CM_CMD_GET_EVENT: memcpy(out, &request, sizeof(request)); return 0;
	case WRITE_CM_EVENT: side->ids_written |= 1u << id; return 0;
	default: return -ENOSYS;
	}
}

/* Replaces the daemon. */
int __wrap_rdmacm_daemon_run(struct rdmacm_file *f, struct rdmacm_request *request,
			     struct rdmacm_response *response);
int __wrap_rdmacm_daemon_run(struct rdmacm_file *f, struct rdmacm_request *request,
			     struct rdmacm_response *response)
{
	uint32_t id = 0;

	(void)f;
	rdmacm_id_of(request, &id);
	return run_side(&daemon_side, request->command.command, request->in, id, response->out);
}

/* Replaces the kernel. */
ssize_t __wrap_write(int fd, const void *buf, size_t count);
ssize_t __wrap_write(int fd, const void *buf, size_t count)
{
	uint8_t command[sizeof(struct rdma_ucm_cmd_hdr) + CM_ATTACH_BYTES];
	const uint8_t *in = command + sizeof(struct rdma_ucm_cmd_hdr);
	struct rdma_ucm_cmd_hdr hdr;
	uint32_t id = 0;
	uint64_t out = 0;
	int rc;

	assert_int_equal(fd, KERNEL);
	memcpy(command, buf, count);
	memcpy(&hdr, command, sizeof(hdr));
	if (rdmacm_id_at(hdr.cmd) != RDMACM_NOWHERE)
		memcpy(&id, in + rdmacm_id_at(hdr.cmd), sizeof(id));
	if (rdmacm_response_at(hdr.cmd) != RDMACM_NOWHERE)
		memcpy(&out, in + rdmacm_response_at(hdr.cmd), sizeof(out));
	rc = run_side(&kernel, hdr.cmd, in, id, (void *)(uintptr_t)out);
	if (!rc)
		return (ssize_t)count;
	errno = -rc;
	return -1;
}

/* --- The program */

static int run(uint32_t command, const void *in, uint32_t size, uint32_t out,
	       struct rdmacm_response *response)
{
	struct rdmacm_request request = rdmacm_request_make(&file, command, in, size, out);

	return rdmacm_route(&file, &request, response);
}

static uint32_t create_id(void)
{
	const struct rdma_ucm_create_id create = {.uid = UID, .ps = RDMA_PS_TCP};
	struct rdma_ucm_create_id_resp resp;
	struct rdmacm_response response;

	assert_int_equal(
		run(RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create), sizeof(resp), &response),
		0);
	memcpy(&resp, response.out, sizeof(resp));
	return resp.id;
}

static int bind_to(uint32_t id, struct sockaddr_storage addr, uint16_t port)
{
	struct rdma_ucm_bind bind = {.id = id, .addr_size = sizeof(struct sockaddr_in6)};
	struct rdmacm_response response;

	set_port(&addr, port);
	memcpy(&bind.addr, &addr, sizeof(bind.addr));
	return run(RDMA_USER_CM_CMD_BIND, &bind, sizeof(bind), 0, &response);
}

static int bind_any(uint32_t id, sa_family_t family, uint16_t port)
{
	return bind_to(id, (struct sockaddr_storage){.ss_family = family}, port);
}

static int bind_to_ipv4(uint32_t id, uint32_t ipv4, uint16_t port)
{
	const struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(ipv4)};
	struct sockaddr_storage addr = {0};

	memcpy(&addr, &in, sizeof(in));
	return bind_to(id, addr, port);
}

static int bind_ipv4(uint32_t id, uint16_t port)
{
	return bind_to_ipv4(id, IPV4, port);
}

/* As librdmacm without support for AF_IB does. */
static int bind_ip(uint32_t id, struct in6_addr addr, uint16_t port)
{
	struct rdma_ucm_bind_ip bind = {.id = id};
	struct rdmacm_response response;

	bind.addr.sin6_family = AF_INET6;
	bind.addr.sin6_port = htons(port);
	bind.addr.sin6_addr = addr;
	return run(RDMA_USER_CM_CMD_BIND_IP, &bind, sizeof(bind), 0, &response);
}

static int bind_any_ip(uint32_t id, uint16_t port)
{
	return bind_ip(id, in6addr_any, port);
}

static int bind_ipv6_ip(uint32_t id, uint16_t port)
{
	return bind_ip(id, ipv6, port);
}

static int resolve_from(uint32_t id, uint32_t ipv4, uint16_t port)
{
	const struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ipv4)};
	struct rdma_ucm_resolve_addr resolve = {.id = id, .src_size = sizeof(in)};
	struct rdmacm_response response;

	memcpy(&resolve.src_addr, &in, sizeof(in));
	return run(RDMA_USER_CM_CMD_RESOLVE_ADDR, &resolve, sizeof(resolve), 0, &response);
}

/* As librdmacm without support for AF_IB does. */
static int resolve_ip_from_ipv6(uint32_t id, uint16_t port)
{
	struct rdma_ucm_resolve_ip resolve = {.id = id};
	struct rdmacm_response response;

	resolve.src_addr.sin6_family = AF_INET6;
	resolve.src_addr.sin6_port = htons(port);
	resolve.src_addr.sin6_addr = ipv6;
	return run(RDMA_USER_CM_CMD_RESOLVE_IP, &resolve, sizeof(resolve), 0, &response);
}

static int listen_id(uint32_t id)
{
	const struct rdma_ucm_listen listen = {.id = id, .backlog = 1};
	struct rdmacm_response response;

	return run(RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0, &response);
}

static uint32_t count_ids(const struct side *side)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < side->n; i++)
		n += side->ids[i].exists;
	return n;
}

static void set_option(uint32_t id, uint32_t name, int value)
{
	const struct rdma_ucm_set_option option = {.optval = (uintptr_t)&value,
						   .id = id,
						   .level = RDMA_OPTION_ID,
						   .optname = name,
						   .optlen = sizeof(value)};
	struct rdmacm_response response;

	assert_int_equal(run(RDMA_USER_CM_CMD_SET_OPTION, &option, sizeof(option), 0, &response),
			 0);
}

/* Whether the kernel's only ID accepts the connections of one address family only. */
static bool kernel_has_afonly(void)
{
	uint32_t i = 0;

	assert_int_equal(count_ids(&kernel), 1);
	while (!kernel.ids[i].exists)
		i++;
	return kernel.ids[i].afonly;
}

/* The port where an ID of that side listens; 0: none does. */
static uint16_t listening_port(const struct side *side)
{
	uint16_t port = 0;

	for (uint32_t i = 0; i < side->n; i++)
		if (side->ids[i].exists && side->ids[i].listens) {
			assert_int_equal(port, 0);
			port = port_of(&side->ids[i].addr);
		}
	return port;
}

static void expect_ports(uint16_t at_daemon, uint16_t at_kernel)
{
	assert_int_equal(listening_port(&daemon_side), at_daemon);
	assert_int_equal(listening_port(&kernel), at_kernel);
}

static int setup(void **state)
{
	(void)state;
	rdmacm_ids_free(&file);
	file = (struct rdmacm_file){.kernel = KERNEL, .opening = 1, .socket = -1};
	kernel = (struct side){.choice = CHOSEN, .taken_error = -EADDRNOTAVAIL};
	daemon_side = (struct side){.choice = CHOSEN_D, .taken_error = -EADDRNOTAVAIL};
	has_hca = 0;
	late_kernel = false;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rdmacm_ids_free(&file);
	return 0;
}

/* --- Tests */

static void listener_has_one_port_at_both(void **state)
{
	uint32_t id = create_id();

	(void)state;
	assert_int_equal(bind_any(id, AF_INET, 7471), 0);
	assert_int_equal(listen_id(id), 0);
	expect_ports(7471, 7471);
}

/* As in Linux, and the program can try another port with the same ID. */
static void port_taken_at_one_of_them_is_refused(void **state)
{
	struct side *const sides[] = {&kernel, &daemon_side};

	for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
		uint32_t id;

		setup(state);
		sides[i]->taken = 7471;
		id = create_id();
		assert_int_equal(bind_any(id, AF_INET6, 7471), -EADDRNOTAVAIL);
		assert_int_equal(bind_any_ip(id, 7471), -EADDRNOTAVAIL);
		assert_int_equal(bind_any_ip(id, 7472), 0);
		assert_int_equal(bind_any_ip(id, 7473), -EINVAL);
		assert_int_equal(listen_id(id), 0);
		expect_ports(7472, 7472);
	}
}

static void chosen_port_is_free_at_both(void **state)
{
	static const sa_family_t families[] = {AF_INET, AF_INET6, AF_IB};

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		uint32_t id;

		setup(state);
		kernel.taken = CHOSEN_D;
		id = create_id();
		assert_int_equal(bind_any(id, families[i], 0), 0);
		assert_int_equal(listen_id(id), 0);
		expect_ports(CHOSEN, CHOSEN);
	}
}

static void daemon_chooses_a_port_if_the_kernels_choice_is_taken(void **state)
{
	uint32_t id = create_id();

	(void)state;
	daemon_side.taken = CHOSEN;
	assert_int_equal(bind_any(id, AF_INET, 0), 0);
	assert_int_equal(listen_id(id), 0);
	expect_ports(CHOSEN_D, CHOSEN_D);
}

static void bind_of_any_port_succeeds_at_the_daemon_alone(void **state)
{
	uint32_t id = create_id();

	(void)state;
	daemon_side.taken = CHOSEN;
	kernel.taken = CHOSEN_D;
	assert_int_equal(bind_any(id, AF_INET, 0), 0);
	assert_int_equal(listen_id(id), 0);
	expect_ports(CHOSEN_D, 0);
}

/* A bind that is refused at the daemon ends the kernel's ID, which had them, too. */
static void options_of_the_kernels_id_survive_a_bind(void **state)
{
	static const struct {
		uint16_t port, taken;
		int result;
	} binds[] = {{7471, 7471, -EADDRNOTAVAIL}, {0, CHOSEN, 0}};

	for (size_t i = 0; i < sizeof(binds) / sizeof(binds[0]); i++) {
		uint32_t id;

		setup(state);
		daemon_side.taken = binds[i].taken;
		id = create_id();
		set_option(id, RDMA_OPTION_ID_REUSEADDR, 1);
		set_option(id, RDMA_OPTION_ID_AFONLY, 1);
		assert_int_equal(bind_any(id, AF_INET6, binds[i].port), binds[i].result);
		if (binds[i].result)
			assert_int_equal(bind_any(id, AF_INET6, 7472), 0);
		assert_true(kernel_has_afonly());
	}
}

static void listener_without_address_has_one_port_at_both(void **state)
{
	uint32_t id = create_id();

	(void)state;
	kernel.taken = CHOSEN_D;
	assert_int_equal(listen_id(id), 0);
	expect_ports(CHOSEN, CHOSEN);
}

/* Another program may share the port by REUSEADDR: then no ID may listen there. */
static void refused_listener_can_be_repeated(void **state)
{
	struct side *const sides[] = {&kernel, &daemon_side};

	for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
		uint32_t id;

		setup(state);
		id = create_id();
		set_option(id, RDMA_OPTION_ID_AFONLY, 1);
		assert_int_equal(bind_any(id, AF_INET6, 7471), 0);
		sides[i]->listen_error = -EADDRNOTAVAIL;
		assert_int_equal(listen_id(id), -EADDRNOTAVAIL);
		expect_ports(0, 0);
		assert_true(kernel_has_afonly());
		assert_int_equal(listen_id(id), 0);
		expect_ports(7471, 7471);
	}
}

/* Requests from the wire would never reach a listener of the daemon at the HCA's address. */
static void port_taken_at_the_hca_is_refused(void **state)
{
	uint32_t id = create_id();

	(void)state;
	has_hca = 1;
	kernel.taken = 7471;
	kernel.taken_error = -EADDRINUSE;
	assert_int_equal(bind_ipv4(id, 7471), -EADDRINUSE);
	assert_int_equal(bind_ipv4(id, 7472), 0);
	assert_int_equal(listen_id(id), 0);
	expect_ports(0, 7472);
}

/*
 * Linux has one error for a port that an ID on the wildcard has, and an unknown address. The kernel
 * keeps no other ID than the program's.
 */
static void port_of_a_wildcard_at_the_hca_is_refused(void **state)
{
	int (*const binds[])(uint32_t id, uint16_t port) = {bind_ipv4, bind_ipv6_ip};

	for (size_t i = 0; i < sizeof(binds) / sizeof(binds[0]); i++) {
		uint32_t id;

		setup(state);
		has_hca = 1;
		kernel.taken = 7471;
		id = create_id();
		assert_int_equal(binds[i](id, 7471), -EADDRNOTAVAIL);
		assert_int_equal(count_ids(&kernel), 1);
		assert_int_equal(binds[i](id, 7472), 0);
		assert_int_equal(listen_id(id), 0);
		expect_ports(0, 7472);
	}
}

/* Linux binds the source address before it resolves the destination. */
static void source_port_taken_at_the_hca_is_refused(void **state)
{
	static const int errors[] = {EADDRINUSE, EADDRNOTAVAIL};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		uint32_t id;

		setup(state);
		has_hca = 1;
		kernel.taken = 7471;
		kernel.taken_error = -errors[i];
		id = create_id();
		assert_int_equal(resolve_from(id, IPV4, 7471), -errors[i]);
		assert_int_equal(resolve_from(id, INADDR_ANY, 7471), -errors[i]);
		assert_int_equal(resolve_ip_from_ipv6(id, 7471), -errors[i]);
		assert_int_equal(resolve_ip_from_ipv6(id, 7472), 0);
		assert_int_equal(listen_id(id), 0);
		expect_ports(0, 7472);
	}
}

/* In a user namespace, root may have such a port at the daemon, but not at the kernel. */
static void privileged_port_at_the_hca_is_refused(void **state)
{
	uint32_t id = create_id();

	(void)state;
	has_hca = 1;
	kernel.taken = 111;
	kernel.taken_error = -EACCES;
	assert_int_equal(bind_ipv4(id, 111), -EACCES);
	assert_int_equal(bind_ipv4(id, 1111), 0);
	assert_int_equal(listen_id(id), 0);
	expect_ports(0, 1111);
}

/* The kernel refuses all commands of a process that has changed its credentials. */
static void process_without_access_to_the_hca_is_the_daemons(void **state)
{
	uint32_t id = create_id();

	(void)state;
	has_hca = 1;
	kernel.lacks_addresses = true;
	kernel.taken_error = -EACCES;
	assert_int_equal(bind_ipv4(id, 111), 0);
	assert_int_equal(listen_id(id), 0);
	expect_ports(111, 0);
}

/* Else the ID would be the daemon's for its life, and get no request from the wire. */
static void lack_of_descriptors_binds_no_id(void **state)
{
	static const int errors[] = {EMFILE, ENFILE, ENOMEM};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		uint32_t id;

		setup(state);
		id = create_id();
		has_hca = -errors[i];
		assert_int_equal(bind_ipv4(id, 7471), -errors[i]);
		assert_int_equal(resolve_from(id, IPV4, 7471), -errors[i]);
		has_hca = 1;
		assert_int_equal(bind_ipv4(id, 7471), 0);
		assert_int_equal(listen_id(id), 0);
		expect_ports(0, 7471);
	}
}

static void address_unknown_to_the_hca_is_the_daemons(void **state)
{
	uint32_t id = create_id();

	(void)state;
	has_hca = 1;
	kernel.lacks_addresses = true;
	assert_int_equal(bind_ipv4(id, 7471), 0);
	assert_int_equal(listen_id(id), 0);
	expect_ports(7471, 0);
}

/*
 * The HCA's port may become ACTIVE after the program has bound its listener, or go down. Requests
 * then come to the other rdma_cm than before.
 */
static void listener_at_an_address_hears_both(void **state)
{
	for (int with = 0; with < 2; with++) {
		uint32_t id;

		setup(state);
		kernel.guid = htobe64(HCA_GUID);
		has_hca = with;
		id = create_id();
		assert_int_equal(bind_ipv4(id, 7471), 0);
		assert_int_equal(listen_id(id), 0);
		expect_ports(7471, 7471);
		id = create_id();
		assert_int_equal(bind_ipv4(id, 0), 0);
		kernel.ids[0].listens = daemon_side.ids[0].listens = false;
		assert_int_equal(listen_id(id), 0);
		expect_ports(with ? CHOSEN : CHOSEN_D, with ? CHOSEN : CHOSEN_D);
	}
}

/* Another program may have the port at the other rdma_cm. */
static void listener_at_an_address_needs_its_owner_only(void **state)
{
	struct side *const others[] = {&kernel, &daemon_side};

	for (int with = 0; with < 2; with++) {
		uint32_t id;

		setup(state);
		kernel.guid = htobe64(HCA_GUID);
		has_hca = with;
		others[with]->taken = 7471;
		id = create_id();
		assert_int_equal(bind_ipv4(id, 7471), 0);
		assert_int_equal(listen_id(id), 0);
		expect_ports(with ? 0 : 7471, with ? 7471 : 0);
		others[with]->listen_error = -EADDRINUSE;
		id = create_id();
		assert_int_equal(bind_ipv4(id, 7472), 0);
		kernel.ids[0].listens = daemon_side.ids[0].listens = false;
		assert_int_equal(listen_id(id), 0);
		expect_ports(with ? 0 : 7472, with ? 7472 : 0);
	}
}

/* With the first RDMA device, the kernel loads its rdma_cm. */
static void programs_use_a_kernel_that_comes_after_them(void **state)
{
	uint32_t old, id;

	(void)state;
	file.kernel = -1;
	old = create_id();
	assert_int_equal(bind_any(old, AF_INET, 7471), 0);
	id = create_id();
	late_kernel = true;
	kernel.guid = htobe64(HCA_GUID);
	assert_int_equal(listen_id(old), 0);
	expect_ports(7471, 7471);
	kernel.ids[0].listens = daemon_side.ids[0].listens = false;
	has_hca = 1;
	assert_int_equal(bind_ipv4(id, 7472), 0);
	assert_int_equal(listen_id(id), 0);
	expect_ports(7472, 7472);
}

/* Fetches a connection request to the first ID. Returns the result. */
static int get_request(void)
{
	const struct rdma_ucm_get_event get = {0};
	struct rdmacm_response response;
	const struct rdmacm_request request =
		rdmacm_request_make(&file, RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get),
				    sizeof(struct rdma_ucm_event_resp));

	return rdmacm_route_kernel_event(&file, &request, &response);
}

/* As one that the program binds after the kernel's rdma_cm has come. */
static void old_listener_without_device_gets_requests_at_each(void **state)
{
	static const uint32_t addresses[] = {INADDR_ANY, INADDR_LOOPBACK, IPV4};

	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		uint32_t id;

		setup(state);
		file.kernel = -1;
		id = create_id();
		assert_int_equal(bind_to_ipv4(id, addresses[i], 7471), 0);
		late_kernel = true;
		assert_int_equal(listen_id(id), 0);
		expect_ports(7471, 7471);
		kernel.guid = htobe64(OTHER_GUID);
		assert_int_equal(get_request(), addresses[i] == IPV4 ? RDMACM_HIDDEN : 0);
	}
}

/* Its requests would be refused, and a program without urxe may want the port there. */
static void listener_of_urxe_has_no_port_at_another_device(void **state)
{
	uint32_t id = create_id();

	(void)state;
	kernel.guid = htobe64(OTHER_GUID);
	assert_int_equal(bind_ipv4(id, 7471), 0);
	assert_int_equal(listen_id(id), 0);
	expect_ports(7471, 0);
	assert_int_equal(count_ids(&kernel), 0);
}

/* Programs set options at their start, perhaps before the first RDMA device comes. */
static void options_are_those_of_a_kernel_that_comes_after_them(void **state)
{
	for (int binds_first = 0; binds_first < 2; binds_first++) {
		uint32_t id;

		setup(state);
		file.kernel = -1;
		id = create_id();
		if (binds_first)
			assert_int_equal(bind_any(id, AF_INET6, 7471), 0);
		set_option(id, RDMA_OPTION_ID_AFONLY, 1);
		late_kernel = true;
		if (!binds_first)
			assert_int_equal(bind_any(id, AF_INET6, 7471), 0);
		assert_int_equal(listen_id(id), 0);
		expect_ports(7471, 7471);
		assert_true(kernel_has_afonly());
	}
}

/* An old kernel lacks some. */
static void options_need_not_exist_in_the_kernel(void **state)
{
	uint32_t id;

	(void)state;
	file.kernel = -1;
	kernel.lacks_options = true;
	id = create_id();
	set_option(id, RDMA_OPTION_ID_ACK_TIMEOUT, 14);
	late_kernel = true;
	assert_int_equal(bind_any(id, AF_INET, 7471), 0);
	assert_int_equal(listen_id(id), 0);
	expect_ports(7471, 7471);
}

/* Of a newer kernel and librdmacm. */
static void commands_of_newer_kernels_go_to_the_owner(void **state)
{
	const uint32_t of_daemon = create_id(), of_kernel = create_id();
	const uint32_t both[] = {of_daemon, of_kernel};
	uint32_t event[80] = {0};
	struct rdmacm_response response;

	(void)state;
	has_hca = 1;
	assert_int_equal(bind_ipv4(of_kernel, 7471), 0);
	for (size_t i = 0; i < 2; i++) {
		event[0] = both[i];
		assert_int_equal(run(WRITE_CM_EVENT, event, sizeof(event), 0, &response), 0);
	}
	assert_int_equal(daemon_side.ids_written, 1u << of_daemon);
	assert_int_equal(kernel.ids_written, 1); /* its first ID */
}

static int resolve_to(uint32_t id, const void *dst, uint16_t size)
{
	struct rdma_ucm_resolve_addr resolve = {.id = id, .dst_size = size};
	struct rdmacm_response response;

	resolve.src_addr.ss_family = ((const struct sockaddr *)dst)->sa_family;
	memcpy(&resolve.dst_addr, dst, size);
	return run(RDMA_USER_CM_CMD_RESOLVE_ADDR, &resolve, sizeof(resolve), 0, &response);
}

/* Linux finds no route to loopback or the wildcard, but the host without HCA has one. */
static void this_host_as_destination_is_the_daemons(void **state)
{
	static const uint32_t ipv4[] = {INADDR_LOOPBACK, INADDR_ANY};
	const struct in6_addr *const v6[] = {&in6addr_loopback, &in6addr_any};

	(void)state;
	has_hca = 1;
	for (size_t i = 0; i < 2; i++) {
		const struct sockaddr_in in = {.sin_family = AF_INET,
					       .sin_addr.s_addr = htonl(ipv4[i])};
		const struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = *v6[i]};

		assert_int_equal(resolve_to(create_id(), &in, sizeof(in)), 0);
		assert_int_equal(resolve_to(create_id(), &in6, sizeof(in6)), 0);
	}
	assert_int_equal(count_ids(&kernel), 0);
}

/* A program in another network namespace than the daemon has other routes. */
static void destination_that_a_route_of_the_daemon_refuses_may_be_the_kernels(void **state)
{
	static const int errors[] = {ENETUNREACH, EHOSTUNREACH, EACCES, EINVAL};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		setup(state);
		daemon_side.lacks_addresses = true;
		daemon_side.taken_error = -errors[i];
		assert_int_equal(resolve_from(create_id(), IPV4, 7471), 0);
		assert_int_equal(count_ids(&kernel), 1);
		kernel.lacks_addresses = true;
		kernel.taken_error = -ENETUNREACH;
		assert_int_equal(resolve_from(create_id(), IPV4, 7471), -errors[i]);
	}
}

/* As in Linux, it gets the requests for all addresses of the host. */
static void listener_on_loopback_is_at_both(void **state)
{
	uint32_t id;

	for (int with = 0; with < 2; with++) {
		setup(state);
		has_hca = with;
		id = create_id();
		assert_int_equal(bind_to_ipv4(id, INADDR_LOOPBACK, 7471), 0);
		assert_int_equal(listen_id(id), 0);
		expect_ports(7471, 7471);
	}
	has_hca = 1;
	id = create_id();
	assert_int_equal(bind_ip(id, in6addr_loopback, 7472), 0);
	assert_int_equal(count_ids(&kernel), 2);
	assert_int_equal(count_ids(&daemon_side), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(listener_has_one_port_at_both, setup),
		cmocka_unit_test_setup(port_taken_at_one_of_them_is_refused, setup),
		cmocka_unit_test_setup(chosen_port_is_free_at_both, setup),
		cmocka_unit_test_setup(daemon_chooses_a_port_if_the_kernels_choice_is_taken, setup),
		cmocka_unit_test_setup(bind_of_any_port_succeeds_at_the_daemon_alone, setup),
		cmocka_unit_test_setup(options_of_the_kernels_id_survive_a_bind, setup),
		cmocka_unit_test_setup(listener_without_address_has_one_port_at_both, setup),
		cmocka_unit_test_setup(refused_listener_can_be_repeated, setup),
		cmocka_unit_test_setup(port_taken_at_the_hca_is_refused, setup),
		cmocka_unit_test_setup(port_of_a_wildcard_at_the_hca_is_refused, setup),
		cmocka_unit_test_setup(source_port_taken_at_the_hca_is_refused, setup),
		cmocka_unit_test_setup(privileged_port_at_the_hca_is_refused, setup),
		cmocka_unit_test_setup(process_without_access_to_the_hca_is_the_daemons, setup),
		cmocka_unit_test_setup(this_host_as_destination_is_the_daemons, setup),
		cmocka_unit_test_setup(
			destination_that_a_route_of_the_daemon_refuses_may_be_the_kernels, setup),
		cmocka_unit_test_setup(listener_on_loopback_is_at_both, setup),
		cmocka_unit_test_setup(commands_of_newer_kernels_go_to_the_owner, setup),
		cmocka_unit_test_setup(programs_use_a_kernel_that_comes_after_them, setup),
		cmocka_unit_test_setup(old_listener_without_device_gets_requests_at_each, setup),
		cmocka_unit_test_setup(listener_of_urxe_has_no_port_at_another_device, setup),
		cmocka_unit_test_setup(options_are_those_of_a_kernel_that_comes_after_them, setup),
		cmocka_unit_test_setup(options_need_not_exist_in_the_kernel, setup),
		cmocka_unit_test_setup(listener_at_an_address_hears_both, setup),
		cmocka_unit_test_setup(listener_at_an_address_needs_its_owner_only, setup),
		cmocka_unit_test_setup(lack_of_descriptors_binds_no_id, setup),
		cmocka_unit_test_setup(address_unknown_to_the_hca_is_the_daemons, setup),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
