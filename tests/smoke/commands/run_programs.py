#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs into which a library is hard to preload: each works under `urxe run`, or one line tells the reason."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import BUSY, Failure, Host, main  # noqa: E402

SECONDS = 100
NOBODY = 65534


def call(host, argv, **variables):
    return subprocess.run(argv, capture_output=True, text=True, timeout=20 * BUSY, check=False,
                          env={**host.environment, **variables})


def want(host, argv, status, pattern, **variables):
    """The command must end with this status, and write a matching line to stderr."""
    result = call(host, argv, **variables)
    if result.returncode != status or not re.search(pattern, result.stderr):
        raise Failure(f'{" ".join(argv)}: status {result.returncode}, not {status} with {pattern}:\n'
                      f'{result.stdout}{result.stderr}')


def check_sanitizer(host):
    """A program of AddressSanitizer, whose runtime is a shared library, exchanges messages. So does one that a shell starts."""
    program = os.path.join(sys.argv[1], 'tests/smoke/verbs_threads_asan')
    host.run(program, 'shared', seconds=SECONDS)
    host.run('sh', '-c', f'{program} shared; exit $?', seconds=SECONDS)
    shown = call(host, host.command(['sh', '-c', 'echo $ASAN_OPTIONS']),
                 ASAN_OPTIONS='detect_leaks=0').stdout.strip()
    if shown != 'detect_leaks=0:verify_asan_link_order=0':
        raise Failure(f'the options of the user have become {shown}')
    shown = call(host, host.command(['sh', '-c', 'echo $ASAN_OPTIONS']),
                 ASAN_OPTIONS='verify_asan_link_order=1').stdout.strip()
    if shown != 'verify_asan_link_order=1':
        raise Failure(f'the decision of the user has become {shown}')


def check_thread_sanitizer(host):
    """`urxe run` adds an option to those of the user. run_thread_sanitizer.py runs a program with it."""
    shown = call(host, host.command(['sh', '-c', 'echo $TSAN_OPTIONS']),
                 TSAN_OPTIONS='history_size=2').stdout.strip()
    if shown != 'history_size=2:ignore_noninstrumented_modules=1':
        raise Failure(f'the options of the user have become {shown}')


def check_static(host):
    """A static program is executed, with a line that names the reason why it has no device."""
    program = os.path.join(sys.argv[1], 'tests/smoke/plain_static')
    want(host, host.command([program]), 0, f'{program} is statically linked')
    folder, name = os.path.split(program)
    want(host, host.command([name]), 0, f'{name} is statically linked',
         PATH=f'{folder}:{host.environment["PATH"]}')


def check_privileges(host):
    """A program that gets other privileges is refused; without effect these bits change nothing."""
    program = os.path.join(host.top, 'setuid')
    shutil.copy(os.path.join(sys.argv[1], 'tests/smoke/plain'), program)
    os.chmod(program, 0o6755)
    want(host, host.command([program]), 0, '^$')
    if os.getuid():
        return
    os.chown(program, NOBODY, 0)
    os.chmod(program, 0o4755)
    if os.statvfs(program).f_flag & os.ST_NOSUID:
        return
    want(host, host.command([program]), 126, r'setuid gets other privileges \(setuid, setgid or file cap')
    want(host, ['setpriv', '--no-new-privs', *host.command([program])], 0, '^$')
    # Also a program that its user may execute, but not read.
    os.chown(program, 0, 0)
    os.chmod(program, 0o4711)
    want(host, ['setpriv', f'--reuid={NOBODY}', '--clear-groups', *host.command([program])], 126, 'setuid gets other privileges')
    # No program of a process that has another effective user than a real one can have the device.
    effective = f'import os, sys; os.setresuid({NOBODY}, 0, 0); os.execvp(sys.argv[1], sys.argv[1:])'
    want(host, [sys.executable, '-c', effective, *host.command(['true'])], 126, "the effective user or group of 'urxe run'")


def check_first_process(host):
    """
    As the first process of a container `urxe run` gives the program no child that the program has not started, and
    passes signals and the exit status on.
    """
    if call(host, ['unshare', '--pid', '--fork', '--mount-proc', 'true']).returncode:
        return
    wait_for_children = 'import os\ntry:\n while True: os.wait()\nexcept ChildProcessError: print("no child")'
    for argv, status, output in (([sys.executable, '-c', wait_for_children], 0, 'no child\n'),
                                 (['ibv_devinfo', '-d', 'urxe0'], 0, None),
                                 (['sh', '-c', 'exit 7'], 7, ''), (['sh', '-c', 'kill -TERM $$'], 143, ''),
                                 (['sh', '-c', 'trap "exit 5" TERM; kill -TERM 1; while :; do sleep 0.1; done'], 5, ''),
                                 (['/no/such/program'], 127, '')):
        result = call(host, ['unshare', '--pid', '--fork', '--mount-proc', host.urxe, 'run', '--run-dir',
                             os.path.join(host.top, 'first'), '--', *argv])
        if result.returncode != status or output not in (None, result.stdout):
            raise Failure(f'{argv}: status {result.returncode}, not {status}:\n{result.stdout}{result.stderr}')


def check_run_dir(host):
    """A program whose URXE_DIR is wrong says so, once."""
    library = os.path.join(host.top, 'verbs/liburxe.so')
    for folder, pattern in ((os.path.join(host.top, 'none'),
                             r'none, named by URXE_DIR, is not .* of a running urxed \(No such file or directory\)'),
                            ('relative', "URXE_DIR is not the absolute path of a run directory: 'relative'")):
        result = call(host, ['ibv_devices'], URXE_DIR=folder, LD_PRELOAD=library)
        if len(re.findall('URXE_DIR', result.stderr)) != 1 or not re.search(pattern, result.stderr):
            raise Failure(f'ibv_devices with URXE_DIR={folder}:\n{result.stderr}')
    result = call(host, ['ls', '/sys/class/net'], URXE_DIR=os.path.join(host.top, 'none'),
                  LD_PRELOAD=library)
    if result.stderr or result.returncode:
        raise Failure(f'ls writes {result.stderr}')
    mount = ('mount -t tmpfs none /sys/class; mkdir -p /sys/class/infiniband/mlx5_0; mount -t tmpfs none /dev; '
             'mkdir /dev/infiniband; echo of the kernel >/dev/infiniband/rdma_cm; exec "$@"')
    look = 'ls /sys/class/infiniband; test -c /dev/infiniband/rdma_cm || cat /dev/infiniband/rdma_cm'
    for folder, expected in ((os.path.join(host.top, 'none'), 'mlx5_0\nof the kernel\n'), (host.run_dir, 'urxe0\n')):
        result = call(host, ['unshare', '--mount', 'sh', '-ec', mount, 'sh', 'env', f'URXE_DIR={folder}',
                             f'LD_PRELOAD={library}', 'sh', '-c', look])
        if result.stdout != expected:
            raise Failure(f'with URXE_DIR={folder} there is {result.stdout}{result.stderr}')


def check_unreachable_daemon():
    """A program tells why it cannot reach the daemon of its run directory."""
    with Host(sys.argv[1]) as host:
        library = os.path.join(host.top, 'verbs/liburxe.so')
        variables = {'URXE_DIR': host.run_dir, 'LD_PRELOAD': library}
        if not os.getuid():
            other = ['setpriv', '--reuid', str(NOBODY), '--regid', str(NOBODY), '--clear-groups', 'ibv_devinfo']
            os.chmod(host.run_dir, 0o700)
            result = call(host, other, **variables)
            if f'{host.run_dir}, named by URXE_DIR, cannot be read: Permission denied' not in result.stderr:
                raise Failure(f'another user reads: {result.stderr}')
        host.daemon.kill()
        result = call(host, ['ibv_devinfo'], **variables)
        said = f"cannot attach to urxed in {host.run_dir}: it does not run: start programs by 'urxe run'"
        if result.stderr.count('cannot attach') != 1 or said not in result.stderr:
            raise Failure(f'without the daemon: {result.stderr}')


def check_rdma(host):
    """rdma(8) asks the kernel only; the user learns which command shows the device."""
    if shutil.which('rdma', path=host.environment['PATH']):
        result = call(host, host.command(['rdma', 'link']))
        if "use 'urxe show'" not in result.stderr:
            raise Failure(f'rdma link: {result.stderr}')


def run():
    with Host(sys.argv[1]) as host:
        check_sanitizer(host)
        check_thread_sanitizer(host)
        check_static(host)
        check_privileges(host)
        check_first_process(host)
        check_run_dir(host)
        check_rdma(host)
    check_unreachable_daemon()


main(run)
