#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Runs one of the checks of verbs_threads.c, or `connections`, which is cm_threads.c. In a build with ThreadSanitizer its runtime is the last
argument, and what it reports of the library or the daemon fails the check; the program itself is
not instrumented.
"""
import os
import subprocess
import sys

from host import Failure, Host, main, skip

SECONDS = 100


def sanitized(runtime):
    """How to start programs with the runtime, which needs memory where it expects it."""
    # Its own randomness of addresses is less than what newer kernels are set to.
    still = ['setarch', '-R']
    if subprocess.run([*still, 'true'], capture_output=True, check=False).returncode:
        skip('ThreadSanitizer needs addresses that are not random, and this container has others')
    # The symbolizer maps memory, by our mmap, before the runtime is ready to see that called: reports
    # name places by their offset in a file, for addr2line(1).
    return [*still, 'env', f'LD_PRELOAD={runtime}', 'TSAN_OPTIONS=exitcode=66:symbolize=0']


def run():
    build, check, *runtime = sys.argv[1:]
    with Host(build, prefix=sanitized(*runtime) if runtime else ()) as host:
        program = ['cm_threads'] if check == 'connections' else ['verbs_threads', check]
        host.run(os.path.join(build, 'tests/smoke', program[0]), *program[1:], seconds=SECONDS)
        for program in host.programs:
            if 'WARNING: ThreadSanitizer' in program.errors():
                raise Failure(f'a race: {program.describe()}')


main(run)
