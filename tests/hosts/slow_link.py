#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
A link that is slower than the program: more than the kernel takes from a socket at once arrives all the
same, though nothing is sent behind it, and nobody asks for it again. One that hardly sends at all loses frames, but
urxed goes on with its other work.
"""
import sys

from cell import run_program
from ethernet import Ethernet, INTERFACE, IPV4, run
from host import Pair, main, until

MTU, PATH_MTU = 4200, 4096
# A socket's send buffer, by default, has room for some 45 of them.
DATAGRAMS = ['ib_send_bw', '-c', 'UD', '-F', '-m', str(PATH_MTU), '-s', str(PATH_MTU - 1), '-n']
FEW = '200'
# Twice what the rings of af_packet hold.
FLOOD = 4096


def slow_down(namespace, change, rate):
    """What is under way counts against that buffer as long as the queueing discipline has it."""
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
    with Ethernet(sys.argv[1], [MTU] * 2) as net:
        slow_down(net.namespaces[0], 'add', '50mbit')
        sender, receiver = net.ends(IPV4)
        run_program([receiver, sender], [*DATAGRAMS, FEW], PATH_MTU, lossy=False)
        check_stuck(net)


if __name__ == '__main__':
    main(check)
