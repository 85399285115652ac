/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An af_xdp port moves its XDP program from the hook of veth's driver to the kernel's hook, while
 * another process attaches a program, or the kernel refuses. Needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "cable.h"

static const char *skip_reason;
static char spec[512]; /* of the port; "": this build has no program */

/* Events while the program moves. */
static struct {
	int foreign;        /* a program that another process attaches then; -1: none */
	bool refuses;       /* the kernel attaches no program to its own hook */
	bool refuses_again; /* and none to the driver's hook any more */
	bool moves;         /* the program has left the driver's hook */
} at_move;

static int attach_really(int ifindex, int program, uint32_t flags,
			 const struct bpf_xdp_attach_opts *opts)
{
	int (*attach)(int, int, uint32_t, const struct bpf_xdp_attach_opts *);

	*(void **)&attach = dlsym(RTLD_NEXT, "bpf_xdp_attach");
	return attach(ifindex, program, flags, opts);
}

/* Instead of libbpf's function. */
int bpf_xdp_attach(int ifindex, int program, uint32_t flags, const struct bpf_xdp_attach_opts *opts)
{
	if (flags & XDP_FLAGS_SKB_MODE) {
		at_move.moves = true;
		if (at_move.foreign >= 0)
			assert_int_equal(
				attach_really(ifindex, at_move.foreign, XDP_FLAGS_SKB_MODE, NULL),
				0);
		if (at_move.refuses)
			return -ENOMEM;
	} else if (at_move.moves && at_move.refuses_again) {
		return -ENOMEM;
	}
	return attach_really(ifindex, program, flags, opts);
}

/* Linux 5.18 or later: with an earlier one the program stays at the driver's hook. */
static bool moves_programs(void)
{
	struct utsname name;
	int major, minor;

	return !uname(&name) && sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
	       (major > 5 || (major == 5 && minor >= 18));
}

static int group_setup(void **state)
{
	(void)state;
	if (geteuid() || unshare(CLONE_NEWNET) || cable_shell("ip link set lo up 2>/dev/null"))
		skip_reason = "needs root, network namespaces and ip(8)";
	else if (!*spec)
		skip_reason = "needs a compiler for BPF";
	else if (!moves_programs())
		skip_reason = "needs Linux 5.18";
	return 0;
}

static int setup(void **state)
{
	(void)state;
	memset(&at_move, 0, sizeof(at_move));
	at_move.foreign = -1;
	return 0;
}

static void plug(void)
{
	if (skip_reason) {
		print_message("skipped: %s\n", skip_reason);
		skip();
	}
	cable_plug();
}

/* Returns the identifier of the attached program, 0 = none, and sets *mode to XDP_ATTACHED_*. */
static uint32_t query_program(uint8_t *mode)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	assert_int_equal(bpf_xdp_query((int)if_nametoindex("pa"), 0, &query), 0);
	*mode = query.attach_mode;
	return query.prog_id;
}

static void expect_refused(const char *says)
{
	struct netdev *port;
	char error[512];

	assert_true(netdev_dpdk_open(spec, 0, &port, error, sizeof(error)) < 0);
	assert_true(at_move.moves);
	if (!strstr(error, says))
		fail_msg("%s", error);
}

/* Loads an XDP program that is not urxe's; sets its identifier. */
static int load_foreign_program(uint32_t *id)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "other", "GPL", insns, 2, NULL);
	struct bpf_prog_info info = {0};
	uint32_t length = sizeof(info);

	assert_true(fd >= 0);
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &length), 0);
	*id = info.id;
	return fd;
}

static void another_program_stays(void **state)
{
	uint8_t mode;
	uint32_t id;

	(void)state;
	plug();
	at_move.foreign = load_foreign_program(&id);
	expect_refused("ip link set dev pa xdpgeneric off");
	assert_int_equal(query_program(&mode), id);
	assert_int_equal(mode, XDP_ATTACHED_SKB);
	close(at_move.foreign);
	cable_remove();
}

static void a_port_without_its_program_does_not_open(void **state)
{
	uint8_t mode;

	(void)state;
	plug();
	at_move.refuses = at_move.refuses_again = true;
	expect_refused("cannot attach the XDP program: Cannot allocate memory");
	assert_int_equal(query_program(&mode), 0);
	cable_remove();
}

/* The port works at the driver's hook, too. */
static void a_program_that_cannot_move_returns(void **state)
{
	struct netdev *port;
	char error[512];
	uint8_t mode;

	(void)state;
	plug();
	at_move.refuses = true;
	if (netdev_dpdk_open(spec, 0, &port, error, sizeof(error)))
		fail_msg("%s", error);
	assert_true(at_move.moves);
	assert_int_not_equal(query_program(&mode), 0);
	assert_int_equal(mode, XDP_ATTACHED_DRV);
	netdev_close(port);
	assert_int_equal(query_program(&mode), 0);
	cable_remove();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(another_program_stays, setup),
		cmocka_unit_test_setup(a_port_without_its_program_does_not_open, setup),
		cmocka_unit_test_setup(a_program_that_cannot_move_returns, setup),
	};

	if (argc > 1)
		snprintf(spec, sizeof(spec), "af_xdp:pa,xdp_prog=%s", argv[1]);
	return cmocka_run_group_tests(tests, group_setup, NULL);
}
