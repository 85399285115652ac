#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Random sequences of verbs (verbs_random.c) have the same results by packets as by copies, and the same on an HCA, which is
the device of another urxe, as in front of it, by the HCA or by the engine.
"""
import argparse
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import Failure, Host, main  # noqa: E402
from nested import OUTER, Nested  # noqa: E402

SECONDS = 60
SEEDS = range(1, 7)  # odd: single messages, some with errors; even: lists without errors


def by_transport(host, argv):
    """The names and outputs of packets and copies."""
    for transport in 'packet', 'auto':
        host.environment['URXE_TRANSPORT'] = transport
        yield f'transport {transport}', host.run(*argv, seconds=SECONDS)


def by_way(outer, nested, argv):
    """The names and outputs of the HCA and of the two ways of the device in front of it."""
    argv = [*argv, '-h']
    yield 'hca0', outer.run(*argv, '-d', 'hca0', seconds=SECONDS)
    for way in 'hca', 'engine':
        nested.way = way
        yield f'way {way}', nested.run(*argv, seconds=SECONDS)


def compare(runs, seed):
    """All outputs are as the first one, or Failure has the first operation that differs."""
    first, *others = ((name, re.split(r'^(?=operation )', output, flags=re.MULTILINE)) for name, output in runs)
    for other in others:
        number = next((i for i, texts in enumerate(zip(first[1], other[1])) if texts[0] != texts[1]), None)
        if number is not None:
            texts = '\n'.join(f'{name}:\n{operations[number]}' for name, operations in (first, other))
            raise Failure(f'operation {number} of seed {seed} differs between {first[0]} and {other[0]}\n{texts}\n'
                          f'alone: python3 {os.path.relpath(__file__)} --operations {number} build {seed}')
    print(f'seed {seed}: {len(first[1]) - 1} operations with the same results by {first[0]}, '
          f'{", ".join(name for name, _ in others)}')


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--operations', type=int, default=500)
    parser.add_argument('build')
    parser.add_argument('seeds', type=int, nargs='*', default=SEEDS, metavar='SEED', help='default: 1 to 6')
    options = parser.parse_args()
    program = [os.path.join(options.build, 'tests/smoke/verbs_random'), '-n', str(options.operations), '-s']
    with Host(options.build) as host, Host(options.build, arguments=OUTER) as outer, Nested(options.build, outer) as nested:
        host.environment['URXE_LOG'] = nested.log = 'error'
        for seed in options.seeds:
            compare(by_transport(host, [*program, str(seed)]), seed)
            compare(by_way(outer, nested, [*program, str(seed)]), seed)


main(run)
