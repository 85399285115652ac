# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Virtual machines on the switch of one urxed, each with a vmxnet3 and a PVRDMA of `urxe vm`, and the measures of these
machines, as in measure.py. Linux' drivers use PVRDMA, or rdma_rxe uses the vmxnet3.
"""
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../vm')]
from ends import wait_gid  # noqa: E402
from host import Failure, Host, succeed  # noqa: E402
from machines import MTU, NICE, SECONDS, Machines, Perftest, raise_priority  # noqa: E402
from measure import Unavailable, built, processor_seconds, share  # noqa: E402
from vm import Device, Vm, VmImage  # noqa: E402

MEMORY_MB = 2048
PROGRAMS = ['register_large', 'empty_poll', 'one_thread']
DOORBELLS = {'trapped': ['192.0.2.1', '192.0.2.2'], 'mapped': ['192.0.2.3', '192.0.2.4']}
HOST = '192.0.2.9'
IDLE_SECONDS = 10
QUIET_SECONDS = 2  # until the work after the last measurement is done


class Pair:
    """Two machines whose devices have trapped or mapped doorbells."""

    def __init__(self, bench, stack, image, doorbells):
        self.addresses = DOORBELLS[doorbells]
        self.devices, self.guests = [], []
        self.uses_rxe = False
        for address in self.addresses:
            number = int(address.rpartition('.')[2])
            device = Device(bench.host, number, arguments=['--mtu', str(MTU), '--doorbells', doorbells])
            guest = stack.enter_context(Vm(image, device, address, f'vm{number}', MEMORY_MB, MTU))
            raise_priority(guest.qemu)
            raise_priority(device.process)
            self.devices.append(device)
            self.guests.append(guest)

    def use_rxe(self, wanted):
        """Loads rdma_rxe or PVRDMA's driver. As long as that one is there, it gets all RoCE packets."""
        if wanted == self.uses_rxe:
            return
        self.uses_rxe = wanted
        for guest in self.guests:
            if wanted:
                guest.unload('vmw_pvrdma')
                guest.use_rxe()
            else:
                guest.run('rdma link delete rxe0 && rmmod rdma_rxe')
                guest.RDMA = Vm.RDMA
                guest.load('vmw_pvrdma')


class Vms(Machines):
    """
    Two pairs of machines on one switch. A measure uses one pair at a time, whose machines 0 and 1 are `guests`; the
    others are idle. The pair with trapped doorbells has the stack 'pvrdma' or 'rxe', the other one 'mapped'.
    """

    def __init__(self, build, stack):  # pylint: disable=super-init-not-called
        self.build = build
        self.cpus = sorted(os.sched_getaffinity(0))[:2]
        image = VmImage(build, [os.path.join(build, 'tests/bench', name) for name in PROGRAMS])
        self.host = stack.enter_context(Host(build, arguments=['--address', f'{HOST}/24']))
        raise_priority(self.host.daemon)
        self.pairs = {doorbells: Pair(self, stack, image, doorbells) for doorbells in DOORBELLS}
        self.pair, self.stack = None, None
        self.known, self.gids = {}, []
        self.use('pvrdma')

    @property
    def guests(self):
        return self.pair.guests

    @property
    def addresses(self):
        return self.pair.addresses

    def use(self, stack):
        """Chooses the pair; switches the one with trapped doorbells to PVRDMA or to rdma_rxe."""
        if stack == self.stack:
            return
        self.known = {}
        self.stack = stack
        self.pair = self.pairs['mapped' if stack == 'mapped' else 'trapped']
        self.pair.use_rxe(stack == 'rxe')
        self.find_gids()

    def find_gids(self):
        for guest in self.guests:
            wait_gid(guest, guest.address)
        self.gids = [guest.gid(guest.address) for guest in self.guests]
        self.guests[0].wait_neighbour(self.addresses[1])

    def sent_by_rxe(self):
        return None

    def command(self, argv, transport='auto'):
        return f'{argv} -d {self.guests[0].RDMA}'

    def device_pids(self):
        return [device.process.process.pid for device in self.pair.devices]

    def processor_seconds(self):
        """CPU seconds of this machine for both machines so far: emulators, device processes and urxed."""
        return sum(map(processor_seconds, [*(guest.qemu.process.pid for guest in self.guests), *self.device_pids(),
                                           self.host.daemon_pid()]))

    worked = processor_seconds


class TcpBandwidth:
    """TCP's bandwidth between the machines, over the vmxnet3 with all its offloads."""

    SHARED = True
    PORT = 5201

    def measure(self, bench):
        server = bench.guests[0].start(f'iperf3 -s -1 -p {self.PORT}')
        bench.guests[0].wait_listening(self.PORT)
        report = bench.guests[1].run(f'iperf3 -c {bench.addresses[0]} -p {self.PORT} -t 3 -l 65536 -J', SECONDS)
        server.wait(SECONDS)
        return json.loads(report)['end']['sum_received']['bits_per_second'] / 8


class TcpLatency:
    """TCP's latency between the machines, one way; both ends sleep for each message."""

    SHARED = True
    PORT = 19765

    def measure(self, bench):
        server = bench.guests[0].start('qperf')
        bench.guests[0].wait_listening(self.PORT)
        try:
            report = bench.guests[1].run(f'qperf -uu -t 2 -m 2 {bench.addresses[0]} tcp_lat', SECONDS)
        finally:
            bench.guests[0].run('killall qperf')
            server.wait(SECONDS)
        return float(report.split('=')[1].split()[0]) * 1e-9


class WithHost(Perftest):
    """A figure of perftest between machine 0, which has the server, and a program of the host on urxe0."""

    def __init__(self, stack, argv, messages, figure):
        super().__init__(stack, argv, messages, figure, 0)

    def run(self, bench, messages):
        guest, argv = bench.guests[0], f'{self.argv} -F -n {messages} -p {bench.guests[0].port}'
        server = guest.start(f'taskset 1 {bench.command(argv)} -x {bench.gids[0]}')
        guest.wait_listening(guest.port)
        client = bench.host.start('nice', '-n', str(NICE), 'taskset', '-c', str(bench.cpus[1]), *argv.split(), '-d',
                                  'urxe0', '-x', str(bench.host.gid(HOST)), '127.0.0.1')
        succeed(client, SECONDS)
        if server.wait(SECONDS):
            raise Failure(server.describe())
        return client.output()


class Alone:
    """The figure that a program of tests/bench/programs prints in machine 0. {gid} is a GID's index."""

    SHARED = True

    def __init__(self, stack, argv):
        self.stack = stack
        self.argv = argv

    def measure(self, bench):
        bench.use(self.stack)
        return float(bench.guests[0].run(self.argv.format(gid=bench.gids[0]), SECONDS))


class IdleDevice:
    """The CPU share of the device process of machine 0, whose drivers have their devices and no program runs."""

    def __init__(self, stack):
        self.stack = stack

    def measure(self, bench):
        bench.use(self.stack)
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
