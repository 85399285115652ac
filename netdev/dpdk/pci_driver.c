/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/pci_driver.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEVICES "/sys/bus/pci/devices"
#define REMEDY  "bind it to vfio-pci or uio_pci_generic"

/* Paths in sysfs contain the PCI domain, which an address may omit. */
static void set_folder(char *folder, size_t size, const char *devargs)
{
	const char *address = strncmp(devargs, "pci:", 4) ? devargs : devargs + 4;
	const int length = (int)strcspn(address, ",");
	const bool domain = memchr(address, ':', length) != memrchr(address, ':', length);

	snprintf(folder, size, DEVICES "/%s%.*s", domain ? "" : "0000:", length, address);
}

static bool read_driver(const char *folder, char *driver, size_t size)
{
	char path[PATH_MAX], target[PATH_MAX];
	ssize_t length;

	snprintf(path, sizeof(path), "%s/driver", folder);
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return false;
	target[length] = '\0';
	snprintf(driver, size, "%s", basename(target));
	return true;
}

void pci_driver_hint(const char *devargs, bool huge, char *hint, size_t size)
{
	char folder[512], driver[64];

	set_folder(folder, sizeof(folder), devargs);
	if (access(folder, F_OK))
		snprintf(hint, size, "no such PCI device exists");
	else if (!read_driver(folder, driver, sizeof(driver)))
		snprintf(hint, size, "no driver is bound to it: " REMEDY);
	else if (strcmp(driver, "vfio-pci") && strcmp(driver, "uio_pci_generic"))
		snprintf(hint, size, "the kernel's driver %s is bound to it: " REMEDY, driver);
	else if (!huge)
		snprintf(hint, size,
			 "%s is bound to it, which without an IOMMU needs 96 MB of free huge "
			 "pages: sysctl vm.nr_hugepages=64",
			 driver);
	else
		snprintf(hint, size, "%s is bound to it", driver);
}

bool pci_driver_is_vfio(const char *devargs)
{
	char folder[512], driver[64];

	set_folder(folder, sizeof(folder), devargs);
	return read_driver(folder, driver, sizeof(driver)) && !strcmp(driver, "vfio-pci");
}
