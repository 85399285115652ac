#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs under resource limits work, or print the reason."""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import BUSY, Failure, Host, Pair, main, succeed, until  # noqa: E402


def check_file_size(host):
    """RLIMIT_FSIZE counts queues as files: one limit is large enough, and one is too small."""
    Pair(host, host, ['prlimit', '--fsize=67108864', 'ibv_rc_pingpong']).finish(20)
    # The memory of vNIC and inbox is the daemon's file.
    host.run('prlimit', '--fsize=65536', 'ibv_devinfo', '-d', 'urxe0')
    program = host.start('prlimit', '--fsize=65536', 'ibv_rc_pingpong', '-r', '16000', '-g', '1')
    status = program.wait(20)
    if status <= 0 or "Couldn't create CQ" not in program.errors():
        raise Failure(f'status {status}: {program.describe()}')


def check_descriptors(host):
    """Under a small RLIMIT_NOFILE `urxe run` still has a descriptor for its connection to the daemon."""
    info = host.command(['ibv_devinfo', '-d', 'urxe0'])
    succeed(host.spawn(['sh', '-c', 'ulimit -n 64; exec "$@"', 'sh', *info]), 20)


def check_daemon(host):
    """A daemon that cannot write its own files leaves none, and prints the reason to a pipe, which the limit permits."""
    run_dir = os.path.join(host.top, 'elsewhere')
    refused = subprocess.run(['prlimit', '--fsize=0', os.path.join(host.top, 'tools/urxed'), '--run-dir', run_dir],
                             capture_output=True, text=True, timeout=20 * BUSY, check=False)
    if refused.returncode != 1 or not re.search('File too large.*limit of file sizes .*ulimit -f', refused.stderr):
        raise Failure(f'status {refused.returncode}: {refused.stderr!r}')
    if os.path.exists(run_dir):
        raise Failure(f'left behind: {run_dir}')
    # Another reason is named alone, also under a small limit.
    refused = subprocess.run(['prlimit', '--fsize=4000000', os.path.join(host.top, 'tools/urxed'), '--run-dir', run_dir,
                              '--uplink', 'af_packet:absent'], capture_output=True, text=True, timeout=20 * BUSY, check=False)
    if refused.returncode != 1 or 'absent' not in refused.stderr or 'limit of file sizes' in refused.stderr:
        raise Failure(f'status {refused.returncode}: {refused.stderr!r}')


def check_full_directory(host):
    """A daemon whose run directory has room for its own files starts; with less room it prints the reason."""
    run_dir = os.path.join(host.top, 'small')
    os.mkdir(run_dir)
    for size, status, said in (('200k', 1, 'No space left on device'), ('800k', 0, '')):
        script = (f'mount -t tmpfs -o size={size},mode=755 small "$1" && "$2" --run-dir "$1" || exit\n'
                  'kill $(cat "$1/urxed.pid")')
        started = subprocess.run(['unshare', '--map-root-user', '--mount', 'sh', '-c', script, 'sh', run_dir,
                                  os.path.join(host.top, 'tools/urxed')],
                                 capture_output=True, text=True, timeout=20 * BUSY, check=False)
        if started.returncode != status or said not in started.stderr:
            raise Failure(f'{size}: status {started.returncode}: {started.stderr!r}')


def check_small_daemon(host):
    """A program that a daemon with too small limits refuses prints the reason, or where it is."""
    limit, reason = '--fsize=5000000', "'ulimit -f unlimited'"
    run_dir = os.path.join(host.top, limit.strip('-'))
    daemon = host.spawn(['prlimit', limit, os.path.join(host.top, 'tools/urxed'), '--foreground', '--run-dir', run_dir])
    until(10, lambda: os.path.exists(f'{run_dir}/urxed.sock'), daemon.describe)
    program = subprocess.run([host.urxe, 'run', '--run-dir', run_dir, '--', 'ibv_devinfo'], text=True, timeout=20 * BUSY,
                             env={**host.environment, 'URXE_RECONNECT_S': '1'}, capture_output=True, check=False)
    daemon.kill(signal.SIGTERM)
    daemon.wait(10)
    if reason not in program.stderr or program.stderr.count('cannot attach') != 1:
        raise Failure(f'{limit}: {program.stderr}')


def check_few_descriptors(host):
    """urxed refuses a limit of descriptors with which it could serve no program, and tells of one that allows few."""
    for limit, status, said in (('127', 1, 'urxed needs a limit of 128 descriptors or more, but the hard limit is 127'),
                                ('300', None, 'with a limit of 300 descriptors (ulimit -n), urxed serves 11 programs')):
        run_dir = os.path.join(host.top, limit)
        daemon = host.spawn(['prlimit', f'--nofile={limit}', os.path.join(host.top, 'tools/urxed'), '--foreground', '--run-dir', run_dir])
        until(10, lambda d=daemon, r=run_dir: os.path.exists(f'{r}/urxed.sock') or not d.running(), daemon.describe)
        if daemon.process.poll() != status or said not in daemon.errors():
            raise Failure(f'{limit} descriptors: {daemon.describe()}')
        if not status:
            host.run(host.urxe, 'show', '--run-dir', run_dir)
            daemon.kill(signal.SIGTERM)


def run():
    with Host(sys.argv[1]) as host:
        check_file_size(host)
        check_descriptors(host)
        check_daemon(host)
        check_full_directory(host)
        check_small_daemon(host)
        check_few_descriptors(host)


main(run)
