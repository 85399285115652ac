#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs one of the test programs that need no peer."""
import os
import sys

from host import Host, main


def run():
    build, program = sys.argv[1:]
    with Host(build) as host:
        print(host.run(os.path.join(build, 'tests/smoke', program), seconds=300))


main(run)
