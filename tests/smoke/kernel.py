#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What the kernel changes on an uplink's interface reaches programs that run."""
import os
import signal
import subprocess
import sys
import time

from host import Failure, Host, Pair, main, skip, until

NAMES = [f'urxe{os.getpid()}{side}' for side in 'ab']
UPLINK = ['--uplink', 'af_packet:eth0']


def ip(*arguments):
    return subprocess.run(['ip', *arguments], capture_output=True, text=True, check=False)


def must(*arguments):
    result = ip(*arguments)
    if result.returncode:
        raise Failure(f'ip {" ".join(arguments)}: {result.stderr.strip()}')


def make_hosts():
    a, b = NAMES
    steps = [['netns', 'add', a], ['netns', 'add', b],
             ['link', 'add', 'eth0', 'netns', a, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', b]]
    for number, name in enumerate(NAMES, 1):
        # Link-local addresses come some time after the link: not here.
        steps += [['netns', 'exec', name, 'sysctl', '-q', 'net.ipv6.conf.eth0.addr_gen_mode=1'],
                  ['-n', name, 'addr', 'add', f'192.0.2.{number}/24', 'dev', 'eth0'],
                  ['-n', name, 'link', 'set', 'lo', 'up'],
                  ['-n', name, 'link', 'set', 'eth0', 'up']]
    for step in steps:
        result = ip(*step)
        if result.returncode:
            skip(f'ip {" ".join(step)}: {result.stderr.strip()}')


def host(build, number, arguments=()):
    return Host(build, prefix=['ip', 'netns', 'exec', NAMES[number]],
                arguments=[*UPLINK, *arguments])


class Events:
    """The events that a program gets, one after the other."""

    def __init__(self, machine, build):
        self.program = machine.start(os.path.join(build, 'tests/smoke/port_events'))
        self.seen = 0
        self.expect('START', 'ACTIVE', 1024, {0: '192.0.2.1'})

    def next(self):
        until(10, lambda: len(self.program.output().splitlines()) > self.seen,
              lambda: f'no event comes: {self.program.describe()}')
        self.seen += 1
        return self.program.output().splitlines()[self.seen - 1]

    def expect(self, event, state, mtu, addresses):
        """The next event, and the port's state then; addresses: index and IPv4 address."""
        gids = [f'{base + index}:::ffff:{address}' for base in (0, 16)
                for index, address in sorted(addresses.items())]
        right = f'{event} state={state} mtu={mtu} gids={",".join(gids)}'
        found = self.next()
        if found != right:
            raise Failure(f'"{found}" instead of "{right}"')


def address(action, text):
    must('-n', NAMES[0], 'addr', action, text, 'dev', 'eth0')


def check_events(build):
    """Addresses come and go, and the link does; each event comes when all of it is true already."""
    with host(build, 0) as machine:
        events = Events(machine, build)
        address('add', '198.51.100.1/24')
        events.expect('GID_CHANGE', 'ACTIVE', 1024, {0: '192.0.2.1', 1: '198.51.100.1'})
        address('del', '192.0.2.1/24')
        events.expect('GID_CHANGE', 'ACTIVE', 1024, {1: '198.51.100.1'})
        # It comes back to its old place.
        address('add', '192.0.2.1/24')
        events.expect('GID_CHANGE', 'ACTIVE', 1024, {0: '192.0.2.1', 1: '198.51.100.1'})
        both = {0: '192.0.2.1', 1: '198.51.100.1'}
        must('-n', NAMES[0], 'link', 'set', 'eth0', 'down')
        events.expect('PORT_ERR', 'DOWN', 1024, both)
        must('-n', NAMES[0], 'link', 'set', 'eth0', 'up')
        events.expect('PORT_ACTIVE', 'ACTIVE', 1024, both)
        # The other side's end counts, too. A new MTU is no event, but shows with the next one.
        must('-n', NAMES[0], 'link', 'set', 'eth0', 'mtu', '640')
        must('-n', NAMES[1], 'link', 'set', 'eth0', 'down')
        events.expect('PORT_ERR', 'DOWN', 512, both)
        must('-n', NAMES[1], 'link', 'set', 'eth0', 'up')
        events.expect('PORT_ACTIVE', 'ACTIVE', 512, both)
        must('-n', NAMES[0], 'link', 'set', 'eth0', 'mtu', '1500')
        check_many_changes(machine, events)


def check_many_changes(machine, events):
    """More changes than a socket has room for, with the program stopped; it ends up with the last."""
    script = ''.join(f'addr {action} 198.51.100.2/24 dev eth0\n'
                     for _ in range(2000) for action in ('add', 'del'))
    events.program.kill(signal.SIGSTOP)
    subprocess.run(['ip', '-n', NAMES[0], '-batch', '-'], input=script, text=True, check=True)
    address('add', '198.51.100.3/24')
    events.program.kill(signal.SIGCONT)
    until(10, lambda: '198.51.100.3' in events.program.output(),
          lambda: f'the last change is lost: {events.program.describe()}')
    if not machine.daemon.running():
        raise Failure(machine.daemon.describe())


def check_connection(build):
    """Programs go on over changes that do not concern them."""
    with host(build, 0) as server, host(build, 1) as client:
        pair = Pair(server, client, [server.verbs_check], 0, address='192.0.2.1')
        for number in range(5):
            address('add', f'198.51.100.{number + 10}/24')
            time.sleep(0.1)
            address('del', f'198.51.100.{number + 10}/24')
        pair.finish(60)


def processor_seconds(machine):
    with open(f'/proc/{machine.daemon_pid()}/stat', encoding='ascii') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def check_removed(build):
    """An interface that goes leaves a port that is down, and a daemon that rests."""
    with host(build, 0) as machine:
        events = Events(machine, build)
        must('-n', NAMES[0], 'link', 'del', 'eth0')
        until(10, lambda: 'state=DOWN mtu=1024 gids=\n' in events.program.output(),
              lambda: f'the port is not down: {events.program.describe()}')
        until(5, lambda: 'interface eth0 has gone' in machine.daemon.errors(),
              lambda: machine.daemon.describe())
        before = processor_seconds(machine)
        time.sleep(1)
        # One that is woken again and again by a dead socket takes all of it.
        if processor_seconds(machine) - before > 0.5:
            raise Failure('urxed does not rest')


CHECKS = {'events': check_events, 'connection': check_connection, 'removed': check_removed}


def run():
    try:
        make_hosts()
        CHECKS[sys.argv[2]](sys.argv[1])
    finally:
        for name in NAMES:
            ip('netns', 'delete', name)


if os.getuid():
    skip('namespaces and packet sockets need root')
main(run)
