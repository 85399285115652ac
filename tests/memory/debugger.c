/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Stores from outside to registered memory: /proc/self/mem, process_vm_writev, ptrace and gdb. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "region.h"
#include "row.h"
#include "snapshot.h"

#define STORED 0x5a

static int store_by_proc(pid_t pid, uint8_t *at)
{
	const uint8_t byte = STORED;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 || pwrite(fd, &byte, 1, (off_t)(uintptr_t)at) != 1 ? errno : 0;
}

static int store_by_copy(pid_t pid, uint8_t *at)
{
	uint8_t byte = STORED;
	struct iovec local = {&byte, 1}, remote = {at, 1};

	return process_vm_writev(pid, &local, 1, &remote, 1, 0) == 1 ? 0 : errno;
}

static int store_by_ptrace(pid_t pid, uint8_t *at)
{
	long word;

	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) || waitpid(pid, NULL, __WALL) != pid)
		return errno;
	errno = 0;
	word = ptrace(PTRACE_PEEKDATA, pid, at, NULL);
	word = (word & ~0xffl) | STORED;
	if (ptrace(PTRACE_POKEDATA, pid, at, (void *)word))
		return errno;
	return ptrace(PTRACE_DETACH, pid, NULL, NULL) ? errno : 0;
}

static int store_by_gdb(pid_t pid, uint8_t *at)
{
	char target[16], command[64];
	int null = open("/dev/null", O_RDWR);

	snprintf(target, sizeof(target), "%d", (int)pid);
	snprintf(command, sizeof(command), "set {unsigned char}%p = %d", (void *)at, STORED);
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	unsetenv("LD_PRELOAD");
	execlp("gdb", "gdb", "-nx", "-batch", "-p", target, "-ex", command, (char *)NULL);
	return errno;
}

static int (*const ways[])(pid_t, uint8_t *) = {store_by_proc, store_by_copy, store_by_ptrace,
						store_by_gdb};
enum { PROC, COPY, PTRACE, GDB };

static void store_from_child(uintptr_t way, uint8_t *at)
{
	pid_t parent = getpid(), child = fork();
	int status;

	if (!child)
		_exit(ways[way](parent, at));
	while (waitpid(child, &status, 0) != child)
		if (errno != EINTR)
			err(1, "waitpid");
	if (WEXITSTATUS(status) == ENOENT || WEXITSTATUS(status) == EPERM ||
	    WEXITSTATUS(status) == EACCES)
		skip("the child: %s", strerror(WEXITSTATUS(status)));
	say("the child ends with status %#x", (unsigned int)status);
}

static void say_stored(const struct region *region)
{
	say("the program sees byte %#x, and the bytes beside it %#x, %#x", region->bytes[PAGE],
	    region->bytes[PAGE - 1], region->bytes[PAGE + 1]);
}

static void store_by_self(uintptr_t unused)
{
	struct region region = region_map(MIB);

	(void)unused;
	region_fill(&region, 3);
	say("write returns errno %d", store_by_proc(getpid(), region.bytes + PAGE));
	say_stored(&region);
	region_fill(&region, 4);
	say("write returns errno %d", store_by_proc(getpid(), region.bytes + PAGE));
	say_stored(&region);
	snapshot_check(&region, snapshot_fork);
	region_unmap(&region);
}

static void store(uintptr_t way)
{
	struct region region = region_map(MIB);

	region_fill(&region, 3);
	store_from_child(way, region.bytes + PAGE);
	say_stored(&region);
	region_fill(&region, 4);
	say("the memory holds what the peer wrote then: %s", region_says(&region, 4));
	store_from_child(way, region.bytes + PAGE);
	say_stored(&region);
	snapshot_check(&region, snapshot_fork);
	region_unmap(&region);
}

const struct row debugger_rows[] = {
	{"proc_self_mem", store_by_self, 0},
	{"proc_mem_of_the_parent", store, PROC},
	{"process_vm_writev", store, COPY},
	{"ptrace", store, PTRACE},
	{"gdb", store, GDB},
	{0},
};
