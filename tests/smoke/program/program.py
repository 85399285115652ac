#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs a test program that needs no peer."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import SKIP, Host, main, skip, succeed  # noqa: E402

SECONDS = 300


def run():
    build, program, *arguments = sys.argv[1:]
    with Host(build) as host:
        process = host.start(os.path.join(build, 'tests/smoke', program), *arguments)
        if process.wait(SECONDS) == SKIP:
            skip(process.output().strip())
        succeed(process, SECONDS)
        print(process.output())


main(run)
