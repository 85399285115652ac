#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A program of ThreadSanitizer exchanges messages under `urxe run`, and the engine's copies are no races."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import BUSY, Failure, Host, main, skip  # noqa: E402


def without_random_addresses():
    """The prefix of a command: ThreadSanitizer supports fewer random address bits than newer kernels use."""
    still = ['setarch', '-R']
    return [] if subprocess.run([*still, 'true'], capture_output=True, check=False).returncode else still


def run():
    program = os.path.join(sys.argv[1], 'tests/smoke/verbs_threads_tsan')
    with Host(sys.argv[1]) as host:
        result = subprocess.run([*without_random_addresses(), *host.command([program, 'shared'])], capture_output=True,
                                text=True, timeout=20 * BUSY, check=False, env=host.environment)
    if 'unexpected memory mapping' in result.stderr:
        skip('ThreadSanitizer needs addresses that are not random, and this container has others')
    if result.returncode or result.stderr:
        raise Failure(f'{program}: status {result.returncode}\n{result.stderr}')


main(run)
