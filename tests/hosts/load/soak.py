#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Hours of hostile neighbours: 32 programs of two hosts check every byte that they exchange (member.c), while each second a
random program is killed or stopped for a while, each minute a daemon ends and starts again, 1 % of all frames is lost, and a
hostile station sends to both hosts (hostile.py). At the end each daemon must hold as many resources as after a first
minute, and no program may have seen a wrong byte.
"""
import argparse
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../paths'))
import crowd  # noqa: E402
from crowd import Crowd, RSS_GROWTH_KIB, check_alive, print_figures, settled  # noqa: E402
from ethernet import Ethernet, INTERFACE, IPV4, prefer  # noqa: E402
from host import Failure, Program, main, until  # noqa: E402

MEMBERS = 16  # of each host
MTU = 9000
STOP_SECONDS = (0.05, 0.8)
RESTART_SECONDS = 60
REPORT_SECONDS = 600
HOSTILE_RATE = 1000
HOSTILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'hostile.py')


class Soak:
    def __init__(self, build, net, seed):
        self.net = net
        self.random = random.Random(seed)
        self.crowd = Crowd(build, net.hosts, MEMBERS, 0)
        self.stopped = []  # (time to continue, member)
        self.counts = dict.fromkeys(('killed', 'stopped', 'restarts'), 0)
        self.hostile = [self.start_hostile(side) for side in range(2)]

    def start_hostile(self, side):
        """A hostile station that the host of a side receives: it sends at the other end of the cable."""
        sender, target = self.net.namespaces[1 - side], self.net.namespaces[side]
        mac = target.ip('-br', 'link', 'show', INTERFACE).split()[2]
        return Program([*sender.prefix(), sys.executable, HOSTILE, INTERFACE, mac, IPV4.format(side + 1),
                        '--rate', str(HOSTILE_RATE)], os.environ)

    def continue_stopped(self):
        now = time.monotonic()
        for entry in [entry for entry in self.stopped if entry[0] <= now]:
            self.stopped.remove(entry)
            entry[1].kill(signal.SIGCONT)

    def disturb_member(self):
        side, index = self.random.randrange(2), self.random.randrange(MEMBERS)
        member = self.crowd.members[side][index]
        if any(member is stopped for _, stopped in self.stopped):
            return
        check_alive(member)
        if self.random.random() < 0.5:
            self.crowd.replace(side, index)
            self.counts['killed'] += 1
        else:
            member.kill(signal.SIGSTOP)
            self.stopped.append((time.monotonic() + self.random.uniform(*STOP_SECONDS), member))
            self.counts['stopped'] += 1

    def restart_daemon(self):
        host = self.net.hosts[self.random.randrange(2)]
        host.daemon.kill(self.random.choice((signal.SIGKILL, signal.SIGTERM)))
        host.daemon.wait(10)
        host.programs.remove(host.daemon)
        host.start_daemon()
        prefer(host.daemon)
        self.counts['restarts'] += 1

    def check_all(self):
        for host in self.net.hosts:
            check_alive(host.daemon)
        for members in self.crowd.members:
            for member in members:
                check_alive(member)
        for program in self.hostile:
            check_alive(program)

    def run(self, seconds):
        start = time.monotonic()
        next_restart, next_report = start + RESTART_SECONDS, start + REPORT_SECONDS
        while time.monotonic() < start + seconds:
            self.disturb_member()
            second = time.monotonic() + 1
            while time.monotonic() < second:
                self.continue_stopped()
                time.sleep(0.02)
            self.check_all()
            if time.monotonic() >= next_restart:
                self.restart_daemon()
                next_restart += RESTART_SECONDS
            if time.monotonic() >= next_report:
                self.report(time.monotonic() - start)
                next_report += REPORT_SECONDS

    def report(self, seconds):
        print_figures(f'after {seconds:.0f} s, {self.counts}', [crowd.figures(host) for host in self.net.hosts])

    def finish(self):
        for _, member in self.stopped:
            member.kill(signal.SIGCONT)
        rounds = self.crowd.finish()
        for program in self.hostile:
            program.kill()
        return rounds


def compare(before, after):
    """A restarted daemon begins anew, so only growth beyond the first minute's figures counts."""
    for one, other in zip(before, after):
        for name in one:
            if other[name] > one[name] + (RSS_GROWTH_KIB if 'RSS' in name else 0):
                raise Failure(f'urxed holds {other[name]} {name}, after the first minute {one[name]}')


def phase(build, net, seed, seconds):
    soak = Soak(build, net, seed)
    soak.crowd.await_connected()
    soak.run(seconds)
    rounds = soak.finish()
    after = [settled(host) for host in net.hosts]
    print_figures(f'{soak.counts}, {rounds} rounds of the last members', after)
    return after


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--seconds', type=int, default=7200)
    parser.add_argument('--seed', type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f'seed {options.seed}', flush=True)
    with Ethernet(options.build, [MTU] * 2, ['--fault', 'drop=1%']) as net:
        for host in net.hosts:
            until(20, lambda host=host: 'PORT_ACTIVE' in host.run('ibv_devinfo'), lambda: 'no link')
            host.environment.update(URXE_LOG='warning', URXE_RECONNECT_S='60')
        before = phase(options.build, net, options.seed, 60)
        compare(before, phase(options.build, net, options.seed + 1, options.seconds))


if __name__ == '__main__':
    main(run)
