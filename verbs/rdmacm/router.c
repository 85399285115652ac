/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/router.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "process/log.h"
#include "rdmacm/hca_answer.h"
#include "rdmacm/ids.h"
#include "rdmacm/kernel.h"
#include "rdmacm/rdmacm_daemon.h"

/* Set in the program's number of a multicast group of the kernel's rdma_cm: the kernel's numbers,
 * which count from 0, overlap those of the daemon. */
#define KERNEL_GROUP (1u << 31)

#define IB_PORT 30 /* offset in a struct sockaddr_ib: the last two bytes of its service ID */

/* Values of enum rdma_cm_event_type. */
enum {
	CONNECT_REQUEST = 4,
	DEVICE_REMOVAL = 11,
	MULTICAST_JOIN = 12,
	MULTICAST_ERROR = 13,
	ADDR_CHANGE = 14,
};

/* --- IDs */

static uint32_t created_number(const struct rdmacm_response *response)
{
	struct rdma_ucm_create_id_resp resp;

	memcpy(&resp, response->out, sizeof(resp));
	return resp.id;
}

/* Creates the ID at the daemon, and adds it to the file's table. Without memory for the table, the
 * ID is the daemon's. */
static int create_id(struct rdmacm_file *file, struct rdmacm_request *request,
		     struct rdmacm_response *response)
{
	int rc = rdmacm_daemon_run(file, request, response);
	struct rdmacm_id *id = rc ? NULL : rdmacm_id_add(file, created_number(response));

	if (id)
		memcpy(&id->create, request->in, sizeof(id->create));
	return rc;
}

/* Has the daemon run DESTROY_ID or MIGRATE_ID. Both respond with the number of events that the
 * program has to acknowledge; adds `more`, the number of the kernel's. If no daemon comes any more,
 * the response counts id->events, and the command succeeds; if `id` is NULL, it fails (-EIO). */
static int run_for_events(struct rdmacm_file *file, struct rdmacm_request *request,
			  struct rdmacm_response *response, const struct rdmacm_id *id,
			  uint32_t more)
{
	struct rdma_ucm_destroy_id_resp resp;
	int rc = rdmacm_daemon_run(file, request, response);

	if (rc == -EIO && id) {
		resp.events_reported = id->events;
		response->reply = (struct cm_attach_reply){.out = sizeof(resp)};
	} else if (rc) {
		return rc;
	} else {
		memcpy(&resp, response->out, sizeof(resp));
	}
	resp.events_reported += more;
	memcpy(response->out, &resp, sizeof(resp));
	return 0;
}

static int destroy_id(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response, struct rdmacm_id *id)
{
	uint32_t events = id ? rdmacm_kernel_destroy(file, id) : 0;
	int rc = run_for_events(file, request, response, id, events);

	if (!rc && id)
		rdmacm_id_remove(id);
	return rc;
}

/* Moves the ID from request->from to `file`, at the kernel and the daemon. `id` is NULL if
 * the table lacks the ID, as a connection request whose event the program has not fetched. */
static int migrate_id(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response, struct rdmacm_id *id, uint32_t number)
{
	struct rdmacm_id *moved;
	int events = 0, rc;

	if (id && id->in_kernel) {
		(void)rdmacm_open_kernel(file);
		events = rdmacm_kernel_migrate(request->from, file, id);
	}
	rc = events < 0 ? events : run_for_events(file, request, response, id, (uint32_t)events);
	if (rc || request->from == file)
		return rc;
	moved = rdmacm_id_add(file, number);
	if (moved && id) {
		*moved = *id;
		id->groups = NULL;
	}
	if (id)
		rdmacm_id_remove(id);
	return 0;
}

/* Notes the uid that ACCEPT gives the ID of a connection request. */
static int accept_id(struct rdmacm_file *file, struct rdmacm_request *request,
		     struct rdmacm_response *response, struct rdmacm_id *id)
{
	struct rdma_ucm_accept accept;
	int rc = rdmacm_daemon_run(file, request, response);

	if (rc || !id)
		return rc;
	memcpy(&accept, request->in, sizeof(accept));
	if (accept.conn_param.valid)
		id->create.uid = accept.uid;
	return 0;
}

/* --- Binding of an ID to its first address */

static void give_to_daemon(struct rdmacm_file *file, struct rdmacm_id *id)
{
	id->owner = RDMACM_OWNER_DAEMON;
	rdmacm_kernel_destroy(file, id);
}

static int give_to_kernel(struct rdmacm_file *file, struct rdmacm_request *request,
			  struct rdmacm_response *response, struct rdmacm_id *id)
{
	int rc = rdmacm_kernel_create(file, id);

	if (!rc)
		rc = rdmacm_kernel_run(file, request, id->kernel_id, response);
	if (!rc)
		id->owner = RDMACM_OWNER_KERNEL;
	return rc;
}

/* Whether the daemon's result says that it has no such address, or no route from one of its
 * addresses: then the ID may be the kernel's. */
static bool is_unknown_address(int rc)
{
	return rc == -EADDRNOTAVAIL || rc == -ENETUNREACH || rc == -ENODEV;
}

/* Whether the address is the wildcard. True for each AF_IB address: of these, the daemon accepts
 * only the wildcard. */
static bool is_wildcard(const struct __kernel_sockaddr_storage *addr)
{
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;

	memcpy(&v4, addr, sizeof(v4));
	memcpy(&v6, addr, sizeof(v6));
	return v4.sin_family == AF_INET    ? v4.sin_addr.s_addr == htonl(INADDR_ANY)
	       : v4.sin_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr)
					   : true;
}

static bool is_loopback(const struct __kernel_sockaddr_storage *addr)
{
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;

	memcpy(&v4, addr, sizeof(v4));
	memcpy(&v6, addr, sizeof(v6));
	return v4.sin_family == AF_INET
		       ? ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
		       : v4.sin_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

/*
 * Whether the daemon and the kernel both bind an ID to that address: the wildcard, and loopback if
 * an HCA backs urxe0 or that is unknown. At the daemon as at the kernel, a listener on loopback
 * gets the requests for all addresses.
 */
static bool is_address_of_both(const struct __kernel_sockaddr_storage *addr)
{
	return is_wildcard(addr) || (is_loopback(addr) && rdmacm_kernel_has_active_hca() != 0);
}

static struct rdmacm_request query_request(struct rdmacm_file *file, uint32_t number)
{
	const struct rdma_ucm_query query = {.id = number, .option = RDMA_USER_CM_QUERY_ADDR};

	return rdmacm_request_make(file, RDMA_USER_CM_CMD_QUERY, &query, sizeof(query),
				   sizeof(struct rdma_ucm_query_addr_resp));
}

/* Asks the daemon for the address to which it has bound the ID. 0 or a negative errno value. */
static int query_daemon(struct rdmacm_file *file, uint32_t number,
			struct rdma_ucm_query_addr_resp *addr)
{
	struct rdmacm_request request = query_request(file, number);
	struct rdmacm_response response;
	int rc = rdmacm_daemon_run(file, &request, &response);

	if (!rc)
		memcpy(addr, response.out, sizeof(*addr));
	return rc;
}

/*
 * Call it after the daemon has bound the ID. If is_address_of_both(), binds the kernel's ID to the
 * same port. If not, or after an error of the kernel, the ID is the daemon's alone. 0, or an error
 * of the daemon.
 */
static int follow_daemon(struct rdmacm_file *file, struct rdmacm_id *id, uint32_t number)
{
	struct rdma_ucm_query_addr_resp addr;
	int rc = query_daemon(file, number, &addr);

	if (rc)
		return rc;
	if (!is_address_of_both(&addr.src_addr) || rdmacm_kernel_bind(file, id, &addr))
		give_to_daemon(file, id);
	return 0;
}

/* Sets *addr to the address that a command binds an ID to. False: the command does not bind it. */
static bool read_bind(const struct rdmacm_request *request, struct rdma_ucm_query_addr_resp *addr)
{
	struct rdma_ucm_bind_ip bind_ip;
	struct rdma_ucm_bind bind;

	*addr = (struct rdma_ucm_query_addr_resp){.src_size = 0};
	switch (request->command.command) {
	case RDMA_USER_CM_CMD_BIND_IP:
		memcpy(&bind_ip, request->in, sizeof(bind_ip));
		memcpy(&addr->src_addr, &bind_ip.addr, sizeof(bind_ip.addr));
		return true;
	case RDMA_USER_CM_CMD_BIND:
		memcpy(&bind, request->in, sizeof(bind));
		addr->src_addr = bind.addr;
		return true;
	default: return false;
	}
}

static bool binds_at_both(const struct rdmacm_request *request)
{
	struct rdma_ucm_query_addr_resp addr;

	return read_bind(request, &addr) && is_address_of_both(&addr.src_addr);
}

/* The offset of the port, which has two bytes, in a socket address. */
static size_t get_port_offset(const struct __kernel_sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET || addr->ss_family == AF_INET6
		       ? offsetof(struct sockaddr_in, sin_port)
		       : IB_PORT;
}

static bool has_port(const struct rdma_ucm_query_addr_resp *addr)
{
	const size_t at = get_port_offset(&addr->src_addr);
	uint8_t bytes[sizeof(addr->src_addr)];

	memcpy(bytes, &addr->src_addr, sizeof(bytes));
	return bytes[at] || bytes[at + 1];
}

/* Whether a command that binds an ID leaves the choice of the port to rdma_cm. */
static bool leaves_port(const struct rdmacm_request *request)
{
	struct rdma_ucm_query_addr_resp addr;

	read_bind(request, &addr);
	return !has_port(&addr);
}

/* Sets *addr to the source address that a command names. False: the command names none. */
static bool read_source(const struct rdmacm_request *request, struct rdma_ucm_query_addr_resp *addr)
{
	struct rdma_ucm_resolve_addr resolve;
	struct rdma_ucm_resolve_ip resolve_ip;

	*addr = (struct rdma_ucm_query_addr_resp){.src_size = 0};
	switch (request->command.command) {
	case RDMA_USER_CM_CMD_RESOLVE_IP:
		memcpy(&resolve_ip, request->in, sizeof(resolve_ip));
		memcpy(&addr->src_addr, &resolve_ip.src_addr, sizeof(resolve_ip.src_addr));
		break;
	case RDMA_USER_CM_CMD_RESOLVE_ADDR:
		memcpy(&resolve, request->in, sizeof(resolve));
		addr->src_addr = resolve.src_addr;
		break;
	default: read_bind(request, addr);
	}
	return addr->src_addr.ss_family != AF_UNSPEC;
}

/* Whether a command resolves the wildcard or loopback as destination, which means this host. */
static bool resolves_this_host(const struct rdmacm_request *request)
{
	struct __kernel_sockaddr_storage dst = {.ss_family = AF_UNSPEC};
	struct rdma_ucm_resolve_addr resolve;
	struct rdma_ucm_resolve_ip resolve_ip;

	switch (request->command.command) {
	case RDMA_USER_CM_CMD_RESOLVE_IP:
		memcpy(&resolve_ip, request->in, sizeof(resolve_ip));
		memcpy(&dst, &resolve_ip.dst_addr, sizeof(resolve_ip.dst_addr));
		break;
	case RDMA_USER_CM_CMD_RESOLVE_ADDR:
		memcpy(&resolve, request->in, sizeof(resolve));
		dst = resolve.dst_addr;
		break;
	default: return false;
	}
	return (dst.ss_family == AF_INET || dst.ss_family == AF_INET6) &&
	       (is_loopback(&dst) || is_wildcard(&dst));
}

static int bind_kernel(struct rdmacm_file *file, struct rdmacm_request *request,
		       struct rdmacm_response *response, struct rdmacm_id *id)
{
	int rc = rdmacm_kernel_create(file, id);

	if (!rc)
		rc = rdmacm_kernel_run(file, request, id->kernel_id, response);
	if (!rc)
		id->bound = true;
	return rc;
}

/* Asks the kernel for the address to which it has bound the ID. 0 or a negative errno value. */
static int query_kernel(struct rdmacm_file *file, const struct rdmacm_id *id,
			struct rdmacm_response *answer)
{
	const struct rdmacm_request query = query_request(file, id->kernel_id);

	return rdmacm_kernel_run(file, &query, id->kernel_id, answer);
}

/* The command by which the daemon binds the ID to the address and port of the kernel's answer. */
static struct rdmacm_request bind_request(struct rdmacm_file *file, uint32_t number,
					  const struct rdmacm_response *answer)
{
	struct rdma_ucm_bind bind = {.id = number};
	struct rdma_ucm_query_addr_resp addr;

	memcpy(&addr, answer->out, sizeof(addr));
	bind.addr_size = addr.src_size;
	bind.addr = addr.src_addr;
	return rdmacm_request_make(file, RDMA_USER_CM_CMD_BIND, &bind, sizeof(bind), 0);
}

/* Whether the kernel's result says that another ID has the port: the errors of cma_check_port
 * (drivers/infiniband/core/cma.c) for a wildcard address. */
static bool is_taken(int rc)
{
	return rc == -EADDRNOTAVAIL || rc == -EADDRINUSE;
}

/*
 * Binds an ID at the daemon and at the kernel (is_address_of_both()). The kernel comes first: if
 * another ID has the program's port there, the kernel's ID stays unbound, so the program can bind
 * the ID again. If the program leaves the port open, the kernel chooses it. If the daemon refuses
 * the kernel's choice, or after another error of the kernel, the daemon binds the ID as the program
 * asks, and the kernel follows (follow_daemon()).
 */
static int bind_at_both(struct rdmacm_file *file, struct rdmacm_request *request,
			struct rdmacm_response *response, struct rdmacm_id *id, uint32_t number)
{
	const bool open_port = leaves_port(request);
	struct rdmacm_request same = *request;
	int rc = bind_kernel(file, request, response, id);

	if (is_taken(rc) && !open_port)
		return rc;
	if (!rc && open_port) {
		rc = query_kernel(file, id, response);
		if (!rc)
			same = bind_request(file, number, response);
	}
	if (!rc) {
		rc = rdmacm_daemon_run(file, &same, response);
		if (!rc || rc == -EBADF)
			return rc;
		/* The address is an AF_IB one with a GID, which only the kernel can bind. */
		if (rc == -ENODEV) {
			id->owner = RDMACM_OWNER_KERNEL;
			return 0;
		}
		rdmacm_kernel_destroy(file, id);
		if (!open_port)
			return rc;
	}
	rc = rdmacm_daemon_run(file, request, response);
	return rc ? rc : follow_daemon(file, id, number);
}

/*
 * Whether the kernel has refused a command because of the port of its source address, not because
 * of the address: then the kernel binds a probe to the same address with another port.
 */
static bool is_port_refused(struct rdmacm_file *file, const struct rdmacm_request *request,
			    const struct rdmacm_id *id)
{
	struct rdmacm_id probe = {.create = id->create};
	struct rdma_ucm_query_addr_resp addr = {0};
	bool bound;

	if (!read_source(request, &addr) || !has_port(&addr))
		return false;
	memset((uint8_t *)&addr.src_addr + get_port_offset(&addr.src_addr), 0, sizeof(uint16_t));
	addr.src_size = addr.src_addr.ss_family == AF_INET ? sizeof(struct sockaddr_in)
							   : sizeof(struct sockaddr_in6);
	bound = !rdmacm_kernel_bind(file, &probe, &addr);
	rdmacm_kernel_destroy(file, &probe);
	return bound;
}

/*
 * If an HCA whose port is active backs urxe0, the kernel knows urxe0's addresses, and answers for
 * QP1 of each on the wire. So the kernel runs the command first. True: the program gets the result
 * *rc. It is success; a refusal because another ID of the kernel has the port, or because a port
 * below 1024 needs CAP_NET_BIND_SERVICE; or the error of rdmacm_kernel_has_active_hca().
 * is_port_refused() checks EADDRNOTAVAIL, which may also mean an address that the kernel does not
 * know, and EACCES, which may also mean that the process's credentials have changed since it opened
 * the device. False: the daemon runs the command, because the kernel has another error, for example
 * no RDMA device at the address. False also without such an HCA, for a bind at both, and for
 * loopback or the wildcard as destination, to which the kernel finds no route.
 */
static bool ask_hca(struct rdmacm_file *file, struct rdmacm_request *request,
		    struct rdmacm_response *response, struct rdmacm_id *id, int *rc)
{
	*rc = rdmacm_kernel_has_active_hca();
	if (*rc < 0)
		return true;
	if (!*rc || binds_at_both(request) || resolves_this_host(request))
		return false;
	*rc = give_to_kernel(file, request, response, id);
	return !*rc || *rc == -EADDRINUSE ||
	       ((*rc == -EADDRNOTAVAIL || *rc == -EACCES) && is_port_refused(file, request, id));
}

static int bind_id(struct rdmacm_file *file, struct rdmacm_request *request,
		   struct rdmacm_response *response, struct rdmacm_id *id, uint32_t number)
{
	int rc;

	if (ask_hca(file, request, response, id, &rc))
		return rc;
	if (binds_at_both(request))
		return bind_at_both(file, request, response, id, number);
	rc = rdmacm_daemon_run(file, request, response);
	if (is_unknown_address(rc))
		return give_to_kernel(file, request, response, id);
	if (!rc)
		give_to_daemon(file, id);
	return rc;
}

/* Whether the daemon's result may be that of a route which refuses packets (cma_resolve_addr). The
 * kernel may have another route, because the program may be in another network namespace. */
static bool is_route_refusal(int rc)
{
	return rc == -EHOSTUNREACH || rc == -EACCES || rc == -EINVAL;
}

static int resolve_id(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response, struct rdmacm_id *id)
{
	int rc;

	if (ask_hca(file, request, response, id, &rc))
		return rc;
	rc = rdmacm_daemon_run(file, request, response);
	if (is_unknown_address(rc))
		return give_to_kernel(file, request, response, id);
	if (is_route_refusal(rc) && !give_to_kernel(file, request, response, id))
		return 0;
	if (!rc)
		give_to_daemon(file, id);
	return rc;
}

/* Binds an ID without address to the wildcard, as rdma_listen() of the kernel does. */
static int bind_listener(struct rdmacm_file *file, struct rdmacm_response *response,
			 struct rdmacm_id *id, uint32_t number)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};
	struct rdma_ucm_bind bind = {.id = number, .addr_size = sizeof(any)};
	struct rdmacm_request request;

	memcpy(&bind.addr, &any, sizeof(any));
	request = rdmacm_request_make(file, RDMA_USER_CM_CMD_BIND, &bind, sizeof(bind), 0);
	return bind_at_both(file, &request, response, id, number);
}

/*
 * The kernel comes first, because its refusal changes nothing. If the daemon refuses afterwards, a
 * new, bound ID of the kernel replaces the kernel's ID, which listens already.
 */
static int listen_id(struct rdmacm_file *file, struct rdmacm_request *request,
		     struct rdmacm_response *response, struct rdmacm_id *id, uint32_t number)
{
	int rc = id->bound ? 0 : bind_listener(file, response, id, number);

	if (!rc && id->bound)
		rc = rdmacm_kernel_run(file, request, id->kernel_id, response);
	if (rc)
		return rc;
	rc = rdmacm_daemon_run(file, request, response);
	if (!rc || rc == -EBADF || !id->bound)
		return rc;
	rdmacm_kernel_destroy(file, id);
	(void)follow_daemon(file, id, number);
	return rc;
}

/* Sets the option at the daemon and at the kernel, because each may become the owner. Returns the
 * daemon's result. */
static int set_option(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response, struct rdmacm_id *id)
{
	int rc = rdmacm_kernel_set_option(file, id, request);

	if (rc)
		log_debug("the kernel's rdma_cm refuses an option: %s", strerror(-rc));
	return rdmacm_daemon_run(file, request, response);
}

/* Sets the option at the daemon alone, for an ID that the kernel lacks, or has only to listen.
 * Notes the option for an ID that the kernel may create later. */
static int set_daemon_option(struct rdmacm_file *file, struct rdmacm_request *request,
			     struct rdmacm_response *response, struct rdmacm_id *id)
{
	int rc = rdmacm_daemon_run(file, request, response);

	if (!rc)
		rdmacm_kernel_note_option(id, request);
	return rc;
}

/* Runs a command of an open ID where the kernel has no rdma_cm. The command that gives the ID its
 * first address makes the ID the daemon's. */
static int run_without_kernel(struct rdmacm_file *file, struct rdmacm_request *request,
			      struct rdmacm_response *response, struct rdmacm_id *id)
{
	int rc;

	if (request->command.command == RDMA_USER_CM_CMD_SET_OPTION)
		return set_daemon_option(file, request, response, id);
	rc = rdmacm_daemon_run(file, request, response);
	if (!rc)
		id->owner = RDMACM_OWNER_DAEMON;
	return rc;
}

static int run_with_kernel(struct rdmacm_file *file, struct rdmacm_request *request,
			   struct rdmacm_response *response, struct rdmacm_id *id, uint32_t number)
{
	switch (request->command.command) {
	case RDMA_USER_CM_CMD_BIND_IP:
	case RDMA_USER_CM_CMD_BIND: return bind_id(file, request, response, id, number);
	case RDMA_USER_CM_CMD_RESOLVE_IP:
	case RDMA_USER_CM_CMD_RESOLVE_ADDR: return resolve_id(file, request, response, id);
	case RDMA_USER_CM_CMD_LISTEN: return listen_id(file, request, response, id, number);
	default: return set_option(file, request, response, id);
	}
}

static int run_open(struct rdmacm_file *file, struct rdmacm_request *request,
		    struct rdmacm_response *response, struct rdmacm_id *id, uint32_t number)
{
	switch (request->command.command) {
	case RDMA_USER_CM_CMD_BIND_IP:
	case RDMA_USER_CM_CMD_BIND:
	case RDMA_USER_CM_CMD_RESOLVE_IP:
	case RDMA_USER_CM_CMD_RESOLVE_ADDR:
	case RDMA_USER_CM_CMD_LISTEN:
	case RDMA_USER_CM_CMD_SET_OPTION:
		return rdmacm_open_kernel(file)
			       ? run_with_kernel(file, request, response, id, number)
			       : run_without_kernel(file, request, response, id);
	default: return rdmacm_daemon_run(file, request, response);
	}
}

/* --- The kernel's multicast groups */

static void mark_group(struct rdmacm_response *response, uint32_t at)
{
	uint32_t number;

	memcpy(&number, response->out + at, sizeof(number));
	number |= KERNEL_GROUP;
	memcpy(response->out + at, &number, sizeof(number));
}

/* Has the kernel run JOIN_IP_MCAST or JOIN_MCAST. */
static int join_group(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response, struct rdmacm_id *id)
{
	struct rdmacm_group *group = rdmacm_group_add(id);
	int rc = group ? rdmacm_kernel_run(file, request, id->kernel_id, response) : -ENOMEM;

	if (rc && group)
		rdmacm_group_remove(id, group->number);
	if (rc)
		return rc;
	group->number = created_number(response);
	mark_group(response, offsetof(struct rdma_ucm_create_id_resp, id));
	return 0;
}

static int run_kernel(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response, struct rdmacm_id *id)
{
	uint32_t command = request->command.command;
	int rc;

	if (command == RDMA_USER_CM_CMD_JOIN_IP_MCAST || command == RDMA_USER_CM_CMD_JOIN_MCAST)
		return join_group(file, request, response, id);
	rc = rdmacm_kernel_run(file, request, id->kernel_id, response);
	return rc ? rc : rdmacm_hca_answer(id, request, response);
}

/* Has the kernel, or the daemon, run LEAVE_MCAST. */
static int leave_group(struct rdmacm_file *file, struct rdmacm_request *request,
		       struct rdmacm_response *response, uint32_t number)
{
	const uint32_t kernel_number = number & ~KERNEL_GROUP;
	struct rdmacm_id *id;
	int rc;

	if (file->kernel < 0 || !(number & KERNEL_GROUP))
		return rdmacm_daemon_run(file, request, response);
	rc = rdmacm_kernel_run(file, request, kernel_number, response);
	id = rc ? NULL : rdmacm_id_find_group(file, kernel_number);
	if (id)
		rdmacm_group_remove(id, kernel_number);
	return rc;
}

/* --- Listeners of one owner that listen at both */

/*
 * Also has the kernel listen at the address and port of the daemon's ID: the HCA's port may become
 * ACTIVE later, and from then on the kernel gets the requests. A listener at the wildcard or
 * loopback, which decides no device, becomes RDMACM_OWNER_OPEN. 0, or an error, after which the
 * daemon listens alone; -ENODEV: the address is that of another device than the HCA.
 */
static int listen_at_kernel(struct rdmacm_file *file, const struct rdmacm_request *request,
			    struct rdmacm_response *response, struct rdmacm_id *id, uint32_t number)
{
	struct rdma_ucm_query_addr_resp addr;
	int rc = query_daemon(file, number, &addr);

	if (!rc)
		rc = rdmacm_kernel_bind(file, id, &addr);
	if (!rc)
		rc = query_kernel(file, id, response);
	if (!rc && rdmacm_hca_is_other(response))
		rc = -ENODEV;
	if (!rc)
		rc = rdmacm_kernel_run(file, request, id->kernel_id, response);
	if (rc)
		rdmacm_kernel_destroy(file, id);
	else if (is_wildcard(&addr.src_addr) || is_loopback(&addr.src_addr))
		id->owner = RDMACM_OWNER_OPEN;
	return rc;
}

/*
 * Also has the daemon listen at the address and port of the kernel's ID, if the ID's device is
 * urxe0: the daemon gets the requests of virtual machines, and those of this host while the HCA's
 * port is down. 0, or an error, after which the kernel listens alone.
 */
static int listen_at_daemon(struct rdmacm_file *file, struct rdmacm_request *request,
			    struct rdmacm_response *response, struct rdmacm_id *id, uint32_t number)
{
	struct rdmacm_request query = query_request(file, id->kernel_id), bind;
	int rc = run_kernel(file, &query, response, id);

	if (rc)
		return rc;
	if (!id->device.guid)
		return -ENODEV;
	bind = bind_request(file, number, response);
	rc = rdmacm_daemon_run(file, &bind, response);
	return rc ? rc : rdmacm_daemon_run(file, request, response);
}

/* Has the ID's owner listen, then the other of daemon and kernel. Returns the owner's result. */
static int listen_owned(struct rdmacm_file *file, struct rdmacm_request *request,
			struct rdmacm_response *response, struct rdmacm_id *id, uint32_t number)
{
	const bool by_kernel = id->owner == RDMACM_OWNER_KERNEL;
	int rc = by_kernel ? run_kernel(file, request, response, id)
			   : rdmacm_daemon_run(file, request, response);
	int other;

	if (rc || !rdmacm_open_kernel(file))
		return rc;
	other = by_kernel ? listen_at_daemon(file, request, response, id, number)
			  : listen_at_kernel(file, request, response, id, number);
	if (other)
		log_debug("rdma_cm ID %u listens at the %s alone: %s", number,
			  by_kernel ? "kernel" : "daemon", strerror(-other));
	return 0;
}

/* --- Commands */

static int run_by_owner(struct rdmacm_file *file, struct rdmacm_request *request,
			struct rdmacm_response *response, struct rdmacm_id *id, uint32_t number)
{
	if (id && id->owner != RDMACM_OWNER_OPEN &&
	    request->command.command == RDMA_USER_CM_CMD_LISTEN)
		return listen_owned(file, request, response, id, number);
	if (id && id->owner == RDMACM_OWNER_KERNEL)
		return run_kernel(file, request, response, id);
	if (request->command.command == RDMA_USER_CM_CMD_ACCEPT)
		return accept_id(file, request, response, id);
	if (id && id->owner == RDMACM_OWNER_OPEN)
		return run_open(file, request, response, id, number);
	if (id && request->command.command == RDMA_USER_CM_CMD_SET_OPTION)
		return set_daemon_option(file, request, response, id);
	return rdmacm_daemon_run(file, request, response);
}

int rdmacm_route(struct rdmacm_file *file, struct rdmacm_request *request,
		 struct rdmacm_response *response)
{
	struct rdmacm_id *id;
	uint32_t number;

	if (request->command.command == RDMA_USER_CM_CMD_CREATE_ID)
		return create_id(file, request, response);
	if (!rdmacm_id_of(request, &number))
		return rdmacm_daemon_run(file, request, response);
	id = rdmacm_id_find(request->from, number);
	switch (request->command.command) {
	case RDMA_USER_CM_CMD_DESTROY_ID: return destroy_id(file, request, response, id);
	case RDMA_USER_CM_CMD_MIGRATE_ID: return migrate_id(file, request, response, id, number);
	case RDMA_USER_CM_CMD_LEAVE_MCAST: return leave_group(file, request, response, number);
	default: return run_by_owner(file, request, response, id, number);
	}
}

/* --- The kernel's events */

/*
 * Has the daemon reserve a number for the new ID of a connection request to the kernel's rdma_cm.
 * The uid is not 0: with 0, the daemon would count the ID as a request that the program has not
 * accepted yet. If no daemon comes any more, takes an unused number.
 */
static int number_request(struct rdmacm_file *file, uint32_t *number)
{
	const struct rdma_ucm_create_id create = {.uid = UINT64_MAX, .ps = RDMA_PS_TCP};
	struct rdmacm_request request =
		rdmacm_request_make(file, RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create),
				    sizeof(struct rdma_ucm_create_id_resp));
	struct rdmacm_response response;
	int rc = rdmacm_daemon_run(file, &request, &response);

	if (!rc)
		*number = created_number(&response);
	return rc == -EIO ? rdmacm_id_unused(file, number) : rc;
}

static int add_request(struct rdmacm_file *file, struct rdmacm_id request, uint32_t *number)
{
	int rc = number_request(file, number);
	struct rdmacm_id *id = rc ? NULL : rdmacm_id_add(file, *number);

	if (id)
		*id = request;
	return rc ? rc : id ? 0 : -ENOMEM;
}

/* Destroys a connection request of the kernel, because there is no number or no memory for it, or
 * because it is at another device than urxe0 (`rc`). The program does not get the event, so
 * librdmacm must not wait for its acknowledgement at the listener (hidden_events). Returns
 * RDMACM_HIDDEN. */
static int refuse_request(struct rdmacm_file *file, struct rdmacm_id *request, uint64_t uid, int rc)
{
	struct rdmacm_id *listener = rdmacm_id_find_uid(file, uid);

	log_error("a connection request to the kernel's rdma_cm is refused: %s", strerror(-rc));
	if (listener)
		listener->hidden_events++;
	rdmacm_kernel_destroy(file, request);
	return RDMACM_HIDDEN;
}

/*
 * Decides the device of a connection request, before the program can move the ID to another file
 * than that of its listener. 0; -ENODEV: the listener is the daemon's (listen_at_kernel()), so the
 * program expects urxe0, but the request is at another device, or its device is unknown.
 */
static int decide_device(struct rdmacm_file *file, struct rdmacm_id *request, uint64_t uid)
{
	struct rdmacm_id *listener = rdmacm_id_find_uid(file, uid);
	const bool of_daemon = listener && listener->owner == RDMACM_OWNER_DAEMON;
	struct rdmacm_response response;

	if (!query_kernel(file, request, &response))
		rdmacm_hca_take_request(request, of_daemon ? NULL : listener, &response);
	return of_daemon && !request->device.guid ? -ENODEV : 0;
}

static int take_request(struct rdmacm_file *file, struct rdma_ucm_event_resp *event)
{
	struct rdmacm_id request = {.exists = true,
				    .in_kernel = true,
				    .bound = true,
				    .kernel_id = event->id,
				    .owner = RDMACM_OWNER_KERNEL};
	int rc;

	rc = decide_device(file, &request, event->uid);
	if (!rc)
		rc = add_request(file, request, &event->id);
	return rc && rc != -EBADF ? refuse_request(file, &request, event->uid, rc) : rc;
}

/*
 * Hides events about the device of a listener that the daemon owns: the listener does not end with
 * the HCA. True: the program does not get the event.
 */
static bool hide_event(struct rdmacm_file *file, const struct rdma_ucm_event_resp *event)
{
	struct rdmacm_id *id;

	if (event->event != DEVICE_REMOVAL && event->event != ADDR_CHANGE)
		return false;
	id = rdmacm_id_find_kernel(file, event->id);
	if (!id || id->owner != RDMACM_OWNER_DAEMON)
		return false;
	id->hidden_events++;
	return true;
}

int rdmacm_route_kernel_event(struct rdmacm_file *file, const struct rdmacm_request *request,
			      struct rdmacm_response *response)
{
	struct rdma_ucm_event_resp event;
	int rc = rdmacm_kernel_run(file, request, 0, response);

	if (rc)
		return rc;
	rdmacm_hca_answer_event(file, response);
	memcpy(&event, response->out, offsetof(struct rdma_ucm_event_resp, param));
	if (hide_event(file, &event))
		return RDMACM_HIDDEN;
	if (event.event == MULTICAST_JOIN || event.event == MULTICAST_ERROR)
		mark_group(response, offsetof(struct rdma_ucm_event_resp, id));
	if (event.event != CONNECT_REQUEST)
		return 0;
	rc = take_request(file, &event);
	memcpy(response->out, &event, offsetof(struct rdma_ucm_event_resp, param));
	return rc;
}
