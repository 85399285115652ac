#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two pairs at once over one daemon; both must succeed with the right contents."""
import sys

from host import Host, Pair, main


def run():
    with Host(sys.argv[1]) as host:
        pairs = [Pair(host, host, [host.verbs_check]),
                 Pair(host, host, [host.verbs_check, '-e'], gid=2),
                 Pair(host, host, ['ib_write_bw', '-F', '-n', '2000'])]
        for pair in pairs:
            print(*pair.finish(80), sep='\n')


main(run)
