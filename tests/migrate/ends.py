# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The two ends of a program, and the programs that run while a machine moves."""
import json
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../harness'), os.path.join(HERE, '../guests'), os.path.join(HERE, '../clients')]
from host import Failure, succeed, until  # noqa: E402
import rdmacm  # noqa: E402

FLOW = 'tests/migrate/verbs_flow'
ECHO = 'tests/migrate/machine_echo'
CONTENTS = 'tests/migrate/perftest_contents.so'
SECONDS = 60  # for the end of a program, because the guests' processors are emulated
PAUSE = r'^pause of ([\d.]+) ms until ([\d.]+)'


def compared(end, library):
    return [f'PERFTEST_END={end}', f'LD_PRELOAD={library}']


class OnHost:
    """Processes of a host, on urxe0."""

    def __init__(self, build, host):
        self.name = 'the host'
        self.host = host
        self.address = host.address
        self.programs = {'verbs_flow': os.path.join(os.path.abspath(build), FLOW), 'verbs_check': host.verbs_check}
        self.contents = os.path.join(os.path.abspath(build), CONTENTS)

    def start(self, *argv):
        return self.host.start(self.programs.get(argv[0], argv[0]), *argv[1:])

    def start_compared(self, end, *argv):
        """Starts a program of perftest whose contents are compared (perftest_contents.c); `end` is 0 or 1."""
        return self.host.spawn(['env', *compared(end, self.contents), *self.host.command(argv)])

    def perftest_gid(self):
        return ['-d', 'urxe0', '-x', str(self.host.gid(self.address))]

    def gid(self):
        return ['-d', 'urxe0', '-g', str(self.host.gid(self.address))]

    @staticmethod
    def booted_at():
        """The wall clock's time of the end's boot."""
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)

    def start_listener(self, *argv):
        return rdmacm.start_server(self.host, argv)

    def terminate(self, program, _name):
        program.kill(signal.SIGTERM)

    def wait_port(self, port):
        def listens():
            shown = subprocess.run([*self.host.prefix, 'ss', '-Hltn', f'sport = :{port}'], capture_output=True, check=False)
            return shown.stdout
        until(20, listens, lambda: f'nothing listens at {port}')

    def awaits_ack(self):
        return awaits_ack(self.host.show('qp'))

    def describe_state(self):
        shown = [subprocess.run([*self.host.prefix, self.host.urxe, 'show', '--run-dir', self.host.run_dir, topic],
                                capture_output=True, text=True, check=False).stdout for topic in ('qp', 'counter')]
        return without_zeros(''.join(shown))


class InMachine:
    """Processes of a virtual machine, on its RDMA device."""

    def __init__(self, machine):
        self.name = machine.name
        self.machine = machine
        self.address = machine.address

    def start(self, *argv):
        return self.machine.start(self.machine.prefix + ' '.join(argv))

    def start_compared(self, end, *argv):
        return self.machine.start(' '.join([*compared(end, f'/bin/{os.path.basename(CONTENTS)}'),
                                            self.machine.prefix + ' '.join(argv)]))

    def perftest_gid(self):
        return ['-d', self.machine.RDMA, '-x', str(self.machine.index)]

    def gid(self):
        return ['-d', self.machine.RDMA, '-g', str(self.machine.index)]

    def booted_at(self):
        """The same by this machine's wall clock, to some milliseconds."""
        before = time.time()
        uptime = float(self.machine.run('cat /proc/uptime').split()[0])
        return (before + time.time()) / 2 - uptime

    def start_listener(self, *argv):
        """Starts a program, and waits until it listens with rdma_cm."""
        if not self.machine.prefix:
            program = self.start(*argv)
            self.machine.run('until rdma resource show cm_id | grep -q "state LISTEN"; do usleep 20000; done')
            return program
        log = f'/tmp/{argv[0]}.log'
        program = self.machine.start(f'rm -f {log}; URXE_LOG=debug {self.machine.prefix}{" ".join(argv)} 2>{log}')
        self.machine.run(f'until grep -q "rdma_cm LISTEN: ok" {log}; do usleep 20000; done')
        return program

    def terminate(self, _program, name):
        self.machine.run(f'killall -TERM {name}')

    def wait_port(self, port):
        self.machine.wait_listening(port)

    def awaits_ack(self):
        """None: Linux' rxe does not tell."""
        if not self.machine.prefix:
            return None
        return awaits_ack(json.loads(self.machine.run('/urxe/tools/urxe show --json qp')))

    def quit_flow(self):
        """Ends verbs_flow, which tells whether requests wait."""
        self.machine.run('killall -QUIT verbs_flow; true')

    def describe_state(self):
        return without_zeros(self.machine.run('/urxe/tools/urxe show qp; /urxe/tools/urxe show counter; ps; true'))


def awaits_ack(report):
    return any(qp['packets'] for qp in report['qps'] if qp['state'] == 'RTS')


def without_zeros(text):
    return '\n'.join(line for line in text.splitlines() if not re.search(r'\s0$|\[\w.*\]$', line))


class Pair:
    """Server and client of a program."""

    def __init__(self, server, client):
        self.ends = (server, client)
        self.programs = []

    def describe(self):
        states = []
        for end in self.ends:
            try:
                states.append(f'{end.name}: {end.describe_state()}')
            except Failure as failure:
                states.append(f'{end.name}: no state: {failure}')
        return '\n'.join([*(one.describe() for one in self.programs), *states])

    def running(self):
        return all([one.running() for one in self.programs])

    def check_running(self):
        if not self.running():
            raise Failure(f'ended early: {self.describe()}')

    def succeed(self):
        for program in self.programs[::-1]:
            try:
                until(SECONDS, lambda one=program: not one.running(), lambda: 'hangs')
                succeed(program, 1)
            except Failure as failure:
                raise Failure(f'{failure}\n{self.describe()}') from None


class Flow(Pair):
    """verbs_flow, whose client the test ends."""

    title = 'verbs_flow'
    port = 18600

    def __init__(self, server, client, arguments=()):
        super().__init__(server, client)
        words = ['verbs_flow', '-p', str(self.port), *arguments]
        self.programs = [server.start(*words, *server.gid())]
        server.wait_port(self.port)
        self.programs.append(client.start(*words, *client.gid(), server.address))
        self.wait_connected()

    def wait_connected(self):
        def connected():
            return any('messages flow' in one.output() for one in self.programs)
        if all(isinstance(end, InMachine) for end in self.ends):
            time.sleep(5)  # a guest shows the output of a command at its end
        else:
            until(20, lambda: connected() or not all([one.running() for one in self.programs]), self.describe)
        self.check_running()

    def finish(self):
        self.check_running()
        self.ends[1].terminate(self.programs[1], 'verbs_flow')
        self.succeed()
        counts = [re.search(r'^(\d+) messages each way, all bytes right.*', one.output(), re.MULTILINE)
                  for one in self.programs]
        if not all(counts) or counts[0][1] != counts[1][1]:
            raise Failure(f'not the same messages: {self.describe()}')
        print(f'  {self.title}: {counts[1][0]}', flush=True)


class Rping(Pair):
    """rping compares contents."""

    title = 'rping'

    def __init__(self, server, client, count=1000):
        super().__init__(server, client)
        self.programs = [server.start_listener('rping', '-s', '-a', server.address, '-C', str(count), '-V', '-S', '1000')]
        self.programs.append(client.start('rping', '-c', '-a', server.address, '-C', str(count), '-V', '-S', '1000'))

    def finish(self):
        until(SECONDS, lambda: not any([one.running() for one in self.programs]), lambda: f'hangs: {self.describe()}')
        for program in self.programs[::-1]:
            try:
                rdmacm.end_well(program, 1)
            except Failure as failure:
                raise Failure(f'{failure}\n{self.describe()}') from None


class Check(Pair):
    """
    verbs_check compares every byte of each operation, in all sizes, again and again. Its local ACK timeout is 1.1 s: on
    a host with much other work a move may last longer than the retries with the usual one, which Flow measures.
    """

    title = 'verbs_check'
    port = 18700

    def __init__(self, server, client):
        super().__init__(server, client)
        words = ['verbs_check', '-L', '-W', '-t', '18', '-p', str(self.port)]
        self.programs = [server.start(*words, *server.gid())]
        server.wait_port(self.port)
        self.programs.append(client.start(*words, *client.gid(), server.address))

    def finish(self):
        self.succeed()


class Perftest(Pair):
    """A program of perftest, with SIZE bytes a message; perftest_contents.c compares the bytes at both ends."""

    title = 'perftest'
    port = 18900
    SIZE = 16384

    def __init__(self, server, client, *words):
        super().__init__(server, client)
        self.title = words[0]
        self.receivers = 2 if words[0] == 'ib_send_lat' else 1
        argv = [*words, '-F', '-s', str(self.SIZE), '-u', '18', '-p', str(self.port)]
        self.programs = [server.start_compared(0, *argv, *server.perftest_gid())]
        server.wait_port(self.port)
        self.programs.append(client.start_compared(1, *argv, *client.perftest_gid(), server.address))

    def finish(self):
        self.succeed()
        received = [int(bytes_) for one in self.programs
                    for bytes_ in re.findall(r'^(\d+) bytes of the other end, all right$', one.output(), re.MULTILINE)]
        if sorted(received) != [0] * (2 - self.receivers) + [self.SIZE] * self.receivers:
            raise Failure(f'not all bytes: {received}: {self.describe()}')


def longest_pause(text, begin, end, booted_at=0):
    """The longest pause, in ms, that ended between two times of the wall clock."""
    return max((float(ms) for ms, at in re.findall(PAUSE, text, re.MULTILINE)
                if begin <= float(at) + booted_at <= end), default=0)
