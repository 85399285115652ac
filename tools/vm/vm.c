/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/vm.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/epoll_readable.h"
#include "common/log.h"
#include "vm/host/machine_state.h"
#include "vm/replace/hand_over.h"
#include "vm/replace/take_over.h"
#include "vm/vm_private.h"

#define EVENTS    8
#define LINK_MBPS 10000
/* Time between two ticks of a loop that does not sleep. */
#define TICK_NS (10 * NS_PER_MS)

/* --- Events */

void vm_set_link(struct vm *vm, bool up)
{
	vnic_device_set_link(vm->nic.dev, up ? LINK_MBPS : 0);
	pvrdma_set_link(vm->rdma.dev, up);
}

static void handle_link_event(struct vm *vm)
{
	if (switch_link_event(&vm->link))
		return;
	log_line("urxed in %s is gone; waiting for the next one", vm->link.run_dir);
	vm_set_link(vm, false);
}

/* Asks urxed for the processes of peers to which restored queue pairs are connected. */
static void request_introductions(struct vm *vm)
{
	const struct urxe_qp *qp;
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;
	uint32_t at = 0;

	while ((qp = pvrdma_next_qp(vm->rdma.dev, &at))) {
		urxe_qp_query(qp, &attr, &init);
		if (init.type == URXE_QPT_RC && attr.state >= URXE_QPS_RTR &&
		    attr.state <= URXE_QPS_SQD)
			machine_peers_request_introduction(&vm->peers, attr.path.dmac,
							   attr.dest_qpn);
	}
}

/* Does what is due by the time: the link, the session, a recording, an announcement. Returns the
 * time of the next call. */
static uint64_t tick(struct vm *vm, uint64_t now)
{
	bool joined, began;
	uint64_t next = switch_link_tick(&vm->link, now, &joined), due;

	vm->ticked_at = now;
	if (joined) {
		log_line("joined the urxed in %s again", vm->link.run_dir);
		vm_set_link(vm, true);
	}
	/* A daemon that gave no port in time would not answer the session either. */
	if (!vm->link.away && vm->link.error == -ETIMEDOUT)
		vm->session.pause = vm->link.pause;
	next = earlier(next, vm_session_tick(&vm->session, now));
	if (vm_session_has_demanded(&vm->session))
		request_introductions(vm);
	next = earlier(next, machine_peers_tick(&vm->peers, now));
	next = earlier(next,
		       engine_recording_tick(&vm->recording, now, vm->rdma.dev, vm->session.nic));
	due = announcer_tick(&vm->announcer, &vm->link, now, &began);
	/* The machine has a port now, so its connections may repeat lost packets at once. */
	if (began)
		pvrdma_station_returned(vm->rdma.dev, now, vm->link.mac);
	return earlier(next, due);
}

static void dispatch_to_function(struct vm *vm, struct function *f, int fd)
{
	if (fd == f->listener.fd)
		function_accept(f, vm->epoll_fd);
	else if (fd == f->watched)
		function_event(f, vm->epoll_fd);
}

static bool dispatch_replacement(struct vm *vm, int fd)
{
	const struct vm_replacement *r = &vm->replacement;

	if (fd == r->listener.fd)
		hand_over_accept(vm);
	else if (fd == r->requester)
		hand_over(vm);
	else if (fd == r->predecessor)
		take_over_settle(vm);
	else
		return false;
	return true;
}

static void dispatch_vm_event(struct vm *vm, int fd)
{
	if (fd == vm->signal_fd) {
		vm->stop = true;
	} else if (fd == vm->link.epoll_fd) {
		handle_link_event(vm);
	} else if (fd == vm->session.epoll_fd) {
		vm_session_event(&vm->session);
	} else if (fd == machine_peers_fd(&vm->peers)) {
		machine_peers_event(&vm->peers);
	} else if (fd == vm->hca.epoll_fd) {
		machine_hca_event(&vm->hca);
	} else if (!dispatch_replacement(vm, fd)) {
		dispatch_to_function(vm, &vm->nic.function, fd);
		dispatch_to_function(vm, &vm->rdma.function, fd);
	}
}

/* Waits for events and handles them. Returns their number. */
static int wait_events(struct vm *vm, uint64_t timeout_ns)
{
	const struct timespec ts = {(time_t)(timeout_ns / NS_PER_SEC),
				    (long)(timeout_ns % NS_PER_SEC)};
	struct epoll_event events[EVENTS];
	int n = epoll_pwait2(vm->epoll_fd, events, EVENTS, timeout_ns == UINT64_MAX ? NULL : &ts,
			     NULL);

	for (int i = 0; i < n && !vm->replacement.replaced; i++)
		dispatch_vm_event(vm, events[i].data.fd);
	return n;
}

/* --- The loop */

/* Pause before the next look whether a held reply can be sent. */
#define HELD_NS 50000

/* If PVRDMA's reply is held, looks whether the reply can be sent now, and sends it. True: it still
 * waits. */
static bool look_at_held(struct vm *vm)
{
	struct function *f = &vm->rdma.function;

	if (!vnic_vfio_server_is_held(f->server))
		return false;
	function_event(f, vm->epoll_fd);
	return vnic_vfio_server_is_held(f->server);
}

static uint64_t until(uint64_t time, uint64_t now)
{
	return time == UINT64_MAX ? time : time > now ? time - now : 0;
}

/* Asks urxed, peers, driver and HCA for wake-ups, unless the machine is paused. Returns the end of
 * a sleep without events. */
static uint64_t prepare_sleep(struct vm *vm, uint64_t now)
{
	uint64_t next = tick(vm, now), due;

	if (!vm->paused)
		next = earlier(next, datapath_deadline(&vm->datapath, now));
	next = earlier(next, machine_hca_deadline(&vm->hca));
	if (vm->held && next > now + HELD_NS)
		next = now + HELD_NS;
	if (vm->paused)
		return next;
	due = machine_hca_arm(&vm->hca, now) ? now : next;
	return datapath_arm(&vm->datapath, now) ? now : due;
}

/* In the handler of SIGBUS: forbids copies, since peers would copy from the lost page, too. */
static void begin_loss(void *ctx)
{
	peers_shut(&((struct vm *)ctx)->peers.peers);
}

/*
 * Forbids copies of peers while no packets could pass, because the NIC is inactive or the machine
 * is paused, and while the hypervisor logs written pages, because the log would miss peers' copies.
 * Returns whether copies may be permitted.
 */
static bool restrict_copies(struct vm *vm)
{
	const bool logging = vm->nic.function.logging || vm->rdma.function.logging;

	if (vnic_device_state(vm->nic.dev) == VNIC_DEVICE_ACTIVE && !logging && !vm->paused)
		return true;
	peers_shut(&vm->peers.peers);
	return false;
}

/* Withdraws lost pages from both functions. True: there were some. Only this function permits
 * copies of peers again, because after it no function uses a lost page. */
static bool check_memory(struct vm *vm)
{
	bool lost = function_check_memory(&vm->nic.function);

	lost |= function_check_memory(&vm->rdma.function);
	if (restrict_copies(vm))
		peers_reopen(&vm->peers.peers);
	return lost;
}

/* Looks only at the doorbells in memory, until one, an event or a deadline comes. */
static void sleep_until_doorbell(struct vm *vm, uint64_t now)
{
	const uint64_t next = prepare_sleep(vm, now);
	uint64_t look = now;
	bool found = false;

	while (!found && look < next && !vm->stop) {
		uint64_t pause = rest_between_looks(&vm->rest, look, false, false);

		if (next - look < pause)
			pause = next - look;
		if (wait_events(vm, pause))
			return;
		look = now_ns();
		found = pvrdma_poll(vm->rdma.dev, look);
	}
	if (found)
		rest_between_looks(&vm->rest, look, true, false);
	else if (look >= next)
		wait_events(vm, 0);
}

static void pause_for(struct vm *vm, uint64_t now, uint64_t pause)
{
	const uint64_t due = until(datapath_deadline(&vm->datapath, now), now);

	wait_events(vm, due < pause ? due : pause);
}

static void rest(struct vm *vm, uint64_t now, bool moved)
{
	const struct rest_look look = {.work = moved,
				       .rdma_work = vm->datapath.rdma_moved,
				       .mapped = vm->rdma.uar.bytes && !vm->paused,
				       .doorbells = vm->paused ? NULL : &vm->rdma.doorbells};
	uint64_t pause;

	switch (rest_next(&vm->rest, now, &look, &pause)) {
	case REST_LOOK: return;
	/* The thread of QEMU that the last reply has woken may wait for this processor. */
	case REST_YIELD: sched_yield(); /* fall through */
	case REST_EVENTS: wait_events(vm, 0); return;
	case REST_PAUSE: pause_for(vm, now, pause); break;
	case REST_DOORBELL: sleep_until_doorbell(vm, now); break;
	case REST_SLEEP: wait_events(vm, until(prepare_sleep(vm, now), now)); break;
	}
	rest_woke(&vm->rest, now, now_ns());
}

/* Passes the HCA's completions to PVRDMA, and runs the datapath once. True: frames or completions
 * have moved. */
static bool run_devices(struct vm *vm, uint64_t now)
{
	const bool polled = machine_hca_poll(&vm->hca, now);
	const bool moved = datapath_run(&vm->datapath, now);

	vm->datapath.rdma_moved |= polled;
	return moved || polled;
}

/* --- Migration */

/* Most rounds that send waiting frames before the machine stands still. */
#define LAST_ROUNDS 64
/* Pause after a round in which the ring to urxed, or a peer's inbox, had no room. */
#define FULL_PAUSE_NS 50000

static bool wait_for_room(const struct vm *vm)
{
	const struct timespec pause = {.tv_nsec = FULL_PAUSE_NS};

	if (vm->datapath.link_full)
		nanosleep(&pause, NULL);
	return vm->datapath.link_full;
}

static void finish_frames(void *ctx)
{
	struct vm *vm = ctx;

	/* The port, and the frames in its ring, may still belong to the replaced process. */
	if (vm->replacement.taking_over)
		return;
	for (int i = 0; i < LAST_ROUNDS && !vm->paused; i++)
		if (!run_devices(vm, now_ns()) && !wait_for_room(vm))
			break;
}

static void return_to_switch(struct vm *vm)
{
	const int rc = switch_link_return(&vm->link);

	vm_set_link(vm, !rc);
	if (rc)
		log_line("the machine has no port of urxed any more: %s", strerror(-rc));
	request_introductions(vm);
	announcer_begin(&vm->announcer, now_ns());
}

static bool is_used(const struct vm *vm)
{
	return vnic_device_state(vm->nic.dev) != VNIC_DEVICE_DOWN || pvrdma_active(vm->rdma.dev);
}

/* Asks for a port again once the machine runs here. The unused functions of a machine that has gone
 * to another host need no port. */
static void update_port(struct vm *vm)
{
	if (vm->link.away && !vm->paused && is_used(vm))
		return_to_switch(vm);
}

/* function_owner.changed: gives the port back while the machine stands still, since another host
 * may need a port for its MAC. */
static void follow_functions(void *ctx)
{
	struct vm *vm = ctx;
	const bool paused = vm->nic.function.paused || vm->rdma.function.paused;

	if (paused != vm->paused) {
		vm->paused = paused;
		if (paused && !vm->replacement.handing_over && !vm->replacement.taking_over)
			switch_link_leave(&vm->link);
	}
	update_port(vm);
	restrict_copies(vm);
}

/*
 * function_owner.saving: a function's state is about to be saved. From now on peers send to the
 * switch instead of this process's inbox, and copy nothing, until the process ends. If another
 * process of this host takes the machine over, peers only keep their frames, because this process
 * goes on with the machine if the other one fails.
 */
static void stop_peers(void *ctx)
{
	struct vm *vm = ctx;

	if (vm->replacement.handing_over)
		machine_peers_hold_senders(&vm->peers);
	else
		machine_peers_end_service(&vm->peers);
}

bool vm_run(struct vm *vm)
{
	/* By default the kernel may end each wait up to 50 us late. */
	prctl(PR_SET_TIMERSLACK, 1);
	while (!vm->stop) {
		const uint64_t now = now_ns();
		bool moved;

		/* Under load prepare_sleep, which ticks, is not called, so tick here. */
		if (now - vm->ticked_at >= TICK_NS)
			tick(vm, now);
		/*
		 * The events handled before this round, and the frames below, touch the guest's
		 * memory, which may have lost pages: check after each.
		 */
		check_memory(vm);
		machine_hca_follow(&vm->hca, now);
		moved = !vm->paused && run_devices(vm, now);
		moved |= check_memory(vm);
		vm->held = look_at_held(vm);
		update_port(vm);
		rest(vm, now, moved);
	}
	return !vm->replacement.replaced;
}

/* --- Creation */

static int open_signals(struct vm *vm)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	vm->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return vm->signal_fd < 0 ? -errno : 0;
}

static int open_loop(struct vm *vm, char error[VM_ERROR])
{
	int rc;

	vm->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	rc = vm->epoll_fd < 0 ? -errno : open_signals(vm);
	if (!rc)
		rc = epoll_add_readable(vm->epoll_fd, vm->signal_fd) ?: epoll_add_readable(vm->epoll_fd, vm->link.epoll_fd)
						?: epoll_add_readable(vm->epoll_fd, vm->session.epoll_fd)
						?: epoll_add_readable(vm->epoll_fd, vm->nic.function.listener.fd)
						?: epoll_add_readable(vm->epoll_fd, vm->rdma.function.listener.fd)
						?: epoll_add_readable(vm->epoll_fd, vm->replacement.listener.fd)
						?: epoll_add_readable(vm->epoll_fd, vm->hca.epoll_fd);
	if (!rc && machine_peers_fd(&vm->peers) >= 0)
		rc = epoll_add_readable(vm->epoll_fd, machine_peers_fd(&vm->peers));
	if (rc)
		snprintf(error, VM_ERROR, "cannot watch descriptors: %s", strerror(-rc));
	return rc;
}

/* A running process of the same machine has its name and its MAC, and the user knows it by its
 * socket. But another machine may have the name or the MAC instead. */
static const char *explain_refusal(int rc, const char *path)
{
	if ((rc == -EEXIST || rc == -EADDRINUSE) && listen_socket_is_served(path))
		return "its name or MAC is in use, perhaps by the process that listens at "
		       "--socket: end that, or replace it by --take-over";
	switch (rc) {
	case -EPERM: return "it admits no virtual machines of this user: see urxed --vm-user";
	case -ENOSPC: return "it has no port left for this user";
	case -EEXIST: return "another port has this name: give another --name";
	case -EADDRINUSE:
		return "another machine, another station or the host has this MAC: give another "
		       "--mac";
	case -EINVAL: return "a name has letters, digits, '-', '_' and '.' only";
	case -EPROTO: return "it is of another version than this urxe";
	default: return strerror(-rc);
	}
}

static int adopt_link(struct vm *vm, const struct vm_attr *attr,
		      struct switch_link_handover *handover, char error[VM_ERROR])
{
	const int rc = switch_link_adopt(&vm->link, attr->run_dir, attr->name, attr->mac, handover);

	if (rc)
		snprintf(error, VM_ERROR, "cannot use the machine's port of urxed: %s",
			 strerror(-rc));
	return rc;
}

/* Opens the link to urxed: by a new port, or by the port in `b`, which is of the process that this
 * one replaces; NULL: none. A machine that arrives has no port yet. */
static int open_link(struct vm *vm, const struct vm_attr *attr, struct bundle *b,
		     char error[VM_ERROR])
{
	int rc;

	if (b)
		return adopt_link(vm, attr, &b->link, error);
	if (attr->incoming) {
		rc = switch_link_open_away(&vm->link, attr->run_dir, attr->name, attr->mac,
					   VM_PORT_MTU);
		if (rc)
			snprintf(error, VM_ERROR, "cannot watch urxed: %s", strerror(-rc));
		return rc;
	}
	rc = switch_link_open(&vm->link, attr->run_dir, attr->name, attr->mac);
	if (rc)
		snprintf(error, VM_ERROR, "the urxed in %s gives no port: %s", attr->run_dir,
			 explain_refusal(rc, attr->path));
	return rc;
}

/* --- The session */

static void send_state(void *ctx, int socket)
{
	const struct vm *vm = ctx;

	vm_state_send(vm->rdma.dev, &vm->peers, &vm->hca, &vm->link, vm->name, socket);
}

static uint32_t take_qpn(void *ctx)
{
	return vm_session_take_qpn(&((struct vm *)ctx)->session);
}

static int demand_qpn(void *ctx, uint32_t qpn)
{
	return vm_session_demand_qpn(&((struct vm *)ctx)->session, qpn);
}

static void free_qpn(void *ctx, uint32_t qpn)
{
	vm_session_free_qpn(&((struct vm *)ctx)->session, qpn);
}

static void request_introduction(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	machine_peers_request_introduction(&((struct vm *)ctx)->peers, mac, qpn);
}

/* pvrdma_owner.nic: PVRDMA's port is up only while the machine uses its vmxnet3, whose MTU limits
 * the path MTU. Peers send to the vmxnet3's MAC, which the machine can change. */
static void get_nic(void *ctx, struct pvrdma_nic *nic)
{
	const struct vnic_device *dev = ((struct vm *)ctx)->nic.dev;

	nic->active = vnic_device_state(dev) == VNIC_DEVICE_ACTIVE;
	nic->mtu = vnic_device_mtu(dev);
	memcpy(nic->mac, vnic_device_mac(dev), sizeof(nic->mac));
}

static bool may_reference(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	return machine_peers_may_reference(&((struct vm *)ctx)->peers, mac, qpn);
}

static bool pull_payload(void *ctx, const struct urxe_reference *reference,
			 const struct urxe_extent *to, uint32_t n)
{
	(void)ctx;
	return peer_pull(NULL, reference, to, n);
}

static void record(void *ctx, int ring)
{
	struct vm *vm = ctx;

	engine_recording_request(&vm->recording, vm->link.mac, ring, vm->rdma.dev);
}

/* urxe show, ps and top name the process as the port of the machine. */
static void name_process(struct vm *vm, const struct vm_attr *attr)
{
	snprintf(vm->name, sizeof(vm->name), "vm%s%s", *attr->name ? ":" : "", attr->name);
	prctl(PR_SET_NAME, vm->name);
}

static int open_session(struct vm *vm, const struct vm_attr *attr, char error[VM_ERROR])
{
	const struct session_queries queries = {send_state, record, vm};
	int rc;

	name_process(vm, attr);
	rc = vm_session_open(&vm->session, attr->run_dir, attr->mac, &queries);
	if (rc) {
		snprintf(error, VM_ERROR, "cannot watch urxed: %s", strerror(-rc));
		return rc;
	}
	/* The link gets the uplinks' MTU with its port, but a machine that arrives has none yet. */
	if (attr->incoming && vm->session.welcome.port.link_mtu)
		vm->link.mtu = vm->session.welcome.port.link_mtu;
	machine_peers_open(&vm->peers, &vm->session);
	vm->pvrdma_owner = (struct pvrdma_owner){
		.take_qpn = take_qpn,
		.free_qpn = free_qpn,
		.demand_qpn = demand_qpn,
		.connecting = request_introduction,
		.nic = get_nic,
		.may_reference = may_reference,
		.pull = pull_payload,
		.ctx = vm,
		.copy_ops = &vm->peers.copy_ops,
		.copy_ctx = &vm->peers.peers,
		.table = vm->peers.table,
	};
	return 0;
}

/* Takes over the listening sockets of the replaced process, for both functions and for
 * vm->replacement. Returns 0 or an error of listen_socket_adopt. */
static int adopt_sockets(struct vm *vm, const struct vm_attr *attr, struct bundle *b)
{
	struct listen_socket *sockets[] = {&vm->nic.function.listener, &vm->rdma.function.listener,
					   &vm->replacement.listener};
	int *fds[] = {&b->listeners[0], &b->listeners[1], &b->replace_listener};
	const char *paths[] = {attr->path, attr->rdma_path, attr->replace_path};
	int rc = 0;

	for (int i = 0; i < 3 && !rc; i++) {
		rc = listen_socket_adopt(sockets[i], *fds[i], paths[i],
					 i == 2 ? SOCK_SEQPACKET : SOCK_STREAM);
		if (!rc)
			*fds[i] = -1;
	}
	return rc;
}

static int open_sockets(struct vm *vm, const struct vm_attr *attr, struct bundle *b,
			char error[VM_ERROR])
{
	const int rc = b ? adopt_sockets(vm, attr, b)
			 : listen_socket_open(&vm->replacement.listener, attr->replace_path,
					      SOCK_SEQPACKET);

	if (rc)
		snprintf(error, VM_ERROR, "cannot listen at %s: %s", attr->replace_path,
			 b ? strerror(-rc) : listen_socket_error(rc));
	return rc;
}

static int open_functions(struct vm *vm, const struct vm_attr *attr, struct bundle *b,
			  char error[VM_ERROR])
{
	struct pvrdma_function_attr rdma = {.path = b ? NULL : attr->rdma_path,
					    .mtu = attr->mtu < vm->link.mtu ? attr->mtu
									    : vm->link.mtu,
					    .roce_v1 = attr->roce_v1,
					    .map_doorbells = attr->map_doorbells,
					    .doorbells = b ? &b->doorbells : NULL,
					    .device_owner = &vm->pvrdma_owner,
					    .owner = &vm->owner};

	memcpy(rdma.mac, attr->mac, sizeof(rdma.mac));
	vm->owner = (struct function_owner){finish_frames, follow_functions, stop_peers, vm};
	return vmxnet3_function_open(&vm->nic, b ? NULL : attr->path, attr->mac, attr->mtu,
				     &vm->owner, error)
		       ?: pvrdma_function_open(&vm->rdma, &rdma, error)
		       ?: open_sockets(vm, attr, b, error);
}

static int open_hca(struct vm *vm, const struct vm_attr *attr, char error[VM_ERROR])
{
	const int rc =
		machine_hca_open(&vm->hca, vm->rdma.dev, &vm->session, &vm->peers, attr->way);

	if (rc)
		snprintf(error, VM_ERROR, "cannot watch an HCA: %s", strerror(-rc));
	return rc;
}

static int open_datapath(struct vm *vm, char error[VM_ERROR])
{
	int rc = datapath_init(&vm->datapath, &vm->link, &vm->nic, &vm->rdma, &vm->peers);

	if (rc)
		snprintf(error, VM_ERROR, "no memory");
	return rc;
}

static int open_all(struct vm *vm, const struct vm_attr *attr, struct bundle *b,
		    char error[VM_ERROR])
{
	return open_functions(vm, attr, b, error) ?: open_hca(vm, attr, error)
						  ?: open_datapath(vm, error)
						  ?: open_loop(vm, error);
}

/* Replaces the running process. Opens the session first: the machine's device stands still from
 * take_over_begin on. Returns 0, or a negative errno value and a sentence in `error`. */
static int replace_process(struct vm *vm, const struct vm_attr *attr, char error[VM_ERROR])
{
	struct bundle b;
	int rc = open_session(vm, attr, error) ?: take_over_begin(vm, attr, &b, error);

	if (rc)
		return rc;
	rc = open_link(vm, attr, &b, error) ?: open_all(vm, attr, &b, error)
					    ?: take_over_finish(vm, &b, error);
	bundle_close(&b);
	return rc;
}

static int open_alone(struct vm *vm, const struct vm_attr *attr, char error[VM_ERROR])
{
	return open_link(vm, attr, NULL, error) ?: open_session(vm, attr, error)
						?: open_all(vm, attr, NULL, error);
}

static void init_vm(struct vm *vm, const struct vm_attr *attr)
{
	vm->epoll_fd = vm->signal_fd = -1;
	spare_processor_open(&vm->rest.spare);
	vm->replacement = (struct vm_replacement){.requester = -1, .predecessor = -1};
	vm->replacement.listener.fd = -1;
	vm->options = (struct bundle_options){
		.mtu = attr->mtu, .roce_v1 = attr->roce_v1, .map_doorbells = attr->map_doorbells};
	memcpy(vm->options.mac, attr->mac, sizeof(vm->options.mac));
	switch_link_clear(&vm->link);
}

int vm_create(const struct vm_attr *attr, struct vm **vm, char error[VM_ERROR])
{
	struct vm *new = calloc(1, sizeof(*new));
	int rc;

	if (!new) {
		snprintf(error, VM_ERROR, "no memory");
		return -ENOMEM;
	}
	init_vm(new, attr);
	/* This process serves one machine, so all its faults are of that machine's memory. */
	rc = vnic_guest_memory_catch_faults(begin_loss, new);
	if (rc)
		snprintf(error, VM_ERROR, "cannot handle SIGBUS: %s", strerror(-rc));
	else
		rc = attr->take_over ? replace_process(new, attr, error)
				     : open_alone(new, attr, error);
	if (rc)
		vm_destroy(new);
	else
		*vm = new;
	return rc;
}

void vm_destroy(struct vm *vm)
{
	/*
	 * The end of its connection changes a function that its hypervisor has stopped, or whose
	 * pages it logs. Without an owner the change does not call follow_functions, which would
	 * use freed parts.
	 */
	vm->nic.function.owner = vm->rdma.function.owner = NULL;
	hand_over_close(vm);
	listen_socket_close(&vm->replacement.listener);
	datapath_free(&vm->datapath);
	machine_hca_close(&vm->hca);
	engine_recording_close(&vm->recording, vm->rdma.dev);
	pvrdma_function_close(&vm->rdma);
	vmxnet3_function_close(&vm->nic);
	machine_peers_close(&vm->peers);
	vm_session_close(&vm->session);
	switch_link_close(&vm->link);
	spare_processor_close(&vm->rest.spare);
	if (vm->replacement.predecessor >= 0)
		close(vm->replacement.predecessor);
	if (vm->signal_fd >= 0)
		close(vm->signal_fd);
	if (vm->epoll_fd >= 0)
		close(vm->epoll_fd);
	free(vm);
}
