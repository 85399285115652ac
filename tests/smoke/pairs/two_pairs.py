#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two pairs at once over one daemon; both must succeed with the right contents."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import Host, Pair, main  # noqa: E402


def run():
    with Host(sys.argv[1]) as host:
        pairs = [Pair(host, host, [host.verbs_check]),
                 Pair(host, host, [host.verbs_check, '-e'], gid=2),
                 Pair(host, host, ['ib_write_bw', '-F', '-n', '2000'])]
        for pair in pairs:
            print(*pair.finish(80), sep='\n')


main(run)
