/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A library whose constructor waits for a thread that calls functions of libc. dlopen() holds the
 * dynamic linker's lock while the constructor runs, so no such function may need the lock.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A number that no descriptor has. */
#define UNUSED 1000

static void call_with_paths(void)
{
	FILE *file = fopen("/dev/null", "re");
	DIR *dir = opendir("/dev");
	struct dirent **entries;
	struct stat status;
	char text[64];
	int n = scandir("/dev/fd/", &entries, NULL, NULL);

	if (file)
		fclose(file);
	if (dir)
		closedir(dir);
	for (int i = 0; i < n; i++)
		free(entries[i]);
	if (n >= 0)
		free(entries);
	free(realpath("/dev/null", NULL));
	if (!stat("/dev/null", &status) && !access("/dev/null", F_OK) &&
	    readlink("/dev/fd", text, sizeof(text)) < 0)
		perror("/dev/fd");
}

static void *call(void *unused)
{
	int copy = dup(0), other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	fcntl(copy, F_SETFD, FD_CLOEXEC);
	dup2(copy, other);
	close(copy);
	close(other);
	close_range(UNUSED, UNUSED, 0);
	closefrom(UNUSED);
	signal(SIGUSR1, SIG_DFL);
	sigaction(SIGUSR1, NULL, NULL);
	call_with_paths();
	return unused;
}

static __attribute__((constructor)) void wait_for_calls(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, call, NULL) || pthread_join(thread, NULL))
		abort();
}
