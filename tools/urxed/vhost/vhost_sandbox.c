/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/vhost/vhost_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "urxed/privilege/capabilities.h"
#include "urxed/vhost/vhost_syscalls.h"

/* Value of oom_score_adj. If memory is short, the kernel treats a process with 0 like others, and
 * kills one with 1000 before all others. With 800 it kills this process before most others. */
#define OOM_SCORE "800"

/*
 * Limit of the process's descriptors; DPDK and a machine's rings need about 30. A hostile process
 * could let each descriptor wait for urxed's wake-ups, and urxed's write would take longer with
 * each.
 */
#define DESCRIPTORS 64

/* --- Files under /proc */

static int write_proc(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

static void write_id_map(const char *path, unsigned int id)
{
	char text[48];

	snprintf(text, sizeof(text), "%u %u 1", id, id);
	write_proc(path, text);
}

/* --- Capabilities */

/* Gives the process of an ordinary user CAP_SYS_CHROOT, in a user namespace of its own. The user
 * keeps its UID and its rights to files there. */
static void enter_user_namespace(void)
{
	const unsigned int uid = geteuid(), gid = getegid();

	if (!uid || unshare(CLONE_NEWUSER))
		return;
	write_proc("/proc/self/setgroups", "deny");
	write_id_map("/proc/self/uid_map", uid);
	write_id_map("/proc/self/gid_map", gid);
}

/* Root keeps CAP_DAC_OVERRIDE, because the socket's directory may belong to the machine's user, and
 * CAP_SYS_CHROOT until vhost_sandbox_enter. */
void vhost_sandbox_prepare(void)
{
	const struct rlimit none = {0, 0}, few = {DESCRIPTORS, DESCRIPTORS};

	prctl(PR_SET_NAME, "urxed-vhost");
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_NOFILE, &few);
	write_proc("/proc/self/oom_score_adj", OOM_SCORE);
	enter_user_namespace();
	capabilities_keep(CAPABILITY(CAP_SYS_CHROOT) | CAPABILITY(CAP_DAC_OVERRIDE));
}

/* --- The root directory */

/* Makes the socket's directory the root directory, and spec->path relative to it. If the process
 * may not do that, it only reports the error: the system call filter still protects urxed. */
static void change_root(struct netdev_vhost_spec *spec)
{
	char directory[NETDEV_VHOST_PATH];
	char *slash;

	memcpy(directory, spec->path, sizeof(directory));
	slash = strrchr(directory, '/');
	*slash = '\0';
	if (chdir(directory[0] ? directory : "/") || chroot(".") || chdir("/"))
		fprintf(stderr, "the port's process sees all directories: %m\n");
	else
		memmove(spec->path, spec->path + (slash - directory),
			strlen(spec->path + (slash - directory)) + 1);
}

static int report_failure(int rc, char *error, uint32_t error_size)
{
	if (rc)
		snprintf(error, error_size, "cannot confine the port's process: %s", strerror(-rc));
	return rc;
}

int vhost_sandbox_enter(struct netdev_vhost_spec *spec, char *error, uint32_t error_size)
{
	int rc;

	change_root(spec);
	rc = capabilities_keep(CAPABILITY(CAP_DAC_OVERRIDE));
	if (!rc && (prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
		rc = -errno;
	if (!rc)
		rc = vhost_syscalls_limit(spec->connects);
	return report_failure(rc, error, error_size);
}

int vhost_sandbox_close(const struct netdev_vhost_spec *spec, char *error, uint32_t error_size)
{
	return report_failure(vhost_syscalls_limit_further(spec->connects), error, error_size);
}
