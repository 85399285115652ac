#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs server and client of a program over one urxed. Both must succeed with the right output."""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
import report  # noqa: E402
from host import Host, Pair, main  # noqa: E402


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--user', help='an unprivileged user')
    parser.add_argument('--gid', type=int, action='append', help='GID index, default 1 (IPv4)')
    parser.add_argument('--seconds', type=int, default=120)
    parser.add_argument('argv', nargs='+')
    options = parser.parse_args()
    with Host(options.build, options.user) as host:
        argv = list(options.argv)
        if argv[0] == 'verbs_check':
            argv[0] = host.verbs_check
        for gid in options.gid or [1]:
            outputs = Pair(host, host, argv, gid).finish(options.seconds)
            report.check(argv, *outputs)
            print(*outputs, sep='\n')


if __name__ == '__main__':
    main(run)
