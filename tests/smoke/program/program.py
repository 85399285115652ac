#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs a test program that needs no peer."""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import SKIP, Host, main, skip, succeed  # noqa: E402

SECONDS = 300


def run():
    parser = argparse.ArgumentParser()
    parser.add_argument('--user', help='an unprivileged user')
    parser.add_argument('build')
    parser.add_argument('program')
    parser.add_argument('arguments', nargs='*')
    options = parser.parse_args()
    with Host(options.build, options.user) as host:
        process = host.start(os.path.join(options.build, 'tests/smoke', options.program), *options.arguments)
        if process.wait(SECONDS) == SKIP:
            skip(process.output().strip())
        succeed(process, SECONDS)
        print(process.output())


main(run)
