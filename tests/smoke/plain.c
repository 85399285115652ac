/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program that knows nothing of verbs: the preloaded library starts nothing in it, takes no
 * signal and opens no descriptor, and calls do what they did. Prints what they cost here, to be
 * compared with a run without the library; no figure is checked.
 */
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BATCHES 100
#define CALLS   500

static int entries(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int n = 0;

	if (!dir)
		err(1, "%s", path);
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* Signals that are caught, as the kernel has it. */
static uint64_t caught(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long long mask = 0;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "SigCgt: %llx", &mask) == 1)
			break;
	if (!status)
		err(1, "/proc/self/status");
	fclose(status);
	return mask;
}

static void check_untouched(int descriptors)
{
	if (entries("/proc/self/task") != 1)
		errx(1, "a thread was started");
	if (entries("/proc/self/fd") != descriptors)
		errx(1, "descriptors are opened or left");
	if (caught())
		errx(1, "signals were taken: %#jx", (uintmax_t)caught());
}

static void check_calls(void)
{
	struct sigaction act = {.sa_handler = SIG_IGN}, was;
	struct stat one, other;
	char text[8] = "", path[] = "/tmp/plain-XXXXXX";
	int file = mkstemp(path), copy = dup(file);

	if (file < 0 || copy < 0 || write(copy, "abcdef", 6) != 6 || dup2(file, copy) != copy ||
	    pread(copy, text, sizeof(text), 0) != 6 || strcmp(text, "abcdef"))
		err(1, "a file");
	if (fstat(file, &one) || stat(path, &other) || one.st_ino != other.st_ino ||
	    fcntl(copy, F_DUPFD, 50) != 50 || close_range(50, 50, 0) || close(50) != -1)
		err(1, "a file's descriptors");
	close(file);
	close(copy);
	unlink(path);
	if (sigaction(SIGSEGV, &act, NULL) || sigaction(SIGSEGV, NULL, &was) ||
	    was.sa_handler != SIG_IGN || signal(SIGSEGV, SIG_DFL) != SIG_IGN)
		errx(1, "a signal's action");
}

/* --- What calls cost: the quickest of many batches. */

static int null;

static void call_write(void)
{
	if (write(null, "", 1) != 1)
		err(1, "write");
}

static void call_read(void)
{
	if (read(null, (char[1]){0}, 1))
		err(1, "read");
}

static void call_fcntl(void)
{
	if (fcntl(null, F_GETFD) < 0)
		err(1, "fcntl");
}

static void call_dup(void)
{
	close(dup(null));
}

static void call_open(void)
{
	close(open("/dev/null", O_RDONLY));
}

static void call_stat(void)
{
	struct stat st;

	if (stat("/dev/null", &st))
		err(1, "stat");
}

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {{"write", call_write},         {"read, which is not hooked", call_read},
	     {"fcntl", call_fcntl},         {"dup and close", call_dup},
	     {"open and close", call_open}, {"stat", call_stat}};

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void measure(void)
{
	uint64_t least[sizeof(calls) / sizeof(calls[0])];

	memset(least, 0xff, sizeof(least));
	for (int batch = 0; batch < BATCHES; batch++)
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
			uint64_t began = now(), took;

			for (int n = 0; n < CALLS; n++)
				calls[i].call();
			took = now() - began;
			least[i] = took < least[i] ? took : least[i];
		}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		printf("%-26s %6.1f ns\n", calls[i].name, (double)least[i] / CALLS);
}

int main(void)
{
	int descriptors;

	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	descriptors = entries("/proc/self/fd");
	check_untouched(descriptors);
	check_calls();
	measure();
	check_untouched(descriptors);
	return 0;
}
