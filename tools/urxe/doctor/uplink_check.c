/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/doctor/check.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void check_uplinks(struct findings *f)
{
	/* Protocol 0: the socket receives nothing. */
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		close(fd);
		finding_add(f, "uplinks", FINDING_OK, NULL,
			    "a urxed of this user can have an uplink to an Ethernet");
	} else if (errno == EPERM) {
		finding_add(f, "uplinks", FINDING_NOTE, "sudo urxed --uplink af_packet:IFACE",
			    "other hosts are reached by a urxed with CAP_NET_RAW, which this user "
			    "does not have");
	} else {
		finding_add(f, "uplinks", FINDING_NOTE, NULL,
			    "the kernel gives no packet socket (%s): only virtual machines can be "
			    "uplinks",
			    strerror(errno));
	}
}
