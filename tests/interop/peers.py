#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
urxe and Linux' rxe, each once the server: every operation of perftest at one MTU, the pingpong
examples, and all that verbs_check compares byte for byte.
"""
import os
import time

import lan
from host import Failure, main
from rdma import VERBS_CHECK, serve_guest, serve_host
import operations
import report

TRIES = 5
PATH_MTUS = [256, 512, 1024, 2048, 4096]


def both_ways(net, argv, mtu, versions=(4, 6)):
    """Each side once the server, over the one and the other IP."""
    for serve, version in zip((serve_guest, serve_host), versions):
        print(f'{" ".join(argv)}: {serve.__name__}, IPv{version}', end=' ', flush=True)
        start = time.monotonic()
        serve(net.host, net.guest, argv, lan.ADDRESSES[version], mtu)
        print(f'{time.monotonic() - start:.1f} s', flush=True)


def run_perftest(net, mtu):
    # With the next MTU each operation changes sides between IPv4 and IPv6.
    first = PATH_MTUS.index(mtu)
    for number, argv in enumerate(operations.PERFTEST, first):
        both_ways(net, operations.perftest(argv, mtu), mtu, (4, 6) if number % 2 else (6, 4))


def run_sizes(net, mtu):
    for argv in operations.SIZES + operations.WAYS:
        both_ways(net, operations.perftest(argv, mtu), mtu)
    for argv in operations.LARGEST:
        both_ways(net, operations.with_contents(argv, mtu), mtu)


def run_contents(net, mtu):
    first = PATH_MTUS.index(mtu)
    for number, argv in enumerate(operations.VERBS_CHECK + operations.PINGPONGS, first):
        both_ways(net, operations.with_contents(argv, mtu), mtu, (4, 6) if number % 2 else (6, 4))


def ended_first(failure):
    """
    Whether the last acknowledgement was lost and its sender had gone already: the pingpong examples
    destroy their queue pair without asking whether the other side has done so much.
    """
    text = str(failure)
    return 'transport retry counter exceeded' in text and report.PINGPONG.search(text)


def through_faults(net, argv, mtu):
    for _ in range(TRIES):
        try:
            return both_ways(net, argv, mtu)
        except Failure as failure:
            if not ended_first(failure):
                raise
            print('(the last acknowledgement was lost)')
    raise Failure(f'{argv[0]} ended before its peer {TRIES} times')


def run_faults(net, mtu):
    for argv in operations.CONTENTS_UNDER_FAULTS:
        through_faults(net, operations.with_contents(argv, mtu), mtu)
    for argv in operations.UNDER_FAULTS:
        through_faults(net, operations.perftest(argv, mtu), mtu)


PARTS = {'perftest': run_perftest, 'sizes': run_sizes, 'contents': run_contents,
         'faults': run_faults}


def run():
    options = lan.parser(__doc__, PARTS)
    options.add_argument('--mtu', type=int, choices=PATH_MTUS, required=True)
    options = options.parse_args()
    with lan.make(options, [os.path.join(options.build, VERBS_CHECK)]) as net:
        PARTS[options.part](net, options.mtu)


if __name__ == '__main__':
    main(run)
