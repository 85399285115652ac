#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Programs of two hosts, or their daemons, are stopped (SIGSTOP) and killed (kill -9) in each state of a program's life, by
the direct uplink or through the daemons. Another pair of programs exchanges messages all the time. After a stop, or with
the next daemon, a program goes on. A dead program leaves nothing at its daemon.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../paths'))
from direct_uplink import WAIT, expect_path, start  # noqa: E402
from ethernet import Ethernet, IPV4, WAYS, way_arguments  # noqa: E402
from host import BUSY, Failure, free_port, main, skip, succeed, until, wait_listening  # noqa: E402
import report  # noqa: E402
from rdmacm import start_server  # noqa: E402

PATHS = {'direct': 'direct-uplink', 'switch': 'uplink'}
MTU = 9000
SIDES = SERVER, CLIENT = 0, 1
STOP = 0.3  # seconds
START_STEPS = 8
START_STEP = 0.02  # seconds: a program attaches to its daemon within some hundredths of a second
ARGV = ['ib_write_bw', '-F', '-s', '4096', '-u', '18']  # the requester repeats for 8 times 3 s


def gids(net):
    return [host.gid(IPV4.format(number)) for number, host in enumerate(net.hosts, 1)]


class Busy:
    """Server and client of a bandwidth test, which poll."""

    def __init__(self, net):
        self.pair = start(net, ARGV)
        self.programs = [self.pair.server, self.pair.client]
        self.go_on()

    def go_on(self):
        self.pair.go_on()


class Listening:
    """A server without a client."""

    def __init__(self, net):
        self.net = net
        self.port = free_port()
        self.gids = gids(net)
        server = net.hosts[0].start('ib_write_bw', '-F', '-n', '200', '-p', str(self.port), '-x', str(self.gids[0]))
        wait_listening(server, self.port)
        self.programs = [server]

    def go_on(self):
        """A client finds the server, and both succeed; another server takes their place."""
        client = self.net.hosts[1].start('ib_write_bw', '-F', '-n', '200', '-p', str(self.port), '-x',
                                         str(self.gids[1]), IPV4.format(1))
        succeed(client, WAIT)
        succeed(self.programs[SERVER], WAIT)
        report.check_perftest(client.output(), None)
        self.__init__(self.net)


RPING = ['stdbuf', '-oL', 'rping', '-v', '-p', '7174']


class Connected:
    """Server and client of rping, which exchange messages by a connection of rdma_cm, and sleep until each arrives."""

    def __init__(self, net):
        self.programs = [start_server(net.hosts[0], [*RPING, '-s']),
                         net.hosts[1].start(*RPING, '-c', '-a', IPV4.format(1))]
        self.go_on()

    def go_on(self):
        client = self.programs[CLIENT]
        goal = len(client.output()) + 10000
        until(WAIT, lambda: len(client.output()) > goal or not client.running(), client.describe)
        if not client.running():
            raise Failure(f'ended by itself: {client.describe()}')


class Connecting(Connected):
    """A client of rdma_cm whose request has no reply, because its server is stopped."""

    def __init__(self, net):
        server = start_server(net.hosts[0], [*RPING, '-s'])
        server.kill(signal.SIGSTOP)
        self.programs = [server, net.hosts[1].start(*RPING, '-c', '-a', IPV4.format(1))]
        until(WAIT, lambda: any('REQ_SENT' in str(row['cm']) for row in net.hosts[1].show('id')['ids']),
              lambda: f'no request: {self.programs[CLIENT].describe()}')

    def go_on(self):
        self.programs[SERVER].kill(signal.SIGCONT)
        super().go_on()


class Repeating(Busy):
    """A bandwidth test whose requester repeats its requests, because the other side is stopped."""

    def __init__(self, net):
        super().__init__(net)
        self.programs[SERVER].kill(signal.SIGSTOP)

    def go_on(self):
        self.programs[SERVER].kill(signal.SIGCONT)
        super().go_on()


STATES = {
    'listening': Listening,
    'polling': Busy,
    'connecting': Connecting,
    'connected': Connected,
    'repeating': Repeating,
}


def expect_answer(host, program):
    """The daemon answers `urxe show`, which says that the stopped program does not."""
    for _ in range(BUSY):
        result = subprocess.run([*host.prefix, host.urxe, 'show', '--json', '--run-dir', host.run_dir], check=False,
                                capture_output=True, text=True, timeout=20 * BUSY, env=host.environment)
        if not result.returncode:
            break
    if result.returncode:
        raise Failure(f'urxe show: status {result.returncode}, {result.stderr}')
    leases = [lease for lease in json.loads(result.stdout)['leases'] if lease['pid'] == program.process.pid]
    if any(lease['answered'] for lease in leases):
        raise Failure(f'a stopped program answers: {leases}')


def expect_nothing_left(net, before):
    """The dead programs' leases, QPs and IDs are gone."""
    def left():
        return [resources(host) for host in net.hosts]

    until(WAIT, lambda: left() == before, lambda: f'left: {left()}, before: {before}')


def resources(host):
    """The numbers of leases, QPs and IDs at a daemon."""
    return [len(host.show(topic)[name]) for topic, name in (('lease', 'leases'), ('qp', 'qps'), ('id', 'ids'))]


def end(group):
    for program in group.programs:
        program.kill()


def disturb_programs(net, survivor, state, before):
    for side in SIDES:
        for dies_stopped in False, True:
            group = STATES[state](net)
            if side < len(group.programs):
                disturb_program(net.hosts[side], survivor, group, side, dies_stopped)
            end(group)
            expect_nothing_left(net, before)


def disturb_program(host, survivor, group, side, dies_stopped):
    group.programs[side].kill(signal.SIGSTOP)
    survivor.go_on()
    expect_answer(host, group.programs[side])
    if not dies_stopped:
        group.programs[side].kill(signal.SIGCONT)
        group.go_on()
    group.programs[side].kill()
    survivor.go_on()


def disturb_daemons(net, survivor, state, before):
    for host, surviving in zip(net.hosts, (survivor.server, survivor.client)):
        for disturb in stop_daemon, replace_daemon:
            group = STATES[state](net)
            disturb(host, surviving)
            group.go_on()
            survivor.go_on()
            end(group)
            expect_nothing_left(net, before)


def stop_daemon(host, _):
    host.daemon.kill(signal.SIGSTOP)
    time.sleep(STOP)
    host.daemon.kill(signal.SIGCONT)


def replace_daemon(host, surviving):
    """The daemon stops and dies, and the next one takes over."""
    said = surviving.errors().count('attached again')
    host.daemon.kill(signal.SIGSTOP)
    host.daemon.kill()
    host.daemon.wait(10)
    host.start_daemon()
    until(WAIT, lambda: surviving.errors().count('attached again') > said, surviving.describe)


def disturb_starts(net, survivor, _, before):
    """Stops, continues and kills programs that have just begun to start."""
    for host in net.hosts:
        for step in range(START_STEPS):
            programs = [host.start('ibv_devinfo') for _ in range(2)]
            time.sleep(step * START_STEP)
            for program in programs:
                program.kill(signal.SIGSTOP)
            programs[0].kill()
            programs[1].kill(signal.SIGCONT)
            expect_device(programs[1])
        survivor.go_on()
        expect_nothing_left(net, before)


def disturb_daemons_at_starts(net, survivor, _, before):
    """A program that starts waits for a stopped daemon."""
    for host in net.hosts:
        for step in range(START_STEPS):
            program = host.start('ibv_devinfo')
            time.sleep(step * START_STEP)
            stop_daemon(host, None)
            expect_device(program)
        survivor.go_on()
        expect_nothing_left(net, before)


def expect_device(program):
    succeed(program, WAIT)
    if 'PORT_ACTIVE' not in program.output():
        raise Failure(program.describe())


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--state', required=True, choices=['starting', *STATES])
    parser.add_argument('--of', required=True, choices=['programs', 'daemons'], help='which of them stop and die')
    parser.add_argument('--way', required=True, choices=WAYS)
    options = parser.parse_args()
    if not shutil.which('rping'):
        skip('rping is not installed')
    disturb = {
        ('starting', 'programs'): disturb_starts,
        ('starting', 'daemons'): disturb_daemons_at_starts,
    }.get((options.state, options.of), disturb_programs if options.of == 'programs' else disturb_daemons)
    with Ethernet(options.build, [MTU] * 2, way_arguments(options.way)) as net:
        for host in net.hosts:
            until(20, lambda h=host: 'PORT_ACTIVE' in h.run('ibv_devinfo'), lambda: 'no link')
            host.environment.update(URXE_LOG='warning', URXE_RECONNECT_S='60')
        survivor = start(net, ARGV)
        for host in net.hosts:
            expect_path(host, PATHS[options.way])
        disturb(net, survivor, options.state, [resources(host) for host in net.hosts])
        survivor.finish()


if __name__ == '__main__':
    main(run)
