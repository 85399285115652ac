#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Checks the files of `meson install`, and that the installed urxe works."""
import contextlib
import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import BUSY, Failure, main  # noqa: E402

# Relative to the prefix.
FILES = ['bin/urxe', 'bin/urxe-bench', 'sbin/urxed', 'include/urxe/checkpoint.h', 'lib/*/urxe/liburxe.so', 'lib/*/urxe/liburxe-outer.so',
         'lib/systemd/system/urxed.service', 'lib/systemd/user/urxed.service', 'lib/tmpfiles.d/urxe.conf',
         'share/man/man1/urxe.1', 'share/man/man5/urxe.conf.5', 'share/man/man7/urxe-counters.7',
         'share/man/man8/urxed.8', 'share/bash-completion/completions/urxe', 'share/bash-completion/completions/urxed',
         'share/zsh/vendor-completions/_urxe',
         'share/doc/urxe/urxe.conf', 'share/doc/urxe/README.md', 'share/doc/urxe/urxe.md']
# Installed only if the build found a BPF compiler.
OPTIONAL = ['lib/*/urxe/roce.bpf.o']


def prefix_of(build):
    with open(os.path.join(build, 'meson-info/intro-buildoptions.json'), encoding='utf-8') as file:
        return next(option['value'] for option in json.load(file) if option['name'] == 'prefix')


def check_files(prefix):
    for name in FILES:
        if not glob.glob(os.path.join(prefix, name)):
            raise Failure(f'{name} is not installed: {glob.glob(prefix + "/**", recursive=True)}')
    for path in glob.glob(os.path.join(prefix, '**'), recursive=True):
        if os.path.isfile(path) and not any(os.path.samefile(path, found) for name in FILES + OPTIONAL
                                            for found in glob.glob(os.path.join(prefix, name))):
            if '/share/doc/urxe/' not in path:
                raise Failure(f'{path} is installed unexpectedly')


def check_programs(prefix, top):
    """The installed `urxe` uses the library and the daemon of the same installation."""
    urxe = os.path.join(prefix, 'bin/urxe')
    run_dir = os.path.join(top, 'run')
    run = subprocess.run([urxe, 'run', '--run-dir', run_dir, '--', 'ibv_devinfo'],
                         capture_output=True, text=True, timeout=60 * BUSY, check=False)
    if run.returncode or 'urxe0' not in run.stdout:
        raise Failure(f'urxe run -- ibv_devinfo: {run}')
    with open(os.path.join(run_dir, 'urxed.pid'), encoding='utf-8') as file:
        running = os.readlink(f'/proc/{int(file.read())}/exe')
    if running != os.path.realpath(os.path.join(prefix, 'sbin/urxed')):
        raise Failure(f'the daemon is {running}')
    show = subprocess.run([urxe, 'show', 'host', '--run-dir', run_dir], capture_output=True,
                          text=True, timeout=60 * BUSY, check=False)
    if show.returncode or run_dir not in show.stdout:
        raise Failure(f'urxe show: {show}')


def complete(prefix, run_dir, *words):
    """bash's completions of the last word."""
    script = ('source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _urxe; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    completion = os.path.join(prefix, 'share/bash-completion/completions/urxe')
    path = f'{prefix}/bin:{os.environ["PATH"]}'
    return subprocess.run(['bash', '--norc', '-c', script, completion, *words], stdout=subprocess.PIPE, text=True, cwd=run_dir,
                          env={**os.environ, 'URXE_DIR': run_dir, 'PATH': path}, timeout=20 * BUSY, check=True).stdout.split()


@contextlib.contextmanager
def running_program(prefix, top, name):
    """A program of that name has the device; its process ID."""
    program = os.path.join(top, name)
    shutil.copy2(shutil.which('ibv_asyncwatch'), program)
    with subprocess.Popen([os.path.join(prefix, 'bin/urxe'), 'run', '--run-dir', os.path.join(top, 'run'), '--', program],
                          stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


def check_completion_of_ports(prefix, top):
    """Completion offers the name of a program that is a command of the shell, quoted, and does not execute it."""
    run_dir = os.path.join(top, 'run')
    with running_program(prefix, top, '$(id>made)') as pid:
        name = rf'\$\(id\>made\)-{pid}'
        offers = complete(prefix, run_dir, 'urxe', 'capture', '-i', '')
        if set(offers) != {'urxed', name} or complete(prefix, run_dir, 'urxe', 'capture', '-i', '$') != [name]:
            raise Failure(f'completion offers {offers}, not {name}')
    if os.path.exists(os.path.join(run_dir, 'made')):
        raise Failure("completion has executed a program's name")


def check_completion_behind_colon(prefix, top):
    """readline replaces only what stands behind the colon of a word, as in the port af_packet:eth0."""
    run_dir = os.path.join(top, 'run')
    with running_program(prefix, top, 'a:b') as pid:
        for words in ['a', ':', ''], ['a', ':'], ['a', ':', 'b-']:
            offers = complete(prefix, run_dir, 'urxe', 'capture', '-i', *words)
            if offers != [f'b-{pid}']:
                raise Failure(f'completion of {words} offers {offers}')


def check_completion_of_values(prefix, top):
    """The values of an option of `urxe run` are offered before the program only, which may have an option of that name."""
    for options, expected in [
            [['--run-dir', top, '--way'], True],
            [['--hca', 'rxe0', ':', '1', '--way'], True],
            [['--', 'program', '--way'], False],
            [['program', '--way'], False],
            [['--transport', '=', 'packet', 'program', '--way'], False]]:
        offers = complete(prefix, top, 'urxe', 'run', *options, 'engi')
        if (offers == ['engine']) != expected:
            raise Failure(f'completion of {options} offers {offers}')


def check_unit(prefix, top):
    """A daemon started by the unit's command notifies systemd when it serves clients."""
    with open(os.path.join(prefix, 'lib/systemd/system/urxed.service'), encoding='utf-8') as file:
        lines = file.read().splitlines()
    command = next(line for line in lines if line.startswith('ExecStart=')).split('=', 1)[1]
    if command.split()[0] != '/' + os.path.relpath(os.path.join(prefix, 'sbin/urxed'), top + '/d'):
        raise Failure(f'the unit starts {command}')
    notify = os.path.join(top, 'notify')
    run_dir = os.path.join(top, 'unit')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(notify)
        listener.settimeout(30 * BUSY)
        with subprocess.Popen([os.path.join(prefix, 'sbin/urxed'), *command.split()[1:],
                               '--run-dir', run_dir], env={**os.environ, 'NOTIFY_SOCKET': notify},
                              stderr=subprocess.PIPE, text=True) as daemon:
            try:
                if listener.recv(100) != b'READY=1':
                    raise Failure('the daemon sends another notification than READY')
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                    client.connect(os.path.join(run_dir, 'urxed.sock'))
            except TimeoutError:
                raise Failure('the daemon does not send READY') from None
            finally:
                daemon.terminate()
                daemon.wait(20 * BUSY)


def check_installation():
    build = sys.argv[1]
    top = tempfile.mkdtemp(prefix='install-')
    try:
        result = subprocess.run(['meson', 'install', '-C', build, '--no-rebuild', '--quiet',
                                 '--destdir', os.path.join(top, 'd')],
                                capture_output=True, text=True, check=False)
        if result.returncode:
            raise Failure(f'meson install: {result.stdout}{result.stderr}')
        prefix = top + '/d' + prefix_of(build)
        check_files(prefix)
        check_programs(prefix, top)
        check_completion_of_ports(prefix, top)
        check_completion_behind_colon(prefix, top)
        check_completion_of_values(prefix, top)
        check_unit(prefix, top)
    finally:
        shutil.rmtree(top, ignore_errors=True)


main(check_installation)
