#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs the conformance tests of one object on urxe0, which must have every tested feature."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '../harness'))
from host import Host, main  # noqa: E402


def run():
    build, tests = sys.argv[1], sys.argv[2:]
    with Host(build) as host:
        print(host.run(os.path.join(build, 'tests/conformance/conformance'), '-d', 'urxe0', '-w', *tests,
                       seconds=800))


main(run)
