/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two users of one daemon, each with a process that is attached and has rdma_cm open.
 *
 * The input is a script of what both do, what a remote host sends, and time. A model knows what
 * each process has registered. Neither user makes the other's register, resolve, bind or connect
 * fail; no RC or UC packet reaches a QP of the other user that has not named the sender's QP; a
 * remote QP that has answered hears its own peer only.
 *
 * The daemon and both users live on between inputs (world.h), with their registrations, listeners
 * and neighbours.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <rxe/opcode.h>

#include "accepted_user.h"
#include "craft.h"
#include "lan.h"
#include "mem_port.h"
#include "script.h"
#include "server.h"
#include "ucma_loop.h"
#include "urxed/hostnet/arp_frame.h"
#include "world.h"

#define USERS       2
#define FIRST_UID   1000
#define QPS         4 /* of each process, in the script */
#define CONNECTIONS 256
#define REMOTE_QPNS 4
#define REMOTE_QPN  0x777000
#define HCA_QPNS    4 /* that an HCA has chosen, for either user */
#define HCA_QPN     0x123000
#define OURS        1 /* last bytes of IPv4 addresses */
#define THEIRS      2
#define SECOND      UINT64_C(1000000000)
#define INPUTS      4096 /* of one world, whose tables take 20 ms */
#define STEPS       4    /* of an input */
#define STEP_BYTES  5    /* at most */
/* After so many seconds an address is resolved, or given up. */
#define RESOLVE_SECONDS (2 * NEIGH_TRIES)
#define FIRST_PORT      7000 /* each user has a range of ports for rdma_cm */
#define PORTS           4

#define RC_SEND_ONLY 0x04
#define RC_ACK       0x11
#define UC_SEND_ONLY 0x24
#define UD_SEND_ONLY 0x64
#define CNP          0x81

int LLVMFuzzerInitialize(int *argc, char ***argv);

static const uint8_t their_mac[6] = {4, 0, 0, 0, 0, 0xa};

struct user {
	struct server_process process;
	struct session *session;
	struct loop_program program;
	bool resolving;
	bool silent;      /* the resolved host does not answer */
	uint32_t seconds; /* that have passed while resolving */
	bool listening[PORTS], bound[PORTS];
	uint32_t listeners[PORTS]; /* IDs */
	uint32_t bindings[PORTS];  /* IDs of RDMA_PS_UDP, which has ports of its own */
};

static struct server *server;
static struct user users[USERS];
static struct loop loop;
static struct uplink uplink;
static struct netdev *far;
static uint64_t now;

/* --- The model: what processes have registered, in its order */

struct connection {
	uint32_t user;
	uint32_t local;
	struct urxe_gid gid;
	uint32_t qpn;
	uint64_t order; /* of the user's first registration of the remote QP */
	bool heard[2];  /* RC, UC */
};

static struct connection connections[CONNECTIONS];
static uint32_t n_connections;
static struct {
	uint32_t owner; /* 1 + user; 0 = none */
	uint32_t times; /* additions that the owner has not removed */
	bool reachable;
} hca_qpns[HCA_QPNS];
static uint64_t last_order;

static bool same_remote(const struct connection *c, const struct urxe_gid *gid, uint32_t qpn)
{
	return c->qpn == qpn && !memcmp(&c->gid, gid, sizeof(*gid));
}

/* A user's connection to a remote QP; local 0 = of any QP. */
static struct connection *find_connection(uint32_t user, uint32_t local, const struct urxe_gid *gid,
					  uint32_t qpn)
{
	struct connection *c;

	for (c = connections; c < connections + n_connections; c++)
		if (c->user == user && (!local || c->local == local) && same_remote(c, gid, qpn))
			return c;
	return NULL;
}

static bool is_pair(uint32_t from, uint32_t to, const struct urxe_packet *p)
{
	const struct connection *c;

	for (c = connections; c < connections + n_connections; c++)
		if (c->user == from && same_remote(c, &p->dgid, p->dest_qpn) &&
		    find_connection(to, p->dest_qpn, &p->sgid, c->local))
			return true;
	return false;
}

static bool is_named(uint32_t qpn)
{
	const struct connection *c;

	for (c = connections; c < connections + n_connections; c++)
		if (c->local == qpn)
			return true;
	return false;
}

/* Heard and order are those of all of a user's connections to the remote QP. */
static void hear(uint32_t local, const struct urxe_gid *sip, uint32_t service)
{
	struct connection *c, *found = NULL;

	for (c = connections; c < connections + n_connections; c++) {
		if (c->local != local || memcmp(&c->gid, sip, sizeof(*sip)))
			continue;
		if (found)
			return;
		found = c;
	}
	for (c = connections; found && c < connections + n_connections; c++)
		if (c->user == found->user && same_remote(c, &found->gid, found->qpn))
			c->heard[service] = true;
}

/* Does a user's remote QP belong to the other user? */
static bool is_foreign(uint32_t user, const struct urxe_packet *p, uint32_t service)
{
	const struct connection *own = find_connection(user, 0, &p->dgid, p->dest_qpn);
	const struct connection *other = find_connection(!user, 0, &p->dgid, p->dest_qpn);

	if (!own || !other)
		return !own;
	if (other->heard[service])
		return !own->heard[service] || other->order < own->order;
	return service && !own->heard[service] && other->order < own->order;
}

/* --- The world */

static void send_arp(void *ctx, int index, const uint8_t *frame, uint32_t len)
{
	struct server *s = ctx;

	switch_send(&s->sw, index, frame, len);
}

static const uint8_t *get_mac(void *ctx, int index)
{
	(void)ctx;
	(void)index;
	return uplink.mac;
}

static void answer_resolve(void *ctx, struct neigh_waiter *w, int status,
			   const struct vnic_next_hop *hop)
{
	(void)ctx;
	session_resolved(w, status, hop);
}

static const struct neigh_ops neigh_ops = {send_arp, get_mac, answer_resolve};

static void open_uplink(void)
{
	struct netdev *ends[2];

	require(!netdev_mem_pair(64, ends));
	uplink = (struct uplink){.spec = "mem:",
				 .kind = UPLINK_WIRE,
				 .port = ends[0],
				 .up = true,
				 .mtu = LAN_MTU,
				 .stride = ETHER_HDR_LEN + ETHER_VLAN_LEN + LAN_MTU};
	uplink.buffers = calloc(UPLINK_QUEUE, uplink.stride);
	require(uplink.buffers);
	memcpy(uplink.mac, lan_macs[0], 6);
	far = ends[1];
}

static void serve(void)
{
	server_take_events(server, now);
}

static void open_server(void)
{
	server_open(server);
	open_uplink();
	memset(&server->host, 0, sizeof(server->host));
	host_init(&server->host);
	memcpy(server->host.mac, lan_macs[0], 6);
	require(!host_add_text(&server->host, "10.0.0.1/24", 0));
	server->uplinks = &uplink;
	server->n_uplinks = 1;
	server_begin(server, now);
	neigh_init(&server->neigh, &server->host, &neigh_ops, server);
	/* A script is as long as hours, and each refusal is a line. */
	server->sessions.log =
		(struct log_ratelimit){.bucket = {.since = UINT64_MAX, .spent = LOG_BURST}};
}

static void open_world(void)
{
	require(!lan_start(NULL));
	now = LAN_T0;
	server = calloc(1, sizeof(*server));
	require(server);
	open_server();
	memset(users, 0, sizeof(users));
	/* The main thread accepts on behalf of one user after the other. */
	for (uint32_t i = 0; i < USERS; i++) {
		accepted_uid = FIRST_UID + i;
		server_call(server_attach_thread, &users[i].process, serve);
		require(!users[i].process.status);
		users[i].session = server->sessions.list;
	}
	loop_open(&loop);
	for (uint32_t i = 0; i < USERS; i++) {
		accepted_uid = FIRST_UID + i;
		users[i].program = loop_start(&loop);
	}
	accepted_uid = 0;
}

/* --- Requests to the daemon, which is this thread */

static void send_request(struct user *u, const void *message, size_t len)
{
	int fd = vnic_driver_ctl_fd(u->process.driver);

	require(send(fd, message, len, MSG_DONTWAIT) == (ssize_t)len);
	session_event(&server->sessions, now, u->session);
}

static bool receive_reply(struct user *u, void *message, size_t len)
{
	int fd = vnic_driver_ctl_fd(u->process.driver);
	ssize_t n = recv(fd, message, len, MSG_DONTWAIT);

	require(n < 0 || n == (ssize_t)len);
	return n > 0;
}

static int ask_remote(uint32_t user, bool connected, uint32_t local, const struct urxe_gid *gid,
		      uint32_t qpn)
{
	struct vnic_attach_remote r = {.type = connected ? VNIC_ATTACH_REGISTER
							 : VNIC_ATTACH_UNREGISTER,
				       .local_qpn = local,
				       .qpn = qpn};

	memcpy(r.dgid, gid->raw, sizeof(r.dgid));
	send_request(&users[user], &r, sizeof(r));
	require(receive_reply(&users[user], &r, sizeof(r)));
	return r.status;
}

static uint32_t own_qpn(uint32_t user, uint32_t i)
{
	return users[user].process.who.qpn_first + i % QPS;
}

static bool is_own_qpn(uint32_t user, uint32_t qpn)
{
	return qpn - own_qpn(user, 0) < LEASE_QPNS;
}

static uint32_t choose_qpn(struct script *s)
{
	uint8_t choice = script_get8(s);

	if (choice & 1)
		return REMOTE_QPN + choice / 2 % REMOTE_QPNS;
	return own_qpn(choice / 2 % USERS, choice / 4);
}

/* The host's own address or that of another host. */
static struct urxe_gid choose_gid(struct script *s)
{
	return craft_gid(URXE_NET_IPV4, script_get8(s) & 1 ? OURS : THEIRS);
}

static uint32_t count_of_local(uint32_t local)
{
	const struct connection *c;
	uint32_t n = 0;

	for (c = connections; c < connections + n_connections; c++)
		n += c->local == local;
	return n;
}

static void add_connection(uint32_t user, uint32_t local, const struct urxe_gid *gid, uint32_t qpn)
{
	const struct connection *first = find_connection(user, 0, gid, qpn);
	struct connection c = {user, local, *gid, qpn, ++last_order, {false, false}};

	if (first) {
		c.order = first->order;
		memcpy(c.heard, first->heard, sizeof(c.heard));
	}
	connections[n_connections++] = c;
}

/* A registration within the process's own limits never fails. */
static void register_remote(struct script *s, uint32_t user)
{
	uint32_t local = own_qpn(user, script_get8(s)), qpn = choose_qpn(s);
	const struct urxe_gid gid = choose_gid(s);

	if (n_connections == CONNECTIONS || find_connection(user, local, &gid, qpn) ||
	    count_of_local(local) == REMOTE_QP_PER_LOCAL)
		return;
	require(!ask_remote(user, true, local, &gid, qpn));
	add_connection(user, local, &gid, qpn);
}

/* Of QPs that are not the process's own. */
static void register_for_other(struct script *s, uint32_t user)
{
	const struct urxe_gid gid = choose_gid(s);

	require(ask_remote(user, true, own_qpn(!user, script_get8(s)), &gid, choose_qpn(s)));
}

static void unregister_remote(uint32_t i)
{
	const struct connection *c = &connections[i];

	require(!ask_remote(c->user, false, c->local, &c->gid, c->qpn));
	n_connections--;
	memmove(&connections[i], &connections[i + 1], (n_connections - i) * sizeof(*c));
}

/* One of the user's, counted from the last one, or all. */
static void unregister_remotes(struct script *s, uint32_t user)
{
	const uint8_t which = script_get8(s);
	const bool all = which % 16 == 15;
	uint32_t i, before = which / 16;

	for (i = n_connections; i; i--) {
		if (connections[i - 1].user != user)
			continue;
		if (all || !before)
			unregister_remote(i - 1);
		if (!all && !before--)
			return;
	}
}

/* --- QPNs of an HCA */

static int ask_qpn(uint32_t user, uint32_t type, uint32_t qpn, uint32_t flags, uint8_t host)
{
	const struct urxe_gid gid = craft_gid(URXE_NET_IPV4, host);
	struct vnic_attach_qpn r = {.type = type, .qpn = qpn, .flags = flags};

	memcpy(r.dgid, gid.raw, sizeof(r.dgid));
	send_request(&users[user], &r, sizeof(r));
	require(receive_reply(&users[user], &r, sizeof(r)));
	return r.status;
}

static void add_hca_qpn(uint32_t user, uint32_t i, bool reachable)
{
	const int rc = ask_qpn(user, VNIC_ATTACH_QPN_ADD, HCA_QPN + i,
			       reachable ? VNIC_QPN_REACHABLE : 0, OURS);

	require(rc == (hca_qpns[i].owner && hca_qpns[i].owner != user + 1 ? -EEXIST : 0));
	if (rc)
		return;
	hca_qpns[i].owner = user + 1;
	hca_qpns[i].times++;
	hca_qpns[i].reachable = reachable;
}

static void remove_hca_qpn(uint32_t user, uint32_t i)
{
	const bool own = hca_qpns[i].owner == user + 1;

	require(ask_qpn(user, VNIC_ATTACH_QPN_REMOVE, HCA_QPN + i, 0, OURS) == (own ? 0 : -ENOENT));
	if (own && !--hca_qpns[i].times)
		hca_qpns[i].owner = 0;
}

/* No answer comes, so that the answer to the next request is that request's. */
static void set_hca_qpn(uint32_t user, uint32_t i, bool reachable)
{
	const struct vnic_attach_qpn r = {.type = VNIC_ATTACH_QPN_SET,
					  .qpn = HCA_QPN + i,
					  .flags = VNIC_QPN_UPLINK |
						   (reachable ? VNIC_QPN_REACHABLE : 0)};

	send_request(&users[user], &r, sizeof(r));
	if (hca_qpns[i].owner == user + 1)
		hca_qpns[i].reachable = reachable;
	require(ask_qpn(user, VNIC_ATTACH_QPN_QUERY, 0, 0, OURS) == -ENOENT);
}

/* A user finds QPNs of its own processes only. */
static void query_hca_qpn(uint32_t user, uint32_t i, uint8_t host)
{
	const bool found = hca_qpns[i].owner == user + 1 && hca_qpns[i].reachable && host == OURS;

	require(ask_qpn(user, VNIC_ATTACH_QPN_QUERY, HCA_QPN + i, 0, host) ==
		(found ? 0 : -ENOENT));
}

static void use_hca_qpn(struct script *s, uint32_t user)
{
	const uint8_t what = script_get8(s);
	const uint32_t i = what / 4 % HCA_QPNS;

	switch (what % 4) {
	case 0: add_hca_qpn(user, i, what & 0x80); break;
	case 1: remove_hca_qpn(user, i); break;
	case 2: query_hca_qpn(user, i, what & 0x80 ? OURS : THEIRS); break;
	default:
		set_hca_qpn(user, i, what & 0x80);
		/* Of the other process's lease, and no QPN of a process. */
		require(ask_qpn(user, VNIC_ATTACH_QPN_ADD, own_qpn(!user, i), 0, OURS) == -EEXIST);
		require(ask_qpn(user, VNIC_ATTACH_QPN_ADD, i & 1, 0, OURS) == -EINVAL);
	}
}

/* --- Frames */

static uint32_t service_of(uint8_t opcode)
{
	return URXE_OPCODE_SERVICE(opcode) == URXE_SERVICE_UC;
}

static void check_received(uint32_t from, uint32_t to, const struct urxe_packet *p)
{
	switch (URXE_OPCODE_SERVICE(p->opcode)) {
	case URXE_SERVICE_UD: require(is_own_qpn(from, p->deth.src_qpn)); break;
	case URXE_SERVICE_CNP: require(!is_named(p->dest_qpn) || is_pair(from, to, p)); break;
	default: require(is_pair(from, to, p));
	}
}

/* Takes all that processes have received from user `from`, or from the wire (-1). */
static uint32_t drain_processes(int from)
{
	struct vnic_frame frame;
	struct urxe_packet p;
	uint32_t i, n = 0;

	for (i = 0; i < USERS; i++) {
		struct vnic_driver *driver = users[i].process.driver;

		for (; vnic_driver_rx(driver, &frame, 1); n++) {
			require(urxe_packet_parse(&p, frame.data, frame.len) == URXE_DROP_NONE);
			if (from >= 0)
				check_received((uint32_t)from, i, &p);
			vnic_driver_rx_release(driver, 1);
		}
	}
	return n;
}

/* Is it the address of a host that does not exist? */
static bool is_silent(const uint8_t ip[16])
{
	return ip[15] % 4 == 3;
}

/* A reply of another host. */
static void answer_arp(const struct netdev_frame *frame)
{
	struct arp question, reply = {.request = false};
	uint8_t f[ARP_FRAME_LEN];
	const struct netdev_frame out = {f, sizeof(f), sizeof(f), 0};

	if (!arp_parse(&question, frame->data, frame->len) || !question.request ||
	    is_silent(question.tip))
		return;
	memcpy(reply.smac, their_mac, 6);
	memcpy(reply.sip, question.tip, 16);
	memcpy(reply.tip, question.sip, 16);
	arp_build(f, &reply, question.smac);
	netdev_tx(far, now, &out, 1);
}

/* Takes what has left the host; returns how many RoCE packets that were. */
static uint32_t drain_wire(void)
{
	struct netdev_frame frame;
	struct urxe_packet p;
	uint32_t n = 0;

	while (netdev_rx(far, now, &frame, 1)) {
		if (urxe_packet_parse(&p, frame.data, frame.len) == URXE_DROP_NONE)
			n++;
		else
			answer_arp(&frame);
	}
	return n;
}

static void check_wire(uint32_t user, const struct urxe_packet *p, bool sent)
{
	uint32_t service = service_of(p->opcode);

	if (URXE_OPCODE_SERVICE(p->opcode) == URXE_SERVICE_CNP)
		return;
	if (URXE_OPCODE_SERVICE(p->opcode) == URXE_SERVICE_UD)
		require(sent == is_own_qpn(user, p->deth.src_qpn));
	else
		require(sent == !is_foreign(user, p, service));
}

/* A CNP has 16 reserved bytes (IBA Annex A17.9.3). */
static void set_opcode(struct urxe_packet *p, uint8_t opcode)
{
	static const uint8_t reserved[16];

	p->opcode = opcode;
	if (opcode != CNP)
		return;
	p->payload = reserved;
	p->payload_len = sizeof(reserved);
}

static void send_frame(struct script *s, uint32_t user)
{
	static const uint8_t opcodes[] = {RC_SEND_ONLY, RC_ACK, UC_SEND_ONLY, UD_SEND_ONLY, CNP};
	uint8_t room[CRAFT_MAX], choice = script_get8(s), where = script_get8(s);
	bool same_host = where & 1;
	uint32_t source = own_qpn(where & 2 ? !user : user, choice);
	struct urxe_packet p =
		lan_datagram(same_host ? lan_macs[0] : their_mac, choose_qpn(s), source);
	struct vnic_frame frame;

	set_opcode(&p, opcodes[choice / QPS % sizeof(opcodes)]);
	p.dgid = choose_gid(s);
	require(vnic_driver_tx_reserve(users[user].process.driver, &frame, 1) == 1);
	frame.len = craft_frame(room, &p);
	memcpy(frame.data, room, frame.len);
	vnic_driver_tx_commit(users[user].process.driver, &frame, 1);
	switch_run(&server->sw, now);
	drain_processes((int)user);
	if (same_host)
		require(!drain_wire());
	else
		check_wire(user, &p, drain_wire());
}

static void receive_frame(struct script *s)
{
	static const uint8_t opcodes[] = {RC_SEND_ONLY, RC_ACK, UC_SEND_ONLY, CNP};
	uint8_t room[CRAFT_MAX], choice = script_get8(s);
	struct urxe_packet p = lan_datagram(lan_macs[0], choose_qpn(s), 0);
	struct netdev_frame frame = {.data = room};

	set_opcode(&p, opcodes[choice % sizeof(opcodes)]);
	p.sgid = craft_gid(URXE_NET_IPV4, choice & 0x80 ? OURS : THEIRS);
	p.dgid = craft_gid(URXE_NET_IPV4, OURS);
	memcpy(p.smac, their_mac, 6);
	frame.len = frame.wire_len = craft_frame(room, &p);
	require(netdev_tx(far, now, &frame, 1) == 1);
	switch_run(&server->sw, now);
	/* No station outside has an address of this host. */
	require(!drain_processes(-1) || !(choice & 0x80));
	if (!(choice & 0x80) && p.opcode != CNP)
		hear(p.dest_qpn, &p.sgid, service_of(p.opcode));
}

/* --- Next hops */

static void take_resolved(uint32_t user)
{
	struct vnic_attach_resolve r;

	if (!users[user].resolving || !receive_reply(&users[user], &r, sizeof(r)))
		return;
	users[user].resolving = false;
	users[user].seconds = 0;
	require(r.status == (users[user].silent ? -EHOSTUNREACH : 0));
}

static void resolve(struct script *s, uint32_t user)
{
	struct vnic_attach_resolve r = {.type = VNIC_ATTACH_RESOLVE};
	const struct urxe_gid gid = craft_gid(URXE_NET_IPV4, THEIRS + script_get8(s) % 200);

	if (users[user].resolving)
		return;
	memcpy(r.dgid, gid.raw, sizeof(r.dgid));
	users[user].resolving = true;
	users[user].silent = is_silent(gid.raw);
	send_request(&users[user], &r, sizeof(r));
	switch_run(&server->sw, now);
	drain_wire();
	switch_run(&server->sw, now);
	take_resolved(user);
	/* A host that answers is found at once, whatever the other user has asked for. */
	require(users[user].silent || !users[user].resolving);
}

static void pass_time(uint64_t ns)
{
	uint32_t i;

	now += ns;
	neigh_tick(&server->neigh, now);
	switch_run(&server->sw, now);
	drain_wire();
	switch_run(&server->sw, now);
	for (i = 0; i < USERS; i++) {
		take_resolved(i);
		users[i].seconds += users[i].resolving && ns >= SECOND;
		require(users[i].seconds < RESOLVE_SECONDS);
	}
	loop_pass(&loop, ns);
}

/* --- rdma_cm */

static struct loop_answer answer;

#define COMMAND(user, name, request, out)                                              \
	loop_command(&loop, &users[user].program, RDMA_USER_CM_CMD_##name, &(request), \
		     sizeof(request), out, &answer)

static struct sockaddr_in port_of(uint32_t user, uint32_t i)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(FIRST_PORT + user * PORTS + i % PORTS)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static uint32_t create_id_in(uint32_t user, uint16_t ps)
{
	const struct rdma_ucm_create_id request = {.uid = 1, .ps = ps};
	struct rdma_ucm_create_id_resp response;

	require(!COMMAND(user, CREATE_ID, request, sizeof(response)));
	memcpy(&response, answer.out, sizeof(response));
	return response.id;
}

static uint32_t create_id(uint32_t user)
{
	return create_id_in(user, RDMA_PS_TCP);
}

static void destroy_id(uint32_t user, uint32_t id)
{
	const struct rdma_ucm_destroy_id request = {.id = id};

	require(!COMMAND(user, DESTROY_ID, request, sizeof(struct rdma_ucm_destroy_id_resp)));
}

static int bind_id(uint32_t user, uint32_t id, const struct sockaddr_in *address)
{
	struct rdma_ucm_bind_ip bind = {.id = id};

	memcpy(&bind.addr, address, sizeof(*address));
	return COMMAND(user, BIND_IP, bind, 0);
}

static void start_listener(uint32_t user, uint32_t port)
{
	const struct sockaddr_in address = port_of(user, port);
	const uint32_t id = create_id(user);
	const struct rdma_ucm_listen listen = {id, 1};

	require(!bind_id(user, id, &address));
	require(!COMMAND(user, LISTEN, listen, 0));
	users[user].listening[port] = true;
	users[user].listeners[port] = id;
}

static void stop_listener(uint32_t user, uint32_t port)
{
	destroy_id(user, users[user].listeners[port]);
	users[user].listening[port] = false;
}

static void bind_datagrams(uint32_t user, uint32_t port)
{
	const struct sockaddr_in address = port_of(user, port);

	users[user].bindings[port] = create_id_in(user, RDMA_PS_UDP);
	require(!bind_id(user, users[user].bindings[port], &address));
	users[user].bound[port] = true;
}

static void unbind_datagrams(uint32_t user, uint32_t port)
{
	destroy_id(user, users[user].bindings[port]);
	users[user].bound[port] = false;
}

/* Starts or stops one, or tries to take a port at which the other user listens. */
static void change_listener(struct script *s, uint32_t user)
{
	const uint8_t what = script_get8(s);
	const uint32_t port = what % PORTS;
	const struct sockaddr_in foreign = port_of(!user, port);
	uint32_t id;

	if (what & 0x80 && users[!user].listening[port]) {
		id = create_id(user);
		require(bind_id(user, id, &foreign));
		destroy_id(user, id);
	} else if (what & 0x40) {
		if (users[user].bound[port])
			unbind_datagrams(user, port);
		else
			bind_datagrams(user, port);
	} else if (users[user].listening[port]) {
		stop_listener(user, port);
	} else {
		start_listener(user, port);
	}
}

static bool fetch_event(uint32_t user, struct rdma_ucm_event_resp *event)
{
	const struct rdma_ucm_get_event tell = {0};
	struct loop_event next;

	if (!loop_fetch(&loop, &users[user].program, &next))
		return false;
	memcpy(event, next.bytes, sizeof(*event));
	if (next.head.confirm)
		require(!COMMAND(user, GET_EVENT, tell, 0));
	return true;
}

static uint32_t wait_event(uint32_t user, uint32_t type)
{
	struct rdma_ucm_event_resp event;

	while (fetch_event(user, &event))
		if (event.event == type)
			return event.id;
	abort();
}

/* From an ID of the user to a listener of the same user. */
static uint32_t connect_to(uint32_t user, uint32_t port)
{
	const struct sockaddr_in address = port_of(user, port);
	const uint32_t id = create_id(user);
	struct rdma_ucm_resolve_ip resolve = {.id = id, .timeout_ms = 1000};
	const struct rdma_ucm_resolve_route route = {.id = id};
	const struct rdma_ucm_connect connect = {
		.id = id, .conn_param = {.qp_num = LOOP_QPN + user, .retry_count = 7, .valid = 1}};

	memcpy(&resolve.dst_addr, &address, sizeof(address));
	require(!COMMAND(user, RESOLVE_IP, resolve, 0));
	wait_event(user, CMA_ADDR_RESOLVED);
	require(!COMMAND(user, RESOLVE_ROUTE, route, 0));
	wait_event(user, CMA_ROUTE_RESOLVED);
	require(!COMMAND(user, CONNECT, connect, 0));
	loop_run(&loop);
	return id;
}

/* A client, and the request at the listener, which stays; then both IDs end. */
static void connect_by_address(struct script *s, uint32_t user)
{
	const uint32_t port = script_get8(s) % PORTS;
	struct rdma_ucm_event_resp event;
	uint32_t client, i;

	if (!users[user].listening[port])
		start_listener(user, port);
	client = connect_to(user, port);
	destroy_id(user, wait_event(user, CMA_CONNECT_REQUEST));
	destroy_id(user, client);
	loop_run(&loop);
	for (i = 0; i < USERS; i++)
		while (fetch_event(i, &event))
			;
}

/* --- Scripts */

static void step(struct script *s)
{
	uint8_t what = script_get8(s);
	uint32_t user = what & 1;

	switch (what >> 1 & 15) {
	case 0:
	case 1:
	case 2:
	case 3: register_remote(s, user); break;
	case 4: register_for_other(s, user); break;
	case 5:
		if (what & 0x20)
			use_hca_qpn(s, user);
		else
			unregister_remotes(s, user);
		break;
	case 6: resolve(s, user); break;
	case 7: pass_time((uint64_t)1 << script_get8(s) % 36); break;
	case 8:
		if (what & 0x20)
			connect_by_address(s, user);
		else
			change_listener(s, user);
		break;
	case 9:
	case 10:
	case 11: receive_frame(s); break;
	default: send_frame(s, user); break;
	}
}

static void run_input(const uint8_t *data, size_t size)
{
	struct script s = {data, size};

	for (int i = 0; s.left && i < STEPS; i++)
		step(&s);
	require(!users[0].session->closed && !users[1].session->closed);
}

/* --- The end of the world */

static void end_user(struct user *u)
{
	vnic_driver_abandon(u->process.driver);
	loop_end(&loop, &u->program);
}

static void close_world(void)
{
	uint32_t user, port;

	while (users[0].resolving || users[1].resolving)
		pass_time(SECOND);
	while (n_connections)
		unregister_remote(n_connections - 1);
	memset(hca_qpns, 0, sizeof(hca_qpns)); /* they end with their processes */
	for (user = 0; user < USERS; user++) {
		for (port = 0; port < PORTS; port++) {
			if (users[user].listening[port])
				stop_listener(user, port);
			if (users[user].bound[port])
				unbind_datagrams(user, port);
		}
		end_user(&users[user]);
	}
	serve();
	while (sessions_reap(&server->sessions))
		;
	require(!server->sessions.n);
	loop_close(&loop);
	server_end(server);
	server_close(server);
	netdev_close(uplink.port);
	netdev_close(far);
	free(uplink.buffers);
	free(server);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct world world = {INPUTS, STEPS * STEP_BYTES, open_world, run_input,
					   close_world};

	world_start(&world, argc, argv);
	return 0;
}
