#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs one check of verbs_process.c; for `gone` it kills the daemon."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import Failure, Host, main, skip, succeed, until  # noqa: E402

SECONDS = 300


def gone(host, program):
    host.environment.update(URXE_RECONNECT_S='0', RDMAV_ALLOW_DISASSOC_DESTROY='1')
    process = host.start(program, 'gone', stdin=subprocess.PIPE)
    until(SECONDS, lambda: 'ready' in process.output() or not process.running(), process.describe)
    host.daemon.kill()
    until(SECONDS, lambda: 'closed' in process.output() or not process.running(), process.describe)
    if process.running():
        host.start_daemon()
        process.process.stdin.write(b'\n')
        process.process.stdin.flush()
    succeed(process, SECONDS)


def last_thread(host, program, check):
    if 'ended' not in host.run(program, check, seconds=SECONDS):
        raise Failure('the end ran no handler of atexit')


def no_thread(build, program):
    """The limit does not count for root."""
    with Host(build, user='nobody' if os.getuid() == 0 else None) as host:
        process = host.start(program, 'no_thread')
        succeed(process, SECONDS)
        if 'cannot start the engine thread: Resource temporarily unavailable' not in process.errors():
            raise Failure(f'does not print why it has no device: {process.describe()}')


def drop(build, program):
    """In a run directory that the daemon has made."""
    if os.getuid():
        skip('only root can give up root')
    with Host(build, daemon=False) as host:
        os.rmdir(host.run_dir)
        host.run(program, 'drop', seconds=SECONDS)


def run():
    build, check = sys.argv[1:]
    program = os.path.join(build, 'tests/smoke/verbs_process')
    if check in ('drop', 'no_thread'):
        (drop if check == 'drop' else no_thread)(build, program)
        return
    with Host(build) as host:
        if check == 'gone':
            gone(host, program)
        elif check.startswith('last_'):
            last_thread(host, program, check)
        else:
            host.run(program, check, seconds=SECONDS)


main(run)
