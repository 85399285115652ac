# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Two virtual machines on the switch of one urxed, each with a vmxnet3 and a PVRDMA of `urxe vm`, and the measures of
these machines, as in measure.py. Linux' drivers use PVRDMA, or rdma_rxe uses the vmxnet3.
"""
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../vm')]
from ends import wait_gid  # noqa: E402
from host import Host  # noqa: E402
from machines import ADDRESSES, MTU, SECONDS, Machines, raise_priority  # noqa: E402
from measure import Unavailable, built, processor_seconds, share  # noqa: E402
from vm import Device, Vm, VmImage  # noqa: E402

MEMORY_MB = 2048
PROGRAMS = ['register_large', 'empty_poll']
IDLE_SECONDS = 10
QUIET_SECONDS = 2  # until the work after the last measurement is done


class Vms(Machines):
    """Machines 0 and 1, and the stack whose device they have at the moment."""

    def __init__(self, build, stack):  # pylint: disable=super-init-not-called
        self.build = build
        self.cpus = sorted(os.sched_getaffinity(0))[:2]
        image = VmImage(build, [os.path.join(build, 'tests/bench', name) for name in PROGRAMS])
        self.host = stack.enter_context(Host(build))
        raise_priority(self.host.daemon)
        self.devices, self.guests = [], []
        for number, address in enumerate(ADDRESSES, 1):
            device = Device(self.host, number, arguments=['--mtu', str(MTU)])
            guest = stack.enter_context(Vm(image, device, address, f'vm{number}', MEMORY_MB, MTU))
            raise_priority(guest.qemu)
            raise_priority(device.process)
            self.devices.append(device)
            self.guests.append(guest)
        self.stack = 'pvrdma'
        self.known = {}
        self.find_gids()

    def use(self, stack):
        """Switches the machines to PVRDMA or to rdma_rxe."""
        if stack == self.stack:
            return
        self.known = {}
        self.stack = stack
        for guest in self.guests:
            {'rxe': self.load_rxe, 'pvrdma': self.load_pvrdma}[stack](guest)
        self.find_gids()

    @staticmethod
    def load_rxe(guest):
        """As long as PVRDMA's driver is there, it gets all RoCE packets."""
        guest.unload('vmw_pvrdma')
        guest.use_rxe()

    @staticmethod
    def load_pvrdma(guest):
        guest.run('rdma link delete rxe0 && rmmod rdma_rxe')
        guest.RDMA = Vm.RDMA
        guest.load('vmw_pvrdma')

    def find_gids(self):
        for guest in self.guests:
            wait_gid(guest, guest.address)
        self.gids = [guest.gid(guest.address) for guest in self.guests]
        self.guests[0].wait_neighbour(ADDRESSES[1])

    def command(self, argv, transport='auto'):
        return f'{argv} -d {self.guests[0].RDMA}'

    def device_pids(self):
        return [device.process.process.pid for device in self.devices]

    def processor_seconds(self):
        """CPU seconds of this machine for both machines so far: emulators, device processes and urxed."""
        return sum(map(processor_seconds, [*(guest.qemu.process.pid for guest in self.guests), *self.device_pids(),
                                           self.host.daemon_pid()]))

    worked = processor_seconds


class TcpBandwidth:
    """TCP's bandwidth between the machines, over the vmxnet3 with all its offloads."""

    PORT = 5201

    def measure(self, bench):
        server = bench.guests[0].start(f'iperf3 -s -1 -p {self.PORT}')
        bench.guests[0].wait_listening(self.PORT)
        report = bench.guests[1].run(f'iperf3 -c {ADDRESSES[0]} -p {self.PORT} -t 3 -l 65536 -J', SECONDS)
        server.wait(SECONDS)
        return json.loads(report)['end']['sum_received']['bits_per_second'] / 8


class TcpLatency:
    """TCP's latency between the machines, one way; both ends sleep for each message."""

    PORT = 19765

    def measure(self, bench):
        server = bench.guests[0].start('qperf')
        bench.guests[0].wait_listening(self.PORT)
        try:
            report = bench.guests[1].run(f'qperf -uu -t 2 -m 2 {ADDRESSES[0]} tcp_lat', SECONDS)
        finally:
            bench.guests[0].run('killall qperf')
            server.wait(SECONDS)
        return float(report.split('=')[1].split()[0]) * 1e-9


class Alone:
    """The figure that a program of tests/bench/programs prints in machine 0."""

    def __init__(self, stack, argv):
        self.stack = stack
        self.argv = argv

    def measure(self, bench):
        bench.use(self.stack)
        return float(bench.guests[0].run(self.argv, SECONDS))


class IdleDevice:
    """The CPU share of the device process of machine 0, whose drivers have their devices and no program runs."""

    def measure(self, bench):
        bench.use('pvrdma')
        time.sleep(QUIET_SECONDS)
        return share(bench.device_pids()[:1], IDLE_SECONDS)


class Path:
    """A figure of tests/bench/programs/pvrdma_path.c, which needs no virtual machine."""

    def __init__(self, what, size):
        self.what = what
        self.size = size

    def measure(self, bench):
        result = subprocess.run(['taskset', '-c', str(bench.cpus[0]), built(bench, 'pvrdma_path'), self.what,
                                 str(self.size)], capture_output=True, text=True, timeout=SECONDS, check=False)
        if result.returncode:
            raise Unavailable(result.stderr.strip())
        return float(result.stdout)


class Paths:
    """What rows of Path need, for runs without any machine."""

    PEERS_LAST = False

    def __init__(self, build, _):
        self.build = build
        self.cpus = sorted(os.sched_getaffinity(0))[:2]

    @staticmethod
    def worked():
        return 0
