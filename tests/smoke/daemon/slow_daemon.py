#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A program whose request urxed does not answer for some seconds, as beside a busy disk, waits and goes on."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import Failure, Host, main, succeed, until  # noqa: E402

STOPPED_SECONDS = 7  # an attachment gives up after 5 s without an answer


def run():
    build = sys.argv[1]
    with Host(build) as host:
        # If the program gave the daemon up, it would find no other one.
        host.environment['URXE_RECONNECT_S'] = '0'
        program = host.start(os.path.join(build, 'tests/smoke/verbs_slow_daemon'), stdin=subprocess.PIPE)
        until(20, lambda: 'ready' in program.output(), lambda: f'does not attach: {program.describe()}')
        host.daemon.kill(signal.SIGSTOP)
        try:
            program.process.stdin.close()
            time.sleep(STOPPED_SECONDS)
            if 'connected' in program.output():
                raise Failure('the queue pair needs no answer of urxed: this test shows nothing')
            if not program.running():
                raise Failure(f'does not wait for urxed: {program.describe()}')
        finally:
            host.daemon.kill(signal.SIGCONT)
        succeed(program, 20)


main(run)
