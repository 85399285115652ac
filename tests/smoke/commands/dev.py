#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`./dev COMMAND --help` prints help, and a mistake in the arguments gets an error; neither installs or builds."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import BUSY, Failure, main  # noqa: E402

DEV = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../dev')
# Programs that ./dev installs and builds with. The test puts a substitute before each, which records its call and fails.
WORKERS = 'apt-get', 'debootstrap', 'dpkg-buildpackage', 'dpkg-query', 'meson', 'ninja'
SUBSTITUTE = '#!/bin/sh\necho "$0 $*" >>"$WORK_LOG"\nexit 1\n'
MISTAKES = [
    (['frobnicate'], "no command 'frobnicate'"),
    (['frobnicate', '--help'], "no command 'frobnicate'"),
    (['build', 'everything'], "build takes no arguments: 'everything'"),
    (['demo', '--fast'], "demo takes no arguments: '--fast'"),
    (['test', '--frobnicate'], 'usage: ./dev test'),
    (['test', '--suite'], '--suite needs the name'),
    (['test', '--suite', 'frobnicate'], 'no suite frobnicate; there are: unit'),
    (['bench', '--frobnicate'], 'unrecognized arguments: --frobnicate'),
    (['bench', '--group', 'frobnicate'], "invalid choice: 'frobnicate'"),
    (['bench', '--row', 'frobnicate'], 'the table has no such row'),
    (['bench', '--keep', '/proc/version'], '/proc/version: the file has no samples of the benchmark'),
    (['bench', '--keep', '/nowhere/samples'], '/nowhere is no directory in which you can write'),
    (['bench', '--rounds', '0', '--keep', '/nowhere/samples'], '/nowhere/samples: No such file or directory'),
    (['fuzz'], 'usage: ./dev fuzz SECONDS'),
    (['fuzz', 'long'], 'usage: ./dev fuzz SECONDS'),
    (['guest', '--three'], r'usage: ./dev guest \[--two\]'),
    (['record', 'linux-rxe/frobnicate'], 'no fixture pcap-fixtures/linux-rxe/frobnicate'),
]


class Developer:
    """Calls ./dev with substitutes for the programs that install and build."""

    def __init__(self, folder):
        self.log = os.path.join(folder, 'log')
        for name in WORKERS:
            path = os.path.join(folder, name)
            with open(path, 'w', encoding='utf-8') as file:
                file.write(SUBSTITUTE)
            os.chmod(path, 0o755)
        self.environment = {**os.environ, 'PATH': f'{folder}:{os.environ["PATH"]}', 'WORK_LOG': self.log}

    def call(self, arguments):
        result = subprocess.run([DEV, *arguments], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                                text=True, timeout=60 * BUSY, check=False)
        if os.path.exists(self.log):
            with open(self.log, encoding='utf-8') as file:
                raise Failure(f'./dev {" ".join(arguments)} began to work: {file.read()}')
        return result

    def help(self, arguments):
        result = self.call(arguments)
        if result.returncode or result.stderr or not result.stdout:
            raise Failure(f'./dev {" ".join(arguments)}: status {result.returncode}\n{result.stdout}{result.stderr}')
        return result.stdout

    def refuse(self, arguments, pattern):
        result = self.call(arguments)
        if not result.returncode or result.stdout or not re.search(pattern, result.stderr):
            raise Failure(f'./dev {" ".join(arguments)}: status {result.returncode}, not an error like {pattern}\n'
                          f'{result.stdout}{result.stderr}')


def run():
    with tempfile.TemporaryDirectory() as folder:
        developer = Developer(folder)
        usage = developer.help([])
        for arguments in ['--help'], ['-h'], ['help']:
            if developer.help(arguments) != usage:
                raise Failure(f'./dev {arguments[0]} prints other text than ./dev')
        commands = list(dict.fromkeys(re.findall(r'^  ([a-z0-9-]+)', usage, re.MULTILINE)))
        if len(commands) < 10:
            raise Failure(f'./dev lists {commands} only')
        for command in commands:
            for option in '--help', '-h':
                text = developer.help([command, option])
                if command not in text or text == usage:
                    raise Failure(f'./dev {command} {option} prints no help of {command}:\n{text}')
        for arguments, pattern in MISTAKES:
            developer.refuse(arguments, pattern)


main(run)
