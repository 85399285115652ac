/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/doctor/check.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vnic/attach_protocol.h>

#include "common/rundir.h"

#define ANSWER 1024 /* more than the last line that the probe prints, with the NUL */

/* --- In the program that `urxe run` starts */

/* Functions of <infiniband/verbs.h>, with opaque types: the command does not depend on libibverbs.
 */
struct functions {
	void **(*get_device_list)(int *count);
	const char *(*get_device_name)(void *device);
	void *(*open_device)(void *device);
	int (*close_device)(void *context);
};

static int print_finding(const char *text, const char *remedy)
{
	printf("%s\t%s\n", text, remedy);
	return 1;
}

/* Prints one word of a shell's command, in quotation marks if needed. */
static void print_word(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "/._-+,:@%";

	if (!word[strspn(word, plain)]) {
		printf("%s", word);
		return;
	}
	putchar('\'');
	for (; *word; word++)
		if (*word == '\'')
			printf("'\\''");
		else
			putchar(*word);
	putchar('\'');
}

/* Prints a fault whose remedy is to run `program` with a log, in which liburxe.so says what fails.
 * Returns the exit status. */
static int print_trial(const char *text, const char *run_dir, const char *program)
{
	printf("%s\tURXE_LOG=debug urxe run --run-dir ", text);
	print_word(run_dir);
	printf(" -- %s\n", program);
	return 1;
}

static bool load(struct functions *to)
{
	void *library = dlopen("libibverbs.so.1", RTLD_NOW);

	if (!library)
		return false;
	*(void **)&to->get_device_list = dlsym(library, "ibv_get_device_list");
	*(void **)&to->get_device_name = dlsym(library, "ibv_get_device_name");
	*(void **)&to->open_device = dlsym(library, "ibv_open_device");
	*(void **)&to->close_device = dlsym(library, "ibv_close_device");
	return to->get_device_list && to->get_device_name && to->open_device && to->close_device;
}

static bool has_provider(void)
{
	glob_t found;
	bool has = !glob("/etc/libibverbs.d/rxe.driver", 0, NULL, &found) && found.gl_pathc;

	globfree(&found);
	return has;
}

/* Whether the entry is a directory: only the daemon's own device is one. The devices of the kernel
 * and of an outer `urxe run` are links. */
static bool is_directory(DIR *dir, const char *name)
{
	struct stat st;

	return name[0] != '.' && !fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) &&
	       S_ISDIR(st.st_mode);
}

/*
 * Finds the name of the device of the daemon that serves the run directory. False: there is none.
 */
static bool find_device(const char *run_dir, char name[NAME_MAX + 1])
{
	char path[RUNDIR_MAX + 64];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/" VNIC_SYSFS_NAME "/class/infiniband", run_dir);
	dir = opendir(path);
	name[0] = '\0';
	while (dir && !name[0] && (entry = readdir(dir)))
		if (is_directory(dir, entry->d_name))
			snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
	if (dir)
		closedir(dir);
	return name[0];
}

int device_probe(void)
{
	const char *run_dir = getenv("URXE_DIR");
	char name[NAME_MAX + 1];
	struct functions verbs;
	int count = 0;
	void **devices, *context;

	if (!load(&verbs))
		return print_finding("libibverbs is not installed",
				     "apt-get install ibverbs-providers");
	if (!find_device(run_dir ? run_dir : "", name))
		return print_finding("the run directory has no device", "");
	devices = verbs.get_device_list(&count);
	for (int i = 0; i < count; i++) {
		if (strcmp(verbs.get_device_name(devices[i]), name))
			continue;
		context = verbs.open_device(devices[i]);
		if (!context)
			return print_trial("the device is listed, but libibverbs cannot open it",
					   run_dir, "ibv_devinfo");
		verbs.close_device(context);
		printf("ok\t%s\n", name);
		return 0;
	}
	if (!has_provider())
		return print_finding("libibverbs has no provider rxe",
				     "apt-get install ibverbs-providers");
	return print_trial("libibverbs lists no such device", run_dir, "ibv_devices");
}

/* --- In urxe doctor */

/* Executes `urxe run -- urxe doctor --probe`; what it and urxe write goes to fd. */
static void run_probe(int fd, const char *run_dir)
{
	static const char self[] = "/proc/self/exe";
	char path[4096];
	ssize_t n = readlink(self, path, sizeof(path) - 1);

	if (n < 0)
		dprintf(fd, "/proc is not mounted\tmount -t proc proc /proc\n");
	if (n < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(1);
	path[n] = '\0';
	execl(path, "urxe", "run", "--run-dir", run_dir, "--", path, "doctor", "--probe",
	      (char *)NULL);
	dprintf(fd, "%s cannot be executed: %s\t\n", path, strerror(errno));
	_exit(1);
}

/* Reads all that the child writes, and keeps the last bytes. */
static void read_answer(int fd, char text[ANSWER])
{
	size_t length = 0;
	ssize_t n;

	while ((n = read(fd, text + length, ANSWER - 1 - length)) > 0) {
		length += (size_t)n;
		if (length == ANSWER - 1) {
			length = ANSWER / 2;
			memmove(text, text + ANSWER - 1 - length, length);
		}
	}
	text[length] = '\0';
}

/* Returns the last line of the text: only it counts, because libraries may have written others. */
static char *last_line(char *text)
{
	char *end = text + strlen(text), *line;

	while (end > text && end[-1] == '\n')
		*--end = '\0';
	line = strrchr(text, '\n');
	return line ? line + 1 : text;
}

void check_device(struct findings *f, const char *run_dir)
{
	char text[ANSWER] = "", *line, *second;
	int pipes[2], status = 1;
	pid_t child = -1;

	if (!pipe(pipes)) {
		fflush(NULL);
		child = fork();
		if (!child)
			run_probe(pipes[1], run_dir);
		close(pipes[1]);
		if (child > 0)
			read_answer(pipes[0], text);
		close(pipes[0]);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0) {
		finding_add(f, "device", FINDING_FAULT, NULL, "no process can be started: %s",
			    strerror(errno));
		return;
	}
	line = last_line(text);
	second = strchr(line, '\t');
	if (second)
		*second++ = '\0';
	if (!status && second && !strcmp(line, "ok"))
		finding_add(f, "device", FINDING_OK, NULL, "programs have the device %s", second);
	else
		finding_add(f, "device", FINDING_FAULT, second && *second ? second : NULL, "%s",
			    *line ? line : "the program that opens the device has died");
}
