#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Runs each row of a theme of the program `memory` twice, without urxe and on urxe0. Output and exit status must be the
same. liburxe and its tools may come from another build.
"""
import argparse
import contextlib
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '../harness'))
from host import BUSY, SKIP, Failure, Host, main, skip  # noqa: E402
from hugetlb import more  # noqa: E402

SECONDS = 20  # more than WAIT_S of futex.c
HUGE_PAGES = 8  # for the row huge_pages of theme mapping, beside other programs of the machine


def result(program):
    """The observations of a program (exit status and output), and its error messages."""
    try:
        status = program.wait(SECONDS)
    except Failure:
        return ('hangs', program.output()), program.errors()
    return (status, program.output()), program.errors()


def text(observed):
    (status, output), errors = observed
    return f'status {status}\n{output}{errors}'


def difference(host, memory, theme, row):
    """Runs a row twice; returns the difference of the runs, or None, and the reason if the row was skipped."""
    plain = result(host.spawn([memory, theme, row]))
    if plain[0][0] == SKIP:
        return None, plain[0][1].strip()
    if plain[0][0] != 0:
        return f'fails without urxe: {text(plain)}', None
    with_urxe = result(host.start(memory, '-u', theme, row))
    if with_urxe[0] == plain[0]:
        return None, None
    return f'without urxe: {text(plain)}with urxe: {text(with_urxe)}', None


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('build')
    parser.add_argument('theme')
    parser.add_argument('liburxe_build', nargs='?', help='default: BUILD')
    options = parser.parse_args()
    build, theme = options.build, options.theme
    memory = os.path.join(build, 'tests/memory/memory')
    rows = subprocess.run([memory, '-l', theme], capture_output=True, text=True, check=True,
                          timeout=10 * BUSY).stdout.split()
    failed, skipped = [], []
    # Not in the build directory, whose file system may lack O_DIRECT.
    with tempfile.TemporaryDirectory(dir='/var/tmp') as folder, \
            Host(options.liburxe_build or build) as host, \
            more(HUGE_PAGES) if theme == 'mapping' else contextlib.nullcontext():
        os.chdir(folder)
        for row in rows:
            differs, reason = difference(host, memory, theme, row)
            if differs:
                failed.append(row)
                print(f'{row}: FAILED\n{differs}')
            elif reason:
                skipped.append(row)
                print(f'{row}: skipped: {reason.splitlines()[-1]}')
            else:
                print(f'{row}: the same')
            sys.stdout.flush()
        os.chdir('/')
    if failed:
        raise Failure(f'{len(failed)} of {len(rows)} rows differ: {" ".join(failed)}')
    if len(skipped) == len(rows):
        skip('the kernel forbids all of it')


main(run)
