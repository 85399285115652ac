#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
A program sends urxed a descriptor whose close blocks. urxed still serves other programs, and ends at
once on SIGTERM. With `old` urxed runs as if on a kernel that cannot refuse descriptors.
"""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import SKIP, Failure, Host, Pair, main, skip, succeed, until  # noqa: E402

PLACES = ('first', 'second', 'unread')


def attack(host, program, socket, kind, place):
    """Returns the program, which has sent its descriptor, or has been refused that."""
    hostile = host.spawn([program, host.run_dir, socket, kind, place], stdin=subprocess.PIPE)
    until(10, lambda: 'connected' in hostile.output() or not hostile.running(), hostile.describe)
    if not hostile.running() and hostile.wait(1) == SKIP:
        skip(hostile.output().strip())
    # Until the descriptor is the message's alone.
    host.daemon.kill(signal.SIGSTOP)
    hostile.process.stdin.write(b'!')
    hostile.process.stdin.flush()
    until(10, lambda: 'sent' in hostile.output() or 'refused' in hostile.output(), hostile.describe)
    host.daemon.kill(signal.SIGCONT)
    return hostile


def check_life(host, what):
    """New programs attach, connect and finish."""
    try:
        Pair(host, host, ['ibv_rc_pingpong', '-n', '10']).finish(5)
    except Failure as failure:
        raise Failure(f'urxed does not serve others after {what}: {failure}') from None


def run():
    build, kernel, kind = sys.argv[1:]
    program = os.path.join(build, 'tests/smoke/hostile_fd')
    with Host(build, daemon=False) as host:
        host.prefix = [os.path.join(build, 'tests/smoke/old_kernel')] if kernel == 'old' else []
        host.start_daemon()
        host.prefix = []
        sent = 0
        for socket in ('urxed.sock', 'urxed.cm', 'urxed.ctl'):
            for place in PLACES:
                hostile = attack(host, program, socket, kind, place)
                sent += 'sent' in hostile.output()
                check_life(host, f'{kind} on {socket}, {place}')
        if kernel == 'old' and not sent:
            raise Failure('the kernel refused all descriptors: there is nothing to test')
        if kernel == 'old' and 'has sent descriptors' not in host.daemon.errors():
            raise Failure(f'urxed does not say why: {host.daemon.errors()}')
        Pair(host, host, ['ib_write_bw', '-F', '-n', '500']).finish(5)
        host.daemon.kill(signal.SIGTERM)
        succeed(host.daemon, 1)


main(run)
