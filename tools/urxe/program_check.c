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

/*
 * Whether the file can be executed. eaccess(3), as execve(2), asks for the rights of the effective
 * user; access(2) does not.
 */
static bool is_program(const char *path)
{
	struct stat st;

	return !eaccess(path, X_OK) && !stat(path, &st) && S_ISREG(st.st_mode);
}

/*
 * Finds the first program of that name on PATH, in which an empty element is the current directory.
 * False: there is none.
 */
static bool find_on_path(const char *name, char path[PATH_MAX])
{
	const char *dir = getenv("PATH"), *end;
	char standard[64] = "";

	if (!dir) {
		confstr(_CS_PATH, standard, sizeof(standard));
		dir = standard;
	}
	for (;; dir = end + 1) {
		end = strchrnul(dir, ':');
		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)(end - dir), dir,
			     end == dir ? "" : "/", name) < PATH_MAX &&
		    is_program(path))
			return true;
		if (!*end)
			return false;
	}
}

/* Finds the file that execvp(3) executes. False: there is none. */
static bool find_program(const char *cmd, char path[PATH_MAX])
{
	if (!strchr(cmd, '/'))
		return find_on_path(cmd, path);
	return snprintf(path, PATH_MAX, "%s", cmd) < PATH_MAX && is_program(path);
}

#define INTERPRETERS 5   /* most scripts in a row, each the interpreter of the one before */
#define FIRST_LINE   256 /* bytes of a script that the kernel reads */

/* Replaces the path of a script by that of its interpreter. False: the file is no script. */
static bool read_interpreter(char path[PATH_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char line[FIRST_LINE + 1];
	ssize_t len = fd < 0 ? -1 : read(fd, line, FIRST_LINE);
	const char *name;

	if (fd >= 0)
		close(fd);
	line[len > 0 ? len : 0] = '\0';
	if (strncmp(line, "#!", 2) != 0)
		return false;
	name = line + 2 + strspn(line + 2, " \t");
	snprintf(path, PATH_MAX, "%.*s", (int)strcspn(name, " \t\n"), name);
	return *path;
}

/*
 * Does this user namespace have the user or group `id`? map: /proc/self/uid_map or gid_map. True
 * also if the map cannot be read.
 */
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

/* Does the kernel obey the setuid bit, the setgid bit and the capabilities of the file? It does not
 * on a mount with nosuid, or if the process has set no_new_privs. */
static bool obeys_files(const char *path)
{
	struct statvfs fs;

	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 &&
	       (statvfs(path, &fs) || !(fs.f_flag & ST_NOSUID));
}

/*
 * Does the kernel set AT_SECURE (execve(2)): will the program have another effective user or group
 * than this process's real one, or file capabilities? Of a script only the interpreter counts.
 */
static bool is_secure(const char *program)
{
	uid_t user = geteuid();
	gid_t group = getegid();
	char path[PATH_MAX];
	struct stat st;
	bool obeys;

	snprintf(path, sizeof(path), "%s", program);
	for (int i = 0; i < INTERPRETERS && read_interpreter(path); i++)
		;
	obeys = !stat(path, &st) && obeys_files(path);
	/* The kernel ignores the bits of a file whose user or group the namespace does not have. */
	if (obeys && is_mapped("/proc/self/uid_map", st.st_uid) &&
	    is_mapped("/proc/self/gid_map", st.st_gid)) {
		if (st.st_mode & S_ISUID)
			user = st.st_uid;
		if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
			group = st.st_gid;
	}
	return user != getuid() || group != getgid() ||
	       (obeys && getuid() && getxattr(path, "security.capability", NULL, 0) > 0);
}

static void log_secure(const char *cmd)
{
	if (geteuid() != getuid() || getegid() != getgid())
		log_line("the effective user or group of 'urxe run' is not the real one, so the "
			 "dynamic linker preloads nothing into %s: set the real one, too "
			 "(setpriv --ruid, --rgid)",
			 cmd);
	else
		log_line("%s gets other privileges (setuid, setgid or file capabilities), so the "
			 "dynamic linker preloads nothing into it or its children: start 'urxe "
			 "run' with these privileges",
			 cmd);
}

/* What the kernel executes a file by. */
enum linking {
	BY_LINKER,      /* the dynamic linker of glibc, or the file is no ELF program */
	BY_MUSL,        /* musl's dynamic linker, which ends a program if it cannot preload; or the
			   file is that linker */
	WITHOUT_LINKER, /* none: the program is statically linked */
};

/* Does the segment PT_INTERP of the file name musl's dynamic linker? */
static bool names_musl(int fd, const GElf_Phdr *header)
{
	static const char musl[] = "/ld-musl-";
	char name[PATH_MAX];
	size_t size = header->p_filesz < sizeof(name) ? header->p_filesz : sizeof(name);
	ssize_t n = pread(fd, name, size, (off_t)header->p_offset);

	return n > 0 && memmem(name, (size_t)n, musl, sizeof(musl) - 1);
}

/* Does the file have a name as a library (PT_DYNAMIC)? Among files without an interpreter glibc's
 * dynamic linker has one: it preloads into the program that its arguments name. */
static bool is_library(Elf *elf, const GElf_Phdr *header)
{
	Elf_Data *data =
		elf_getdata_rawchunk(elf, (int64_t)header->p_offset, header->p_filesz, ELF_T_DYN);
	GElf_Dyn entry;

	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++)
		if (entry.d_tag == DT_SONAME)
			return true;
	return false;
}

/* Is the file musl's dynamic linker? It has neither an interpreter nor a name as a library. */
static bool is_linker_of_musl(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, "ld-musl-", strlen("ld-musl-"));
}

static enum linking linking_of(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum linking linking = BY_LINKER;
	size_t count = 0;
	GElf_Phdr header;
	Elf *elf;

	if (fd < 0)
		return BY_LINKER;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && !elf_getphdrnum(elf, &count)) {
		linking = WITHOUT_LINKER;
		for (size_t i = 0; i < count && linking == WITHOUT_LINKER; i++)
			if (!gelf_getphdr(elf, (int)i, &header))
				linking = BY_LINKER;
			else if (header.p_type == PT_INTERP)
				linking = names_musl(fd, &header) ? BY_MUSL : BY_LINKER;
			else if (header.p_type == PT_DYNAMIC && is_library(elf, &header))
				linking = BY_LINKER;
		if (linking == WITHOUT_LINKER && is_linker_of_musl(path))
			linking = BY_MUSL;
	}
	elf_end(elf);
	close(fd);
	return linking;
}

int program_check(const char *cmd)
{
	char path[PATH_MAX];
	enum linking linking;

	if (!find_program(cmd, path))
		return 0;
	if (is_secure(path)) {
		log_secure(cmd);
		return -1;
	}
	linking = linking_of(path);
	if (linking == BY_MUSL) {
		log_line("%s is linked with musl, which cannot preload liburxe.so and would end "
			 "it: link it with glibc",
			 cmd);
		return -1;
	}
	if (linking == WITHOUT_LINKER)
		log_line("%s is statically linked and cannot have the device; the programs that it "
			 "starts can",
			 cmd);
	return 0;
}
