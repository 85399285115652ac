/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/doctor/check.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PTRACE_SCOPE "/proc/sys/kernel/yama/ptrace_scope"
#define SCOPE_FINAL  3 /* value of ptrace_scope that cannot be changed until the next boot */

/* Forks a child that reads a word of its parent's memory: Yama's ptrace_scope 1 forbids this
 * direction. Returns 0, or the positive errno value of the failure. */
static int read_parent(void)
{
	static uint64_t word = 1;
	uint64_t copy = 0;
	struct iovec to = {&copy, sizeof(copy)}, from = {&word, sizeof(word)};
	pid_t parent = getpid(), child;
	int status;

	fflush(NULL);
	child = fork();
	if (!child)
		_exit(process_vm_readv(parent, &to, 1, &from, 1, 0) < 0 ? errno : 0);
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static bool read_scope(int *scope)
{
	FILE *file = fopen(PTRACE_SCOPE, "re");
	bool has = file && fscanf(file, "%d", scope) == 1;

	if (file)
		fclose(file);
	return has;
}

void check_copies(struct findings *f)
{
	int error = read_parent(), scope;

	if (!error)
		finding_add(
			f, "copies", FINDING_OK, NULL,
			"processes of one user copy WRITEs, READs and large SENDs by one system "
			"call");
	else if (error == EPERM && read_scope(&scope) && scope > 0)
		finding_add(f, "copies", FINDING_NOTE,
			    scope < SCOPE_FINAL ? "sysctl -w kernel.yama.ptrace_scope=0" : NULL,
			    "large messages between processes go in packets: "
			    "kernel.yama.ptrace_scope is %d",
			    scope);
	else
		finding_add(
			f, "copies", FINDING_NOTE, "docker run --cap-add SYS_PTRACE ...",
			"large messages between processes go in packets: process_vm_readv fails "
			"(%s), as in a container with a seccomp filter",
			strerror(error));
}
