/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/eal.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <netdev/netdev.h>
#include <netdev/vhost.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "dpdk/huge_pages.h"
#include "error_text.h"

#define ARGS_MAX 16

/*
 * EAL memory in MB without huge pages. PORTS_MB: for a port's buffers. TABLES_MB: for tables alone,
 * or for the process of one vhost-user port, whose packet buffers lie elsewhere. Tables are larger
 * on arm64, where DPDK aligns to 128 bytes.
 */
#define PORTS_MB  "512"
#define TABLES_MB "64"

/* The EAL uses huge pages if so many bytes of them are free: for tables and two ports. */
#define HUGE_SIZE ((size_t)96 << 20)

static enum { EAL_DOWN, EAL_FAILED, EAL_UP } eal_state;
static bool eal_has_pci;
static pid_t eal_pid;

/*
 * The name of DPDK's run-time directory. Network namespaces share the parent directory, and PID
 * namespaces may, so the name has the numbers of both.
 */
static void file_prefix(char *prefix, size_t size)
{
	struct stat netns = {0};

	if (stat("/proc/self/ns/net", &netns))
		netns.st_ino = 0;
	snprintf(prefix, size, "--file-prefix=urxe-%lu-%d", (unsigned long)netns.st_ino,
		 (int)getpid());
}

/* Removes DPDK's directory of this process. DPDK does not remove it, and each restart of the daemon
 * would add one. */
static void remove_runtime_dir(void)
{
	char path[PATH_MAX + NAME_MAX + 2];
	const char *name = rte_eal_get_runtime_dir();
	struct dirent *entry;
	DIR *dir;

	/* A forked child's exit must not remove the parent's directory. */
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
 * Whether the EAL is to take its memory from huge pages: for a `dpdk:` port, whose device may use
 * DMA, if enough of them are free. Drivers that copy do not need the EAL's memory (pool.c), and the
 * process of a vhost: port starts without huge pages. An EAL whose start has failed cannot start
 * again; so this function maps the pages on trial first.
 */
static bool try_huge_pages(const struct dpdk_spec *spec)
{
	void *memory = spec && spec->kind == DPDK_OTHER ? huge_pages_map(HUGE_SIZE) : NULL;

	if (memory)
		huge_pages_unmap(memory, HUGE_SIZE);
	return memory;
}

/*
 * Starts the EAL; negative: rte_errno has the error. `vhost`: for the process of one vhost-user
 * port. The EAL maps no files (--no-shconf): where the run directory has no room for a page of such
 * a file, SIGBUS would end the daemon without a reason.
 */
static int eal_init(const struct dpdk_spec *spec, bool vhost, const cpu_set_t *cpus)
{
	char prefix[64], lcores[64];
	char *argv[ARGS_MAX + 1];
	int argc = 0;

	file_prefix(prefix, sizeof(prefix));
	snprintf(lcores, sizeof(lcores), "--lcores=0@%d", first_cpu(cpus));
	argv[argc++] = "urxe";
	argv[argc++] = prefix;
	argv[argc++] = lcores;
	argv[argc++] = "--log-level=*:error";
	argv[argc++] = "--no-shconf";
	/* Without a list of allowed devices the EAL would open all PCI devices. */
	argv[argc++] = eal_has_pci ? "-a" : "--no-pci";
	if (eal_has_pci)
		argv[argc++] = (char *)spec->devargs;
	if (vhost)
		argv[argc++] = "--no-telemetry";
	if (!vhost && try_huge_pages(spec)) {
		/* Without files in a hugetlbfs, which a killed daemon would leave behind. */
		argv[argc++] = "--in-memory";
		argv[argc++] = "--single-file-segments";
	} else {
		argv[argc++] = "--no-huge";
		argv[argc++] = "-m";
		argv[argc++] = spec ? PORTS_MB : TABLES_MB;
	}
	argv[argc] = NULL;
	return rte_eal_init(argc, argv);
}

/* The EAL looks up each processor and VFIO's module in these directories. Without one of them, as
 * in some containers, it prints a page of usage or "Cannot init VFIO", so urxe checks first. */
static const char *const sys_directories[] = {"/sys/devices/system/cpu", "/sys/module"};

static const char *missing_directory(void)
{
	for (size_t i = 0; i < sizeof(sys_directories) / sizeof(*sys_directories); i++)
		if (access(sys_directories[i], F_OK))
			return sys_directories[i];
	return NULL;
}

/* Starts the EAL; returns 0 or a negative errno value. `vhost`: for the process of one vhost-user
 * port. */
static int eal_first_start(const struct dpdk_spec *spec, bool vhost, char *error,
			   uint32_t error_size)
{
	const char *missing = missing_directory();
	cpu_set_t cpus;
	bool restore = !pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus);

	if (!restore)
		CPU_ZERO(&cpus);
	if (missing)
		return error_text_set(error, error_size, -ENOENT,
				      "DPDK cannot start without %s: mount /sys", missing);
	eal_state = EAL_FAILED;
	eal_has_pci = spec && spec->pci;
	if (eal_init(spec, vhost, &cpus) < 0)
		return error_text_set(error, error_size, rte_errno ? -rte_errno : -EIO,
				      "DPDK cannot start: %s", dpdk_log_reason());
	/* The EAL pins the calling thread to one CPU: the thread gets its affinity back. */
	if (restore)
		pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	eal_pid = getpid();
	/* The process of a vhost-user port may be killed, and then could not remove it later. */
	if (vhost)
		remove_runtime_dir();
	else
		atexit(remove_runtime_dir);
	eal_state = EAL_UP;
	return 0;
}

int dpdk_eal_start(const struct dpdk_spec *spec, char *error, uint32_t error_size)
{
	if (eal_state == EAL_DOWN)
		return eal_first_start(spec, false, error, error_size);
	if (eal_state == EAL_FAILED)
		return error_text_set(error, error_size, -EIO, "DPDK did not start before");
	if (spec && spec->pci && !eal_has_pci)
		return error_text_set(
			error, error_size, -EINVAL,
			"DPDK runs without PCI devices: name a PCI device before other ports");
	return 0;
}

int netdev_vhost_start(char *error, uint32_t error_size)
{
	int rc;

	dpdk_log_hold();
	rc = eal_first_start(NULL, true, error, error_size);
	dpdk_log_release();
	return rc;
}

int netdev_dpdk_start(char *error, uint32_t error_size)
{
	int rc;

	dpdk_log_hold();
	rc = dpdk_eal_start(NULL, error, error_size);
	dpdk_log_release();
	return rc;
}
