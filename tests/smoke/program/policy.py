#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Threads of liburxe.so and urxed inherit the scheduling policy of their program."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import Failure, Host, main, until  # noqa: E402


def check(pid):
    for thread in os.listdir(f'/proc/{pid}/task'):
        policy = os.sched_getscheduler(int(thread))
        if policy != os.SCHED_BATCH:
            raise Failure(f'a thread has policy {policy}, not SCHED_BATCH')
    return len(os.listdir(f'/proc/{pid}/task'))


def run():
    with Host(sys.argv[1], prefix=['chrt', '--batch', '0']) as host:
        watcher = host.start('stdbuf', '-oL', 'ibv_asyncwatch', '-d', 'urxe0')
        until(10, lambda: 'async event FD' in watcher.output(),
              lambda: f'does not watch: {watcher.describe()}')
        check(host.daemon_pid())
        if check(watcher.process.pid) < 2:
            raise Failure('the program has no engine thread, so the test checks nothing')


main(run)
