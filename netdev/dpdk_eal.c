/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk_eal.h"

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

#include "why.h"

#define ARGS_MAX 16

/* Memory that is not of huge pages, for ports with their buffers and for tables alone. */
#define PORTS_MB  "512"
#define TABLES_MB "32"

static enum { EAL_DOWN, EAL_FAILED, EAL_UP } eal_state;
static bool eal_has_pci;
static pid_t eal_pid;

/* Huge pages that nobody holds yet, of any size. */
static bool have_huge_pages(void)
{
	char path[sizeof("/sys/kernel/mm/hugepages//free_hugepages") + NAME_MAX];
	DIR *dir = opendir("/sys/kernel/mm/hugepages");
	struct dirent *entry;
	unsigned long free_pages = 0, count;
	FILE *file;

	while (dir && !free_pages && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/%s/free_hugepages",
			 entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fscanf(file, "%lu", &count) == 1)
			free_pages = count;
		fclose(file);
	}
	if (dir)
		closedir(dir);
	return free_pages;
}

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
 * Software ports copy, so ordinary memory serves them; a PCI device takes huge
 * pages where there are any. They are unlinked at once: a killed daemon must not
 * keep them.
 */
static int eal_init(const char *pci, const char *megabytes, const cpu_set_t *cpus)
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
	argv[argc++] = pci ? "-a" : "--no-pci";
	if (pci)
		argv[argc++] = (char *)pci;
	if (pci && have_huge_pages()) {
		argv[argc++] = "--huge-unlink";
	} else {
		argv[argc++] = "--no-huge";
		argv[argc++] = "-m";
		argv[argc++] = (char *)megabytes;
	}
	return rte_eal_init(argc, argv);
}

static int eal_first_start(const char *pci, const char *megabytes, char *why, uint32_t why_size)
{
	cpu_set_t cpus;
	bool restore = !pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus);

	if (!restore)
		CPU_ZERO(&cpus);
	eal_state = EAL_FAILED;
	if (eal_init(pci, megabytes, &cpus) < 0)
		return netdev_why(why, why_size, rte_errno ? -rte_errno : -EIO,
				  "DPDK does not start: %s", dpdk_log_reason());
	/* The EAL ties the calling thread to one CPU; where it runs is not DPDK's to say. */
	if (restore)
		pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	eal_pid = getpid();
	atexit(remove_runtime_dir);
	eal_state = EAL_UP;
	eal_has_pci = pci != NULL;
	return 0;
}

int dpdk_eal_start(const char *pci, char *why, uint32_t why_size)
{
	if (eal_state == EAL_DOWN)
		return eal_first_start(pci, PORTS_MB, why, why_size);
	if (eal_state == EAL_FAILED)
		return netdev_why(why, why_size, -EIO, "DPDK did not start before");
	if (pci && !eal_has_pci)
		return netdev_why(why, why_size, -EINVAL,
				  "DPDK runs without PCI: name PCI devices before other ports");
	return 0;
}

int netdev_dpdk_start(char *why, uint32_t why_size)
{
	int rc;

	dpdk_log_hold();
	if (eal_state == EAL_DOWN)
		rc = eal_first_start(NULL, TABLES_MB, why, why_size);
	else
		rc = dpdk_eal_start(NULL, why, why_size);
	dpdk_log_release();
	return rc;
}
