/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The kernel driver of a PCI device, for error messages and interrupts. */
#ifndef URXE_NETDEV_DPDK_PCI_DRIVER_H
#define URXE_NETDEV_DPDK_PCI_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes why DPDK may be unable to open the device, as the end of a sentence. `devargs`: the
 * device's address and options in DPDK's syntax; `huge`: DPDK's memory is in huge pages.
 */
void pci_driver_hint(const char *devargs, bool huge, char *hint, size_t size);

/* Whether the driver is vfio-pci, with which DPDK has interrupts. `devargs`: of the device. */
bool pci_driver_is_vfio(const char *devargs);

#endif
