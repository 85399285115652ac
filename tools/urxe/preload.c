/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/preload.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vnic/attach_protocol.h>

#include "common/install_paths.h"
#include "common/log.h"

/*
 * The variables of the library, without their prefix: URXE_, or URXE_OUTER_ for the device of the
 * outer run.
 */
static const char *const variables[] = {"DIR",         "TRANSPORT", "CONGESTION", "LOG",
					"RECONNECT_S", "WAY",       "HCA_GONE"};
#define VARIABLES (sizeof(variables) / sizeof(variables[0]))

static char *outer[VARIABLES]; /* values of the outer `urxe run`; NULL: not set */
static bool nested;            /* preload_set has set the variables for two devices */

#define NAME_MAX_LEN 64

void preload_remember(void)
{
	char name[NAME_MAX_LEN];

	for (unsigned int i = 0; i < VARIABLES; i++) {
		const char *value;

		snprintf(name, sizeof(name), "URXE_%s", variables[i]);
		value = getenv(name);
		outer[i] = value ? strdup(value) : NULL;
	}
}

int preload_set_env(const char *name, const char *value)
{
	if (!setenv(name, value, 1))
		return 0;
	log_line("cannot set %s: %s", name, strerror(errno));
	return -1;
}

static int find_library(int (*find)(char path[PATH_MAX]), char lib[PATH_MAX])
{
	int rc = find(lib);

	if (rc && access("/proc/self/exe", F_OK)) {
		log_line("cannot find the library, because /proc is not mounted");
		return -1;
	}
	if (rc) {
		log_line("the library %s cannot be read (%s): build or install urxe anew", lib,
			 strerror(-rc));
		return -1;
	}
	if (strpbrk(lib, " :")) {
		log_line("LD_PRELOAD cannot name %s: its path has a space or a colon", lib);
		return -1;
	}
	return 0;
}

/* Removes a library from a list such as LD_PRELOAD's. True: the list had it. */
static bool remove_library(char *list, const char *lib)
{
	char *to = list, *from = list;
	bool found = false;
	size_t len;

	for (; *(from += strspn(from, " :")); from += len) {
		len = strcspn(from, " :");
		if (len == strlen(lib) && !strncmp(from, lib, len)) {
			found = true;
			continue;
		}
		if (to != list)
			*to++ = ':';
		memmove(to, from, len);
		to += len;
	}
	*to = '\0';
	return found;
}

static int set_preload(const char *lib, const char *rest)
{
	char *value;
	int rc;

	if (asprintf(&value, "%s%s%s", lib, rest && *rest ? ":" : "", rest ? rest : "") < 0) {
		log_line("cannot set LD_PRELOAD: no memory");
		return -1;
	}
	rc = preload_set_env("LD_PRELOAD", value);
	free(value);
	return rc;
}

static int set_outer_variables(void)
{
	char name[NAME_MAX_LEN];

	for (unsigned int i = 0; i < VARIABLES; i++) {
		snprintf(name, sizeof(name), "URXE_OUTER_%s", variables[i]);
		if (!outer[i])
			unsetenv(name);
		else if (preload_set_env(name, outer[i]))
			return -1;
	}
	return 0;
}

/*
 * For a `urxe run` within another one: puts two libraries at the front of LD_PRELOAD, `lib` for the
 * device of this run and liburxe-outer.so for that of the outer run. `rest`: the libraries that
 * LD_PRELOAD had besides `lib`. Within two other runs `rest` has liburxe-outer.so already. nest()
 * removes it there: it now stands for the middle run, and the program loses the outermost device.
 * Returns 0; logs an error and returns -1.
 */
static int nest(const char *lib, char *rest)
{
	char both[2 * PATH_MAX], second[PATH_MAX];

	if (find_library(install_path_liburxe_outer, second) || set_outer_variables())
		return -1;
	nested = true;
	remove_library(rest, second);
	snprintf(both, sizeof(both), "%s:%s", lib, second);
	return set_preload(both, rest);
}

struct sanitizer_option {
	const char *variable, *name, *value;
};

static const struct sanitizer_option sanitizer_options[] = {
	/* AddressSanitizer's shared runtime ends a program if another library is loaded before the
	   runtime, unless this option is set. liburxe.so finds the runtime's functions behind its
	   own, as it finds libc's otherwise. */
	{"ASAN_OPTIONS", "verify_asan_link_order", "0"},
	/* ThreadSanitizer sees the memory functions that a library calls, but not the library's
	 * atomics. So it would report each copy by the engine thread as a race. */
	{"TSAN_OPTIONS", "ignore_noninstrumented_modules", "1"},
};
#define SANITIZER_OPTIONS (sizeof(sanitizer_options) / sizeof(sanitizer_options[0]))

/* Adds the option to its variable, unless the user has set it. Returns 0; -1 after an error, which
 * is logged. */
static int set_sanitizer_option(const struct sanitizer_option *option)
{
	const char *old = getenv(option->variable);
	char *value;
	int rc;

	if (old && strstr(old, option->name))
		return 0;
	if (asprintf(&value, "%s%s%s=%s", old ? old : "", old && *old ? ":" : "", option->name,
		     option->value) < 0) {
		log_line("cannot set %s: no memory", option->variable);
		return -1;
	}
	rc = preload_set_env(option->variable, value);
	free(value);
	return rc;
}

static int set_sanitizer_options(void)
{
	int rc = 0;

	for (unsigned int i = 0; i < SANITIZER_OPTIONS && !rc; i++)
		rc = set_sanitizer_option(&sanitizer_options[i]);
	return rc;
}

static int set_libraries(const char *lib, const char *run_dir)
{
	const char *old = getenv("LD_PRELOAD");
	char *rest = strdup(old ? old : "");
	int rc = 0;

	if (!rest) {
		log_line("cannot set LD_PRELOAD: no memory");
		return -1;
	}
	if (!remove_library(rest, lib))
		rc = set_preload(lib, old);
	else if (outer[0] && strcmp(outer[0], run_dir) != 0)
		rc = nest(lib, rest);
	free(rest);
	return rc;
}

int preload_set(const char *run_dir)
{
	char lib[PATH_MAX];

	if (find_library(install_path_liburxe, lib) || set_libraries(lib, run_dir) ||
	    set_sanitizer_options())
		return -1;
	return preload_set_env("URXE_DIR", run_dir);
}

/*
 * Whether the directory `class` has a link to a path below `top`. The daemon links each RDMA device
 * that it finds (urxed/kernel/host_ibdevs.c), so also the device of an outer run directory `top`.
 */
static bool has_link_below(const char *class, const char *top)
{
	const size_t len = strlen(top);
	char target[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *dir = opendir(class);

	while (dir && !found && (entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target));

		found = n > (ssize_t)len && !memcmp(target, top, len) && target[len] == '/';
	}
	if (dir)
		closedir(dir);
	return found;
}

void preload_check_outer(const char *run_dir)
{
	char class[PATH_MAX], top[PATH_MAX];

	if (!nested || !realpath(outer[0], top))
		return;
	snprintf(class, sizeof(class), "%s/" VNIC_SYSFS_NAME "/class/infiniband", run_dir);
	if (!has_link_below(class, top))
		log_line("the program has the device of %s, and not that of %s: the urxed in %s "
			 "was not started within this 'urxe run', or both devices have one name",
			 run_dir, outer[0], run_dir);
}
