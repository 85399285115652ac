#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
urxe in a virtual machine without an HCA, on the kernel's interface of its paravirtual NIC, and by DPDK's driver of
the NIC, also behind an IOMMU, set up by the commands of docs/virtual-machines.md. The peers are urxe on this host,
and a second machine with Linux' rxe or with urxe.
"""
import argparse
import contextlib
import os
import re
import tempfile
import time

from lan import NICS
from ethernet import IPV4, IPV4_IN_VLAN, IPV6, VLAN
from guest import QEMU, Guest
from host import Failure, Host, main
from image import Image
from rdma import PATH_MTU, VERBS_CHECK
from recipe import follow
from stations import InMachine, Inside, OnHost, connect, exchange, rejected
import operations

MTU = 4200
CPUS = 2  # of a guest
MEMORY_MB = 768  # with the huge pages
ON_INTERFACE, BY_DRIVER = "On the kernel's interface", "By DPDK's driver"
WITH_IOMMU, BACK = 'With an IOMMU', 'Back to the kernel'
IOMMU = ['-machine', 'q35', '-device', 'intel-iommu']
BEHIND_IOMMU = {'vmxnet3': '', 'virtio': ',iommu_platform=on,disable-legacy=on'}

# Server and client; {} is the server's address. rping -V checks contents.
CONNECTING = [
    (['rping', '-s', '-a', '{}', '-C', '10', '-V'], ['rping', '-c', '-a', '{}', '-C', '10', '-V']),
    (['ucmatose', '-b', '{}', '-c', '4', '-C', '20'],
     ['ucmatose', '-s', '{}', '-c', '4', '-C', '20']),
    (['udaddy', '-b', '{}', '-c', '2'], ['udaddy', '-s', '{}', '-c', '2']),
]
# perftest's server listens again for a second connection, in a machine always too late for the client.
CONNECTING_TO_HOST = [(['ib_write_bw', '-R', '-F', '-n', '50'],
                       ['ib_write_bw', '-R', '-F', '-n', '50', '{}'])]


def addresses(number):
    return {4: IPV4.format(number), 6: IPV6.format(number)}


# --- Machines, set up by the commands of the page

class Machine:
    """A guest without rdma_rxe; `number` is part of its addresses."""

    def __init__(self, guest, number):
        self.guest = guest
        self.addresses = addresses(number)
        guest.run('rmmod rdma_ucm && rmmod rdma_rxe')
        self.nic = guest.interface(guest.mac)

    def follow(self, title):
        print(f'{self.guest.name}: {title}', flush=True)
        mine = {f'{addresses(2)[4]}/': f'{self.addresses[4]}/',
                f'{addresses(2)[6]}/': f'{self.addresses[6]}/'}
        follow(self.guest, title, self.nic, mine)

    def here(self):
        """The machine as a station of stations.py, while urxed runs."""
        return Inside(self.guest, self.addresses)

    def on_interface(self):
        self.follow(ON_INTERFACE)
        return self.here()

    def by_driver(self, title=BY_DRIVER):
        self.follow(title)
        return self.here()

    def back(self):
        self.follow(BACK)
        self.nic = self.guest.raise_link(MTU, self.addresses[4], self.addresses[6])

    def stop(self):
        self.guest.run('killall urxed; while pidof urxed; do usleep 20000; done')


ALL = [*(operations.perftest(argv, PATH_MTU) for argv in operations.PERFTEST),
       *(operations.with_contents(argv, PATH_MTU)
         for argv in operations.PINGPONGS + operations.VERBS_CHECK)]
BRIEF = [operations.with_contents(argv, PATH_MTU)
         for argv in (['ibv_rc_pingpong', '-c'], ['verbs_check', '-s', '100001'])]


def meet(one, other, programs):
    """Runs programs with the server on each side, over IPv4 and IPv6."""
    print(f'{one.name} and {other.name}', flush=True)
    start = time.monotonic()
    for server, client, version in ((one, other, 6), (other, one, 4)):
        for argv in programs:
            print(f'{" ".join(argv)}', flush=True)
            exchange(server, client, argv, version, PATH_MTU)
        for serving, asking in CONNECTING + CONNECTING_TO_HOST * isinstance(server, OnHost):
            print(f'{" ".join(asking)}', flush=True)
            connect(server, client, serving, asking, version)
        rejected(client, server, version)
    print(f'{time.monotonic() - start:.1f} s', flush=True)


# --- Errors

def refusal(machine, arguments):
    """What urxed says where it does not start."""
    job = machine.guest.start(f'/urxe/tools/urxed {arguments} 2>&1')
    if job.wait(60) != 1:
        raise Failure(f'it starts: {job.describe()}')
    return job.output()


def expect(text, sentence):
    if not re.search(sentence, text) or len(text.splitlines()) != 1:
        raise Failure(f'no sentence with "{sentence}":\n{text}')


def check_refusals(machine):
    """The errors of urxed before the commands of the page ran."""
    slot = machine.guest.run(f'readlink -f /sys/class/net/{machine.nic}/device')
    slot = re.findall(r'[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]', slot)[-1]
    address = f'--address {machine.addresses[4]}/24'
    expect(refusal(machine, f'--uplink dpdk:{slot} {address}'), "the kernel's driver .* is bound to it: bind it to")
    expect(refusal(machine, f'--uplink dpdk:0000:00:1e.0 {address}'), 'no such PCI device')


def check_huge_pages(machine, more):
    """
    Without huge pages the device would use addresses outside the machine's memory, so urxed refuses. With huge
    pages it starts, with more arguments.
    """
    slot = machine.guest.run('ls /sys/bus/pci/drivers/uio_pci_generic | grep :').strip()
    arguments = f'--uplink dpdk:{slot} --address {machine.addresses[4]}/24'
    machine.stop()
    machine.guest.run('sysctl -w vm.nr_hugepages=0')
    expect(refusal(machine, arguments), 'uio_pci_generic is bound to it, .* sysctl vm.nr_hugepages=')
    machine.guest.run(f'sysctl -w vm.nr_hugepages=64 && /urxe/tools/urxed {arguments} {more}')


def check_vlan(machine, host):
    """The NIC receives frames of a VLAN that only urxed has."""
    check_huge_pages(machine, f'--mtu {MTU} --address {IPV4_IN_VLAN.format(2)}/24@{VLAN}')
    stations = [Inside(machine.guest, {VLAN: IPV4_IN_VLAN.format(2)}),
                OnHost(host.host, {VLAN: IPV4_IN_VLAN.format(1)})]
    exchange(*stations, ['ibv_rc_pingpong', '-c'], VLAN, PATH_MTU)


# --- Peers

@contextlib.contextmanager
def with_host(build, image, nic, before=(), qemu=QEMU):
    """Joins this host and a machine by a cable."""
    with Host(build, daemon=False) as host:
        path = os.path.join(host.run_dir, 'nic')
        ours = addresses(1)
        host.start_daemon(['--uplink', f'qemu:{path}', '--mtu', str(MTU),
                           '--address', f'{ours[4]}/24', '--address', f'{ours[6]}/64',
                           '--address', f'{IPV4_IN_VLAN.format(1)}/24@{VLAN}'])
        wire = [*before, '-netdev', f'stream,id=n0,addr.type=unix,addr.path={path},server=off']
        with Guest(image, wire, nic, memory_mb=MEMORY_MB, qemu=qemu) as guest:
            guest.raise_link(MTU, addresses(2)[4], addresses(2)[6])
            yield OnHost(host, ours), Machine(guest, 2)


def meet_host(build, image, nic, programs):
    with with_host(build, image, NICS[nic].format(mtu=MTU)) as (host, machine):
        check_refusals(machine)
        meet(machine.on_interface(), host, programs)
        machine.stop()
        meet(machine.by_driver(), host, programs)
        check_vlan(machine, host)
        machine.back()
        machine.on_interface()


def check_interrupts(machine):
    """urxed sleeps until the interrupt of the NIC's receive queue, which is the second vector."""
    lines = machine.guest.run('cat /proc/interrupts').splitlines()
    vectors = [line for line in lines if 'vfio-msix[1]' in line]
    if not any(int(count) for line in vectors for count in line.split()[1:1 + CPUS]):
        raise Failure(f'urxed was not woken by its NIC: {vectors}')


def meet_iommu(build, image, nic, _programs):
    """Behind an IOMMU urxed needs no huge pages; at the end the kernel has the device again."""
    nic, behind = NICS[nic].format(mtu=MTU), BEHIND_IOMMU[nic]
    with with_host(build, image, nic + behind, IOMMU) as (host, machine):
        meet(machine.by_driver(WITH_IOMMU), host, BRIEF)
        check_interrupts(machine)
        machine.back()
        machine.on_interface()


@contextlib.contextmanager
def machines(image, nic):
    """Two machines joined by a cable, with addresses on the kernel's interfaces. QMP listens at `monitor` of each."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        guests = []
        for number, server in ((2, 'on'), (1, 'off')):
            wire = f'stream,id=n0,addr.type=unix,addr.path={folder}/wire,server={server}'
            monitor = f'{folder}/monitor{number}'
            guest = Guest(image, ['-netdev', wire, '-qmp', f'unix:{monitor},server=on,wait=off'], NICS[nic].format(mtu=MTU),
                          f'52:54:00:00:00:1{number}', f'machine {number}', MEMORY_MB)
            guest.monitor = monitor
            guests.append(stack.enter_context(guest))
            guest.raise_link(MTU, addresses(number)[4], addresses(number)[6])
        yield guests


def meet_rxe(_build, image, nic, programs):
    with machines(image, nic) as (one, two):
        two.run(f'rdma link add rxe0 type rxe netdev {two.interface(two.mac)}')
        linux = InMachine(two, addresses(1))
        machine = Machine(one, 2)
        meet(machine.on_interface(), linux, programs)
        machine.stop()
        meet(machine.by_driver(), linux, programs)


def meet_urxe(_build, image, nic, programs):
    with machines(image, nic) as guests:
        one, two = (Machine(guest, number) for guest, number in zip(guests, (2, 1)))
        meet(one.on_interface(), two.on_interface(), programs)
        for machine in one, two:
            machine.stop()
        meet(one.by_driver(), two.by_driver(), programs)


PEERS = {'host': meet_host, 'iommu': meet_iommu, 'rxe': meet_rxe, 'urxe': meet_urxe}


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--nic', choices=NICS, required=True)
    parser.add_argument('--peer', choices=PEERS, required=True)
    parser.add_argument('--brief', action='store_true', help='two programs and rdma_cm only')
    options = parser.parse_args()
    image = Image(options.build, [os.path.join(options.build, VERBS_CHECK)], urxe=True)
    PEERS[options.peer](options.build, image, options.nic, BRIEF if options.brief else ALL)


if __name__ == '__main__':
    main(run)
