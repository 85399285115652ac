/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/kernel/iface_claim.h"

#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int bind_name(unsigned int ifindex)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	/* An abstract name begins with a null byte. */
	const int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
				    "urxed-uplink-%u", ifindex);
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&address,
		  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)))
		return fd;
	err = errno;
	close(fd);
	return -err;
}

int iface_claim_open(const char *ifname, char error[IFACE_CLAIM_ERROR])
{
	const unsigned int ifindex = if_nametoindex(ifname);
	const int fd = ifindex ? bind_name(ifindex) : -errno;

	if (fd < 0)
		snprintf(error, IFACE_CLAIM_ERROR, "cannot claim %s: %s%s", ifname, strerror(-fd),
			 fd == -EADDRINUSE
				 ? " (another urxed has the interface, or two uplinks name it)"
				 : "");
	return fd;
}
