#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Runs the conformance tests on Linux' rdma_rxe, to show that the tests are right: rdma_rxe must break exactly the
rules that deviation.c lists.
"""
import os
import sys

from guest import Guest
from host import main
from image import Image

CONFORMANCE = 'tests/conformance/conformance'
MTU = 4200
# The NIC's other end is not connected.
WIRE = ['-netdev', 'hubport,id=n0,hubid=0']
# A guest with emulated processors needs long to create objects.
MANY = 200
MEMORY_MB = 2048
SECONDS = 1200


def run():
    build, = sys.argv[1:]
    image = Image(build, [os.path.join(build, CONFORMANCE)])
    with Guest(image, WIRE, memory_mb=MEMORY_MB) as guest:
        guest.make_rxe('192.0.2.2', MTU)
        print(guest.run(f'conformance -d rxe0 -m {MANY}', SECONDS))


main(run)
