#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
urxe and Linux' rxe, each once the server: every operation of perftest at one MTU, the pingpong
examples, and all that verbs_check compares byte for byte.
"""
import os
import re
import time

import lan
from host import Failure, main
from rdma import VERBS_CHECK, serve_guest, serve_host
import operations
import report

# ibv_srq_pingpong's 16 queue pairs each have a last acknowledgement to lose, with 1 % for each: that all of
# these runs end so is a matter of one in 2,000.
TRIES = 4
PATH_MTUS = [256, 512, 1024, 2048, 4096]


# Of parts with two MTUs: with the larger one each side serves by the IP that it did not before.
ORDER = {mtu: (6, 4) if mtu == max(PATH_MTUS) else (4, 6) for mtu in PATH_MTUS}


def ways(versions):
    """Each side once the server, over the one and the other IP."""
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
    # With the next MTU each operation changes sides between IPv4 and IPv6.
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
    Whether one side has all that it wanted and says so, and the other waits for an acknowledgement that was lost:
    the pingpong examples destroy their queue pairs without asking whether the other side has done so much.
    """
    text = str(failure)
    return 'transport retry counter exceeded' in text and report.PINGPONG.search(text)


def waits_for_ever(guest, argv, failure):
    """
    Whether it is the machine's side that waits for such an acknowledgement, which it then does without end: to
    Linux' rxe the retry count of the pingpong examples, 7, is no bound, and 6.12, of which an acknowledgement has
    ended a part of what it repeats, may set no timer. With urxe's queue pair gone nobody can help it. Its program is
    ended.
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
