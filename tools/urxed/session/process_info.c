/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/session/process_info.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "urxed/privilege/namespace_query.h"

void process_name(pid_t pid, char name[PROCESS_NAME])
{
	char path[32], program[24] = "pid";
	FILE *file;
	char *c;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (file) {
		if (!fgets(program, sizeof(program), file))
			strcpy(program, "pid");
		fclose(file);
	}
	program[strcspn(program, "\n")] = 0;
	for (c = program; *c; c++)
		if (*c <= ' ' || *c > '~')
			*c = '?';
	snprintf(name, PROCESS_NAME, "%s-%d", program, pid);
}

#define PIDFS_MAGIC 0x50494446 /* PID_FS_MAGIC of newer linux/magic.h */

static uint64_t read_effective_caps(pid_t pid)
{
	unsigned long long set = 0;
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &set) == 1)
			break;
	if (f)
		fclose(f);
	return set;
}

bool process_capable(pid_t pid, uint32_t capability)
{
	return pid > 0 && !namespace_query(NULL, getpid(), pid) &&
	       read_effective_caps(pid) >> capability & 1;
}

/*
 * The result after a system call that names a process has failed: -EAGAIN if it failed for want of
 * descriptors or memory, which tells nothing about the process; else -ESRCH, because the process
 * has ended.
 */
static int lookup_error(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM ? -EAGAIN : -ESRCH;
}

/*
 * Reads the start time of a process in clock ticks since boot, field 22 of /proc/PID/stat. Returns
 * 0 or as lookup_error. The state (field 3) is that of the main thread, which may have ended while
 * other threads (field 20) live.
 */
static int read_start_time(pid_t pid, uint64_t *time)
{
	char path[32], text[512], state;
	unsigned long long start;
	const char *p;
	ssize_t len;
	long threads;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return lookup_error(errno);
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	/* The second field is a name in parentheses, which may contain any character. */
	p = strrchr(text, ')');
	if (!p ||
	    sscanf(p,
		   ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		   "%ld %*s %llu",
		   &state, &threads, &start) != 3 ||
	    ((state == 'Z' || state == 'X') && threads <= 1))
		return -ESRCH;
	*time = start;
	return 0;
}

static bool is_on_pidfs(int pidfd)
{
	struct statfs fs;

	return !fstatfs(pidfd, &fs) && fs.f_type == PIDFS_MAGIC;
}

/*
 * Reads the inode of a pidfd, which from Linux 6.9 on belongs to one process since boot. Returns 0;
 * -ESRCH: the process has ended.
 */
static int read_pidfs_inode(int pidfd, uint64_t *inode)
{
	struct pollfd pfd = {.fd = pidfd, .events = POLLIN};
	struct stat st;

	if (poll(&pfd, 1, 0) || fstat(pidfd, &st))
		return -ESRCH;
	*inode = st.st_ino;
	return 0;
}

/* Returns 0 or as lookup_error. */
static int read_identity(pid_t pid, uint64_t *identity)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), rc;

	if (pidfd < 0)
		return lookup_error(errno);
	rc = is_on_pidfs(pidfd) ? read_pidfs_inode(pidfd, identity)
				: read_start_time(pid, identity);
	close(pidfd);
	return rc;
}

uint64_t process_identity(pid_t pid)
{
	uint64_t identity;

	return pid > 0 && !read_identity(pid, &identity) ? identity : 0;
}

bool process_lives(pid_t pid, uint64_t identity)
{
	uint64_t found;
	int rc;

	if (pid <= 0)
		return !pid;
	rc = read_identity(pid, &found);
	return rc ? rc == -EAGAIN : !identity || found == identity;
}

void process_boot(char id[PROCESS_BOOT])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	memset(id, 0, PROCESS_BOOT);
	if (fd < 0)
		return;
	if (read(fd, id, PROCESS_BOOT - 1) < 0)
		id[0] = '\0';
	close(fd);
}
