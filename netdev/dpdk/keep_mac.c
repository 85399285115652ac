/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The driver calls ioctl(SIOCSIFHWADDR) itself. So a thread that ends after the start has a filter
 * of system calls, by which that call succeeds without effect.
 */
#include "dpdk/keep_mac.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <rte_ethdev.h>

struct start {
	uint16_t id;
	int result;
};

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOW_HALF 0
#else
#define LOW_HALF 4
#endif
#define LOAD(offset)              BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offset))
#define SKIP_UNLESS(value, lines) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, lines)
#define RETURN(action)            BPF_STMT(BPF_RET | BPF_K, action)

/* Of this thread only. Without the filter the device starts, too. */
static void filter_calls(void)
{
	struct sock_filter lines[] = {
		LOAD(offsetof(struct seccomp_data, nr)),
		SKIP_UNLESS(SYS_ioctl, 3),
		LOAD(offsetof(struct seccomp_data, args[1]) + LOW_HALF),
		SKIP_UNLESS(SIOCSIFHWADDR, 1),
		RETURN(SECCOMP_RET_ERRNO), /* with errno 0: the call returns 0 */
		RETURN(SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(lines) / sizeof(*lines), lines};

	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void *start_device(void *arg)
{
	struct start *start = arg;

	filter_calls();
	start->result = rte_eth_dev_start(start->id);
	return NULL;
}

int dpdk_start_keeping_mac(uint16_t id)
{
	struct start start = {.id = id};
	pthread_t thread;

	if (pthread_create(&thread, NULL, start_device, &start))
		return rte_eth_dev_start(id);
	pthread_join(thread, NULL);
	return start.result;
}
