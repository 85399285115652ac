#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Linux' driver vmxnet3 on the NIC of `urxe vm`: two virtual machines on one switch exchange pings and TCP streams with
each offload on and off, in jumbo frames, in a VLAN, and after each change that the driver can make to the NIC.
"""
import re
import sys

from vm import Device, Vm, make_image
from host import Failure, Host, main

ADDRESSES = ['192.0.2.1', '192.0.2.2']
IN_VLAN = ['198.51.100.1', '198.51.100.2']
VLAN, IN = 100, 'inside'  # and the name of its interface
JUMBO = 9000
PORT = 5000
MEGABYTES = 8
SENT, RECEIVED = '/tmp/sent', '/tmp/received'


# --- Traffic

def ping(vm, address, size=56, count=3):
    output = vm.run(f'ping -c {count} -i 0.1 -W 10 -s {size} {address}')
    if f'{count} packets received, 0% packet loss' not in output:
        raise Failure(f'lost pings: {output}')


def silent(vm, address):
    """Nothing answers at an address."""
    if vm.start(f'ping -c 2 -i 0.1 -W 1 {address}').wait(60) == 0:
        raise Failure(f'{address} answers {vm.name}')


def make_file(vm):
    vm.run(f'dd if=/dev/urandom of={SENT} bs=1M count={MEGABYTES} 2>/dev/null')


def digest(vm, path):
    return vm.run(f'sha256sum <{path}')


def transfer(sender, receiver, address):
    """Sends a file by TCP, and compares it."""
    server = receiver.start(f'nc -l -p {PORT} -e sh -c "cat >{RECEIVED}"')
    receiver.wait_listening(PORT)
    sender.run(f'nc {address} {PORT} <{SENT}')
    if server.wait(60) or digest(receiver, RECEIVED) != digest(sender, SENT):
        raise Failure(f'{sender.name} to {receiver.name}: not the same file: {server.describe()}')


def exchange(vms, addresses=None):
    addresses = addresses or [vm.address for vm in vms]
    ping(vms[0], addresses[1])
    transfer(vms[0], vms[1], addresses[1])
    transfer(vms[1], vms[0], addresses[0])


# --- What the driver says

def statistics(vm):
    """The sums of the driver's counters of all queues, by name."""
    sums = {}
    for name, value in re.findall(r'^\s*(\S.*\S):\s+(\d+)$', vm.run(f'ethtool -S {vm.nic()}'), re.MULTILINE):
        sums[name] = sums.get(name, 0) + int(value)
    return sums


def expect_growth(vm, name, action, least=1):
    """A counter of the driver grows while the action runs."""
    before = statistics(vm)[name]
    action()
    grown = statistics(vm)[name] - before
    if grown < least:
        raise Failure(f'{vm.name}: "{name}" grew by {grown}, not {least}')


def expect_standstill(vm, name, action):
    before = statistics(vm)[name]
    action()
    if statistics(vm)[name] != before:
        raise Failure(f'{vm.name}: "{name}" grew from {before} to {statistics(vm)[name]}')


# --- Checks

def check_binding(vms):
    for vm in vms:
        driver = vm.run(f'basename $(readlink /sys/class/net/{vm.nic()}/device/driver)').strip()
        if driver != 'vmxnet3':
            raise Failure(f'{driver} is the driver of the NIC')
        vm.run(f'ethtool {vm.nic()} | grep "Link detected: yes"')
        vm.run(f'test $(cat /sys/class/net/{vm.nic()}/address) = {vm.mac}')


def check_statistics(vms):
    expect_growth(vms[0], 'ucast pkts tx', lambda: ping(vms[0], ADDRESSES[1], count=10), 10)
    expect_growth(vms[1], 'ucast pkts rx', lambda: ping(vms[0], ADDRESSES[1], count=10), 10)
    expect_growth(vms[1], 'bcast pkts rx', lambda: vms[0].run(
        f'arping -q -c 3 -I {vms[0].nic()} {ADDRESSES[1]}'), 1)


def check_offloads(vms):
    """TCP with and without segmentation and checksums by the NIC."""
    expect_growth(vms[0], 'TSO pkts tx', lambda: exchange(vms))
    for feature in 'tso', 'sg', 'tx', 'rx', 'gro':
        for vm in vms:
            vm.run(f'ethtool -K {vm.nic()} {feature} off')
        expect_standstill(vms[0], 'TSO pkts tx', lambda: exchange(vms))
    for vm in vms:
        vm.run(f'ethtool -K {vm.nic()} rx on tx on sg on tso on gro on')
    expect_growth(vms[0], 'TSO pkts tx', lambda: exchange(vms))


def check_iperf(vms):
    """Several connections at once, in both directions."""
    server = vms[1].start('iperf3 -s -1')
    vms[1].wait_listening(5201)
    report = vms[0].run(f'iperf3 -c {ADDRESSES[1]} -t 3 -P 4 --bidir')
    sums = re.findall(r'\[SUM\].* ([\d.]+) .bits/sec .*receiver', report)
    if server.wait(60) or len(sums) < 2 or not all(float(one) > 0 for one in sums):
        raise Failure(f'iperf3: {report}\n{server.describe()}')


def check_datagrams(vms):
    """UDP datagrams in several fragments."""
    ping(vms[0], ADDRESSES[1], size=20000)
    ping(vms[0], f'{vms[1].ipv6()}', size=3000)


def set_mtu(vms, mtu):
    for vm in vms:
        vm.run(f'ip link set {vm.nic()} mtu {mtu}')


def fragments(vm):
    lines = vm.run('grep ^Ip: /proc/net/snmp').splitlines()
    return int(dict(zip(lines[0].split(), lines[1].split()))['FragCreates'])


def check_jumbo(vms):
    set_mtu(vms, JUMBO)
    before = fragments(vms[0])
    ping(vms[0], ADDRESSES[1], size=JUMBO - 28)
    if fragments(vms[0]) != before:
        raise Failure(f'the pings of {JUMBO} bytes were fragmented')
    exchange(vms)
    set_mtu(vms, 1500)
    exchange(vms)


def check_vlan(vms):
    for vm, address in zip(vms, IN_VLAN):
        vm.run(f'ip link add link {vm.nic()} name {IN} type vlan id {VLAN} && '
               f'ip addr add {address}/24 dev {IN} && ip link set {IN} up')
    exchange(vms, IN_VLAN)
    # Frames of a VLAN do not reach an address outside of it.
    vms[1].run(f'ip link delete {IN} && ip addr add {IN_VLAN[1]}/24 dev {vms[1].nic()}')
    silent(vms[0], IN_VLAN[1])
    vms[1].run(f'ip addr del {IN_VLAN[1]}/24 dev {vms[1].nic()}')
    vms[0].run(f'ip link delete {IN}')
    exchange(vms)


def check_rings(vms):
    for size in 64, 4096, 512:
        for vm in vms:
            vm.run(f'ethtool -G {vm.nic()} rx {size} tx {size}')
            got = vm.run(f'ethtool -g {vm.nic()}').rpartition('Current')[2]
            if len(re.findall(rf'^(?:RX|TX):\s+{size}$', got, re.MULTILINE)) != 2:
                raise Failure(f'rings of {size}: {got}')
        exchange(vms)


def check_filters(vms):
    """Promiscuous mode and all multicast groups."""
    for change in 'promisc', '-promisc', 'allmulti', '-allmulti':
        vms[0].run(f'ifconfig {vms[0].nic()} {change}')
        ping(vms[1], ADDRESSES[0])


def check_down_and_up(vms):
    for _ in range(5):
        vms[0].run(f'ip link set {vms[0].nic()} down')
        silent(vms[1], ADDRESSES[0])
        vms[0].configure()
        ping(vms[0], ADDRESSES[1])
    exchange(vms)


def check_suspend(vms):
    """The kernel suspends all devices, waits 5 s, and resumes them."""
    vms[0].run('echo devices >/sys/power/pm_test && echo freeze >/sys/power/state')
    exchange(vms)


def check_reload(vms):
    for _ in range(3):
        vms[0].unload('vmw_pvrdma', 'vmxnet3')
        vms[0].load('vmxnet3', 'vmw_pvrdma')
        vms[0].configure()
        exchange(vms)


PARTS = {
    'traffic': [check_binding, check_statistics, check_offloads, check_iperf, check_datagrams],
    'frames': [check_jumbo, check_vlan, check_filters],
    'changes': [check_rings, check_down_and_up, check_suspend, check_reload],
}


def run():
    build, part = sys.argv[1:]
    image = make_image(build)
    with Host(build) as host:
        devices = [Device(host, number, arguments=['--mtu', str(JUMBO)]) for number in (1, 2)]
        with Vm(image, devices[0], ADDRESSES[0], 'vm1') as one, Vm(image, devices[1], ADDRESSES[1], 'vm2') as two:
            one.wait_neighbour(ADDRESSES[1])
            for vm in one, two:
                make_file(vm)
            for check in PARTS[part]:
                print(check.__name__, flush=True)
                check([one, two])
            for vm in one, two:
                vm.expect_healthy()


if __name__ == '__main__':
    main(run)
