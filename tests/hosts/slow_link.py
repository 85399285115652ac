#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
A link that is slower than the program: more than the kernel takes from a socket at once arrives all the
same, though nothing is sent behind it, and nobody asks for it again.
"""
import sys

from cell import run_program
from ethernet import Ethernet, INTERFACE, IPV4, run
from host import main

MTU, PATH_MTU = 4200, 4096
# A socket's send buffer, by default, has room for some 45 of them.
DATAGRAMS = ['ib_send_bw', '-c', 'UD', '-F', '-m', str(PATH_MTU), '-s', str(PATH_MTU - 1), '-n', '200']
# What is under way counts against that buffer as long as the queueing discipline has it.
SLOW = ['rate', '50mbit', 'burst', '10kb', 'limit', '10mb']


def check():
    with Ethernet(sys.argv[1], [MTU] * 2) as net:
        run(net.namespaces[0].prefix() + ['tc', 'qdisc', 'add', 'dev', INTERFACE, 'root', 'tbf', *SLOW])
        sender, receiver = net.ends(IPV4)
        run_program([receiver, sender], DATAGRAMS, PATH_MTU, lossy=False)


if __name__ == '__main__':
    main(check)
