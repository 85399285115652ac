#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs one case of verbs_corners.c."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import Host, main  # noqa: E402


DAEMON_ARGUMENTS = {'pkey': ['--pkey', '0xffff', '--pkey', '0x8001']}


def run():
    build, corner = sys.argv[1:]
    with Host(build, arguments=DAEMON_ARGUMENTS.get(corner, ())) as host:
        print(host.run(os.path.join(build, 'tests/smoke/verbs_corners'), corner, seconds=120))


main(run)
