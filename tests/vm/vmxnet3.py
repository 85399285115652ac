#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
What revisions 4 and later of vmxnet3 add, with stock drivers: receive side scaling with the tables and fields that
ethtool sets, offloads of tunnels, and DPDK's net_vmxnet3 in the place of Linux' driver.
"""
import re
import sys

from nic import ADDRESSES, JUMBO, exchange, expect_growth, make_file, ping, set_mtu, transfer
from vm import VERBS_CHECK, Device, Vm, VmImage
from host import Failure, Host, main, until
from image import DRIVER_LIBRARY, add_libraries, find_program, modules, only

QUEUES = 3  # one for each processor: no power of two
TUNNEL, INNER = 'tunnel0', ['198.51.100.1', '198.51.100.2']
STREAMS = 16
TESTPMD_ADDRESS = '192.0.2.77'  # testpmd answers for each address
DRIVERS = ['bus_pci', 'bus_vdev', 'mempool_ring', 'net_vmxnet3']
WAIT_SECONDS = 60


class SpreadImage(VmImage):
    """The image, with modules for tunnels and for DPDK, and iproute2's ip."""

    def add_modules(self, archive):
        super().add_modules(archive)
        archive.add_modules('/modules/more', modules(self.package, ['vxlan', 'geneve', 'uio_pci_generic']))
        archive.copy(find_program('ip'), '/iproute2/ip')  # ip looks at the name by which it is called
        add_libraries(archive, [find_program('ip')])


class DpdkImage(SpreadImage):
    """The image, with testpmd too."""

    PROGRAMS = [*VmImage.PROGRAMS, 'dpdk-testpmd']

    def add_modules(self, archive):
        super().add_modules(archive)
        drivers = [only(DRIVER_LIBRARY.format(name)) for name in DRIVERS]
        for driver in drivers:
            archive.copy_library(driver)
        add_libraries(archive, drivers)


def load_more(vm):
    vm.run('for module in /modules/more/*.ko; do insmod $module; done')


# --- Receive side scaling

def queue_counts(vm):
    """How many unicast frames each receive queue got, by the device's counters."""
    text = vm.run(f'ethtool -S {vm.nic()}')
    return [int(count) for count in re.findall(r'^\s*ucast pkts rx:\s+(\d+)$', text, re.MULTILINE)]


def queue_growth(vm, action):
    before = queue_counts(vm)
    action()
    return [new - old for new, old in zip(queue_counts(vm), before)]


def expect_spread(vm, action, least):
    """Each queue gets at least a number of frames."""
    grown = queue_growth(vm, action)
    if len(grown) != QUEUES or min(grown) < least:
        raise Failure(f'{vm.name}: the queues got {grown} frames')


def expect_one_queue(vm, action, queue=None):
    """One queue gets the frames of an action, and the others few."""
    grown = queue_growth(vm, action)
    full = grown.index(max(grown))
    if (queue is not None and full != queue) or sum(grown) - grown[full] > grown[full] / 10:
        raise Failure(f'{vm.name}: the queues got {grown} frames')


def streams(vms, options='-M 500'):
    """TCP connections, or UDP flows, from different ports."""
    server = vms[1].start('iperf3 -s -1')
    vms[1].wait_listening(5201)
    vms[0].run(f'iperf3 -c {ADDRESSES[1]} -t 2 -P {STREAMS} {options}')
    if server.wait(WAIT_SECONDS):
        raise Failure(server.describe())


def datagrams(vms):
    streams(vms, '-u -b 80K -l 100')


def check_channels(vms):
    """The driver makes as many queues as the machine has processors, which revision 6 allows."""
    for vm in vms:
        channels = vm.run(f'ethtool -l {vm.nic()}').rpartition('Current')[2]
        if not re.search(rf'^(Combined|RX):\s+{QUEUES}$', channels, re.MULTILINE):
            raise Failure(f'{vm.name}: channels {channels}')
        table = vm.run(f'ethtool -x {vm.nic()}')
        if f'with {QUEUES} RX ring(s)' not in table or 'toeplitz: on' not in table:
            raise Failure(f'{vm.name}: {table}')


def check_tcp_spread(vms):
    expect_spread(vms[1], lambda: streams(vms), 20)


def check_table(vms):
    nic = vms[1].nic()
    for queue in range(QUEUES):
        weights = ' '.join(str(int(number == queue)) for number in range(QUEUES))
        vms[1].run(f'ethtool -X {nic} weight {weights}')
        expect_one_queue(vms[1], lambda: streams(vms), queue)
    vms[1].run(f'ethtool -X {nic} equal {QUEUES}')
    expect_spread(vms[1], lambda: streams(vms), 20)


def check_udp_fields(vms):
    nic = vms[1].nic()
    if 'L4 bytes' in vms[1].run(f'ethtool -n {nic} rx-flow-hash udp4'):
        raise Failure("UDP's ports are hashed from the start")
    expect_one_queue(vms[1], lambda: datagrams(vms))
    for flow in 'udp4', 'udp6', 'esp4', 'esp6':
        vms[1].run(f'ethtool -N {nic} rx-flow-hash {flow} sdfn')
        if 'L4 bytes' not in vms[1].run(f'ethtool -n {nic} rx-flow-hash {flow}'):
            raise Failure(f'the device refused to hash {flow}')
    expect_spread(vms[1], lambda: datagrams(vms), 20)
    # The driver requests the fields again when the NIC starts anew.
    vms[1].run(f'ethtool -G {nic} rx 256')
    expect_spread(vms[1], lambda: datagrams(vms), 20)
    vms[1].run(f'ethtool -N {nic} rx-flow-hash udp4 sd')
    expect_one_queue(vms[1], lambda: datagrams(vms))


def check_without_lro(vms):
    """Without LRO, which the device never does, the kernel aggregates segments itself."""
    for vm in vms:
        vm.run(f'ethtool -K {vm.nic()} lro off')
    exchange(vms)
    for vm in vms:
        vm.run(f'ethtool -K {vm.nic()} lro on')
    exchange(vms)


def check_odd_rings(vms):
    """The driver rounds sizes down to powers of two from revision 7 on."""
    for rings in 'rx 100 tx 100', 'rx 4096 rx-jumbo 4096 tx 4096', 'rx 1024 rx-jumbo 32 tx 64 rx-mini 2048':
        for vm in vms:
            vm.run(f'ethtool -G {vm.nic()} {rings}')
        exchange(vms)
        set_mtu(vms, JUMBO)
        exchange(vms)
        set_mtu(vms, 1500)


# --- Tunnels

def make_tunnels(vms, kind, options):
    for vm, inner, remote in zip(vms, INNER, reversed(vms)):
        where = f'dev {vm.nic()}' if kind == 'vxlan' else ''
        vm.run(f'/iproute2/ip link add {TUNNEL} type {kind} id 7 remote {remote.address} {where} {options} && '
               f'/iproute2/ip addr add {inner}/24 dev {TUNNEL} && /iproute2/ip link set {TUNNEL} up')


def delete_tunnels(vms):
    for vm in vms:
        vm.run(f'/iproute2/ip link delete {TUNNEL}')


def check_tunnels(vms):
    """Inner TCP segments and checksums by the NIC, with and without an outer UDP checksum."""
    for vm in vms:
        load_more(vm)
        features = vm.run(f'ethtool -k {vm.nic()}')
        for feature in 'tx-udp_tnl-segmentation', 'tx-udp_tnl-csum-segmentation':
            if f'{feature}: on' not in features:
                raise Failure(f'{vm.name}: no {feature}')
    for kind, options in (('vxlan', 'dstport 4789 noudpcsum'), ('vxlan', 'dstport 4789 udpcsum'),
                          ('vxlan', 'dstport 8472 udpcsum'), ('geneve', 'noudpcsum'), ('geneve', 'udpcsum')):
        print(kind, options, flush=True)
        make_tunnels(vms, kind, options)
        ping(vms[0], INNER[1])
        expect_growth(vms[0], 'TSO pkts tx', lambda: transfer(vms[0], vms[1], INNER[1]), 100)
        transfer(vms[1], vms[0], INNER[0])
        delete_tunnels(vms)


# --- DPDK

def pci_address(vm):
    return vm.run(f'basename $(readlink -f /sys/class/net/{vm.nic()}/device)').strip()


def start_testpmd(vm):
    """Gives the NIC to DPDK. testpmd answers ARP and ICMP echo requests in two queues."""
    pci = pci_address(vm)
    load_more(vm)
    vm.run('echo 96 >/proc/sys/vm/nr_hugepages')
    vm.run(f'ip link set {vm.nic()} down; rmmod vmw_pvrdma; cd /sys/bus/pci; '
           f'echo uio_pci_generic >devices/{pci}/driver_override; echo {pci} >devices/{pci}/driver/unbind; '
           f'echo {pci} >drivers_probe')
    return vm.start(
        f'dpdk-testpmd -l 0,1 --in-memory --no-telemetry -m 128 -a {pci} -- '
        '--forward-mode=icmpecho --rxq=2 --txq=2 --rss-ip --total-num-mbufs=4096 --stats-period=1 '
        '--display-xstats=rx_q0_packets,rx_q1_packets >/tmp/testpmd 2>&1')


def testpmd_counts(vm):
    """Frames that testpmd received, by queue."""
    text = vm.run('cat /tmp/testpmd')
    return [max(map(int, re.findall(rf'rx_q{queue}_packets\s+(\d+)', text)), default=0) for queue in (0, 1)]


def check_testpmd(vms):
    """Echo requests of many addresses, so that both queues get some."""
    job = start_testpmd(vms[1])
    until(WAIT_SECONDS, lambda: 'statistics for port' in vms[1].run('cat /tmp/testpmd').lower() or not job.running(),
          lambda: vms[1].run('cat /tmp/testpmd'))
    if not job.running():
        raise Failure(f"testpmd ended: {vms[1].run('cat /tmp/testpmd')}")
    nic = vms[0].nic()
    for host in range(20, 20 + STREAMS):
        vms[0].run(f'ip addr add 192.0.2.{host}/24 dev {nic}')
    for host in range(20, 20 + STREAMS):
        for size in 56, 1400:
            output = vms[0].run(f'ping -c 4 -i 0.1 -W 10 -s {size} -I 192.0.2.{host} {TESTPMD_ADDRESS}')
            if '4 packets received' not in output:
                raise Failure(f'{output}\n{vms[1].run("cat /tmp/testpmd")}')
    until(WAIT_SECONDS, lambda: sum(testpmd_counts(vms[1])) >= 8 * STREAMS,
          lambda: vms[1].run('tail -n 60 /tmp/testpmd'))
    if min(testpmd_counts(vms[1])) < 8:
        raise Failure(f'the queues got {testpmd_counts(vms[1])} frames')


PARTS = {
    'rss': (SpreadImage, [check_channels, check_tcp_spread, check_table, check_udp_fields, check_without_lro,
                          check_odd_rings]),
    'tunnels': (SpreadImage, [check_tunnels]),
    'dpdk': (DpdkImage, [check_testpmd]),
}


def run():
    build, part = sys.argv[1:]
    make, checks = PARTS[part]
    image = make(build, [f'{build}/{VERBS_CHECK}'])
    processors = ['-smp', f'{QUEUES}']
    with Host(build) as host:
        devices = [Device(host, number, arguments=['--mtu', str(JUMBO)]) for number in (1, 2)]
        with Vm(image, devices[0], ADDRESSES[0], 'vm1', extra=processors) as one, \
                Vm(image, devices[1], ADDRESSES[1], 'vm2', extra=processors) as two:
            one.wait_neighbour(ADDRESSES[1])
            for vm in one, two:
                make_file(vm)
            for check in checks:
                print(check.__name__, flush=True)
                check([one, two])
            for vm in one, two:
                vm.expect_healthy()


if __name__ == '__main__':
    main(run)
