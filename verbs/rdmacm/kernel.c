/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rdma_user_cm.h>

#include "log.h"
#include "rdmacm/ids.h"
#include "real.h"

#define IDS        65536      /* as many as librdmacm knows, and urxed has */
#define KERNEL_BIT (1u << 31) /* in the number of a group: the kernel's; it counts from 0 */

/* Values of enum rdma_cm_event_type. */
enum { CONNECT_REQUEST = 4, MULTICAST_JOIN = 12, MULTICAST_ERROR = 13 };

enum side {
	SIDE_OPEN,   /* no address has decided yet, or it is the wildcard */
	SIDE_OWN,    /* urxed's */
	SIDE_KERNEL, /* the kernel's */
};

/* What the kernel has of an ID. */
struct twin {
	struct rdmacm_file *file; /* NULL: nothing */
	uint32_t id;
	uint64_t uid;       /* the program's name for it */
	uint32_t swallowed; /* events that the kernel has told, and the program has not got */
	enum side side;
	bool bound; /* the kernel's ID has an address */
};

static pthread_mutex_t twins_lock = PTHREAD_MUTEX_INITIALIZER;

static struct twin *map_twins(void)
{
	/* Of 2.5 MB only the pages of numbers that occur are ever there. */
	void *p = mmap(NULL, IDS * sizeof(struct twin), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Two daemons, one after the other, may use one number: each open device has its own. */
static bool clear_twins(struct rdmacm_file *file)
{
	bool clear;

	pthread_mutex_lock(&twins_lock);
	if (file->twins)
		clear = !madvise(file->twins, IDS * sizeof(struct twin), MADV_DONTNEED);
	else
		clear = (file->twins = map_twins()) != NULL;
	pthread_mutex_unlock(&twins_lock);
	return clear;
}

int rdmacm_kernel_open(struct rdmacm_file *file)
{
	return clear_twins(file)
		       ? REAL(open)("/dev/infiniband/rdma_cm", O_RDWR | O_NONBLOCK | O_CLOEXEC)
		       : -1;
}

/* With a file of NULL where the kernel knows nothing of the ID. */
static struct twin twin_of(struct rdmacm_file *file, uint32_t number)
{
	struct twin twin = {.file = NULL};

	pthread_mutex_lock(&twins_lock);
	if (number < IDS && file->twins)
		twin = file->twins[number];
	pthread_mutex_unlock(&twins_lock);
	return twin;
}

static void set_twin(struct rdmacm_file *file, uint32_t number, struct twin twin)
{
	if (number >= IDS || !file->twins)
		return;
	pthread_mutex_lock(&twins_lock);
	file->twins[number] = twin;
	pthread_mutex_unlock(&twins_lock);
}

static struct twin take_twin(struct rdmacm_file *file, uint32_t number)
{
	struct twin twin = {.file = NULL};

	if (number >= IDS || !file->twins)
		return twin;
	pthread_mutex_lock(&twins_lock);
	twin = file->twins[number];
	file->twins[number] = (struct twin){.file = NULL};
	pthread_mutex_unlock(&twins_lock);
	return twin;
}

static void set_side(struct rdmacm_file *file, uint32_t number, struct twin twin, enum side side)
{
	twin.side = side;
	set_twin(file, number, twin);
	rdmacm_ids_elsewhere(file, number, side == SIDE_KERNEL);
}

/* --- The kernel's commands */

struct kernel_command {
	struct rdma_ucm_cmd_hdr hdr;
	uint8_t in[CM_ATTACH_BYTES];
};

static int put(struct kernel_command *c, uint32_t at, const void *value, uint32_t size)
{
	if (at == RDMACM_NOWHERE)
		return 0;
	if (c->hdr.in < at + size)
		return -EINVAL;
	memcpy(c->in + at, value, size);
	return 0;
}

/* The command as the program gave it, but of the kernel's ID, and with our room for its response.
 */
static int kernel(struct rdmacm_file *file, const struct rdmacm_request *request, uint32_t id,
		  struct rdmacm_response *response)
{
	uint32_t command = request->command.command, at = rdmacm_response_at(command);
	uint32_t out =
		request->command.out < CM_ATTACH_BYTES ? request->command.out : CM_ATTACH_BYTES;
	uint64_t address = (uintptr_t)response->out;
	struct kernel_command c = {
		.hdr = {.cmd = command, .in = (uint16_t)request->command.in, .out = (uint16_t)out}};
	size_t len = sizeof(c.hdr) + request->command.in;
	ssize_t n;
	int rc;

	memcpy(c.in, request->in, request->command.in);
	rc = put(&c, rdmacm_id_at(command), &id, sizeof(id));
	if (!rc)
		rc = put(&c, at, &address, sizeof(address));
	if (rc)
		return rc;
	memset(response->out, 0, out);
	response->reply = (struct cm_attach_reply){.out = at == RDMACM_NOWHERE ? 0 : out};
	/* Without the lock another thread might close it, and the number be another file's. */
	pthread_mutex_lock(&file->lock);
	rc = rdmacm_is_open(file, request) ? 0 : -EBADF;
	if (!rc) {
		n = write(file->kernel, &c, len);
		rc = n < 0 ? -errno : 0;
	}
	pthread_mutex_unlock(&file->lock);
	return rc;
}

/* A command that we make ourselves. */
static struct rdmacm_request request_of(const struct rdmacm_file *file, uint32_t command,
					const void *in, uint32_t size, uint32_t out)
{
	struct rdmacm_request request = {.command = {.command = command, .in = size, .out = out},
					 .opening = file->opening};

	memcpy(request.in, in, size);
	return request;
}

/* --- IDs */

static uint32_t number_in(const struct rdmacm_response *response)
{
	struct rdma_ucm_create_id_resp resp;

	memcpy(&resp, response->out, sizeof(resp));
	return resp.id;
}

static int create_id(struct rdmacm_file *file, struct rdmacm_request *request,
		     struct rdmacm_response *response)
{
	struct rdmacm_response of_kernel;
	struct rdma_ucm_create_id create;
	int rc = rdmacm_own(file, request, response);

	if (rc)
		return rc;
	set_twin(file, number_in(response), (struct twin){.file = NULL});
	memcpy(&create, request->in, sizeof(create));
	if (!kernel(file, request, 0, &of_kernel))
		set_twin(file, number_in(response),
			 (struct twin){
				 .file = file, .id = number_in(&of_kernel), .uid = create.uid});
	return 0;
}

/* How many of its events the kernel has told. */
static uint32_t kernel_destroy(struct rdmacm_file *file, uint32_t id)
{
	const struct rdma_ucm_destroy_id destroy = {.id = id};
	struct rdma_ucm_destroy_id_resp resp = {0};
	struct rdmacm_request request = request_of(file, RDMA_USER_CM_CMD_DESTROY_ID, &destroy,
						   sizeof(destroy), sizeof(resp));
	struct rdmacm_response response;

	if (!kernel(file, &request, id, &response))
		memcpy(&resp, response.out, sizeof(resp));
	return resp.events_reported;
}

/* From now on the ID is urxed's alone; the kernel had told nothing of it yet. */
static void forget(uint32_t number, struct twin twin)
{
	set_twin(twin.file, number, (struct twin){.file = NULL});
	kernel_destroy(twin.file, twin.id);
}

/* Adds what the kernel has counted; the structures of both commands are the same. */
static void add_events(struct rdmacm_response *response, uint32_t n)
{
	struct rdma_ucm_destroy_id_resp resp;

	memcpy(&resp, response->out, sizeof(resp));
	resp.events_reported += n;
	memcpy(response->out, &resp, sizeof(resp));
}

/* Of the events that the kernel has told, those that the program got: it waits for no others. */
static uint32_t events_got(uint32_t told, struct twin twin)
{
	return told > twin.swallowed ? told - twin.swallowed : 0;
}

static int destroy_id(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response, uint32_t number)
{
	/* First: urxed gives the number to another ID as soon as it is free. */
	struct twin twin = take_twin(file, number);
	uint32_t events = 0;
	int rc;

	if (twin.file)
		events = events_got(kernel_destroy(file, twin.id), twin);
	rc = rdmacm_own(file, request, response);
	if (!rc)
		add_events(response, events);
	return rc;
}

static void move_twin(struct rdmacm_file *from, struct rdmacm_file *to, uint32_t number)
{
	struct twin twin = take_twin(from, number);

	twin.file = to;
	set_twin(to, number, twin);
}

static int migrate_id(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response, uint32_t number)
{
	struct rdmacm_file *from = rdmacm_migrated_from(request);
	struct twin twin = from ? twin_of(from, number) : (struct twin){.file = NULL};
	struct rdmacm_request of_kernel = *request;
	struct rdma_ucm_migrate_id migrate;
	uint32_t events = 0;
	int rc;

	if (twin.file) {
		memcpy(&migrate, request->in, sizeof(migrate));
		migrate.fd = (uint32_t)from->kernel;
		memcpy(of_kernel.in, &migrate, sizeof(migrate));
		move_twin(from, file, number);
		rc = kernel(file, &of_kernel, twin.id, response);
		if (rc) {
			move_twin(file, from, number);
			return rc;
		}
		memcpy(&events, response->out, sizeof(events));
		events = events_got(events, twin);
	}
	rc = rdmacm_own(file, request, response);
	if (!rc)
		add_events(response, events);
	return rc;
}

/* --- Addresses */

/* What urxed answers where it is the kernel's to say. */
static bool is_elsewhere(int rc)
{
	return rc == -EADDRNOTAVAIL || rc == -ENETUNREACH || rc == -ENODEV;
}

/* Of InfiniBand's own addresses urxed takes the wildcard alone. */
static bool is_wildcard(const struct rdma_ucm_query_addr_resp *addr)
{
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;

	memcpy(&v4, &addr->src_addr, sizeof(v4));
	memcpy(&v6, &addr->src_addr, sizeof(v6));
	return v4.sin_family == AF_INET    ? v4.sin_addr.s_addr == htonl(INADDR_ANY)
	       : v4.sin_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr)
					   : true;
}

static int query_address(struct rdmacm_file *file, uint32_t number,
			 struct rdma_ucm_query_addr_resp *addr)
{
	const struct rdma_ucm_query query = {.id = number, .option = RDMA_USER_CM_QUERY_ADDR};
	struct rdmacm_request request =
		request_of(file, RDMA_USER_CM_CMD_QUERY, &query, sizeof(query), sizeof(*addr));
	struct rdmacm_response response = {.reply = {0}};
	int rc = rdmacm_own(file, &request, &response);

	memcpy(addr, response.out, sizeof(*addr));
	return rc;
}

/*
 * The kernel's ID gets the wildcard address and the port that urxed's has. Where somebody else has
 * that port of the kernel's, nobody can listen at both: the program's port is taken. What else the
 * kernel has against it, as a family that it does not know, leaves urxed alone.
 */
static int follow(struct rdmacm_file *file, uint32_t number, struct twin *twin)
{
	struct rdma_ucm_query_addr_resp addr;
	struct rdmacm_response response;
	struct rdmacm_request request;
	struct rdma_ucm_bind bind;
	int rc = query_address(file, number, &addr);

	if (rc)
		return rc;
	if (!is_wildcard(&addr)) {
		forget(number, *twin);
		return 0;
	}
	bind = (struct rdma_ucm_bind){.addr_size = addr.src_size, .addr = addr.src_addr};
	request = request_of(file, RDMA_USER_CM_CMD_BIND, &bind, sizeof(bind), 0);
	rc = kernel(file, &request, twin->id, &response);
	twin->bound = !rc;
	if (rc && rc != -EADDRINUSE)
		forget(number, *twin);
	else
		set_twin(file, number, *twin);
	return rc == -EADDRINUSE ? rc : 0;
}

static int bind_addr(struct rdmacm_file *file, struct rdmacm_request *request,
		     struct rdmacm_response *response, uint32_t number, struct twin twin)
{
	int rc = rdmacm_own(file, request, response);

	if (!rc)
		return follow(file, number, &twin);
	if (!is_elsewhere(rc))
		return rc;
	rc = kernel(file, request, twin.id, response);
	if (rc)
		return rc;
	twin.bound = true;
	set_side(file, number, twin, SIDE_KERNEL);
	return 0;
}

/* Of each destination anew, as long as the ID is bound to no address. */
static int resolve_addr(struct rdmacm_file *file, struct rdmacm_request *request,
			struct rdmacm_response *response, uint32_t number, struct twin twin)
{
	int rc;

	/* Before: another thread may have the event, and ask about the ID, before this returns. */
	set_side(file, number, twin, SIDE_OWN);
	rc = rdmacm_own(file, request, response);
	if (is_elsewhere(rc)) {
		set_side(file, number, twin, SIDE_KERNEL);
		rc = kernel(file, request, twin.id, response);
	}
	if (rc)
		set_side(file, number, twin, twin.side);
	return rc;
}

static int listen_id(struct rdmacm_file *file, struct rdmacm_request *request,
		     struct rdmacm_response *response, uint32_t number, struct twin twin)
{
	int rc = rdmacm_own(file, request, response);

	if (!rc && !twin.bound)
		rc = follow(file, number, &twin);
	return rc || !twin.bound ? rc : kernel(file, request, twin.id, response);
}

/* The kernel's ID has what it can have of it, in case that it is the one. */
static int set_option(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response, struct twin twin)
{
	int rc = kernel(file, request, twin.id, response);

	if (rc)
		log_debug("an option of the kernel's rdma_cm: %s", strerror(-rc));
	return rdmacm_own(file, request, response);
}

/* --- Groups */

static void mark(struct rdmacm_response *response, uint32_t at)
{
	uint32_t number;

	memcpy(&number, response->out + at, sizeof(number));
	number |= KERNEL_BIT;
	memcpy(response->out + at, &number, sizeof(number));
}

static int leave(struct rdmacm_file *file, struct rdmacm_request *request,
		 struct rdmacm_response *response, uint32_t number)
{
	return number & KERNEL_BIT ? kernel(file, request, number & ~KERNEL_BIT, response)
				   : rdmacm_own(file, request, response);
}

/* --- All */

/* An ID of which no address has decided is both's to know of. */
static int run_open(struct rdmacm_file *file, struct rdmacm_request *request,
		    struct rdmacm_response *response, uint32_t number, struct twin twin)
{
	switch (request->command.command) {
	case RDMA_USER_CM_CMD_BIND_IP:
	case RDMA_USER_CM_CMD_BIND: return bind_addr(file, request, response, number, twin);
	case RDMA_USER_CM_CMD_LISTEN: return listen_id(file, request, response, number, twin);
	case RDMA_USER_CM_CMD_SET_OPTION: return set_option(file, request, response, twin);
	default: return rdmacm_own(file, request, response);
	}
}

static int run_kernel(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response, struct twin twin)
{
	uint32_t command = request->command.command;
	int rc = kernel(file, request, twin.id, response);

	if (!rc &&
	    (command == RDMA_USER_CM_CMD_JOIN_IP_MCAST || command == RDMA_USER_CM_CMD_JOIN_MCAST))
		mark(response, offsetof(struct rdma_ucm_create_id_resp, id));
	return rc;
}

static bool resolves(const struct rdmacm_request *request)
{
	return request->command.command == RDMA_USER_CM_CMD_RESOLVE_IP ||
	       request->command.command == RDMA_USER_CM_CMD_RESOLVE_ADDR;
}

int rdmacm_kernel_run(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response)
{
	struct twin twin;
	uint32_t number;

	if (request->command.command == RDMA_USER_CM_CMD_CREATE_ID)
		return create_id(file, request, response);
	if (!rdmacm_id_of(request, &number))
		return rdmacm_own(file, request, response);
	twin = twin_of(file, number);
	switch (request->command.command) {
	case RDMA_USER_CM_CMD_MIGRATE_ID: return migrate_id(file, request, response, number);
	case RDMA_USER_CM_CMD_LEAVE_MCAST: return leave(file, request, response, number);
	case RDMA_USER_CM_CMD_DESTROY_ID: return destroy_id(file, request, response, number);
	}
	if (!twin.file)
		return rdmacm_own(file, request, response);
	if (resolves(request) && !(twin.bound && twin.side == SIDE_KERNEL))
		return resolve_addr(file, request, response, number, twin);
	switch (twin.side) {
	case SIDE_OPEN: return run_open(file, request, response, number, twin);
	case SIDE_KERNEL: return run_kernel(file, request, response, twin);
	default: return rdmacm_own(file, request, response);
	}
}

/* --- Events */

/* The new ID of a request gets a number that no other has: that of an ID which urxed keeps for it.
 */
static int number_for(struct rdmacm_file *file, uint32_t id, uint32_t *number)
{
	const struct rdma_ucm_create_id create = {.ps = RDMA_PS_TCP};
	struct rdmacm_request request =
		request_of(file, RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create),
			   sizeof(struct rdma_ucm_create_id_resp));
	struct rdmacm_response response;
	int rc = rdmacm_own(file, &request, &response);

	if (!rc)
		*number = number_in(&response);
	else if (rc == -EIO)
		rc = rdmacm_ids_invent(file, number);
	if (rc)
		return rc;
	set_twin(file, *number,
		 (struct twin){.file = file, .id = id, .side = SIDE_KERNEL, .bound = true});
	return 0;
}

/* An event of the ID with that name, which the program will not see. */
static void swallow(struct rdmacm_file *file, uint64_t uid)
{
	uint32_t i = 0;

	pthread_mutex_lock(&twins_lock);
	while (i < IDS && !(file->twins[i].file && file->twins[i].uid == uid))
		i++;
	if (i < IDS)
		file->twins[i].swallowed++;
	pthread_mutex_unlock(&twins_lock);
}

int rdmacm_kernel_event(struct rdmacm_file *file, const struct rdmacm_request *request,
			struct rdmacm_response *response)
{
	struct rdma_ucm_event_resp event;
	int rc = kernel(file, request, 0, response);

	if (rc)
		return rc;
	memcpy(&event, response->out, offsetof(struct rdma_ucm_event_resp, param));
	if (event.event == MULTICAST_JOIN || event.event == MULTICAST_ERROR)
		mark(response, offsetof(struct rdma_ucm_event_resp, id));
	if (event.event != CONNECT_REQUEST)
		return 0;
	rc = number_for(file, event.id, &event.id);
	if (rc) {
		log_error("a connection request to the kernel is refused: %s", strerror(-rc));
		swallow(file, event.uid);
		kernel_destroy(file, event.id);
		return -EAGAIN;
	}
	memcpy(response->out, &event, offsetof(struct rdma_ucm_event_resp, param));
	return 0;
}
