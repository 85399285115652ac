/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/eal.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <netdev/netdev.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "dpdk/huge_pages.h"
#include "error_text.h"

#define ARGS_MAX 16

/* Memory that is not of huge pages, for ports with their buffers and for tables alone. */
#define PORTS_MB  "512"
#define TABLES_MB "32"

/* What has to be free of huge pages before the EAL is to live on them: for tables and two ports. */
#define HUGE_SIZE ((size_t)96 << 20)

static enum { EAL_DOWN, EAL_FAILED, EAL_UP } eal_state;
static bool eal_has_pci;
static pid_t eal_pid;

/*
 * DPDK's run-time files are found by this prefix, in a directory that network
 * namespaces share and process namespaces may: neither number alone is enough.
 */
static void file_prefix(char *prefix, size_t size)
{
	struct stat netns = {0};

	if (stat("/proc/self/ns/net", &netns))
		netns.st_ino = 0;
	snprintf(prefix, size, "--file-prefix=urxe-%lu-%d", (unsigned long)netns.st_ino,
		 (int)getpid());
}

/* DPDK leaves its directory behind; a host that restarts its daemon would collect them. */
static void remove_runtime_dir(void)
{
	char path[PATH_MAX + NAME_MAX + 2];
	const char *name = rte_eal_get_runtime_dir();
	struct dirent *entry;
	DIR *dir;

	/* A forked child that exits has no business here. */
	if (getpid() != eal_pid)
		return;
	dir = opendir(name);
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", name, entry->d_name);
		unlink(path);
	}
	if (dir)
		closedir(dir);
	rmdir(name);
}

static int first_cpu(const cpu_set_t *set)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, set))
			return cpu;
	return 0;
}

/*
 * What a device reaches by itself, or shares with a peer by descriptors, is memory of the EAL's:
 * huge pages where there are enough, and without a file of theirs in any hugetlbfs, which a killed
 * daemon would leave. Drivers that copy have no use for them here; see dpdk_pool.c. An EAL whose
 * start failed cannot be started again: so the pages are tried beforehand.
 */
static bool try_huge_pages(const struct dpdk_spec *spec)
{
	void *memory = spec && spec->kind == DPDK_OTHER ? huge_pages_map(HUGE_SIZE) : NULL;

	if (memory)
		huge_pages_unmap(memory, HUGE_SIZE);
	return memory;
}

static int eal_init(const struct dpdk_spec *spec, const cpu_set_t *cpus)
{
	char prefix[64], lcores[32];
	char *argv[ARGS_MAX + 1] = {"urxe"};
	int argc = 1;

	file_prefix(prefix, sizeof(prefix));
	snprintf(lcores, sizeof(lcores), "--lcores=0@%d", first_cpu(cpus));
	argv[argc++] = prefix;
	argv[argc++] = lcores;
	argv[argc++] = "--log-level=*:error";
	/* Without a list of allowed devices the EAL would take all that it can. */
	argv[argc++] = eal_has_pci ? "-a" : "--no-pci";
	if (eal_has_pci)
		argv[argc++] = (char *)spec->devargs;
	if (try_huge_pages(spec)) {
		argv[argc++] = "--in-memory";
		argv[argc++] = "--single-file-segments";
	} else {
		argv[argc++] = "--no-huge";
		argv[argc++] = "-m";
		argv[argc++] = spec ? PORTS_MB : TABLES_MB;
	}
	return rte_eal_init(argc, argv);
}

static int eal_first_start(const struct dpdk_spec *spec, char *why, uint32_t why_size)
{
	cpu_set_t cpus;
	bool restore = !pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus);

	if (!restore)
		CPU_ZERO(&cpus);
	eal_state = EAL_FAILED;
	eal_has_pci = spec && spec->pci;
	if (eal_init(spec, &cpus) < 0)
		return netdev_why(why, why_size, rte_errno ? -rte_errno : -EIO,
				  "DPDK does not start: %s", dpdk_log_reason());
	/* The EAL ties the calling thread to one CPU; where it runs is not DPDK's to say. */
	if (restore)
		pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	eal_pid = getpid();
	atexit(remove_runtime_dir);
	eal_state = EAL_UP;
	return 0;
}

int dpdk_eal_start(const struct dpdk_spec *spec, char *why, uint32_t why_size)
{
	if (eal_state == EAL_DOWN)
		return eal_first_start(spec, why, why_size);
	if (eal_state == EAL_FAILED)
		return netdev_why(why, why_size, -EIO, "DPDK did not start before");
	if (spec && spec->pci && !eal_has_pci)
		return netdev_why(why, why_size, -EINVAL,
				  "DPDK runs without PCI: name PCI devices before other ports");
	return 0;
}

int netdev_dpdk_start(char *why, uint32_t why_size)
{
	int rc;

	dpdk_log_hold();
	rc = dpdk_eal_start(NULL, why, why_size);
	dpdk_log_release();
	return rc;
}
