/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* number_holder RUN_DIR QPN has the QPN at urxed, as that of an HCA's queue pair, until it is
 * killed.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vnic/driver.h>

int main(int argc, char **argv)
{
	struct vnic_attach_welcome welcome;
	struct vnic_driver *drv;
	int rc;

	if (argc != 3)
		errx(2, "usage: number_holder RUN_DIR QPN");
	rc = vnic_driver_attach(argv[1], &welcome, &drv);
	if (rc)
		errx(2, "cannot attach: %s", strerror(-rc));
	rc = vnic_driver_add_qpn(drv, (uint32_t)strtoul(argv[2], NULL, 0), true);
	if (rc)
		errx(2, "cannot add the QPN: %s", strerror(-rc));
	puts("held");
	fflush(stdout);
	for (;;)
		pause();
}
