#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Kills and stops programs at random moments. The daemon and all other programs must continue: a second pair
compares contents all the time, and after each kill a new pair must work.
"""
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import Failure, Host, Pair, main, succeed  # noqa: E402

ROUNDS = 12
VICTIMS = [
    ['ib_write_bw', '-F', '-D', '30'],
    ['ib_send_bw', '-F', '-D', '30'],
    ['ib_read_bw', '-F', '-D', '30', '-q', '4'],
    ['ib_write_lat', '-F', '-D', '30'],
    ['ib_send_bw', '-F', '-D', '30', '-c', 'UD', '-s', '1024'],
    ['ibv_rc_pingpong', '-e', '-n', '10000000'],
]


def strike(host, rng, argv):
    """Starts a pair, and kills or stops one side at a random moment between its start and full speed."""
    pair = Pair(host, host, argv)
    victim, survivor = rng.sample([pair.server, pair.client], 2)
    time.sleep(rng.uniform(0, 1.2))
    if not victim.running():
        raise Failure(f'the program ended by itself: {victim.describe()}')
    if rng.random() < 0.3:
        # A stopped program neither polls nor returns buffers.
        victim.kill(signal.SIGSTOP)
        time.sleep(0.5)
    victim.kill()
    # The other side may wait for its peer for ever, so the test kills it.
    time.sleep(rng.uniform(0, 0.3))
    survivor.kill()


def run():
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    rng = random.Random(seed)
    print(f'seed {seed}')
    with Host(sys.argv[1]) as host:
        bystander = Pair(host, host, [host.verbs_check])
        for number in range(ROUNDS):
            argv = VICTIMS[number % len(VICTIMS)]
            strike(host, rng, argv)
            if not host.daemon.running():
                raise Failure(f'urxed died after {argv}: {host.daemon.describe()}')
            Pair(host, host, ['ibv_rc_pingpong', '-n', '100']).finish(20)
            if not (bystander.server.running() or bystander.client.running()):
                bystander.finish(1)
                bystander = Pair(host, host, [host.verbs_check])
        bystander.finish(60)
        host.daemon.kill(signal.SIGTERM)
        succeed(host.daemon, 5)


main(run)
