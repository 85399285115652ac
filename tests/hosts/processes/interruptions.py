#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Programs of two hosts exchange frames by the direct uplink or through the daemons, while daemons, addresses and
the cable are interrupted. Each connection goes on to its end without an error.
"""
import argparse
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../paths'))
from direct_uplink import WAIT, expect_path, expect_traffic, mac, start  # noqa: E402
from ethernet import Ethernet, INTERFACE, IPV4, WAYS, way_arguments  # noqa: E402
from host import Pair, main, until  # noqa: E402
import report  # noqa: E402

PATHS = {'direct': 'direct-uplink', 'switch': 'uplink'}
MTU = 9000
OTHER = '203.0.113.{}'
CHANGES = 20


def start_busy(net, way):
    """A pair of programs whose frames go that way."""
    pair = start(net)
    for host in net.hosts:
        expect_path(host, PATHS[way])
    return pair


def daemons_stop_and_die(net, way):
    """A daemon stops under load, goes on, and dies while it is stopped."""
    pair = start_busy(net, way)
    for host, program in zip(net.hosts, (pair.server, pair.client)):
        host.daemon.kill(signal.SIGSTOP)
        time.sleep(0.5)
        host.daemon.kill(signal.SIGCONT)
        expect_traffic(net, 'after the daemon was stopped')
        host.daemon.kill(signal.SIGSTOP)
        host.daemon.kill()
        host.daemon.wait(10)
        host.start_daemon()
        until(WAIT, lambda p=program: 'attached again' in p.errors(), program.describe)
        expect_path(host, PATHS[way])
        expect_traffic(net, 'with the new daemon')
    pair.finish()


def addresses_change(net, way):
    """Other addresses come and go under load, and new connections use them."""
    pair = start_busy(net, way)
    for _ in range(CHANGES):
        for change in 'add', 'del':
            for number, namespace in enumerate(net.namespaces, 1):
                namespace.ip('addr', change, OTHER.format(number) + '/24', 'dev', INTERFACE)
    for number, namespace in enumerate(net.namespaces, 1):
        namespace.ip('addr', 'add', OTHER.format(number) + '/24', 'dev', INTERFACE)
    gids = []
    for number, host in enumerate(net.hosts, 1):
        until(WAIT, lambda h=host, a=OTHER.format(number): any(
            entry['gid'].endswith(a) for entry in h.show('host')['host']['gids']), lambda: 'no GID of a new address')
        gids.append(host.gid(OTHER.format(number)))
    argv = ['ib_write_bw', '-F', '-s', '4096', '-n', '200']
    new = Pair(*net.hosts, argv, gids[0], OTHER.format(1), client_gid=gids[1])
    report.check_perftest(new.finish(60)[1], None)
    expect_traffic(net, 'after the changes')
    pair.finish()


def the_cable_fails(net, way):
    """The interface goes down under load, changes its MTU, disappears, and returns."""
    pair = start_busy(net, way)
    namespace = net.namespaces[0]
    macs = [mac(each) for each in net.namespaces]
    namespace.ip('link', 'set', INTERFACE, 'down')
    time.sleep(0.5)
    namespace.ip('link', 'set', INTERFACE, 'up')
    expect_traffic(net, 'after the interface was down')
    for mtu in 5000, MTU:
        namespace.ip('link', 'set', INTERFACE, 'mtu', str(mtu))
        expect_traffic(net, f'with an MTU of {mtu}')
    namespace.ip('link', 'del', INTERFACE)
    time.sleep(0.5)
    net.plug([MTU] * 2, macs)
    for host in net.hosts:
        expect_path(host, PATHS[way])
    expect_traffic(net, 'by the new cable')
    pair.finish()


CASES = {
    'daemons': daemons_stop_and_die,
    'addresses': addresses_change,
    'cable': the_cable_fails,
}


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--case', required=True, choices=CASES)
    parser.add_argument('--way', required=True, choices=WAYS)
    options = parser.parse_args()
    with Ethernet(options.build, [MTU] * 2, way_arguments(options.way)) as net:
        for host in net.hosts:
            until(20, lambda h=host: 'PORT_ACTIVE' in h.run('ibv_devinfo'), lambda: 'no link')
            host.environment.update(URXE_LOG='warning', URXE_RECONNECT_S='60')
        CASES[options.case](net, options.way)


if __name__ == '__main__':
    main(run)
