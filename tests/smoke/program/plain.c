/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program without verbs. The preloaded library starts no thread in it, handles no signal, opens
 * no descriptor, and leaves libc calls unchanged. Group `hooks` of the benchmark measures their
 * cost.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* The mask of signals with a handler, according to the kernel. */
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

/* siginterrupt is deprecated. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static void check_calls(void)
{
	struct sigaction act = {.sa_handler = SIG_IGN}, was;
	struct stat one, other;
	char text[8] = "", path[] = "/tmp/plain-XXXXXX";
	const char *volatile nowhere = NULL;
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
	if (open(nowhere, O_RDONLY) != -1 || errno != EFAULT || stat(nowhere, &one) != -1 ||
	    errno != EFAULT)
		errx(1, "a path of NULL is no EFAULT");
	if (sigaction(SIGSEGV, &act, NULL) || sigaction(SIGSEGV, NULL, &was) ||
	    was.sa_handler != SIG_IGN || signal(SIGSEGV, SIG_DFL) != SIG_IGN)
		errx(1, "a signal's action");
	if (siginterrupt(SIGSEGV, 1) || signal(SIGSEGV, SIG_IGN) != SIG_DFL ||
	    sigaction(SIGSEGV, NULL, &was) || was.sa_flags & SA_RESTART ||
	    signal(SIGSEGV, SIG_DFL) != SIG_IGN)
		errx(1, "siginterrupt");
}

int main(void)
{
	int descriptors;

	descriptors = entries("/proc/self/fd");
	check_untouched(descriptors);
	check_calls();
	check_untouched(descriptors);
	return 0;
}
