#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Many processes on each of two hosts, each with 16 connections to processes of the other host, check all
contents (member.c). With --kill the test kills random processes and starts new ones. Only their peers may
notice, and at the end each daemon must hold as many resources as at the beginning.
"""
import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../paths'))
from ethernet import Ethernet, IPV4, WAYS, way_arguments  # noqa: E402
from host import Failure, main, open_files, succeed, until  # noqa: E402

CONNECTIONS = 16
MTU = 9000
START_SECONDS = 120
END_SECONDS = 120
KILL_PAUSE = (0.1, 0.6)  # seconds between two kills: minimum, maximum
RSS_GROWTH_KIB = 4096  # freed memory that the allocator may keep


class Crowd:
    """The processes of two hosts; those of the second host connect to those of the first."""

    def __init__(self, build, hosts, members, rounds):
        self.build = build
        self.hosts = hosts
        self.gids = [host.gid(IPV4.format(number)) for number, host in enumerate(hosts, 1)]
        self.rounds = rounds
        self.dir = tempfile.mkdtemp(prefix='crowd-')
        self.members = [[self.start(side, index, members) for index in range(members)]
                        for side in range(2)]

    def start(self, side, index, members):
        argv = [os.path.join(self.build, 'tests/hosts/member'), '-g', str(self.gids[side]),
                '-d', self.dir, '-i', str(index)]
        if side:
            argv += ['-n', str(members), '-r', str(self.rounds)]
        return self.hosts[side].start(*argv)

    def replace(self, side, index):
        """Kills a member and starts a new one."""
        victim = self.members[side][index]
        check_alive(victim)
        victim.kill()
        self.hosts[side].programs.remove(victim)
        self.members[side][index] = self.start(side, index, len(self.members[side]))

    def await_connected(self):
        """Waits until every member of the second host has had all its connections."""
        waiting = list(self.members[1])

        def all_connected():
            # A member with few rounds may have ended before this check.
            waiting[:] = [member for member in waiting if member.process.poll() != 0
                          and 'connected' not in member.output()]
            for member in waiting:
                if member.process.poll():
                    check_alive(member)
            return not waiting

        until(START_SECONDS, all_connected,
              lambda: f'{len(waiting)} members are not connected: {waiting[0].describe()}')

    def await_handlers(self):
        """Waits until SIGTERM no longer kills any member, also those that have just started."""
        for member in self.members[0] + self.members[1]:
            until(START_SECONDS, lambda: 'SIGTERM ends' in member.output() or check_alive(member),
                  lambda: f'has no handler of SIGTERM: {member.describe()}')

    def finish(self):
        """All members must succeed; returns the number of rounds of the second host's last members."""
        rounds = 0
        self.await_handlers()
        for side in (1, 0):
            for member in self.members[side]:
                # Members with a number of rounds end by themselves.
                if side == 0 or not self.rounds:
                    member.kill(signal.SIGTERM)
            for member in self.members[side]:
                succeed(member, END_SECONDS)
                self.hosts[side].programs.remove(member)
                if side:
                    rounds += int(member.output().split()[-5])
        shutil.rmtree(self.dir)
        return rounds


def check_alive(member):
    if not member.running():
        raise Failure(f'ended by itself: {member.describe()}')


def leases(host):
    return len(host.show('lease')['leases'])


def figures(host):
    """A daemon's resources by name: leases, descriptors, mappings, files, memory."""
    pid = host.daemon.process.pid
    links = open_files(pid)
    with open(f'/proc/{pid}/status') as status:
        rss = next(int(line.split()[1]) for line in status if line.startswith('VmRSS'))
    with open(f'/proc/{pid}/maps') as maps:
        mapped = sum('/memfd:' in line for line in maps)
    return {
        'leases': leases(host),
        'descriptors': len(links),
        'memfds': sum(link.startswith('/memfd:') for link in links),
        'mapped memfds': mapped,
        'files in its directory': sum(len(files) for _, _, files in os.walk(host.run_dir)),
        'KiB of RSS': rss,
    }


def settled(host):
    """The figures after the daemon has removed its last client."""
    seen = [None, figures(host)]

    def unchanged():
        time.sleep(0.2)
        seen[:] = seen[1], figures(host)
        return seen[0] == seen[1] and not seen[0]['leases']

    until(30, unchanged, lambda: f'does not come to rest: {seen[1]}')
    return seen[1]


def print_figures(title, all_figures):
    print(f'{title}:')
    for name, values in zip('ab', all_figures):
        print(f'  urxed of {name}: ' + ', '.join(f'{n} {what}' for what, n in values.items()),
              flush=True)


def compare(before, after):
    for one, other in zip(before, after):
        for name in one:
            if other[name] > one[name] + (RSS_GROWTH_KIB if 'RSS' in name else 0):
                raise Failure(f'urxed holds {other[name]} {name}, before {one[name]}')


def kill_some(crowd, seconds, rng):
    """Kills random members for a time; returns their number."""
    end = time.monotonic() + seconds
    killed = 0
    while time.monotonic() < end:
        crowd.replace(rng.randrange(2), rng.randrange(len(crowd.members[0])))
        killed += 1
        time.sleep(rng.uniform(*KILL_PAUSE))
        for host in crowd.hosts:
            check_alive(host.daemon)
    return killed


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--members', type=int, default=64, help='of each host')
    parser.add_argument('--rounds', type=int, default=20, help='of each connection')
    parser.add_argument('--kill', type=float, metavar='SECONDS', help='kill for so long')
    parser.add_argument('--way', choices=WAYS, default='direct')
    parser.add_argument('--seed', type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f'seed {options.seed}', flush=True)
    with Ethernet(options.build, [MTU] * 2, way_arguments(options.way)) as net:
        print_figures('at first', [figures(host) for host in net.hosts])
        start = time.monotonic()
        crowd = Crowd(options.build, net.hosts, options.members, options.rounds)
        crowd.await_connected()
        print_figures(f'connected after {time.monotonic() - start:.0f} s',
                      [figures(host) for host in net.hosts])
        rounds = crowd.finish()
        before = [settled(host) for host in net.hosts]
        print_figures(f'after {rounds} rounds, {time.monotonic() - start:.0f} s', before)
        if rounds != options.members * CONNECTIONS * options.rounds:
            raise Failure(f'{rounds} rounds')
        if not options.kill:
            return
        crowd = Crowd(options.build, net.hosts, options.members, 0)
        crowd.await_connected()
        killed = kill_some(crowd, options.kill, random.Random(options.seed))
        rounds = crowd.finish()
        after = [settled(host) for host in net.hosts]
        print_figures(f'{killed} killed, {rounds} rounds of those that were left', after)
        compare(before, after)


if __name__ == '__main__':
    main(run)
