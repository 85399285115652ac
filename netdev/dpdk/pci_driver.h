/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Whose a PCI device is, where DPDK cannot open it. */
#ifndef URXE_NETDEV_DPDK_PCI_DRIVER_H
#define URXE_NETDEV_DPDK_PCI_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What may keep DPDK from the device, in words that can end a sentence. `devargs` is its address
 * as DPDK takes it, with options; `huge`: DPDK's memory is of huge pages.
 */
void pci_driver_hint(const char *devargs, bool huge, char *hint, size_t size);

/* Whether it is vfio-pci's, which has interrupts for DPDK. `devargs` as above. */
bool pci_driver_is_vfio(const char *devargs);

#endif
