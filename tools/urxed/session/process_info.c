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

uint64_t process_status_mask(const char *path, const char *field)
{
	unsigned long long mask = 0;
	const size_t len = strlen(field);
	char line[128];
	FILE *f = fopen(path, "re");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, field, len) && sscanf(line + len, ": %llx", &mask) == 1)
			break;
	if (f)
		fclose(f);
	return mask;
}

bool process_capable(pid_t pid, uint32_t capability)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return pid > 0 && !namespace_query(NULL, getpid(), pid) &&
	       process_status_mask(path, "CapEff") >> capability & 1;
}

/* Whether the process has ended, with all its threads. */
static bool has_ended(int pidfd)
{
	struct pollfd pfd = {.fd = pidfd, .events = POLLIN};

	return poll(&pfd, 1, 0) > 0;
}

/*
 * Reads the start time of a process in clock ticks since boot, which is field 22 of /proc/PID/stat.
 * Returns 0, or -EAGAIN if /proc does not tell: it may hide the processes of other users (hidepid
 * of proc(5)), or the daemon lacks a descriptor or memory.
 */
static int read_start_time(pid_t pid, uint64_t *time)
{
	unsigned long long start;
	char path[32], text[512];
	const char *p;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -EAGAIN;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	/* The second field is the program's name in parentheses, which may itself contain any
	 * character. */
	p = strrchr(text, ')');
	if (!p || sscanf(p,
			 ") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			 "%*s %*s %llu",
			 &start) != 1)
		return -EAGAIN;
	*time = start;
	return 0;
}

static bool is_on_pidfs(int pidfd)
{
	struct statfs fs;

	return !fstatfs(pidfd, &fs) && fs.f_type == PIDFS_MAGIC;
}

/*
 * Reads the inode of a pidfd; since Linux 6.9 no other process of the same boot has the same one.
 */
static int read_pidfs_inode(int pidfd, uint64_t *inode)
{
	struct stat st;

	if (fstat(pidfd, &st))
		return -EAGAIN;
	*inode = st.st_ino;
	return 0;
}

/* Sets *identity as process_identity says. Returns 0; -ESRCH if the process has ended; -EAGAIN if
 * the daemon cannot find the identity, so that it does not know whether the process lives. */
static int read_identity(pid_t pid, uint64_t *identity)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), rc = -ESRCH;

	if (pidfd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -EAGAIN : -ESRCH;
	if (!has_ended(pidfd))
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
