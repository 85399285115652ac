/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/privilege/vm_socket.h"

#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <netdev/netdev.h>

#include "common/log.h"
#include "common/unix_packet.h"
#include "urxed/privilege/capabilities.h"
#include "urxed/privilege/helper.h"

#define PATHS     16
#define ANSWER_MS 1000
#define QEMU      "qemu:"

enum task { CONNECT = 1, REMOVE };

struct order {
	enum task task;
	struct sockaddr_un address;
	/* REMOVE: only this file. */
	dev_t device;
	ino_t inode;
};

static struct helper helper = {.socket = -1};
/* As the ports make them absolute (netdev/unix_path.c). */
static char paths[PATHS][sizeof(((struct sockaddr_un *)0)->sun_path)];
static uint32_t n_paths;

/* --- The helper */

static bool is_known(const char *path)
{
	for (uint32_t i = 0; i < n_paths; i++)
		if (!strncmp(path, paths[i], sizeof(paths[i])))
			return true;
	return false;
}

static int connect_to(const struct sockaddr_un *address, int *fd)
{
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return -errno;
	return connect(*fd, (const struct sockaddr *)address, sizeof(*address)) ? -errno : 0;
}

static int remove_socket(const struct order *order)
{
	const char *path = order->address.sun_path;
	struct stat st;

	if (lstat(path, &st))
		return -errno;
	if (!S_ISSOCK(st.st_mode) || st.st_dev != order->device || st.st_ino != order->inode)
		return -ENOENT;
	return unlink(path) ? -errno : 0;
}

static void obey_order(struct order *order)
{
	int fds[UNIX_PACKET_FDS] = {-1, -1}, status = -EPERM;

	order->address.sun_path[sizeof(order->address.sun_path) - 1] = '\0';
	if (is_known(order->address.sun_path))
		status = order->task == CONNECT ? connect_to(&order->address, &fds[0])
						: remove_socket(order);
	(void)unix_packet_send(HELPER_SOCKET, &status, sizeof(status), fds, !status && fds[0] >= 0);
	if (fds[0] >= 0)
		close(fds[0]);
}

static void obey_orders(void)
{
	struct order order;

	while (recv(HELPER_SOCKET, &order, sizeof(order), 0) == sizeof(order))
		obey_order(&order);
}

/* --- The daemon */

/* Returns the status of the helper's answer; sets *fd to the descriptor that comes with it, or -1.
 */
static int give_order(const struct order *order, int *fd)
{
	struct pollfd pfd = {.fd = helper.socket, .events = POLLIN};
	struct unix_packet_extras extras = {.fds = {-1, -1}};
	int status;

	*fd = -1;
	if (helper.socket < 0)
		return -EPERM;
	if (!unix_packet_send(helper.socket, order, sizeof(*order), NULL, 0) &&
	    poll(&pfd, 1, ANSWER_MS) == 1 &&
	    unix_packet_recv(helper.socket, &status, sizeof(status), &extras) == sizeof(status)) {
		*fd = extras.fds[0];
		return status;
	}
	log_line("the process that connects to virtual machines does not answer: urxed connects "
		 "no more");
	helper_stop(&helper);
	return -EPERM;
}

static int connect_by_helper(const struct sockaddr_un *address)
{
	const struct order order = {.task = CONNECT, .address = *address};
	int fd, status = give_order(&order, &fd);

	if (status)
		return status;
	return fd < 0 ? -EIO : fd;
}

static void remove_by_helper(const struct sockaddr_un *address, const struct stat *file)
{
	const struct order order = {REMOVE, *address, file->st_dev, file->st_ino};
	int fd;

	(void)give_order(&order, &fd);
}

static void add_path(const char *uplink)
{
	const char *path = uplink + strlen(QEMU);
	int length = (int)strcspn(path, ",");
	char directory[sizeof(paths[0])] = "";

	if (*path != '/' && !getcwd(directory, sizeof(directory)))
		return;
	snprintf(paths[n_paths++], sizeof(paths[0]), "%s%s%.*s", directory, *path == '/' ? "" : "/",
		 length, path);
}

int vm_socket_start(const char *const *uplinks, uint32_t n)
{
	static const struct netdev_qemu_files files = {connect_by_helper, remove_by_helper};
	const uint64_t needed = CAPABILITY(CAP_DAC_OVERRIDE);
	int rc;

	n_paths = 0;
	for (uint32_t i = 0; i < n && n_paths < PATHS; i++)
		if (!strncmp(uplinks[i], QEMU, strlen(QEMU)))
			add_path(uplinks[i]);
	if (!n_paths || !(capabilities_get() & needed))
		return 0;
	rc = helper_start(&helper, "urxed-vms", needed, obey_orders);
	if (!rc)
		netdev_qemu_set_files(&files);
	return rc;
}

void vm_socket_stop(void)
{
	netdev_qemu_set_files(NULL);
	helper_stop(&helper);
}
