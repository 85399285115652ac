# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Two virtual machines joined by a cable, with Linux' rdma_rxe or urxe on their NICs, or with urxe over rdma_rxe as its
HCA, and the measures of these machines, as in measure.py.
"""
import contextlib
import ipaddress
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../guests')]
from measure import Unavailable, processor_seconds  # noqa: E402
import report  # noqa: E402  by the path that measure has set
from gso_machine import Lan, enable_gso, gso_image  # noqa: E402
from guest import Guest  # noqa: E402
from host import Failure, until  # noqa: E402
from image import Image, find_program  # noqa: E402

# A CPU model without carry-less multiplication: urxe (by zlib) and the kernel compute the CRC by tables. With it both
# would use instructions that an emulator executes very slowly.
CPU = 'Nehalem'
MEMORY_MB = 1024
MTU = 4200
ADDRESSES = ['192.0.2.1', '192.0.2.2']
MACS = ['52:54:00:00:01:01', '52:54:00:00:01:02']
PROGRAMS = ['ib_write_lat', 'ib_send_lat', 'ib_read_lat']
CRC = 'tests/bench/crc'
RUN_DIR = '/tmp/urxe'
# The module uses RoCE's UDP port even without a device.
LOAD, UNLOAD = 'insmod /modules/*-rdma_rxe.ko', 'rmmod rdma_rxe'
FEW = 5      # messages of a run that measures the cost of the start
CRC_TIMES = 3000
NICE = -20   # so that other programs of this machine do not affect the figures
SECONDS = 120
SENT = '/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts'
# For each stack of a measure, what runs in the machines, and the device of the programs. Over `hca`, rxe0 executes the
# queue pairs of urxe0; programs of `hca itself` use rxe0 meanwhile.
STACKS = {'rxe': ('rxe', 'rxe0'), 'urxe': ('urxe', 'urxe0'), 'hca': ('hca', 'urxe0'), 'hca itself': ('hca', 'rxe0')}


class Machines:
    """Machines 0 and 1, and the stack whose device they have at the moment."""

    PEERS_LAST = True  # the other stack takes long to load

    def __init__(self, build, stack):
        self.build = build
        self.cpus = sorted(os.sched_getaffinity(0))[:2]
        self.guests = []
        for number, guest in enumerate(self.boot(stack, [os.path.join(build, CRC), *map(find_program, PROGRAMS)])):
            self.guests.append(guest)
            raise_priority(guest.qemu)
            guest.raise_link(MTU, ADDRESSES[number])
            guest.run(f'mkdir -p {RUN_DIR} /var/run && chmod 700 {RUN_DIR}; {UNLOAD}')
        self.daemons = []
        self.stack = self.running = self.device = None
        self.addresses = ADDRESSES
        self.gids = []
        self.known = {}  # figures that stay valid until the stack changes

    def boot(self, stack, programs):
        """The machines with these programs, one after the other."""
        self.image = Image(self.build, programs, urxe=True)
        path = os.path.join(self.image.top.name, 'cable')
        for number, mac in enumerate(MACS):
            cable = f'stream,id=n0,addr.type=unix,addr.path={path},server={"off" if number else "on"}'
            yield stack.enter_context(Guest(self.image, ['-netdev', cable], 'vmxnet3', mac, f'guest {number}', MEMORY_MB,
                                            cpu=CPU))

    def use(self, stack):
        """Switches the machines to a stack of STACKS, or to none."""
        if stack == self.stack:
            return
        self.gids, self.known = [], {}
        self.stack = stack
        running, self.device = STACKS.get(stack, (None, None))
        self.run_stack(running)
        if not stack:
            return
        self.gids = [self.find_gid(guest, address)
                     for guest, address in zip(self.guests, ADDRESSES)]

    def run_stack(self, running):
        if running == self.running:
            return
        if self.running:
            {'rxe': self.stop_rxe, 'urxe': self.stop_urxe, 'hca': self.stop_hca}[self.running]()
        self.running = running
        if running:
            {'rxe': self.start_rxe, 'urxe': self.start_urxe, 'hca': self.start_hca}[running]()

    def start_rxe(self):
        for guest in self.guests:
            guest.run(f'{LOAD} && rdma link add rxe0 type rxe netdev {guest.interface(guest.mac)}')

    def stop_rxe(self):
        for guest in self.guests:
            guest.run(f'rdma link delete rxe0 && {UNLOAD}')

    def start_urxe(self):
        for guest in self.guests:
            uplink = f'af_packet:{guest.interface(guest.mac)}'
            self.daemons.append(guest.start(f'/urxe/tools/urxed --foreground --run-dir {RUN_DIR} '
                                            f'--uplink {uplink}'))
        for guest, daemon in zip(self.guests, self.daemons):
            until(SECONDS, lambda d=daemon, g=guest: not d.running() or self.answers(g),
                  daemon.describe)
            if not daemon.running():
                raise Failure(daemon.describe())

    @staticmethod
    def answers(guest):
        return guest.start(f'test -S {RUN_DIR}/urxed.sock').wait(SECONDS) == 0

    def stop_urxe(self):
        for guest, daemon in zip(self.guests, self.daemons):
            guest.run('killall urxed')
            daemon.wait(SECONDS)
        self.daemons = []

    def start_hca(self):
        self.start_rxe()
        self.start_urxe()
        for guest in self.guests:
            shown = json.loads(guest.run(f'/urxe/tools/urxe show --run-dir {RUN_DIR} device --json'))
            if [hca['device'] for hca in shown['hca'] if hca['used']] != ['rxe0']:
                raise Failure(f'rxe0 does not back urxe0: {shown}')

    def stop_hca(self):
        self.stop_urxe()
        self.stop_rxe()

    def sent_by_rxe(self):
        """The packets that rxe0 of both machines has sent, if it is an HCA; else None."""
        if self.running != 'hca':
            return None
        return sum(int(guest.run(f'cat {SENT}')) for guest in self.guests)

    def command(self, argv, transport='auto'):
        """The command line that runs a program on the device; the transport applies to urxe only."""
        if self.device == 'rxe0':
            return f'{argv} -d rxe0'
        way = 'hca' if self.running == 'hca' else 'auto'
        return f'/urxe/tools/urxe run --run-dir {RUN_DIR} --transport {transport} --way {way} -- {argv} -d urxe0'

    def find_gid(self, guest, address):
        wanted = ipaddress.ip_address(f'::ffff:{address}')
        info = guest.run(self.command('ibv_devinfo -v'))
        for index, gid, kind in re.findall(r'GID\[ *(\d+)\]:\s+(\S+), (.*\S)', info):
            if kind == 'RoCE v2' and ipaddress.ip_address(gid) == wanted:
                return int(index)
        raise Failure(f'no GID {address}:\n{info}')

    def processor_seconds(self):
        """CPU seconds of this machine for both guests so far: the emulators and their NICs."""
        return sum(processor_seconds(guest.qemu.process.pid) for guest in self.guests)

    worked = processor_seconds

    def cost(self, run):
        """The result of run(), and its CPU seconds."""
        before = self.processor_seconds()
        return run(), self.processor_seconds() - before

    def once(self, key, measure):
        if key not in self.known:
            self.known[key] = measure()
        return self.known[key]


class GsoMachines(Machines):
    """The same with a newer kernel, whose virtio NICs pass UDP GSO packets on whole."""

    def boot(self, stack, programs):
        self.image = gso_image(self.build, programs)
        lan = stack.enter_context(Lan())
        for number, mac in enumerate(MACS):
            guest = stack.enter_context(lan.boot(self.build, self.image, number, mac, memory_mb=MEMORY_MB, cpu=CPU))
            enable_gso(guest)
            yield guest


def raise_priority(program):
    for task in os.listdir(f'/proc/{program.process.pid}/task'):
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, int(task), NICE)


class Perftest:
    """
    A figure of perftest on one machine or between the two. With `weighed`, the cost of a run with few messages is
    subtracted, because programs need time to start and to connect.
    """

    SHARED = True
    port = 18515

    def __init__(self, stack, argv, messages, figure, apart, weighed=False, transport='auto'):
        self.stack = stack
        self.argv = argv
        self.messages = messages
        self.figure = figure
        self.apart = apart
        self.weighed = weighed
        self.transport = transport
        self.used = None
        self.told = set()

    def measure(self, bench):
        whole = 0

        def run():
            nonlocal whole
            text, whole = bench.cost(lambda: self.run(bench, self.messages + FEW))
            return text

        bench.use(self.stack)
        value = report.measured(run, self.figure)
        if self.weighed:
            start = bench.once(self.apart, lambda: bench.cost(lambda: self.run(bench, FEW))[1])
            self.used = max(whole - start, 0) / self.messages
        self.told = set()
        return value

    def used_for(self, bench, who):
        """CPU seconds of a message in the last run; each user gets each run once."""
        if self.used is None or who in self.told:
            self.measure(bench)
        self.told.add(who)
        return self.used

    def run(self, bench, messages):
        Perftest.port = 18515 + (Perftest.port + 1) % 1000
        before = bench.sent_by_rxe()
        server_guest, client_guest = bench.guests[0], bench.guests[self.apart]
        argv = f'{self.argv} -F -n {messages} -p {Perftest.port}'
        command = bench.command(argv, self.transport)
        server = server_guest.start(f'taskset 1 {command} -x {bench.gids[0]}')
        server_guest.wait_listening(Perftest.port)
        output = client_guest.run(f'taskset 2 {command} -x {bench.gids[self.apart]} '
                                  f'{bench.addresses[0]}', SECONDS)
        if server.wait(SECONDS):
            raise Failure(server.describe())
        if before is not None and bench.sent_by_rxe() - before < messages:
            raise Failure(f'not by rxe0: {output}')
        return output


class Station:
    """
    A figure of `urxe bench` between the machines: engine and port in one thread, or with --bare no engine, which shows
    what the emulated NICs can do.
    """

    def __init__(self, figure, *options):
        self.figure = figure
        self.options = options

    def start(self, bench, number, *arguments):
        guest = bench.guests[number]
        port = f'af_packet:{guest.interface(guest.mac)}'
        return guest.start(' '.join([f'taskset {number + 1} /urxe/tools/urxe bench --port {port}', *self.options,
                                     *arguments]))

    def measure(self, bench):
        bench.use(None)
        return bench.once((self.options, self.figure), lambda: self.find(bench))

    def find(self, bench):
        listener = self.start(bench, 0, '--listen')
        client = self.start(bench, 1, '--json')
        if client.wait(SECONDS):
            raise Unavailable((listener.errors() + client.errors()).strip())
        bench.guests[0].run('killall -TERM urxe-bench')
        listener.wait(SECONDS)
        found = json.loads(client.output())
        for name, value in found.items():
            bench.known[self.options, name] = value
        return found[self.figure]


class Used:
    """CPU seconds of a message of a Perftest."""

    def __init__(self, perftest):
        self.perftest = perftest

    def measure(self, bench):
        return self.perftest.used_for(bench, Used)


class Crc:
    """CPU seconds of a CRC-32 of a message alone."""

    def __init__(self, which, size):
        self.which = which
        self.size = size

    def measure(self, bench):
        return bench.once(self.which, lambda: self.weigh(bench))

    def weigh(self, bench):
        # With large buffers, because the kernel's CRC needs a system call here, which rdma_rxe does not need.
        start, whole = [bench.cost(lambda n=times: bench.guests[0].run(
            f'crc {self.which} {self.size} {n}'))[1] for times in (0, CRC_TIMES)]
        return (whole - start) / CRC_TIMES


class IcrcShare:
    """The share of the ICRC in the CPU time of packets: it is computed once and checked once."""

    def __init__(self, perftest, crc):
        self.perftest = perftest
        self.crc = crc

    def measure(self, bench):
        used = self.perftest.used_for(bench, IcrcShare)
        if not used:
            raise Unavailable('the run was too short to weigh')
        return 2 * self.crc.measure(bench) / used
