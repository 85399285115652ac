# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Kinds of measures. measure(bench) returns a figure: seconds, bytes per second, messages per second, or a share. It
raises Unavailable if the machine cannot measure it.
"""
import contextlib
import csv
import json
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../harness'), os.path.join(HERE, '../hosts/paths'), os.path.join(HERE, '../hosts/load')]
import report  # noqa: E402
from host import Pair, Program, free_port, succeed, until, wait_listening  # noqa: E402

SECONDS = 120  # for one figure


class Unavailable(Exception):
    """This machine cannot measure a figure; the text has the reason."""


def installed(program):
    if not shutil.which(program):
        raise Unavailable(f'{program} is not installed')


def built(bench, program):
    """The path of a program that is built from this folder."""
    path = os.path.join(bench.build, 'tests/bench', program)
    if not os.path.exists(path):
        raise Unavailable(f'{program} is not built: a library that it needs is not installed')
    return path


class Pinned:
    """
    A host whose programs are pinned to one CPU, use one transport (`urxe run --transport`), and preload a further
    library.
    """

    def __init__(self, host, cpu, transport, library=None):
        self.host = host
        self.cpu = cpu
        self.transport = transport
        # `urxe run` has already set LD_PRELOAD.
        self.with_library = library and ['sh', '-c', 'LD_PRELOAD="$LD_PRELOAD:$0" exec "$@"', library]

    def start(self, *argv, **options):
        return self.host.start('taskset', '-c', str(self.cpu), 'env',
                               f'URXE_TRANSPORT={self.transport}', *(self.with_library or ()), *argv,
                               **options)


class Given:
    """A fixed bound."""

    def __init__(self, value):
        self.value = value

    def measure(self, _):
        return self.value


class Never:
    """A figure that no machine can measure; its rows show the reason."""

    def __init__(self, reason):
        self.reason = reason

    def measure(self, _):
        raise Unavailable(self.reason)


class OfMachine:
    """A figure of tests/bench/limits/limits.c about the machine, measured within 0.2 s."""

    def __init__(self, name, ways=1):
        self.name = name
        self.ways = ways  # 2: there and back

    def measure(self, bench):
        argv = [os.path.join(bench.build, 'tests/bench/limits'), *map(str, bench.cpus), self.name]
        result = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
        if result.returncode:
            raise Unavailable(result.stderr.strip())
        return json.loads(result.stdout)[self.name] * self.ways


class Limit(OfMachine):
    """A limit that no program with the same work can beat."""


class Peer(OfMachine):
    """The figure of another method, which urxe may beat."""


class PolledTcp(Peer):
    """TCP's latency over urxe's cable, with both ends polling (tests/bench/programs/tcp.c)."""

    def __init__(self, size, uplink):
        super().__init__('tcp')
        self.size = size
        self.uplink = uplink

    def measure(self, bench):
        here, there = bench.place(self.uplink).namespaces
        _, address = bench.prefixes(self.uplink)
        program = Program([*here.prefix(), built(bench, self.name), *map(str, bench.cpus),
                           str(self.size), address, f'/proc/{there.pid}/ns/net'], os.environ)
        succeed(program, SECONDS)
        return float(program.output())


class Hooks:
    """
    The cost of a libc call in a program without verbs (tests/bench/programs/hooks.c): under `urxe run`, without it, and
    without it once more. Addresses of code and stack differ between processes, and CPUs change their clock, so the
    three alternate, and the figure is the median of many runs.
    """

    WAYS = 'hooked', 'plain', 'again'
    PROCESSES = 21

    def __init__(self, call):
        self.call = call
        self.figures = {}

    def once(self, bench, way):
        argv = [os.path.join(bench.build, 'tests/bench/hooks'), str(bench.cpus[0]), self.call]
        program = bench.local().start(*argv) if way == 'hooked' else Program(argv, os.environ)
        succeed(program, SECONDS)
        return float(program.output())

    def take(self, bench, way):
        """The figure of one variant, from runs that no earlier call has used."""
        if way not in self.figures:
            turns = [[self.once(bench, each) for each in self.WAYS] for _ in range(self.PROCESSES)]
            self.figures = dict(zip(self.WAYS, map(statistics.median, zip(*turns))))
        return self.figures.pop(way)


class Hook:
    """One variant of Hooks."""

    def __init__(self, hooks, way):
        self.hooks = hooks
        self.way = way

    def measure(self, bench):
        return self.hooks.take(bench, self.way)


class Perftest:
    """
    A figure of perftest over urxe0 on one host, or between two hosts over an uplink; with or without a second,
    sleeping thread in each program.
    """

    def __init__(self, argv, figure, uplink=None, transport='auto', thread=False):
        self.argv = argv.split()
        self.figure = figure
        self.uplink = uplink
        self.transport = transport
        self.thread = thread

    def measure(self, bench):
        places, gid, address = bench.ends(self.uplink)
        library = self.thread and built(bench, 'idle_thread.so')
        ends = [Pinned(host, cpu, self.transport, library) for host, cpu in zip(places, bench.cpus)]
        argv = [self.argv[0], '-F', *self.argv[1:]]
        return report.measured(
            lambda: Pair(*ends, argv, gid, address).finish(SECONDS)[1], self.figure)


class Joined:
    """A figure of a program of this folder with two processes connected by verbs: argv[0] CPU CPU argv[1]..."""

    def __init__(self, argv, transport='auto'):
        self.argv = argv.split()
        self.transport = transport

    def measure(self, bench):
        program = bench.local().start(
            'env', f'URXE_TRANSPORT={self.transport}', built(bench, self.argv[0]),
            *map(str, bench.cpus), *self.argv[1:])
        succeed(program, SECONDS)
        return float(program.output())


class JoinedAnew(Joined):
    """The same with a new urxed."""

    def measure(self, bench):
        if bench.local().daemon_pid():
            bench.local().kill_private_daemon()
        return super().measure(bench)


class Alone:
    """The same without urxe."""

    def __init__(self, argv):
        self.argv = argv.split()

    def measure(self, bench):
        program = Program([built(bench, self.argv[0]), *map(str, bench.cpus), *self.argv[1:]],
                          os.environ)
        succeed(program, SECONDS)
        return float(program.output())


class Ucx:
    """A column of ucx_perftest's output, over one of UCX's own transports."""

    SHARED = True

    def __init__(self, transports, argv, column):
        self.transports = transports
        self.argv = argv.split()
        self.column = column

    def start(self, cpu, *argv):
        environment = dict(os.environ, UCX_TLS=self.transports, UCX_WARN_UNUSED_ENV_VARS='n')
        return Program(['ucx_perftest', '-c', str(cpu), *argv], environment)

    def measure(self, bench):
        installed('ucx_perftest')
        port = free_port()
        server = self.start(bench.cpus[0], '-p', str(port))
        try:
            wait_listening(server, port)
            client = self.start(bench.cpus[1], '-p', str(port), '-f', '-v', *self.argv, '127.0.0.1')
            succeed(client, SECONDS)
        finally:
            server.kill()
        row, = csv.DictReader(client.output().splitlines()[-2:])
        unit = {'lat': 1e-6, 'bw': 2**20, 'mr': 1}[self.column.rpartition('_')[2]]
        return float(row[self.column]) * unit


# Names of ethtool: features that split TCP's stream into frames and join it again.
SEGMENTATION = 'tso', 'gso', 'gro'


class Iperf:
    """
    TCP's bandwidth, or its bytes per CPU second of both ends: over loopback, or over urxe's cable with the segmentation
    offloads that `offloads` names. Uses Reno, which is not paced: BBR is half as fast over loopback.
    """

    SHARED = True
    MOST = 1 << 20  # maximum bytes of a write of iperf3

    def __init__(self, size, uplink=None, per_second=False, offloads=()):
        self.size = size
        self.uplink = uplink
        self.per_second = per_second
        self.offloads = offloads

    def measure(self, bench):
        installed('iperf3')
        with bench.place(self.uplink).offloads(self.offloads) if self.offloads else contextlib.nullcontext():
            return self.run(bench)

    def run(self, bench):
        prefixes, address = bench.prefixes(self.uplink)
        port = free_port()
        server = Program([*prefixes[0], 'iperf3', '-s', '-1', '-A', str(bench.cpus[0]),
                          '-p', str(port)], os.environ)
        try:
            wait_listening(server, port)
            client = Program([*prefixes[1], 'iperf3', '-c', address, '-p', str(port), '-t', '2',
                              '-l', str(self.size), '-A', str(bench.cpus[1]), '-C', 'reno',
                          '-J'], os.environ)
            succeed(client, SECONDS)
        finally:
            server.kill()
        end = json.loads(client.output())['end']
        bandwidth = end['sum_received']['bits_per_second'] / 8
        if not self.per_second:
            return bandwidth
        used = end['cpu_utilization_percent']
        return bandwidth / ((used['host_total'] + used['remote_total']) / 100)


class Qperf:
    """TCP's latency over an uplink's cable; both ends sleep for each message."""

    def __init__(self, size, uplink):
        self.size = size
        self.uplink = uplink

    def measure(self, bench):
        installed('qperf')
        prefixes, address = bench.prefixes(self.uplink)
        port = free_port()
        server = Program([*prefixes[0], 'taskset', '-c', str(bench.cpus[0]), 'qperf', '-lp',
                          str(port)], os.environ)
        try:
            wait_listening(server, port)
            client = Program([*prefixes[1], 'taskset', '-c', str(bench.cpus[1]), 'qperf', '-lp',
                              str(port), '-uu', '-t', '2', '-m', str(self.size), address,
                              'tcp_lat'], os.environ)
            succeed(client, SECONDS)
        finally:
            server.kill()
        # Output: "tcp_lat:", then "latency = 12300" in nanoseconds.
        return float(client.output().split('=')[1].split()[0]) * 1e-9


class PerSecond:
    """
    Bytes per CPU second of both ends and the daemons between them. make(n) returns the measure that transfers n
    messages. The cost of the programs' start is subtracted, measured by a run with few messages.
    """

    SHARED = True
    FEW = 5

    def __init__(self, size, messages, make, uplink=None):
        self.size = size
        self.messages = messages
        self.make = make
        self.uplink = uplink

    def seconds(self, bench, messages):
        before = bench.worked()
        self.make(messages).measure(bench)
        return bench.worked() - before

    def measure(self, bench):
        bench.ends(self.uplink)  # starts the daemons before the measurement
        few, all_of_it = self.seconds(bench, self.FEW), self.seconds(bench, self.messages)
        if all_of_it <= few:
            raise Unavailable('the run was too short to weigh')
        return self.size * (self.messages - self.FEW) / (all_of_it - few)


def worked():
    """CPU seconds of ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Others:
    """The CPU time of other programs since the creation of this object."""

    def __init__(self, bench):
        self.bench = bench
        self.start, self.before = time.monotonic(), self.seconds()

    def seconds(self):
        """CPU seconds of others: without interrupts, which may belong to the measurement, with time that the hypervisor took."""
        with open('/proc/stat', encoding='ascii') as file:
            user, nice, system, _, _, _, _, steal = map(int, file.readline().split()[1:9])
        return ((user + nice + system + steal) / os.sysconf('SC_CLK_TCK')
                - self.bench.worked() - time.process_time())

    def share(self):
        """The share of one CPU, inexact because the kernel counts ticks."""
        return max(0.0, (self.seconds() - self.before) / (time.monotonic() - self.start))


class Instructions:
    """
    Instructions of both ends for a message (tests/bench/programs/instructions.c), as the difference of two runs, which is
    reproducible.
    """

    COUNTS = 20, 40

    def __init__(self, operation, size):
        self.arguments = [operation, str(size)]
        self.figure = None

    def count(self, bench, messages):
        argv = ['valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null',
                os.path.join(bench.build, 'tests/bench/instructions'), *self.arguments,
                str(messages)]
        result = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
        collected = re.search(r'Collected : (\d+)', result.stderr)
        if result.returncode or not collected:
            raise Unavailable(f'valgrind: {result.stderr.strip()}')
        return int(collected.group(1))

    def measure(self, bench):
        installed('valgrind')
        if self.figure is None:
            less, more = [self.count(bench, messages) for messages in self.COUNTS]
            self.figure = (more - less) / (self.COUNTS[1] - self.COUNTS[0])
        return self.figure


class BytesForInstruction:
    """Bytes per instruction of such a message."""

    def __init__(self, operation, size):
        self.size = size
        self.instructions = Instructions(operation, size)

    def measure(self, bench):
        return self.size / self.instructions.measure(bench)


def is_shared(measure):
    """Whether consecutive rows of a round share one figure of a peer, because it takes seconds."""
    return getattr(measure, 'SHARED', False)


class Idle:
    """
    The CPU share of idle pairs of programs and their daemon, on one host or on one of two hosts. The programs have
    exchanged messages, and sleep until the next one.
    """

    SECONDS = 5

    def __init__(self, pairs, uplink=None, way='read'):
        self.pairs = pairs
        self.uplink = uplink
        self.way = way

    def measure(self, bench):
        host = bench.ends(self.uplink)[0][0]
        pairs = [host.start(built(bench, 'wake'), *map(str, bench.cpus), 'asleep', self.way)
                 for _ in range(self.pairs)]
        try:
            for pair in pairs:
                until(SECONDS, lambda pair=pair: 'asleep' in pair.output() or not pair.running(),
                      pair.describe)
            time.sleep(1)  # until the work after the last message is done
            used = share([pid for pair in pairs for pid in family(pair)] + [host.daemon_pid()], self.SECONDS)
            for pair in pairs:
                pair.kill(signal.SIGTERM)
            for pair in pairs:
                succeed(pair, SECONDS)
        finally:
            for pair in pairs:
                pair.kill()
        return used


def share(pids, seconds):
    """The CPU share of processes during a time."""
    before = time.monotonic(), sum(map(processor_seconds, pids))
    time.sleep(seconds)
    after = time.monotonic(), sum(map(processor_seconds, pids))
    return (after[1] - before[1]) / (after[0] - before[0])


def family(program):
    """A program's process and its child."""
    pid = program.process.pid
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
        return [pid, *map(int, file.read().split())]


def processor_seconds(pid):
    """CPU seconds of all threads of a process, in nanosecond resolution."""
    total = 0
    for task in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{task}/schedstat', encoding='ascii') as file:
            total += int(file.read().split()[0])
    return total * 1e-9
