/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "attach/main_thread.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter/adapter.h"
#include "engine/clock.h"
#include "poll/engine_wake.h"
#include "process/text_lines.h"

#define OF_THREAD __thread __attribute__((tls_model("initial-exec")))

/* Least time between two reads of /proc by one thread, ns. */
#define LOOK_NS 10000000

/* A key whose destructor libc calls when the main thread ends before the process does. */
static pthread_key_t main_thread_key;
static bool key_made; /* false if the program has used up all keys */
static void (*_Atomic wake_other)(void);
/* The main thread's signal mask at its end; set before adapter_main_thread_ended. */
static sigset_t main_thread_signals;

/* The key's destructor, in the main thread: notes its end, and wakes the library's threads to look
 * whether they are the last. Takes adapter_open_lock, with which the engine thread starts and
 * ends. */
static void note_main_thread_end(void *unused)
{
	void (*wake)(void) = wake_other;

	(void)unused;
	pthread_mutex_lock(&adapter_open_lock);
	pthread_sigmask(SIG_SETMASK, NULL, &main_thread_signals);
	adapter_main_thread_ended = true;
	if (adapter_thread.wake_fd > 0)
		engine_wake();
	pthread_mutex_unlock(&adapter_open_lock);
	if (wake)
		wake();
}

static void make_key(void)
{
	key_made = !pthread_key_create(&main_thread_key, note_main_thread_end);
}

void main_thread_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_key);
	if (key_made && gettid() == getpid())
		pthread_setspecific(main_thread_key, &main_thread_key);
}

void main_thread_fork_child(void)
{
	adapter_main_thread_ended = false;
	main_thread_watch();
}

void main_thread_wake_at_end(void (*wake)(void))
{
	wake_other = wake;
}

bool main_thread_ended(void)
{
	return adapter_main_thread_ended;
}

/* Whether the main thread has ended: it stays a zombie until all other threads have ended. In
 * /proc/self/stat the state follows the name of the program, which may contain any byte. */
static bool is_zombie(void)
{
	struct text_lines stat;
	char line[1024];
	const char *name_end;
	bool zombie = false;

	text_lines_open(&stat, "/proc/self/stat");
	while (!zombie && text_lines_next(&stat, line, sizeof(line))) {
		name_end = strrchr(line, ')');
		zombie = name_end && !strncmp(name_end, ") Z", 3);
	}
	text_lines_close(&stat);
	return zombie;
}

/* Whether the thread is one of liburxe.so or liburxe-outer.so, which give their threads the names
 * "urxe" and "urxe-cm". */
static bool is_library_thread(const char *tid)
{
	struct text_lines comm;
	char path[64], name[32];
	bool own;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/comm", tid);
	text_lines_open(&comm, path);
	own = text_lines_next(&comm, name, sizeof(name)) &&
	      (!strcmp(name, "urxe") || !strcmp(name, "urxe-cm"));
	text_lines_close(&comm);
	return own;
}

/* Reads the numbers of the main thread and of the calling thread as /proc shows them: it may show
 * another PID namespace. False: /proc does not tell. */
static bool read_numbers(pid_t *main_thread, pid_t *this_thread)
{
	char link[64];
	ssize_t n = readlink("/proc/thread-self", link, sizeof(link) - 1);

	link[n > 0 ? n : 0] = '\0';
	return sscanf(link, "%d/task/%d", main_thread, this_thread) == 2;
}

/*
 * Whether all threads but the main one are this library's, and the caller is the oldest of them:
 * only one thread may call exit(3). The kernel lists threads in the order of their creation.
 */
static bool is_oldest_of_library(void)
{
	pid_t main_thread, this_thread, tid, oldest = 0;
	struct dirent *entry;
	bool own = true;
	DIR *tasks;

	if (!read_numbers(&main_thread, &this_thread))
		return false;
	tasks = opendir("/proc/self/task");
	while (own && tasks && (entry = readdir(tasks))) {
		tid = atoi(entry->d_name);
		if (!tid || tid == main_thread)
			continue;
		own = is_library_thread(entry->d_name);
		oldest = oldest ? oldest : tid;
	}
	if (tasks)
		closedir(tasks);
	return own && oldest == this_thread;
}

/*
 * Ends the process as the end of the program's last thread would without this library's threads, so
 * with the main thread's signal mask. Keeps pending signals blocked: all threads of the program had
 * blocked them, or it is a SIGXFSZ that the kernel has sent to this thread for its own write.
 */
static _Noreturn void end_process(void)
{
	sigset_t pending, signals;

	sigpending(&pending);
	sigorset(&signals, &main_thread_signals, &pending);
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
	exit(0);
}

void main_thread_end_process_if_last(void)
{
	static OF_THREAD uint64_t looked_at;

	if (!main_thread_ended() || clock_monotonic() - looked_at < LOOK_NS)
		return;
	looked_at = clock_monotonic();
	if (is_zombie() && is_oldest_of_library())
		end_process();
}
