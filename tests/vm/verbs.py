#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Programs on the PVRDMA device of a virtual machine, with Linux' driver vmw_pvrdma and rdma-core's provider. Their peers
are on the same device, in another such machine, on the host, on another host, or on Linux' rdma_rxe.
"""
import contextlib
import functools
import os
import re
import sys

from ends import (CHECKED, CONNECTED, FEW, PERFTEST, has_gid, run_both_ways, run_connected_both_ways, run_pair,
                  run_qperf, wait_gid)
from nic import make_file, ping, transfer
from vm import Device, Vm, make_image
from ethernet import Ethernet
from host import Failure, Host, main, until
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../smoke/commands'))
import capture  # noqa: E402

LONG_MTU = 4200  # RDMA packets of 4096 bytes fit
HOST, ADDRESSES = '192.0.2.9', ['192.0.2.11', '192.0.2.12']


class Lab:
    """Machines on one host or several; all end with the object."""

    def __init__(self, build, stack, image=None):
        self.image = image or make_image(build)
        self.stack = stack
        self.machines = []

    def boot(self, host, rdma=True, arguments=(), **more):
        """arguments: of `urxe vm`; more: of Vm."""
        number = len(self.machines) + 1
        device = Device(host, number, rdma, arguments)
        vm = self.stack.enter_context(Vm(self.image, device, ADDRESSES[number - 1], f'vm{number}', **more))
        self.machines.append(vm)
        if rdma:
            wait_gid(vm, vm.address)
        return vm


def add_host(build, stack):
    host = stack.enter_context(Host(build, arguments=['--address', f'{HOST}/24']))
    host.address = HOST
    return host


# --- One machine

def check_devinfo(vm):
    """The device and its port are as ibv_devinfo -v reports them."""
    info = vm.run(f'ibv_devinfo -v -d {vm.RDMA}')
    for wanted in (r'transport:\s+InfiniBand \(0\)', r'vendor_id:\s+0x15ad', r'phys_port_cnt:\s+1',
                   r'state:\s+PORT_ACTIVE \(4\)', r'link_layer:\s+Ethernet', r'active_mtu:\s+1024 \(3\)',
                   r'atomic_cap:\s+ATOMIC_(HCA|GLOB)'):
        if not re.search(wanted, info):
            raise Failure(f'no "{wanted}" in\n{info}')
    for address in vm.address, vm.ipv6():
        vm.gid(address)
    if f'netdev {vm.nic()}' not in vm.run('rdma link'):
        raise Failure(f'the device has another NIC: {vm.run("rdma link")}')


def check_port(host, vm):
    """The port follows the machine's NIC (its MTU, and whether it is up) and the link to the switch."""
    for command, wanted in (('mtu 4200', r'active_mtu:\s+4096'), ('mtu 1500', r'active_mtu:\s+1024'),
                            ('down', r'state:\s+PORT_DOWN'), ('up', r'state:\s+PORT_ACTIVE')):
        vm.run(f'ip link set {vm.nic()} {command}')
        info = vm.run(f'ibv_devinfo -v -d {vm.RDMA}')
        if not re.search(wanted, info):
            raise Failure(f'no "{wanted}" after "ip link set {command}" in\n{info}')
    vm.run(f'ibv_asyncwatch -d {vm.RDMA} >/tmp/events 2>&1 &')
    until(60, lambda: 'FD' in vm.run('cat /tmp/events'), lambda: 'ibv_asyncwatch does not start')
    for event, change in (('PORT_ERR', host.daemon.kill), ('PORT_ACTIVE', host.start_daemon)):
        change()
        until(60, lambda: f'IBV_EVENT_{event} ' in vm.run('cat /tmp/events'),  # pylint: disable=cell-var-from-loop
              lambda: f'no {event}: {vm.run("cat /tmp/events")}')  # pylint: disable=cell-var-from-loop
    # The kernel removes IPv6 addresses from an interface that is set down.
    vm.configure()
    for address in vm.address, vm.ipv6():
        wait_gid(vm, address)


def check_loopback(build, stack):
    lab = Lab(build, stack)
    host = add_host(build, stack)
    vm = lab.boot(host)
    check_devinfo(vm)
    check_port(host, vm)
    run_both_ways(vm, vm, CHECKED + PERFTEST)
    run_connected_both_ways(vm, vm, CONNECTED)
    run_qperf(vm, vm)
    return lab


# --- Two ends

def check_pair(build, stack):
    lab = Lab(build, stack)
    host = add_host(build, stack)
    one, two = lab.boot(host), lab.boot(host)
    run_both_ways(one, two, CHECKED + PERFTEST)
    run_connected_both_ways(one, two, CONNECTED)
    run_qperf(one, two)
    return lab


def check_mapped(build, stack):
    """Doorbells in memory that QEMU maps: programs that poll, and programs that wait for events."""
    lab = Lab(build, stack)
    host = add_host(build, stack)
    one, two = (lab.boot(host, arguments=['--doorbells', 'mapped']) for _ in range(2))
    for vm in one, two:
        with open(f'/proc/{vm.qemu.process.pid}/maps', encoding='ascii') as maps:
            if 'urxe-doorbells' not in maps.read():
                raise Failure(f'{vm.name}: QEMU has not mapped the doorbells')
    for program in CHECKED + PERFTEST:
        run_pair(one, two, program)
    for programs in CONNECTED:
        run_connected_both_ways(one, two, [programs])
    run_both_ways(one, one, FEW)
    run_both_ways(one, host, FEW)
    return lab


def check_core(build, stack):
    """One program of each kind, for the default run."""
    lab = Lab(build, stack)
    host = add_host(build, stack)
    one, two = lab.boot(host), lab.boot(host)
    check_devinfo(one)
    run_both_ways(one, two, FEW)
    run_both_ways(two, host, FEW[:1])
    run_connected_both_ways(one, two, CONNECTED[:1])
    ping(one, two.address)
    make_file(one)
    transfer(one, two, two.address)
    return lab


def check_host(build, stack):
    lab = Lab(build, stack)
    host = add_host(build, stack)
    vm = lab.boot(host)
    run_both_ways(vm, host, CHECKED + PERFTEST)
    run_connected_both_ways(vm, host, CONNECTED)
    return lab


def check_cable(build, stack):
    """Each machine on a host of its own, which a cable joins."""
    lab = Lab(build, stack)
    hosts = stack.enter_context(Ethernet(build, [1500, 1500])).hosts
    one, two = lab.boot(hosts[0]), lab.boot(hosts[1])
    run_both_ways(one, two, CHECKED + FEW)
    run_connected_both_ways(one, two, CONNECTED[:4])
    run_qperf(one, two)
    return lab


def fewer(argv):
    """A program of perftest with the fewest messages: each packet of rdma_rxe costs emulated processors much."""
    return ['5' if word == '20' else word for word in argv]


def check_rxe(build, stack):
    """The peer is Linux' rdma_rxe on a vmxnet3 of another machine, whose device has no second function."""
    lab = Lab(build, stack)
    host = add_host(build, stack)
    one, two = (lab.boot(host, rdma, ['--mtu', str(LONG_MTU)], mtu=LONG_MTU) for rdma in (True, False))
    two.use_rxe()
    wait_gid(two, two.address)
    run_both_ways(one, two, CHECKED + [fewer(argv) for argv in PERFTEST])
    run_connected_both_ways(one, two, CONNECTED)
    run_qperf(one, two)
    return lab


# --- Addresses

VLAN, IN_VLAN = 100, ('198.51.100.1', '198.51.100.2')
ADDED = ('fd00:3::1', 'fd00:3::2')
OTHER_MAC = '52:54:00:00:02:99'
PINGPONG = CHECKED[3:4]


def run_by_gids(vms, addresses):
    """Each machine uses the GID of an address."""
    for vm, address in zip(vms, addresses):
        wait_gid(vm, address)
        vm.gid = functools.partial(lambda index, _: index, vm.gid(address))
    run_both_ways(*vms, PINGPONG)
    for vm in vms:
        del vm.gid


def check_ipv6(vms):
    """GIDs follow the addresses."""
    run_by_gids(vms, [vm.ipv6() for vm in vms])
    for vm, address in zip(vms, ADDED):
        vm.run(f'ip addr add {address}/64 dev {vm.nic()}')
    run_by_gids(vms, ADDED)
    for vm, address in zip(vms, ADDED):
        vm.run(f'ip addr del {address}/64 dev {vm.nic()}')
    until(60, lambda: not any(map(has_gid, vms, ADDED)), lambda: 'a GID without an address')


def check_vlan(vms):
    """PVRDMA's packets are in the VLAN of the address, of which its driver does not tell."""
    for vm, address in zip(vms, IN_VLAN):
        vm.run(f'ip link add link {vm.nic()} name inside type vlan id {VLAN} && '
               f'ip addr add {address}/24 dev inside && ip link set inside up')
    run_by_gids(vms, IN_VLAN)
    run_both_ways(*vms, PINGPONG)


def check_mac(vms):
    """The NIC gets another MAC, by which peers and the machine itself reach it."""
    vms[0].run(f'ip link set {vms[0].nic()} address {OTHER_MAC}')
    vms[0].mac = OTHER_MAC
    wait_gid(vms[0], vms[0].address)
    vms[0].run(f'arping -q -U -c 2 -I {vms[0].nic()} {vms[0].address}')
    ping(vms[1], vms[0].address)
    run_both_ways(*vms, PINGPONG)
    run_both_ways(vms[0], vms[0], PINGPONG)


def check_addresses(build, stack):
    lab = Lab(build, stack)
    host = add_host(build, stack)
    vms = [lab.boot(host) for _ in range(2)]
    for check in check_ipv6, check_vlan, check_mac:
        print(check.__name__, flush=True)
        check(vms)
    return lab


# --- Another kernel

def check_newer_kernel(build, stack):
    """The kernel of Debian 12's backports, 6.12: its vmxnet3 writes frames into the descriptors."""
    lab = Lab(build, stack, make_image(build, 'kernel-bookworm-backports'))
    host = add_host(build, stack)
    one, two = lab.boot(host), lab.boot(host)
    print(one.run('uname -r').strip(), flush=True)
    for size in 56, 200, 1400:
        ping(one, two.address, size)
    make_file(one)
    transfer(one, two, two.address)
    run_both_ways(one, two, FEW)
    run_both_ways(one, host, PINGPONG)
    run_connected_both_ways(one, two, CONNECTED[:1])
    for vm in one, two:
        vm.expect_no_warning()
    return lab


# --- RoCE v1

ROCE_V1, ROCE_V1_TYPE, ROCE_V2_PORT = 'RoCE v1', b'\x89\x15', (4791).to_bytes(2, 'big')


def check_gids(vm, kind):
    """All GIDs have one version of RoCE."""
    found = set(re.findall(r'GID\[.*, (.*\S)', vm.run(f'ibv_devinfo -v -d {vm.RDMA}')))
    if found != {kind}:
        raise Failure(f'{vm.name} has GIDs of {found}, not {kind}')


def check_ether_type(host, one, two):
    """The packets of a connection have RoCE's own Ethernet type."""
    path = os.path.join(host.top, 'rocev1.pcapng')
    capturing = capture.start(host, '-w', path)
    run_pair(one, two, CHECKED[3])
    capture.finish(capturing)
    with open(path, 'rb') as file:
        frames = [frame for *_, frame in capture.walk(file.read())]
    roce = [frame for frame in frames if frame[12:14] == ROCE_V1_TYPE]
    by_udp = [frame for frame in frames if frame[36:38] == ROCE_V2_PORT]
    if len(roce) < 200 or by_udp:
        raise Failure(f'{len(roce)} packets of RoCE v1, {len(by_udp)} of RoCE v2')


def check_roce_v1(build, stack):
    """`urxe vm --roce v1` on both sides, and on one side with a program of the host."""
    lab = Lab(build, stack)
    host = add_host(build, stack)
    host.gid = functools.partial(host.gid, kind=ROCE_V1)
    one, two = (lab.boot(host, arguments=['--roce', 'v1']) for _ in range(2))
    check_gids(one, ROCE_V1)
    run_both_ways(one, two, CHECKED + PERFTEST)
    run_both_ways(one, host, FEW)
    run_connected_both_ways(one, two, CONNECTED)
    check_ether_type(host, one, two)
    return lab


PLACES = {'core': check_core, 'mapped': check_mapped, 'loopback': check_loopback, 'pair': check_pair, 'host': check_host,
          'cable': check_cable, 'rxe': check_rxe, 'addresses': check_addresses, 'newer_kernel': check_newer_kernel,
          'roce_v1': check_roce_v1}


def run():
    build, place = sys.argv[1:]
    with contextlib.ExitStack() as stack:
        for vm in PLACES[place](build, stack).machines:
            vm.expect_healthy()


if __name__ == '__main__':
    main(run)
