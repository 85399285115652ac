#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A program that starts while urxed restarts waits for it; without signs of a restart no program waits."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import BUSY, Failure, Host, main, succeed, until  # noqa: E402

PATIENCE = '60'  # URXE_RECONNECT_S, for busy machines
GAP_SECONDS = 1  # without a daemon
OPEN_RDMACM = 'import os; os.close(os.open("/dev/infiniband/rdma_cm", os.O_RDWR))'
# Interrupted all the time.
WITH_SIGNALS = ('import os, signal; signal.signal(signal.SIGALRM, lambda *_: None); '
                'signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01); os.close(os.open("/dev/infiniband/rdma_cm", os.O_RDWR)); '
                'signal.setitimer(signal.ITIMER_REAL, 0)')
PROGRAMS = (['ibv_devinfo', '-d', 'urxe0'], [sys.executable, '-c', OPEN_RDMACM], [sys.executable, '-c', WITH_SIGNALS])


def shell(host, argv):
    """A shell of `urxe run` that executes argv when its standard input has a line."""
    program = host.start('sh', '-c', 'echo ready; read line; exec "$@"', 'sh', *argv, stdin=subprocess.PIPE)
    until(20, lambda: 'ready' in program.output(), lambda: f'does not start: {program.describe()}')
    return program


def go(program):
    program.process.stdin.write(b'\n')
    program.process.stdin.close()


def end_daemon(host, number):
    host.daemon.kill(number)
    host.daemon.wait(10)


def check_waits(build, number, attached):
    """Programs that start after the daemon's end find the next daemon's device."""
    with Host(build) as host:
        host.environment['URXE_RECONNECT_S'] = PATIENCE
        if attached:
            watch = host.start('stdbuf', '-oL', 'ibv_asyncwatch', '-d', 'urxe0')
            until(20, lambda: 'async event FD' in watch.output(), lambda: f'does not attach: {watch.describe()}')
        programs = [shell(host, argv) for argv in PROGRAMS]
        end_daemon(host, number)
        for program in programs:
            go(program)
        time.sleep(GAP_SECONDS)
        for program in programs:
            if not program.running():
                raise Failure(f'does not wait: {program.describe()}')
        host.start_daemon()
        for program in programs:
            succeed(program, 20)


def variables(host, seconds):
    return {**host.environment, 'URXE_DIR': host.run_dir, 'LD_PRELOAD': os.path.join(host.top, 'verbs/liburxe.so'),
            'URXE_RECONNECT_S': seconds}


def run_alone(host, argv, seconds):
    """Runs a program that finds no daemon; returns for how long it ran."""
    begin = time.monotonic()
    result = subprocess.run(argv, env=variables(host, seconds), capture_output=True, text=True, check=False,
                            timeout=60 * BUSY)
    if not result.returncode:
        raise Failure(f'{argv} succeeds without a daemon: {result.stdout}')
    return time.monotonic() - begin


def expect_no_wait(host, why):
    for argv in PROGRAMS:
        took = run_alone(host, argv, PATIENCE)
        if took > int(PATIENCE) / 2:
            raise Failure(f'{argv} waits {took} s although {why}')


def check_no_signs(build):
    """No program waits in a directory that a daemon has left for good, or that none has ever had."""
    with Host(build) as host:
        host.run('ibv_devinfo')
        end_daemon(host, signal.SIGTERM)
        expect_no_wait(host, 'the daemon stopped and no program used it')
    with Host(build) as host:
        end_daemon(host, signal.SIGKILL)
        os.utime(host.run_dir, (0, 0))
        expect_no_wait(host, 'the daemon was killed before the boot')
    with Host(build) as host:
        shell(host, ['true'])
        end_daemon(host, signal.SIGTERM)
        os.utime(host.run_dir, (time.time() - 2 * int(PATIENCE),) * 2)
        expect_no_wait(host, 'the daemon stopped long ago')
    with Host(build, daemon=False) as host:
        expect_no_wait(host, 'no daemon has been there')


# Prints how long each of two attempts took.
TWICE = '''
import os, time
for _ in range(2):
    begin = time.monotonic()
    try:
        os.open("/dev/infiniband/rdma_cm", os.O_RDWR)
    except OSError:
        print(time.monotonic() - begin)
'''


def check_once(build):
    """A process waits once for a daemon that does not return, and ibv_devinfo tells what to do."""
    with Host(build) as host:
        end_daemon(host, signal.SIGKILL)
        result = subprocess.run([sys.executable, '-c', TWICE], env=variables(host, '2'), capture_output=True, text=True,
                                check=True, timeout=60 * BUSY)
        first, second = map(float, result.stdout.split())
        if first < 2 or second > first / 2:
            raise Failure(f'the first attempt took {first} s, the second one {second} s')
        if run_alone(host, PROGRAMS[0], '0') > 2 * BUSY:
            raise Failure('ibv_devinfo waits although URXE_RECONNECT_S is 0')


CHECKS = {
    'killed': lambda build: check_waits(build, signal.SIGKILL, False),
    'stopped': lambda build: check_waits(build, signal.SIGTERM, True),
    'stopped_idle': lambda build: check_waits(build, signal.SIGTERM, False),
    'no_signs': check_no_signs,
    'once': check_once,
}

if __name__ == '__main__':
    main(lambda: CHECKS[sys.argv[2]](sys.argv[1]))
