#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
urxe and Linux' rxe for a long time over a network that drops, duplicates and delays frames: programs in random
order, from a seed, at all path MTUs of the link. At the end the daemon must hold no more resources than before.
"""
import os
import random
import time

import lan
import operations
from host import Failure, main, open_files, until
from peers import PATH_MTUS, through_faults
from rdma import VERBS_CHECK

HEADERS = 100  # maximum bytes from the IP header to the ICRC, without payload


def chosen(dice, link_mtu):
    """A program with arguments for a path MTU, the MTU, and the IP version of each direction."""
    mtu = dice.choice([mtu for mtu in PATH_MTUS if mtu < link_mtu - HEADERS])
    versions = dice.choice([(4, 6), (6, 4)])
    if dice.random() < 0.5:
        argv = operations.with_contents(dice.choice(operations.CONTENTS_UNDER_FAULTS), mtu)
    else:
        argv = operations.perftest(dice.choice(operations.UNDER_FAULTS), mtu)
    return argv, mtu, versions


def check_daemon(host, files):
    """The daemon closes the descriptors of ended programs after a moment."""
    pid = host.daemon.process.pid
    until(20, lambda: len(open_files(pid)) <= files,
          lambda: f'{len(open_files(pid))} descriptors, and {files} before: {open_files(pid)}')


def soak(net, dice, seconds):
    """Runs programs in both directions; returns their number."""
    files = len(open_files(net.host.daemon.process.pid))
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        through_faults(net, *chosen(dice, net.wire.mtu))
        count += 1
        if not net.host.daemon.running():
            raise Failure('urxed has ended')
    check_daemon(net.host, files)
    return count


def run():
    options = lan.parser(__doc__)
    options.add_argument('--seconds', type=int, required=True)
    options.add_argument('--seed', type=int, default=random.randrange(1 << 32))
    options = options.parse_args()
    print(f'--seed {options.seed}', flush=True)
    with lan.make(options, [os.path.join(options.build, VERBS_CHECK)]) as net:
        count = soak(net, random.Random(options.seed), options.seconds)
        if options.fault:
            net.check_faults()
    print(f'{count} programs in {options.seconds} s, both ways each')


if __name__ == '__main__':
    main(run)
