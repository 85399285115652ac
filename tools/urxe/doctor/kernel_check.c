/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/doctor/check.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLASS     "/sys/class/infiniband"
#define ROCE_PORT 4791
#define DEVICES   512 /* length of the list of devices, with the NUL; a longer one is cut */

/*
 * Whether the device is one of the kernel. Within `urxe run`, the class also has urxe's devices,
 * whose directories are not below /sys.
 */
static bool is_of_kernel(const char *name)
{
	char path[PATH_MAX], real[PATH_MAX];

	snprintf(path, sizeof(path), CLASS "/%s", name);
	return realpath(path, real) && !strncmp(real, "/sys/", 5);
}

/* Writes the names of the kernel's RDMA devices that this process sees. */
static void list_devices(char list[DEVICES])
{
	DIR *dir = opendir(CLASS);
	struct dirent *entry;

	list[0] = '\0';
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && is_of_kernel(entry->d_name))
			snprintf(list + strlen(list), DEVICES - strlen(list), "%s%.200s",
				 *list ? ", " : "", entry->d_name);
	if (dir)
		closedir(dir);
}

/*
 * Whether no socket has RoCE's UDP port: tries to bind one to all addresses, which fails if any
 * socket has the port.
 */
static bool is_port_free(void)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(ROCE_PORT)};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(ROCE_PORT)};
	bool six = true;
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd >= 0) {
		six = !bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
		      errno != EADDRINUSE;
		close(fd);
	}
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	rc = fd < 0 ? 0 : bind(fd, (struct sockaddr *)&v4, sizeof(v4));
	if (fd >= 0)
		close(fd);
	return six && !(rc && errno == EADDRINUSE);
}

void check_kernel(struct findings *f)
{
	char devices[DEVICES];
	bool rxe = !access("/sys/module/rdma_rxe", F_OK);

	list_devices(devices);
	if (*devices)
		finding_add(f, "kernel", FINDING_OK, NULL,
			    "programs see the kernel's RDMA devices beside urxe's: %s", devices);
	else
		finding_add(f, "kernel", FINDING_OK, NULL,
			    "the kernel has no RDMA device, and urxe needs none");
	if (is_port_free())
		finding_add(f, "UDP 4791", FINDING_OK, NULL, "no socket has RoCE's port");
	else if (rxe)
		finding_add(
			f, "UDP 4791", FINDING_NOTE, "modprobe -r rdma_rxe",
			"rdma_rxe is loaded and has RoCE's port: an uplink at the same interface "
			"cannot have it");
	else
		finding_add(
			f, "UDP 4791", FINDING_OK, "ss -lunp 'sport = 4791'",
			"a socket has RoCE's port; a urxed with an uplink has one per interface");
}
