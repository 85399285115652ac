#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Runs the conformance tests in a virtual machine on its PVRDMA device: device, driver and provider together break
exactly the rules that deviation.c lists.
"""
import contextlib
import os
import sys

from verbs import Lab, add_host
from vm import KERNEL_FAULT, VmImage
from host import main

CONFORMANCE = 'tests/conformance/conformance'
# A guest with emulated processors needs long to create objects.
MANY = 200
SECONDS = 1200


def run():
    build, *names = sys.argv[1:]
    with contextlib.ExitStack() as stack:
        lab = Lab(build, stack, VmImage(build, [os.path.join(build, CONFORMANCE)]))
        vm = lab.boot(add_host(build, stack))
        print(vm.run(f'conformance -d {vm.RDMA} -m {MANY} -p {" ".join(names)}', SECONDS))
        vm.expect_healthy(KERNEL_FAULT)  # the driver also logs what it refused


if __name__ == '__main__':
    main(run)
