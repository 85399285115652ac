/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How a device process accepts the process that replaces it, refuses others, replaces one, and
 * ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "descriptor_limit.h"
#include "vfio_client.h"
#include "vm/replace/channel.h"
#include "vm/replace/hand_over.h"
#include "vm/replace/take_over.h"
#include "vm/vm_private.h"

static struct vm vm;
static struct sockaddr_un address;
static socklen_t address_len;

/* What the kernel says to a program that watches one more descriptor than its user may. */
static bool watches_exhausted;

int __real_epoll_ctl(int set, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int set, int operation, int fd, struct epoll_event *event);
int __wrap_vnic_vfio_server_take_over(struct vnic_vfio_server *server,
				      struct vnic_vfio_handover *h);
int __wrap_function_adopt_client(struct function *f, int epoll_fd);
void __wrap_vm_set_link(struct vm *of, bool up);

int __wrap_epoll_ctl(int set, int operation, int fd, struct epoll_event *event)
{
	if (!watches_exhausted)
		return __real_epoll_ctl(set, operation, fd, event);
	errno = ENOSPC;
	return -1;
}

/* The functions of the machine take the state of the other process. */
int __wrap_vnic_vfio_server_take_over(struct vnic_vfio_server *server, struct vnic_vfio_handover *h)
{
	(void)server;
	(void)h;
	return 0;
}

int __wrap_function_adopt_client(struct function *f, int epoll_fd)
{
	(void)f;
	(void)epoll_fd;
	return 0;
}

void __wrap_vm_set_link(struct vm *of, bool up)
{
	(void)of;
	(void)up;
}

static int listen_anywhere(void **state)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)state;
	address.sun_family = AF_UNIX;
	address_len = sizeof(address);
	/* The kernel chooses an abstract name. */
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address.sun_family)) ||
	    getsockname(fd, (struct sockaddr *)&address, &address_len) || listen(fd, 4))
		return -1;
	vm.replacement.listener.fd = fd;
	vm.replacement.requester = -1;
	vm.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return vm.epoll_fd < 0;
}

static int close_all(void **state)
{
	(void)state;
	hand_over_close(&vm);
	if (vm.epoll_fd >= 0)
		close(vm.epoll_fd);
	return close(vm.replacement.listener.fd);
}

/* Another process connects and is accepted or refused. `said`: what the log says. */
static int ask(char *said, size_t size)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0),
		  error = dup(STDERR_FILENO);
	FILE *log = tmpfile();
	size_t n;

	assert_non_null(log);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, address_len), 0);
	dup2(fileno(log), STDERR_FILENO);
	hand_over_accept(&vm);
	dup2(error, STDERR_FILENO);
	close(error);
	rewind(log);
	n = fread(said, 1, size - 1, log);
	said[n] = '\0';
	fclose(log);
	return fd;
}

static bool is_closed(int fd)
{
	char byte;
	const bool closed = recv(fd, &byte, 1, MSG_DONTWAIT) == 0;

	close(fd);
	return closed;
}

static void first_process_is_accepted_and_second_refused(void **state)
{
	char said[200];
	int first, second;

	(void)state;
	first = ask(said, sizeof(said));
	assert_true(vm.replacement.requester >= 0);
	assert_string_equal(said, "");
	second = ask(said, sizeof(said));
	assert_non_null(strstr(said, "another one asks for it, too"));
	assert_true(is_closed(second));
	assert_false(is_closed(first));
}

static void other_failure_is_named(void **state)
{
	char said[200];
	int fd;

	(void)state;
	close(vm.epoll_fd);
	vm.epoll_fd = -1;
	fd = ask(said, sizeof(said));
	assert_int_equal(vm.replacement.requester, -1);
	assert_non_null(strstr(said, strerror(EBADF)));
	assert_null(strstr(said, "another"));
	assert_true(is_closed(fd));
}

/* After the answer 0 the old process ends, so nothing that can fail may follow it. */
static void old_process_keeps_the_machine_that_the_new_one_cannot_watch(void **state)
{
	struct bundle bundle = {0};
	char error[VM_ERROR];
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	vm.replacement.predecessor = ends[0];
	/* The old process's packet for an answer 0. */
	assert_int_equal(channel_send(ends[1], 0), 0);
	watches_exhausted = true;
	assert_int_equal(take_over_finish(&vm, &bundle, error), -ENOSPC);
	watches_exhausted = false;
	assert_true(channel_receive(ends[1]) < 0);
	assert_int_equal(vm.replacement.predecessor, -1);
	close(ends[1]);
}

/* --- A machine without a daemon and without a hypervisor */

struct machine {
	struct vm *vm;
	char dir[32], nic[48], rdma[48], replace[48];
};

static int create_machine(struct machine *m, char error[VM_ERROR])
{
	const struct vm_attr attr = {.run_dir = m->dir,
				     .name = "",
				     .path = m->nic,
				     .rdma_path = m->rdma,
				     .replace_path = m->replace,
				     .mac = {2, 0, 0, 0, 1, 1},
				     .mtu = 1500,
				     .incoming = true};

	return vm_create(&attr, &m->vm, error);
}

static int open_machine(void **state)
{
	static struct machine m;
	char error[VM_ERROR];

	strcpy(m.dir, "/tmp/urxe-test-XXXXXX");
	if (!mkdtemp(m.dir))
		return -1;
	snprintf(m.nic, sizeof(m.nic), "%s/nic", m.dir);
	snprintf(m.rdma, sizeof(m.rdma), "%s/rdma", m.dir);
	snprintf(m.replace, sizeof(m.replace), "%s/replace", m.dir);
	*state = &m;
	return create_machine(&m, error);
}

static int close_machine(void **state)
{
	struct machine *m = *state;

	vm_destroy(m->vm);
	return rmdir(m->dir);
}

/* Another process asks for the device, and does not get it, because it ends. */
static void refuse_hand_over(struct vm *of)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(channel_send(ends[1], 0), 0);
	close(ends[1]);
	of->replacement.requester = ends[0];
	hand_over(of);
	assert_false(of->replacement.replaced);
}

static void try_to_hand_over(struct vm *of)
{
	refuse_hand_over(of);
	assert_false(of->nic.function.paused || of->rdma.function.paused || of->paused);
}

static bool nic_paused_first, rdma_paused_first;
static void (*follow_change)(void *ctx);

static void note_first_pause(void *ctx)
{
	const struct vm *of = ctx;

	nic_paused_first |= of->nic.function.paused && !rdma_paused_first;
	rdma_paused_first |= of->rdma.function.paused && !nic_paused_first;
	follow_change(ctx);
}

/* Before PVRDMA stops, it may handle a message that leaves frames: a machine whose NIC has stopped
 * would not send them. */
static void pvrdma_stops_before_the_nic(void **state)
{
	struct machine *m = *state;

	follow_change = m->vm->owner.changed;
	m->vm->owner.changed = note_first_pause;
	try_to_hand_over(m->vm);
	assert_true(rdma_paused_first);
	assert_false(nic_paused_first);
}

/* Rounds of the datapath in which the ring to urxed has no room. */
static unsigned full_rounds;

bool __real_datapath_run(struct datapath *f, uint64_t now);
bool __wrap_datapath_run(struct datapath *f, uint64_t now);

bool __wrap_datapath_run(struct datapath *f, uint64_t now)
{
	if (!full_rounds)
		return __real_datapath_run(f, now);
	f->link_full = --full_rounds;
	return !full_rounds;
}

/* The other process does not get frames that wait for room: an acknowledgement would be lost. */
static void frames_that_wait_for_room_leave_before_the_device_stops(void **state)
{
	struct machine *m = *state;

	full_rounds = 8;
	try_to_hand_over(m->vm);
	assert_int_equal(full_rounds, 0);
}

/* --- A machine with a hypervisor */

static void pump_nic(void *ctx)
{
	struct vm *of = ctx;

	function_event(&of->nic.function, of->epoll_fd);
}

static void connect_hypervisor(struct vfio_client *c, struct function *f, void (*pump)(void *ctx),
			       struct vm *of)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(vnic_vfio_server_connect(f->server, ends[0]), 0);
	vfio_client_open(c, ends[1], pump, of);
}

/* The states into which the hypervisor brings the NIC, and the expected answer to the last one. A
 * stream without a byte is refused. */
struct stopped_nic {
	enum vfio_state states[2];
	uint32_t n;
	int answer;
};

/* The end of a connection starts a stopped function, when other parts of the process may be gone.
 */
static void a_process_ends_whose_nic_is_stopped(void **state)
{
	static const struct stopped_nic nics[] = {
		{{VFIO_STATE_STOP}, 1, 0},
		{{VFIO_STATE_STOP_COPY}, 1, 0},
		{{VFIO_STATE_RESUMING}, 1, 0},
		{{VFIO_STATE_RESUMING, VFIO_STATE_STOP}, 2, EBADMSG},
	};

	for (size_t i = 0; i < sizeof(nics) / sizeof(*nics); i++) {
		const struct stopped_nic *nic = &nics[i];
		struct vfio_client hypervisor;
		struct machine *m;
		int answer = -1;

		assert_int_equal(open_machine(state), 0);
		m = *state;
		connect_hypervisor(&hypervisor, &m->vm->nic.function, pump_nic, m->vm);
		for (uint32_t j = 0; j < nic->n; j++)
			answer = vfio_set_state(&hypervisor, nic->states[j]);
		assert_int_equal(answer, nic->answer);
		assert_true(m->vm->paused);
		assert_int_equal(close_machine(state), 0);
		close(hypervisor.socket);
	}
}

static void a_process_ends_whose_nic_logs_written_pages(void **state)
{
	struct vfio_client hypervisor;
	struct machine *m;

	assert_int_equal(open_machine(state), 0);
	m = *state;
	connect_hypervisor(&hypervisor, &m->vm->nic.function, pump_nic, m->vm);
	assert_int_equal(vfio_start_log(&hypervisor), 0);
	assert_int_equal(close_machine(state), 0);
	close(hypervisor.socket);
}

static void pump_rdma(void *ctx)
{
	struct vm *of = ctx;

	function_event(&of->rdma.function, of->epoll_fd);
}

/* The process reads the hypervisor's request for STOP while it waits for the end of a message. */
static void machine_that_stops_before_it_is_handed_over_leaves_the_switch(void **state)
{
	static const struct {
		uint16_t id, command;
		uint32_t size, flags, error;
		uint32_t room, feature, state, fd;
	} stop = {100, 16, sizeof(stop), 0, 0, 16, 1u << 17 | 2, VFIO_STATE_STOP, 0};
	const size_t part = sizeof(stop) / 2;
	const uint8_t *bytes = (const uint8_t *)&stop;
	struct vfio_client hypervisor;
	struct machine *m = *state;

	/* As after the machine has joined. */
	m->vm->link.away = false;
	connect_hypervisor(&hypervisor, &m->vm->rdma.function, pump_rdma, m->vm);
	assert_int_equal(send(hypervisor.socket, bytes, part, 0), part);
	pump_rdma(m->vm);
	assert_int_equal(send(hypervisor.socket, bytes + part, sizeof(stop) - part, 0),
			 sizeof(stop) - part);
	refuse_hand_over(m->vm);
	assert_true(m->vm->rdma.function.paused && m->vm->paused);
	assert_true(m->vm->link.away);
	close(hypervisor.socket);
}

static void a_machine_without_descriptors_says_so(void **state)
{
	char error[VM_ERROR] = "";
	struct machine m = {.dir = "/tmp"};
	struct rlimit former;

	(void)state;
	former = descriptor_limit_reach();
	assert_int_equal(create_machine(&m, error), -EMFILE);
	descriptor_limit_restore(&former);
	assert_non_null(strstr(error, strerror(EMFILE)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(first_process_is_accepted_and_second_refused,
						listen_anywhere, close_all),
		cmocka_unit_test_setup_teardown(other_failure_is_named, listen_anywhere, close_all),
		cmocka_unit_test_setup_teardown(
			old_process_keeps_the_machine_that_the_new_one_cannot_watch,
			listen_anywhere, close_all),
		cmocka_unit_test_setup_teardown(pvrdma_stops_before_the_nic, open_machine,
						close_machine),
		cmocka_unit_test_setup_teardown(
			frames_that_wait_for_room_leave_before_the_device_stops, open_machine,
			close_machine),
		cmocka_unit_test_setup_teardown(
			machine_that_stops_before_it_is_handed_over_leaves_the_switch, open_machine,
			close_machine),
		cmocka_unit_test(a_machine_without_descriptors_says_so),
		cmocka_unit_test(a_process_ends_whose_nic_is_stopped),
		cmocka_unit_test(a_process_ends_whose_nic_logs_written_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
