#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
urxe in a virtual machine that has a NIC, or a VF of a NIC, for itself: by DPDK's driver behind an IOMMU, set up by the
commands of docs/virtual-machines.md. The peers are urxe on this host, and a second machine with Linux' rxe.
"""
import argparse
import contextlib
import os
import tempfile

from inside import ALL, BRIEF, IOMMU, MEMORY_MB, MTU, WITH_IOMMU, Machine, addresses, check_interrupts, meet, with_host
from guest import Guest
from host import main
from image import Image, only
from rdma import VERBS_CHECK
from stations import InMachine

WITH_VF = 'A VF'
# QEMU's device and the section of the page.
NICS = {'vmxnet3': ('vmxnet3', WITH_IOMMU), 'e1000e': ('e1000e', WITH_IOMMU), 'igb': ('igb', WITH_IOMMU),
        'igb_vf': ('igb', WITH_VF)}
# DPDK's drivers of the others set up no interrupt of a queue, so urxed looks for frames.
WITH_INTERRUPT = ['vmxnet3', 'igb']
KERNEL_DRIVERS = ['e1000e', 'igb']
PEER_NIC = 'virtio-net-pci,host_mtu=4200'


def hand_over(machine, title):
    """Gives the NIC, or its first VF, to urxed. The addresses are urxed's, so the kernel's NIC has none."""
    # QEMU's NICs drop a frame to send that lies in two pages which are apart: see docs/virtual-machines.md.
    machine.guest.run(f'ip addr flush dev {machine.nic}; sysctl -w vm.nr_hugepages=64')
    return machine.by_driver(title)


def meet_host(build, image, qemu, nic, programs):
    device, title = NICS[nic]
    with with_host(build, image, device, IOMMU, qemu) as (host, machine):
        meet(hand_over(machine, title), host, programs)
        if nic in WITH_INTERRUPT:
            check_interrupts(machine)


@contextlib.contextmanager
def two_machines(image, qemu, device):
    """The machine with the NIC, and a machine with Linux' rxe, joined by a cable."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        guests = []
        for number, server, nic, more in ((2, 'on', device, IOMMU), (1, 'off', PEER_NIC, [])):
            wire = f'stream,id=n0,addr.type=unix,addr.path={folder}/wire,server={server}'
            guest = Guest(image, [*more, '-netdev', wire], nic, f'52:54:00:00:00:1{number}', f'machine {number}',
                          MEMORY_MB, qemu=qemu)
            guests.append(stack.enter_context(guest))
            guest.raise_link(MTU, addresses(number)[4], addresses(number)[6])
        yield guests


def meet_rxe(_build, image, qemu, nic, programs):
    device, title = NICS[nic]
    with two_machines(image, qemu, device) as (one, two):
        two.run(f'rdma link add rxe0 type rxe netdev {two.interface(two.mac)}')
        meet(hand_over(Machine(one, 2), title), InMachine(two, addresses(1)), programs)


PEERS = {'host': meet_host, 'rxe': meet_rxe}


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--nic', choices=NICS, required=True)
    parser.add_argument('--peer', choices=PEERS, required=True)
    parser.add_argument('--brief', action='store_true', help='two programs and rdma_cm only')
    options = parser.parse_args()
    qemu = only(f'{options.build}-guests/qemu/qemu-system-x86_64')  # Debian 12's has no igb
    image = Image(options.build, [os.path.join(options.build, VERBS_CHECK)], urxe=True, more_modules=KERNEL_DRIVERS)
    PEERS[options.peer](options.build, image, qemu, options.nic, BRIEF if options.brief else ALL)


if __name__ == '__main__':
    main(run)
