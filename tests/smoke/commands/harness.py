#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The harness of the tests: the end of a test that fails, and ports."""
import os
import random
import signal
import subprocess
import sys
import tempfile

HARNESS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness')
sys.path.insert(0, HARNESS)
from host import BUSY, Failure, free_port, main, size_of, until  # noqa: E402

TEST = '''
import sys
from host import Host, main
main(lambda: Host(sys.argv[1]))
'''


def check_end(script, end_by_signal):
    """
    A test whose urxed does not come up, or that is ended meanwhile, leaves neither a process nor a directory. A script takes
    the place of urxed.
    """
    with tempfile.TemporaryDirectory() as build, tempfile.TemporaryDirectory() as temporary:
        os.mkdir(os.path.join(build, 'tools'))
        urxed, pid_file = os.path.join(build, 'tools/urxed'), os.path.join(build, 'pid')
        with open(urxed, 'w', encoding='ascii') as file:
            file.write(f'#!/bin/sh\necho $$ >{pid_file}\n{script}\n')
        os.chmod(urxed, 0o755)
        test = subprocess.Popen([sys.executable, '-c', TEST, build], stdout=subprocess.PIPE, text=True,
                                env={**os.environ, 'PYTHONPATH': HARNESS, 'TMPDIR': temporary})
        until(10, lambda: size_of(pid_file), lambda: 'no urxed')
        if end_by_signal:
            test.send_signal(signal.SIGTERM)
        output, _ = test.communicate(timeout=20 * BUSY)
        with open(pid_file, encoding='ascii') as file:
            pid = int(file.read())
        left = os.listdir(temporary)
        if os.path.exists(f'/proc/{pid}'):
            os.kill(pid, signal.SIGKILL)
            left.append(f'process {pid}')
        if test.returncode != 1 or 'FAILED' not in output or left:
            raise Failure(f'{script}: status {test.returncode}, {left} is left\n{output}')


def check_ports():
    """Two tests that come by the same port do not both get it, although no server has bound it yet."""
    ports = set()
    for _ in range(2):
        random.seed(1)
        ports.add(free_port())
    if len(ports) != 2:
        raise Failure(f'the same port: {ports}')


def run():
    check_end('exit 1', False)
    check_end('exec sleep 1000', True)
    check_ports()


main(run)
