/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The program ends: behind exit()'s handlers, or by interposed libc functions that do without them
 * or put another program in its place.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "port.h"
#include "real.h"

void _exit(int status)
{
	port_farewell();
	REAL(_exit)(status);
	__builtin_unreachable();
}

void _Exit(int status)
{
	_exit(status);
}

#define EXEC(name, parameters, arguments)    \
	int name parameters                  \
	{                                    \
		port_farewell();             \
		return REAL(name) arguments; \
	}

EXEC(execve, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp))
EXEC(execv, (const char *path, char *const argv[]), (path, argv))
EXEC(execvp, (const char *file, char *const argv[]), (file, argv))
EXEC(execvpe, (const char *file, char *const argv[], char *const envp[]), (file, argv, envp))
EXEC(fexecve, (int fd, char *const argv[], char *const envp[]), (fd, argv, envp))
EXEC(execveat, (int dir, const char *path, char *const argv[], char *const envp[], int flags),
     (dir, path, argv, envp, flags))

/* The arguments of the others, with the NULL behind them. */
static size_t count(const char *first, va_list list)
{
	size_t n = 1;

	for (const char *arg = first; arg; arg = va_arg(list, const char *))
		n++;
	return n;
}

static void collect(char **argv, const char *first, va_list *list)
{
	*argv++ = (char *)first;
	for (const char *arg = first; arg;) {
		arg = va_arg(*list, const char *);
		*argv++ = (char *)arg;
	}
}

/* On the stack: a child of a program with threads may not allocate. */
#define EXEC_LIST(name, takes_environment, run)             \
	int name(const char *file, const char *first, ...)  \
	{                                                   \
		va_list list;                               \
		size_t n;                                   \
                                                            \
		va_start(list, first);                      \
		n = count(first, list);                     \
		va_end(list);                               \
		char *argv[n], *const *envp = environ;      \
		va_start(list, first);                      \
		collect(argv, first, &list);                \
		if (takes_environment)                      \
			envp = va_arg(list, char *const *); \
		va_end(list);                               \
		return run(file, argv, envp);               \
	}

EXEC_LIST(execl, false, execve)
EXEC_LIST(execlp, false, execvpe)
EXEC_LIST(execle, true, execve)

/* Behind all that the program does at its exit: handlers of exit and destructors may poll, too. */
static __attribute__((destructor)) void leave(void)
{
	port_farewell();
}

/*
 * A child of a program with threads calls these, too, and must not have to wait for the dynamic
 * linker's lock, whose holder it does not have.
 */
static __attribute__((constructor)) void find(void)
{
	REAL(_exit);
	REAL(execve);
	REAL(execv);
	REAL(execvp);
	REAL(execvpe);
	REAL(fexecve);
	REAL(execveat);
}
