#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
A program that replies to each message at once ends when it has received the last one (last_reply.c): its peer has
the acknowledgement of that message, however the program ended, by each way to the wire.
"""
import os
import signal
import sys

from ethernet import Ethernet, IPV4
from host import Failure, main, succeed

ENDS = {'close': 0, 'exit': 0, 'exec': 0, 'rest': 0, 'kill': -signal.SIGKILL}
ROUNDS = 2


def run_once(net, build, end, number):
    program = os.path.join(build, 'tests/hosts/last_reply')
    socket = os.path.join(net.hosts[0].top, f'last-{end}-{number}')
    gids = [host.gid(IPV4.format(number)) for number, host in enumerate(net.hosts, 1)]
    server = net.hosts[0].start(program, '-g', str(gids[0]), '-s', socket, '-e', end)
    client = net.hosts[1].start(program, '-g', str(gids[1]), '-s', socket)
    succeed(client, 60)
    status = server.wait(20)
    if status != ENDS[end]:
        raise Failure(f'the server ended with {status}: {server.describe()}')


def run():
    build = sys.argv[1]
    for arguments in ([], ['--direct-uplink', 'none']):
        with Ethernet(build, [1500] * 2, arguments) as net:
            for end in ENDS:
                for number in range(ROUNDS):
                    run_once(net, build, end, number)


if __name__ == '__main__':
    main(run)
