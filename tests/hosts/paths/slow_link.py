#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
A link that is slower than the program. Frames beyond the socket's send buffer still arrive, although no later
frame pushes them and no peer asks again. A link that hardly sends loses frames, but urxed continues to work.
"""
import sys

from cell import run_program
from ethernet import Ethernet, INTERFACE, IPV4, run
from host import Pair, main, until

MTU, PATH_MTU = 4200, 4096
# The default send buffer of a socket has room for about 45 frames.
DATAGRAMS = ['ib_send_bw', '-c', 'UD', '-F', '-m', str(PATH_MTU), '-s', str(PATH_MTU - 1), '-n']
FEW = '200'
# Twice the capacity of the af_packet rings.
FLOOD = 4096


def slow_down(namespace, change, rate):
    """Sets the rate of the queueing discipline, whose queued frames count against the send buffer."""
    run(namespace.prefix() + ['tc', 'qdisc', change, 'dev', INTERFACE, 'root', 'tbf', 'rate', rate,
                              'burst', '10kb', 'limit', '10mb'])


def taken(host):
    """Frames that the switch has taken from the program."""
    return sum(port['counters']['in_frames'] for port in host.show('port')['ports']
               if port['kind'] == 'process')


def check_stuck(net):
    (sender, sender_gid, _), (receiver, receiver_gid, address) = net.ends(IPV4)
    pair = Pair(receiver, sender, [*DATAGRAMS, str(FLOOD)], receiver_gid, address, client_gid=sender_gid)
    slow_down(net.namespaces[0], 'change', '8kbit')
    until(60, lambda: taken(sender) >= FLOOD, pair.client.describe)
    for program in pair.client, pair.server:
        program.kill()


def check():
    # Through urxed: this is a test of its uplink.
    with Ethernet(sys.argv[1], [MTU] * 2, ['--direct-uplink', 'none']) as net:
        slow_down(net.namespaces[0], 'add', '50mbit')
        sender, receiver = net.ends(IPV4)
        run_program([receiver, sender], [*DATAGRAMS, FEW], PATH_MTU, lossy=False)
        check_stuck(net)


if __name__ == '__main__':
    main(check)
