/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* next_hop RUN_DIR GID_INDEX ADDRESS asks urxed for the next hop and prints its MAC and hop limit.
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vnic/driver.h>

int main(int argc, char **argv)
{
	struct vnic_attach_welcome welcome;
	struct vnic_driver *drv;
	struct vnic_next_hop hop;
	uint8_t to[16];
	int rc;

	if (argc != 4 || inet_pton(AF_INET6, argv[3], to) != 1)
		errx(2, "usage: next_hop RUN_DIR GID_INDEX IPV6_ADDRESS");
	rc = vnic_driver_attach(argv[1], &welcome, &drv);
	if (rc)
		errx(2, "cannot attach: %s", strerror(-rc));
	rc = vnic_driver_resolve(drv, (uint8_t)atoi(argv[2]), to, &hop);
	if (rc)
		printf("%s\n", strerrorname_np(-rc));
	else
		printf("%02x:%02x:%02x:%02x:%02x:%02x %u\n", hop.mac[0], hop.mac[1], hop.mac[2],
		       hop.mac[3], hop.mac[4], hop.mac[5], hop.hop_limit);
	vnic_driver_detach(drv);
	return 0;
}
