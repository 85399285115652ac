#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
A process moves from one host to another and back, with its addresses, as a container does. Its peer on a third host
exchanges messages with it, and knows nothing.
"""
import argparse
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../paths'))
from ethernet import Ethernet, INTERFACE, IPV4, Namespace  # noqa: E402
from checkpoint_pair import CheckpointPair, Commanded, ConnectedPair  # noqa: E402
from host import Failure, Host, main, skip, until  # noqa: E402

MTU = 1500
BRIDGE = 'br0'
PORT = 'port{}'  # of the switch, to the host of that number
MOVING_MAC = '02:00:5e:00:00:01'
HOSTS = 3  # two that have the process in turn, and its peer
PEER = 2   # index of its host
PARTS = 'saved', 'restored', 'then until each connection has completed another request'
MEDIAN_MAX_MS = 15000  # of each part: far more than on a busy machine


class Site(Ethernet):
    """
    Three hosts around a switch. The first two have the same addresses, as two places of one container; one of them is
    connected at a time.
    """

    def __init__(self, build, arguments):
        self.switch = Namespace()
        self.arguments = ['--uplink', 'af_packet:' + INTERFACE, *arguments]
        self.hosts = []
        self.build = build
        self.namespaces = [Namespace() for _ in range(HOSTS)]
        self.switch.ip('link', 'add', BRIDGE, 'mtu', str(MTU), 'type', 'bridge', 'mcast_snooping', '0')
        self.switch.ip('link', 'set', BRIDGE, 'up')
        for number, namespace in enumerate(self.namespaces):
            self.plug_in(number, namespace)
        self.hosts = [Host(build, prefix=namespace.prefix(), daemon=False) for namespace in self.namespaces]
        self.connect(0)
        self.connect(PEER)

    def plug_in(self, number, namespace):
        mac = ['address', MOVING_MAC] if number != PEER else []
        self.switch.ip('link', 'add', PORT.format(number), 'mtu', str(MTU), 'type', 'veth', 'peer', 'name', INTERFACE,
                       *mac, 'mtu', str(MTU), 'netns', str(namespace.pid))
        self.switch.ip('link', 'set', PORT.format(number), 'master', BRIDGE, 'up')
        namespace.ip('link', 'set', 'lo', 'up')
        namespace.ip('link', 'set', INTERFACE, 'addrgenmode', 'none')

    def connect(self, number):
        """Sets a host's interface up, and starts its daemon."""
        namespace = self.namespaces[number]
        namespace.ip('addr', 'add', IPV4.format(2 if number == PEER else 1) + '/24', 'dev', INTERFACE)
        namespace.ip('link', 'set', INTERFACE, 'up')
        until(10, lambda: 'state UP' in namespace.ip('link', 'show', INTERFACE), lambda: 'no link')
        self.hosts[number].start_daemon(self.arguments)

    def disconnect(self, number):
        """Ends a host's daemon, and sets its interface down, which removes its addresses."""
        self.hosts[number].daemon.kill()
        self.namespaces[number].ip('link', 'set', INTERFACE, 'down')
        self.namespaces[number].ip('addr', 'flush', 'dev', INTERFACE)

    def gid(self, number):
        return str(self.hosts[number].gid(IPV4.format(2 if number == PEER else 1)))

    def __exit__(self, *error):
        super().__exit__(*error)
        self.switch.close()


def move(pair, site, start, end):
    """Time of save and restoration, ms; what happens to the hosts between them is not urxe's."""
    saved = duration(pair.save)
    pair.traveller.kill()
    site.disconnect(start)
    site.connect(end)
    return saved, duration(lambda: pair.restore(site.hosts[end]))


def duration(function):
    start = time.monotonic()
    function()
    return (time.monotonic() - start) * 1000


def report(moves):
    for part, times in zip(PARTS, zip(*moves)):
        print(f'{part}: median {statistics.median(times):.0f} ms, {min(times):.0f} to {max(times):.0f}')
        if statistics.median(times) > MEDIAN_MAX_MS:
            raise Failure(f'{part}: too slow')


def check_moves(site):
    moves = []
    pair = CheckpointPair(site.build, [site.hosts[0], site.hosts[PEER]], gids=[site.gid(0), site.gid(PEER)])
    for start, end in ((0, 1), (1, 0), (0, 1)):
        pair.progress()
        moves.append([*move(pair, site, start, end), duration(lambda: pair.progress(1))])
    pair.progress()
    pair.end()
    report(moves)


def check_connections(site):
    """Connections and listeners of rdma_cm move: the peer has no event of it, and both listeners take new connections."""
    pair = ConnectedPair(site.build, [site.hosts[0], site.hosts[PEER]], [IPV4.format(1), IPV4.format(2)])
    pair.connect(0, client=0)
    pair.connect(1, client=1)
    pair.exchange((0, 1))
    for start, end in ((0, 1), (1, 0)):
        move(pair, site, start, end)
        pair.exchange((0, 1))
        pair.quiet()
    pair.connect(2, client=0)
    pair.connect(3, client=1)
    pair.exchange((2, 3))
    for number in range(4):
        pair.disconnect(number, number % 2)
    pair.end()


def check_refused(site):
    """A host with other addresses refuses the process, and keeps nothing of it; the right host takes it afterwards."""
    pair = CheckpointPair(site.build, [site.hosts[0], site.hosts[PEER]], gids=[site.gid(0), site.gid(PEER)])
    pair.progress()
    pair.save()
    pair.traveller.kill()
    stranger = Commanded(site.hosts[PEER], site.build, 'restore', *pair.files)
    answer = stranger.answer()
    # The peer has the first block of numbers of its own host.
    if not answer.startswith(('error EADDRNOTAVAIL: the device has the MAC address', 'error EEXIST')):
        raise Failure(answer)
    if stranger.program.wait(10) != 2:
        raise Failure(stranger.program.describe())
    pair.restore()
    pair.progress()
    pair.end()


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--way', choices=['direct', 'switch'], default='direct')
    parser.add_argument('--check', choices=['moves', 'connections', 'refused'], default='moves')
    options = parser.parse_args()
    if os.getuid():
        skip('namespaces and packet sockets need root')
    with Site(options.build, [] if options.way == 'direct' else ['--direct-uplink', 'none']) as site:
        {'moves': check_moves, 'connections': check_connections, 'refused': check_refused}[options.check](site)


if __name__ == '__main__':
    main(run)
