#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""When urxed dies, its programs get one event, and use no CPU time afterwards."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import Failure, Host, main, until  # noqa: E402

REST_SECONDS = 1
MOST_SECONDS = 0.2  # maximum CPU time within REST_SECONDS


def processor_seconds(pid):
    with open(f'/proc/{pid}/stat') as stat:
        fields = stat.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def run():
    with Host(sys.argv[1]) as host:
        host.environment['URXE_RECONNECT_S'] = '0'
        watcher = host.start('stdbuf', '-oL', 'ibv_asyncwatch', '-d', 'urxe0')
        until(10, lambda: 'async event FD' in watcher.output(),
              lambda: f'does not watch: {watcher.describe()}')
        host.daemon.kill()
        until(5, lambda: 'event_type' in watcher.output(),
              lambda: f'hears nothing of the death of urxed: {watcher.describe()}')
        before = processor_seconds(watcher.process.pid)
        time.sleep(REST_SECONDS)
        used = processor_seconds(watcher.process.pid) - before
        if used > MOST_SECONDS:
            raise Failure(f'{used} s of processor time in {REST_SECONDS} s after urxed died')
        if watcher.output().count('event_type') != 1:
            raise Failure(f'not one event: {watcher.describe()}')


main(run)
