#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
A test that failed runs once more, as ./dev does it: alone, if it belongs to the core of its suite and if it does not. The
suite is one of a small project.
"""
import os
import shutil
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')
sys.path.insert(0, os.path.join(TESTS, 'harness'))
from host import BUSY, Failure, main  # noqa: E402

# Each test fails first, and passes when its file exists.
PROJECT = '''project('small')
foreach name : ['first', 'other']
  test(name, find_program('sh'), args: ['-c', 'test -e ' + name + ' || ! touch ' + name], suite: 'pair',
    workdir: meson.current_source_dir())
endforeach
'''
CORE = 'pair: first\n'


def run():
    with tempfile.TemporaryDirectory() as folder:
        build, result = os.path.join(folder, 'build'), os.path.join(folder, 'result')
        shutil.copy(os.path.join(TESTS, 'run_suite.py'), folder)
        for name, text in ('meson.build', PROJECT), ('core_tests.txt', CORE):
            with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                file.write(text)
        subprocess.run(['meson', 'setup', build, folder], check=True, stdout=subprocess.DEVNULL, timeout=60 * BUSY)

        def counts(name, *arguments):
            command = [sys.executable, os.path.join(folder, 'run_suite.py'), build, name, 'pair', '--result', result]
            output = subprocess.run([*command, *arguments], check=True, capture_output=True, text=True, timeout=60 * BUSY)
            with open(result, encoding='utf-8') as file:
                return file.read().split(), output.stdout

        for part, test in ('--core', 'first'), ('--rest', 'other'):
            for name, arguments, wanted in ('pair', [], ['0', '1', '0', test]), \
                                           ('pair-again', ['--only', test], ['1', '0', '0']):
                found, output = counts(name, part, *arguments)
                if found != wanted:
                    raise Failure(f'{name} {part} {arguments}: {found}, not {wanted}\n{output}')


main(run)
