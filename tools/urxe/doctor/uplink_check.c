/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/doctor/check.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Returns 0 if this user may have an uplink, else a positive errno value. A packet socket needs
 * CAP_NET_RAW in the network namespace. Promiscuous mode, a flag of the interface, needs
 * CAP_NET_ADMIN there: to test that, sets the flags of no interface. The kernel checks the
 * capability first, so the error is EPERM without it, else ENODEV.
 */
static int try_packet_socket(void)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); /* protocol 0: receives nothing */
	struct ifreq nameless = {0};
	int error = 0;

	if (fd < 0)
		return errno;
	if (ioctl(fd, SIOCSIFFLAGS, &nameless) && errno != ENODEV)
		error = errno;
	close(fd);
	return error;
}

void check_uplinks(struct findings *f)
{
	int error = try_packet_socket();

	if (!error) {
		finding_add(f, "uplinks", FINDING_OK, NULL,
			    "a urxed of this user can have an uplink to an Ethernet");
	} else if (error == EPERM) {
		finding_add(f, "uplinks", FINDING_NOTE, "sudo urxed --uplink af_packet:IFACE",
			    "other hosts are reached by a urxed with CAP_NET_RAW and "
			    "CAP_NET_ADMIN, which this user does not have");
	} else {
		finding_add(f, "uplinks", FINDING_NOTE, NULL,
			    "the kernel gives no packet socket (%s): only virtual machines can be "
			    "uplinks",
			    strerror(error));
	}
}
