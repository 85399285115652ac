#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Runs one check of verbs_threads.c, or `connections` of cm_threads.c. In a build with ThreadSanitizer the last
argument is its runtime, and a report about the library or the daemon fails the check. The program itself is
not instrumented.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import Failure, Host, main, skip  # noqa: E402

SECONDS = 100


def sanitized(runtime):
    """The command line prefix that loads the runtime, which needs a fixed memory layout."""
    # The runtime supports fewer random address bits than newer kernels use.
    still = ['setarch', '-R']
    if subprocess.run([*still, 'true'], capture_output=True, check=False).returncode:
        skip('ThreadSanitizer needs addresses that are not random, and this container has others')
    # Without a symbolizer, because it would call the library's mmap before the runtime is ready. Reports name
    # offsets in files, for addr2line(1).
    # The program is not instrumented, and the order of its own memory calls counts too.
    options = 'exitcode=66:symbolize=0:ignore_noninstrumented_modules=0'
    return [*still, 'env', f'LD_PRELOAD={runtime}', f'TSAN_OPTIONS={options}']


def run():
    build, check, *runtime = sys.argv[1:]
    with Host(build, prefix=sanitized(*runtime) if runtime else ()) as host:
        program = ['cm_threads'] if check == 'connections' else ['verbs_threads', check]
        host.run(os.path.join(build, 'tests/smoke', program[0]), *program[1:], seconds=SECONDS)
        for program in host.programs:
            if 'WARNING: ThreadSanitizer' in program.errors():
                raise Failure(f'a race: {program.describe()}')


main(run)
