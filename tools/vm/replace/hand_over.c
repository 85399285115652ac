/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/replace/hand_over.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/epoll_readable.h"
#include "common/log.h"
#include "vm/replace/channel.h"
#include "vm/vm_private.h"

/* How long the functions may take to come between two messages, and peers to end a copy. */
#define STOP_NS  (200 * NS_PER_MS)
#define PAUSE_NS 50000

void hand_over_close(struct vm *vm)
{
	/* close(2) ends the watch of the descriptor, too. */
	if (vm->replacement.requester >= 0)
		close(vm->replacement.requester);
	vm->replacement.requester = -1;
}

void hand_over_accept(struct vm *vm)
{
	struct vm_replacement *r = &vm->replacement;
	const int fd = channel_accept(r->listener.fd);
	int rc;

	if (fd < 0)
		return;
	rc = r->requester >= 0 ? -EALREADY : epoll_add_readable(vm->epoll_fd, fd);
	if (!rc) {
		r->requester = fd;
		return;
	}
	log_line("refused a process that asks for the machine's device: %s",
		 rc == -EALREADY ? "another one asks for it, too" : strerror(-rc));
	close(fd);
}

static void pause_a_little(void)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	nanosleep(&pause, NULL);
}

/* Handles messages until the function can stop between two of them. Returns as
 * vnic_vfio_server_stop; -EAGAIN: the function could not stop until `end`. */
static int stop_function(struct vm *vm, struct function *f, uint64_t end)
{
	int rc;

	while ((rc = vnic_vfio_server_stop(f->server)) == -EAGAIN && now_ns() < end) {
		function_event(f, vm->epoll_fd);
		pause_a_little();
	}
	return rc;
}

/*
 * Stops PVRDMA before the vmxnet3: the messages that PVRDMA's server handles until then may make it
 * send frames, and the process sends frames only while both functions run. Returns as
 * stop_function. The functions from *running on have stopped, also after an error.
 */
static int stop_functions(struct vm *vm, uint32_t *running)
{
	const uint64_t end = now_ns() + STOP_NS;
	int rc = 0;

	for (*running = BUNDLE_FUNCTIONS; *running && !rc; *running -= !rc)
		rc = stop_function(vm, vm_function(vm, *running - 1), end);
	return rc;
}

/* Saves the function when peers have ended their copies. Returns as vnic_vfio_server_hand_over;
 * -EAGAIN: peers still copy after STOP_NS. */
static int save_function(struct function *f, struct vnic_vfio_handover *h)
{
	const uint64_t end = now_ns() + STOP_NS;
	int rc;

	while ((rc = vnic_vfio_server_hand_over(f->server, h)) == -EAGAIN && now_ns() < end)
		pause_a_little();
	return rc;
}

static int send_bundle(struct vm *vm, struct bundle *b)
{
	int rc = 0;

	*b = (struct bundle){.options = vm->options,
			     .replace_listener = vm->replacement.listener.fd,
			     .doorbells = vm->rdma.uar.bytes ? vm->rdma.uar.fd : -1,
			     .link = switch_link_hand_over(&vm->link)};
	for (uint32_t i = 0; i < BUNDLE_FUNCTIONS && !rc; i++) {
		b->listeners[i] = vm_function(vm, i)->listener.fd;
		rc = save_function(vm_function(vm, i), &b->functions[i]);
	}
	if (!rc)
		rc = channel_send_bundle(vm->replacement.requester, b);
	for (uint32_t i = 0; i < BUNDLE_FUNCTIONS; i++)
		free(b->functions[i].stream);
	return rc;
}

/* Hands the device over, whose functions have stopped. 0: it is the other process's now; an error:
 * it stays this process's. */
static int hand_over_stopped(struct vm *vm)
{
	const int fd = vm->replacement.requester;
	struct bundle b;

	return send_bundle(vm, &b) ?: channel_receive(fd) ?: channel_send(fd, 0);
}

static const char *explain_failure(int rc)
{
	switch (rc) {
	case -EBUSY: return "its hypervisor migrates it";
	case -EAGAIN: return "the other process, the hypervisor or a peer took too long";
	case -ECONNRESET:
	case -EPIPE: return "the other process has ended";
	case -EPROTO:
	case -EPROTONOSUPPORT: return "the other process has another version of urxe";
	case -EINVAL: return "the other process has other options";
	default: return strerror(-rc);
	}
}

/* Tells peers and urxed that the queue pairs have left this process, and makes the process end. */
static void announce_move(struct vm *vm)
{
	vm->replacement.replaced = vm->stop = true;
	machine_peers_end_service(&vm->peers);
	vm_session_detach(&vm->session);
	log_line("another process has taken the machine's device over");
}

void hand_over(struct vm *vm)
{
	struct vm_replacement *r = &vm->replacement;
	uint32_t running = BUNDLE_FUNCTIONS;
	int rc = channel_receive(r->requester);

	if (!rc) {
		r->handing_over = true;
		rc = stop_functions(vm, &running) ?: hand_over_stopped(vm);
	}
	if (!rc) {
		announce_move(vm);
		hand_over_close(vm);
		return;
	}
	channel_send(r->requester, rc);
	hand_over_close(vm);
	machine_peers_admit_senders(&vm->peers);
	for (uint32_t i = running; i < BUNDLE_FUNCTIONS; i++)
		vnic_vfio_server_resume(vm_function(vm, i)->server);
	r->handing_over = false;
	/* The hypervisor has stopped the machine during the attempt. The machine kept its port
	 * then, for the other process, and gives it back now. */
	if (vm->paused)
		switch_link_leave(&vm->link);
	log_line("the machine's device stays with this process: %s", explain_failure(rc));
}
