#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A connection between two hosts survives a restart of either daemon."""
import argparse
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../paths'))
from ethernet import Ethernet, IPV4, WAYS, way_arguments  # noqa: E402
from endless import EndlessPair  # noqa: E402
from host import main, until  # noqa: E402

# The other host retries for the time of the restart: its timeout of 2 s, eight times, is longer.
ARGV = ['ib_write_bw', '-F', '-u', '19']


def restart(host, program, number):
    host.daemon.kill(number)
    host.daemon.wait(10)
    host.start_daemon()
    until(20, lambda: 'attached again' in program.errors(),
          lambda: f'does not find the new daemon: {program.describe()}')


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--way', choices=WAYS, default='direct')
    options = parser.parse_args()
    with Ethernet(options.build, [9000] * 2, way_arguments(options.way)) as net:
        for host in net.hosts:
            until(20, lambda: 'PORT_ACTIVE' in host.run('ibv_devinfo'), lambda: 'no link')
            host.environment.update(URXE_LOG='warning', URXE_RECONNECT_S='60')
        gids = [host.gid(IPV4.format(number)) for number, host in enumerate(net.hosts, 1)]
        pair = EndlessPair(*net.hosts, ARGV, gids[0], IPV4.format(1), client_gid=gids[1])
        for host, program, number in ((net.hosts[0], pair.server, signal.SIGKILL),
                                      (net.hosts[1], pair.client, signal.SIGTERM)):
            pair.go_on()
            restart(host, program, number)
        pair.finish()


if __name__ == '__main__':
    main(run)
