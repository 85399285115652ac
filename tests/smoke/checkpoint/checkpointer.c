/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "checkpointer.h"

#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>

void *checkpointer_function(const char *name)
{
	void *f = dlsym(RTLD_DEFAULT, name);

	if (!f)
		errx(1, "liburxe.so is not loaded");
	return f;
}

const char *result(const char *done, int rc)
{
	static char line[512];

	if (!rc)
		return done;
	snprintf(line, sizeof(line), "error %s: %s", strerrorname_np(-rc), CALL(error)());
	return line;
}

/* --- Saving. */

/* Writes the mappings of rings to `copy`, as the kernel lists them. Returns their number. */
static unsigned int list_rings(FILE *copy)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned int n = 0;
	char line[512];

	if (!maps)
		err(1, "/proc/self/maps");
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "memfd:uverbs"))
			continue;
		n++;
		if (copy)
			fputs(line, copy);
	}
	fclose(maps);
	return n;
}

bool has_rings(void)
{
	return list_rings(NULL);
}

static void copy_maps(const char *path)
{
	FILE *copy = fopen(path, "we");

	if (!copy)
		err(1, "%s", path);
	list_rings(copy);
	if (fclose(copy))
		err(1, "%s", path);
}

int checkpointer_save(const char *stream, const char *maps)
{
	int fd = open(stream, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), rc;

	if (fd < 0)
		err(1, "%s", stream);
	rc = CALL(save)(fd);
	close(fd);
	copy_maps(maps);
	return rc;
}

/* --- Start. */

void fix_addresses(char **argv)
{
	if (personality(0xffffffff) & ADDR_NO_RANDOMIZE)
		return;
	if (personality(ADDR_NO_RANDOMIZE) < 0)
		err(1, "personality");
	execv("/proc/self/exe", argv);
	err(1, "exec");
}

struct ibv_device **list_devices(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		errx(1, "no device");
	return list;
}

static bool is_at(const void *address, const char *library)
{
	Dl_info info;

	return dladdr(address, &info) && strstr(info.dli_fname, library);
}

void reserve_addresses(const char *path)
{
	FILE *maps = fopen(path, "re");
	uintptr_t start, end;

	while (maps && fscanf(maps, "%" SCNxPTR "-%" SCNxPTR " %*[^\n]", &start, &end) == 2)
		if (mmap((void *)start, end - start, PROT_NONE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
			 0) != (void *)start)
			err(1, "the address %" PRIxPTR, start);
	if (!maps)
		err(1, "%s", path);
	fclose(maps);
}

void check_addresses(const void *liburxe, const void *librxe)
{
	if (liburxe != checkpointer_function("urxe_checkpoint_save") || !is_at(librxe, "librxe"))
		errx(1, "the libraries have other addresses than in the saved process");
}

void checkpointer_restore(const char *stream)
{
	int low = open(stream, O_RDONLY | O_CLOEXEC), fd, rc;

	/* The lowest numbers are those of the saved process. */
	fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, 500);
	if (fd < 0)
		err(1, "%s", stream);
	close(low);
	rc = CALL(restore)(fd);
	close(fd);
	dprintf(1, "%s\n", result("restored", rc));
	if (rc)
		exit(2);
}

/* --- Commands. */

void take_commands(const char *(*obey)(char *line))
{
	static char line[2048];
	const char *answer;
	size_t at = 0;

	while (read(0, line + at, 1) == 1) {
		if (line[at] != '\n' && at < sizeof(line) - 2) {
			at++;
			continue;
		}
		line[at] = 0;
		at = 0;
		answer = obey(line);
		if (answer)
			dprintf(1, "%s\n", answer);
	}
}
