#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Senders of several hosts WRITE to one host at the same time (incast.c), through a switch whose port to the receiver
has a rate and a queue (tc), and marks packets (red.bpf.c): with DCQCN and without.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../paths'))
from bond import set_sysctl  # noqa: E402
from ethernet import Ethernet, INTERFACE, IPV4, Namespace, run  # noqa: E402
from host import Failure, main, skip, until  # noqa: E402

MTU = 4200
HOSTS = 4  # that send
SENDERS = 32
SECONDS = 60  # for one program
BRIDGE = 'br0'
PORT = 'port{}'  # of the switch, to the host of that number, from 1 on; 1 receives
# As red.bpf.c has them.
RATE = '500mbit'
QUEUE = 1000000
MANY = 1000  # frames
LEAST_FAIRNESS = 0.9  # Jain's index with DCQCN
LEAST_GOODPUT = 0.6  # with DCQCN, of that without
TRIES = 3  # other work on the machine may spoil one
BURST = 16384  # of the token bucket filter
COUNTERS = ['cnp_sent', 'cnp_rcvd', 'ecn_marked', 'rate_cut', 'retransmit', 'timeout', 'probe']


class Star(Ethernet):
    """Hosts around a switch, a namespace with a bridge."""

    def __init__(self, build, arguments=()):
        self.build = build
        self.switch = Namespace()
        super().__init__(build, [MTU] * (HOSTS + 1), arguments)

    def given_addresses(self, number):
        return []

    def plug(self, mtus):
        self.switch.ip('link', 'add', BRIDGE, 'mtu', str(MTU), 'type', 'bridge', 'mcast_snooping', '0')
        self.switch.ip('link', 'set', BRIDGE, 'up')
        for number, namespace in enumerate(self.namespaces, 1):
            port = PORT.format(number)
            self.switch.ip('link', 'add', port, 'mtu', str(MTU), 'type', 'veth', 'peer', 'name', INTERFACE,
                           'mtu', str(MTU), 'netns', str(namespace.pid))
            self.switch.ip('link', 'set', port, 'master', BRIDGE, 'up')
            namespace.ip('link', 'set', 'lo', 'up')
            namespace.ip('addr', 'add', IPV4.format(number) + '/24', 'dev', INTERFACE)
            namespace.ip('link', 'set', INTERFACE, 'up')
            until(10, lambda n=namespace: 'state UP' in n.ip('link', 'show', INTERFACE),
                  lambda: f'{INTERFACE} does not come up')
        self.shape()

    def tc(self, *arguments):
        return run([*self.switch.prefix(), 'tc', *arguments])

    def shape(self):
        """Gives the port to the receiver its rate, its queue and its marks."""
        port = PORT.format(1)
        marker = os.path.join(self.build, 'tests/hosts/red.bpf.o')
        if not os.path.exists(marker):
            skip('red.bpf.c is not built: neither bpf-gcc nor clang is installed')
        self.tc('qdisc', 'add', 'dev', port, 'root', 'tbf', 'rate', RATE, 'burst', str(BURST), 'limit', str(QUEUE))
        self.tc('qdisc', 'add', 'dev', port, 'clsact')
        self.tc('filter', 'add', 'dev', port, 'egress', 'bpf', 'direct-action', 'obj', marker, 'sec', 'classifier')

    def queue(self):
        """Frames that the port's queue has dropped so far, and its bytes at present."""
        found = json.loads(self.tc('-s', '-j', 'qdisc', 'show', 'dev', PORT.format(1), 'root'))[0]
        return found['drops'], found['backlog']

    def __exit__(self, *error):
        super().__exit__(*error)
        self.switch.close()


def jain(figures):
    """Jain's index of fairness: 1 if all are the same, 1/n if one has everything."""
    return sum(figures) ** 2 / (len(figures) * sum(figure * figure for figure in figures) or 1)


def start_sender(net, number, port, first, count, congestion):
    program = net.hosts[number].start('env', f'URXE_CONGESTION={congestion}', os.path.join(net.build, 'tests/hosts/incast'),
                                      'connect', IPV4.format(1), port, str(first), str(count), stdin=subprocess.PIPE)
    return program


def watch_queue(net, end):
    """The mean and the greatest length of the queue until a time, bytes."""
    lengths = []
    while time.monotonic() < end:
        lengths.append(net.queue()[1])
        time.sleep(0.05)
    return sum(lengths) / len(lengths), max(lengths)


def until_all(programs, sign):
    for program in programs:
        until(SECONDS, lambda p=program: re.search(sign, p.output()) or not p.running(), program.describe)
        if not program.running():
            raise Failure(f'ended early: {program.describe()}')


class Marks:
    """Sums of counters of all processes, from `urxe show counter` while the processes live."""

    def __init__(self, net):
        self.found = dict.fromkeys(COUNTERS, 0)
        for host in net.hosts:
            for row in host.show('counter')['counters']:
                if row['of'] not in ('switch',) and row['name'] in self.found:
                    self.found[row['name']] += row['value']


def incast(net, congestion, seconds):
    """Returns the figures of one incast."""
    program = os.path.join(net.build, 'tests/hosts/incast')
    receiver = net.hosts[0].start('env', f'URXE_CONGESTION={congestion}', program, 'listen', IPV4.format(1), str(SENDERS))
    until_all([receiver], r'\d+\n')
    port = receiver.output().strip()
    each = SENDERS // HOSTS
    senders = [start_sender(net, number, port, (number - 1) * each, each, congestion) for number in range(1, HOSTS + 1)]
    until_all(senders, 'connected\n')
    start = time.monotonic() + 0.2
    for sender in senders:
        sender.process.stdin.write(f'{start} {seconds}\n'.encode())
        sender.process.stdin.flush()
    time.sleep(max(0, start + seconds / 4 - time.monotonic()))
    drops = net.queue()[0]
    mean, longest = watch_queue(net, start + seconds * 0.9)
    drops = net.queue()[0] - drops
    until_all(senders, f'(\\d+\n){{{each}}}')
    marks = Marks(net).found
    for sender in senders:
        sender.process.stdin.close()
    for each in [*senders, receiver]:
        if each.wait(SECONDS):
            raise Failure(f'{each.describe()}')
    counts = [int(line) for sender in senders for line in sender.output().split()[1:]]
    return {'goodput': sum(counts) / (seconds * 0.75), 'fairness': jain(counts), 'queue': mean, 'longest': longest,
            'drops': drops, **marks}


def describe(congestion, found):
    print(f'{congestion}: {found["goodput"] * 8e-6:.0f} Mbit/s, Jain {found["fairness"]:.3f}, queue '
          f'{found["queue"] / 1000:.0f} kB, at most {found["longest"] / 1000:.0f} kB, '
          + ', '.join(f'{found[name]} {name}' for name in ['drops', *COUNTERS]), flush=True)


def check_counters(with_control, without):
    for name in ['ecn_marked', 'cnp_sent', 'cnp_rcvd', 'rate_cut']:
        if not with_control[name] or without[name]:
            raise Failure(f'{name}: {with_control[name]} with DCQCN, {without[name]} without')


def check():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--way', choices=['direct', 'switch'], default='direct')
    parser.add_argument('--seconds', type=float, default=4)
    options = parser.parse_args()
    with Star(options.build, [] if options.way == 'direct' else ['--direct-uplink', 'none']) as net:
        for attempt in range(1, TRIES + 1):
            without = incast(net, 'none', options.seconds)
            describe('none', without)
            with_control = incast(net, 'dcqcn', options.seconds)
            describe('dcqcn', with_control)
            check_counters(with_control, without)
            # On a machine that is too busy to fill the link, the queue drops little in either case.
            fewer_drops = without['drops'] <= MANY or with_control['drops'] < without['drops']
            enough = with_control['goodput'] >= LEAST_GOODPUT * without['goodput']
            if fewer_drops and enough and with_control['fairness'] >= LEAST_FAIRNESS:
                return
            print(f'try {attempt}: fewer drops {fewer_drops}, enough goodput {enough}, '
                  f'fairness {with_control["fairness"]:.3f}', flush=True)
    raise Failure(f'{TRIES} tries with DCQCN were unfair, slow or dropped as many frames as without')


if __name__ == '__main__':
    main(check)
