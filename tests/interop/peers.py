#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
urxe and Linux' rxe, each once the server: every operation of perftest at one MTU, the pingpong
examples, and all that verbs_check compares byte for byte.
"""
import argparse
import os
import time

from lan import ADDRESSES, NICS, WIRES, Lan
from host import main
from image import Image
from rdma import VERBS_CHECK, serve_guest, serve_host
import operations

PATH_MTUS = [256, 512, 1024, 2048, 4096]


def both_ways(lan, argv, mtu, versions=(4, 6)):
    """Each side once the server, over the one and the other IP."""
    for serve, version in zip((serve_guest, serve_host), versions):
        print(f'{" ".join(argv)}: {serve.__name__}, IPv{version}', end=' ', flush=True)
        start = time.monotonic()
        serve(lan.host, lan.guest, argv, ADDRESSES[version], mtu)
        print(f'{time.monotonic() - start:.1f} s', flush=True)


def run_perftest(lan, mtu):
    # With the next MTU each operation changes sides between IPv4 and IPv6.
    first = PATH_MTUS.index(mtu)
    for number, argv in enumerate(operations.PERFTEST, first):
        both_ways(lan, operations.perftest(argv, mtu), mtu, (4, 6) if number % 2 else (6, 4))


def run_sizes(lan, mtu):
    for argv in operations.SIZES + operations.WAYS:
        both_ways(lan, operations.perftest(argv, mtu), mtu)


def run_contents(lan, mtu):
    for version in (4, 6):
        both_ways(lan, ['verbs_check', '-m', str(mtu)], mtu, (version, version))
    for argv in operations.PINGPONGS:
        both_ways(lan, operations.pingpong(argv, mtu), mtu)


PARTS = {'perftest': run_perftest, 'sizes': run_sizes, 'contents': run_contents}


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--uplink', choices=WIRES, required=True)
    parser.add_argument('--nic', choices=NICS, required=True)
    parser.add_argument('--mtu', type=int, choices=PATH_MTUS, action='append', required=True)
    parser.add_argument('--part', choices=PARTS, required=True)
    options = parser.parse_args()
    image = Image(options.build, [os.path.join(options.build, VERBS_CHECK)])
    with Lan(options.build, image, options.uplink, options.nic) as lan:
        for mtu in options.mtu:
            PARTS[options.part](lan, mtu)


if __name__ == '__main__':
    main(run)
