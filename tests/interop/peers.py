#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
urxe and Linux' rxe, with the server on either side: every operation of perftest at one MTU, the pingpong examples,
and verbs_check, which compares every byte.
"""
import os
import re
import time

import lan
from host import Failure, main
from rdma import VERBS_CHECK, serve_guest, serve_host
import operations
import report

# Each of the 16 queue pairs of ibv_srq_pingpong loses its last ACK with a probability of 1 %. All of these runs fail
# for that reason in one of 2,000 cases.
TRIES = 4
PATH_MTUS = [256, 512, 1024, 2048, 4096]


# In parts with two MTUs, the sides swap their IP versions with the larger MTU.
ORDER = {mtu: (6, 4) if mtu == max(PATH_MTUS) else (4, 6) for mtu in PATH_MTUS}


def ways(versions):
    """The server side and the IP version of each run: each side once, each with another version."""
    return zip((serve_guest, serve_host), versions)


def one_way(net, serve, version, argv, mtu):
    print(f'{" ".join(argv)}: {serve.__name__}, IPv{version}', end=' ', flush=True)
    start = time.monotonic()
    serve(net.host, net.guest, argv, lan.ADDRESSES[version], mtu)
    print(f'{time.monotonic() - start:.1f} s', flush=True)


def both_ways(net, argv, mtu, versions):
    for serve, version in ways(versions):
        one_way(net, serve, version, argv, mtu)


def run_perftest(net, mtu):
    # From one MTU to the next, each operation swaps the IP versions of the sides.
    first = PATH_MTUS.index(mtu)
    for number, argv in enumerate(operations.PERFTEST, first):
        both_ways(net, operations.perftest(argv, mtu), mtu, (4, 6) if number % 2 else (6, 4))


def run_sizes(net, mtu):
    for argv in operations.SIZES + operations.WAYS:
        both_ways(net, operations.perftest(argv, mtu), mtu, ORDER[mtu])
    for argv in operations.LARGEST:
        both_ways(net, operations.with_contents(argv, mtu), mtu, ORDER[mtu])


def run_contents(net, mtu):
    first = PATH_MTUS.index(mtu)
    for number, argv in enumerate(operations.VERBS_CHECK + operations.PINGPONGS, first):
        both_ways(net, operations.with_contents(argv, mtu), mtu, (4, 6) if number % 2 else (6, 4))


def ended_first(failure):
    """
    Whether one side has succeeded, and the other side waits for a lost ACK: the pingpong examples destroy their
    queue pairs without waiting for the peer.
    """
    text = str(failure)
    return 'transport retry counter exceeded' in text and report.PINGPONG.search(text)


def waits_for_ever(guest, argv, failure):
    """
    Whether the machine's side waits for a lost ACK, and does so for ever. Linux' rxe treats the retry count 7 of the
    pingpong examples as infinite. Linux 6.12 may set no timer after an ACK for a part of the repeated packets. urxe's
    queue pair no longer exists, so the test ends the machine's program.
    """
    text = str(failure)
    if not (re.search(rf'still running after \d+ s: \({guest.name}\) ibv_', text) and report.PINGPONG.search(text)):
        return False
    guest.run(f'killall -9 {argv[0]}')
    return True


def through_faults(net, argv, mtu, versions):
    for serve, version in ways(versions):
        for left in reversed(range(TRIES)):
            try:
                one_way(net, serve, version, argv, mtu)
                break
            except Failure as failure:
                if not left or not (ended_first(failure) or waits_for_ever(net.guest, argv, failure)):
                    raise
                print('(the last acknowledgement was lost)')


def run_faults(net, mtu):
    for argv in operations.CONTENTS_UNDER_FAULTS:
        through_faults(net, operations.with_contents(argv, mtu), mtu, ORDER[mtu])
    for argv in operations.UNDER_FAULTS:
        through_faults(net, operations.perftest(argv, mtu), mtu, ORDER[mtu])
    net.check_faults()


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
