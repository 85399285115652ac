/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/replace/take_over.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/epoll_readable.h"
#include "common/log.h"
#include "vm/replace/channel.h"
#include "vm/vm_private.h"

static const char *explain_failure(int rc)
{
	switch (rc) {
	case -ENOENT:
	case -ECONNREFUSED: return "no urxe vm serves there";
	case -EPERM: return "it belongs to another user";
	case -EBUSY: return "its hypervisor migrates the machine";
	case -EAGAIN: return "it took too long";
	case -ECONNRESET:
	case -EPIPE: return "it has given up or ended";
	case -EBADMSG: return "its state of the device is damaged";
	case -EPROTO:
	case -EPROTONOSUPPORT: return "it has another version of urxe";
	default: return strerror(-rc);
	}
}

/* Returns an option that differs, or NULL. The hypervisor and the drivers have seen the options of
 * the running process, so both processes must have the same. */
static const char *find_difference(const struct bundle_options *mine,
				   const struct bundle_options *other)
{
	if (memcmp(mine->mac, other->mac, sizeof(mine->mac)))
		return "--mac";
	if (mine->mtu != other->mtu)
		return "--mtu";
	if (mine->roce_v1 != other->roce_v1)
		return "--roce";
	return mine->map_doorbells != other->map_doorbells ? "--doorbells" : NULL;
}

static int fail(struct vm *vm, int rc, char error[VM_ERROR])
{
	channel_send(vm->replacement.predecessor, rc);
	close(vm->replacement.predecessor);
	vm->replacement.predecessor = -1;
	snprintf(error, VM_ERROR, "cannot take the machine's device over: %s", explain_failure(rc));
	return rc;
}

int take_over_begin(struct vm *vm, const struct vm_attr *attr, struct bundle *b,
		    char error[VM_ERROR])
{
	const char *difference;
	int fd = channel_connect(attr->replace_path), rc;

	if (fd < 0) {
		snprintf(error, VM_ERROR, "cannot take over from the process at %s: %s",
			 attr->replace_path, explain_failure(fd));
		return fd;
	}
	vm->replacement.predecessor = fd;
	rc = channel_send(fd, 0) ?: channel_receive_bundle(fd, b);
	if (rc)
		return fail(vm, rc, error);
	difference = find_difference(&vm->options, &b->options);
	if (!difference)
		return 0;
	bundle_close(b);
	rc = fail(vm, -EINVAL, error);
	snprintf(error, VM_ERROR, "the process at %s runs with another %s", attr->replace_path,
		 difference);
	return rc;
}

static int take_functions(struct vm *vm, struct bundle *b)
{
	int rc = 0;

	for (uint32_t i = 0; i < BUNDLE_FUNCTIONS && !rc; i++) {
		struct function *f = vm_function(vm, i);

		rc = vnic_vfio_server_take_over(f->server, &b->functions[i])
			     ?: function_adopt_client(f, vm->epoll_fd);
	}
	return rc;
}

int take_over_finish(struct vm *vm, struct bundle *b, char error[VM_ERROR])
{
	struct vm_replacement *r = &vm->replacement;
	int rc;

	r->taking_over = true;
	/* If the driver knows another state of the link, it gets an event. */
	vm_set_link(vm, switch_link_is_up(&vm->link));
	/* Until the old process has ended, the numbers of the queue pairs are its own. */
	vm_session_demand_later(&vm->session);
	/* At the answer 0 the old process ends, so all that can fail comes before. */
	rc = take_functions(vm, b) ?: epoll_add_readable(vm->epoll_fd, r->predecessor)
				   ?: channel_send(r->predecessor, 0)
				   ?: channel_receive(r->predecessor);
	if (rc)
		return fail(vm, rc, error);
	for (uint32_t i = 0; i < BUNDLE_FUNCTIONS; i++) {
		listen_socket_own_file(&vm_function(vm, i)->listener);
		vnic_vfio_server_resume(vm_function(vm, i)->server);
	}
	listen_socket_own_file(&r->listener);
	r->taking_over = false;
	log_line("took the machine's device over");
	return 0;
}

void take_over_settle(struct vm *vm)
{
	close(vm->replacement.predecessor);
	vm->replacement.predecessor = -1;
	vm_session_demand_now(&vm->session, now_ns());
}
