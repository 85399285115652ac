/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls a driver's function without some of its system calls (driver_call.h). The function runs in
 * a thread of its own, under a filter of system calls (seccomp) that makes the unwanted ones return
 * success without effect.
 */
#include "dpdk/driver_call.h"

#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <rte_dev.h>
#include <rte_ethdev.h>

struct call {
	int (*function)(const void *argument);
	const void *argument;
	int result;
};

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOW_HALF 0
#else
#define LOW_HALF 4
#endif
#define LOAD(offset)              BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offset))
#define LOAD_ARGUMENT(i)          LOAD(offsetof(struct seccomp_data, args[i]) + LOW_HALF)
#define SKIP_UNLESS(value, lines) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, lines)
#define RETURN(action)            BPF_STMT(BPF_RET | BPF_K, action)
#define SUCCEED                   RETURN(SECCOMP_RET_ERRNO) /* with errno 0: the call returns 0 */

/* Filters the system calls of this thread only. Without the filter the driver works, too. */
static void filter_calls(void)
{
	struct sock_filter lines[] = {
		LOAD(offsetof(struct seccomp_data, nr)),
		SKIP_UNLESS(SYS_ioctl, 5),
		LOAD_ARGUMENT(1),
		SKIP_UNLESS(SIOCSIFHWADDR, 1),
		SUCCEED,
		SKIP_UNLESS(SIOCSIFFLAGS, 7),
		SUCCEED,
		SKIP_UNLESS(SYS_setsockopt, 5),
		LOAD_ARGUMENT(1),
		SKIP_UNLESS(SOL_PACKET, 3),
		LOAD_ARGUMENT(2),
		SKIP_UNLESS(PACKET_FANOUT, 1),
		SUCCEED,
		RETURN(SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(lines) / sizeof(*lines), lines};

	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void *run_call(void *arg)
{
	struct call *call = arg;

	filter_calls();
	call->result = call->function(call->argument);
	return NULL;
}

static int call_filtered(int (*function)(const void *argument), const void *argument)
{
	struct call call = {.function = function, .argument = argument};
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_call, &call))
		return function(argument);
	pthread_join(thread, NULL);
	return call.result;
}

static int probe(const void *devargs)
{
	return rte_dev_probe(devargs);
}

int dpdk_probe_without_fanout(const char *devargs)
{
	return call_filtered(probe, devargs);
}

static int start_dpdk_device(const void *id)
{
	return rte_eth_dev_start(*(const uint16_t *)id);
}

int dpdk_start_keeping_interface(uint16_t id)
{
	return call_filtered(start_dpdk_device, &id);
}
