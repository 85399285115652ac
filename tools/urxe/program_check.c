/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/program_check.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <gelf.h>
#include <libelf.h>

#include "common/log.h"

static int open_program(const char *path)
{
	return access(path, X_OK) ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static bool is_program(const char *path)
{
	struct stat st;

	return !access(path, X_OK) && !stat(path, &st) && S_ISREG(st.st_mode);
}

/*
 * Opens the file that execvp(3) executes: the first program of that name on PATH, in which an empty
 * element is the current directory. -1: none, or it is not readable.
 */
static int open_on_path(const char *name)
{
	char standard[64] = "", path[PATH_MAX];
	const char *dir = getenv("PATH"), *end;

	if (!dir) {
		confstr(_CS_PATH, standard, sizeof(standard));
		dir = standard;
	}
	for (;; dir = end + 1) {
		end = strchrnul(dir, ':');
		if (snprintf(path, sizeof(path), "%.*s%s%s", (int)(end - dir), dir,
			     end == dir ? "" : "/", name) < (int)sizeof(path) &&
		    is_program(path))
			return open_program(path);
		if (!*end)
			return -1;
	}
}

/* Does this user namespace have the user or group? */
static bool is_mapped(const char *map, uint32_t id)
{
	unsigned long first, count;
	bool found = false;
	FILE *file = fopen(map, "re");

	if (!file)
		return true;
	while (!found && fscanf(file, "%lu %*u %lu", &first, &count) == 2)
		found = id >= first && id - first < count;
	fclose(file);
	return found;
}

/* Is the program executed with other privileges than those of this process (execve(2))? */
static bool changes_privileges(int fd, const struct stat *st)
{
	bool group = (st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
	struct statvfs fs;

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
	    (!fstatvfs(fd, &fs) && (fs.f_flag & ST_NOSUID)))
		return false;
	/* The kernel ignores the bits of a file whose user or group the namespace does not have. */
	if (((st->st_mode & S_ISUID && st->st_uid != getuid()) ||
	     (group && st->st_gid != getgid())) &&
	    is_mapped("/proc/self/uid_map", st->st_uid) &&
	    is_mapped("/proc/self/gid_map", st->st_gid))
		return true;
	return getuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

/* Is the file an ELF program that the kernel executes without the dynamic linker? */
static bool is_static(int fd)
{
	size_t count = 0;
	GElf_Phdr header;
	bool dynamic = true;
	Elf *elf;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return false;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && !elf_getphdrnum(elf, &count)) {
		dynamic = false;
		for (size_t i = 0; i < count && !dynamic; i++)
			dynamic = !gelf_getphdr(elf, (int)i, &header) || header.p_type == PT_INTERP;
	}
	elf_end(elf);
	return !dynamic;
}

int program_check(const char *cmd)
{
	int fd = strchr(cmd, '/') ? open_program(cmd) : open_on_path(cmd);
	struct stat st;
	int rc = 0;

	if (fd < 0)
		return 0;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		if (changes_privileges(fd, &st)) {
			log_line("%s gets other privileges (setuid, setgid or file capabilities), "
				 "so "
				 "the dynamic linker preloads nothing into it or its children: "
				 "start "
				 "'urxe run' with these privileges",
				 cmd);
			rc = -1;
		} else if (is_static(fd)) {
			log_line("%s is statically linked and cannot have the device; the programs "
				 "that it starts can",
				 cmd);
		}
	}
	close(fd);
	return rc;
}
