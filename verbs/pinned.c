/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "pinned.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lines.h"
#include "real.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* Character devices, as Documentation/admin-guide/devices.txt has them. */
#define MEMORY       1 /* null, zero, full, random, urandom, kmsg */
#define TERMINAL     4
#define TERMINAL_AUX 5
#define PTY_FIRST    136
#define PTY_LAST     143
#define MEMORY_MEM   1 /* of MEMORY's, these reach memory itself */
#define MEMORY_KMEM  2
#define MEMORY_PORT  4

static bool is_plain_device(dev_t device)
{
	unsigned int number = major(device), which = minor(device);

	if (number == MEMORY)
		return which != MEMORY_MEM && which != MEMORY_KMEM && which != MEMORY_PORT;
	return number == TERMINAL || number == TERMINAL_AUX ||
	       (number >= PTY_FIRST && number <= PTY_LAST);
}

static bool is_plain_socket(int fd)
{
	socklen_t size = sizeof(int);
	int domain;

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) && domain != AF_XDP;
}

/* What has no name in any file system says what it is. */
static bool is_plain_file(int dir, const char *number)
{
	static const char *const plain[] = {"[eventfd]",  "[eventpoll]", "[timerfd]",
					    "[signalfd]", "[pidfd]",     "inotify"};
	static const char anonymous[] = "anon_inode:";
	char what[64];
	ssize_t n = readlinkat(dir, number, what, sizeof(what) - 1);

	if (n <= 0)
		return false;
	what[n] = 0;
	if (strncmp(what, anonymous, sizeof(anonymous) - 1))
		return true;
	for (size_t i = 0; i < N(plain); i++)
		if (!strcmp(what + sizeof(anonymous) - 1, plain[i]))
			return true;
	return false;
}

static bool is_plain(int dir, const char *number)
{
	int fd = atoi(number);
	struct stat file;

	if (REAL(fstat)(fd, &file))
		return false;
	if (S_ISCHR(file.st_mode))
		return is_plain_device(file.st_rdev);
	if (S_ISSOCK(file.st_mode))
		return is_plain_socket(fd);
	return is_plain_file(dir, number);
}

static bool are_entries_plain(int dir, const char *at, const char *end)
{
	while (at < end) {
		const struct dirent64 *entry = (const void *)at;

		if (entry->d_name[0] != '.' && !is_plain(dir, entry->d_name))
			return false;
		at += entry->d_reclen;
	}
	return true;
}

/* Without opendir(3), which asks for memory (lines.h). */
static bool are_descriptors_plain(void)
{
	_Alignas(struct dirent64) char entries[1024];
	int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool plain = dir >= 0;
	ssize_t n = 1;

	while (plain && n > 0) {
		n = getdents64(dir, entries, sizeof(entries));
		plain = n >= 0 && are_entries_plain(dir, entries, entries + n);
	}
	if (dir >= 0)
		close(dir);
	return plain;
}

static bool has_locked(void)
{
	unsigned long locked = 1;
	struct lines status;
	char line[256];

	lines_open(&status, "/proc/self/status");
	while (lines_next(&status, line, sizeof(line)))
		if (sscanf(line, "VmLck: %lu", &locked) == 1)
			break;
	lines_close(&status);
	return locked;
}

bool pinned_any(void)
{
	return has_locked() || !are_descriptors_plain();
}
