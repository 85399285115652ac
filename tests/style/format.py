#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Checks C files against .clang-format, and the licence line of every file."""
import os
import shutil
import subprocess
import sys

FOLDERS = ['rxe', 'netdev', 'vnic', 'verbs', 'tools', 'tests']
LICENCE = 'SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only'
LICENSED = ('.c', '.h', '.py', '.sh', 'meson.build')


def files(top, endings):
    for folder in FOLDERS:
        for path, _, names in os.walk(os.path.join(top, folder)):
            for name in sorted(names):
                if name.endswith(endings):
                    yield os.path.join(path, name)


def unlicensed(path):
    with open(path, encoding='utf-8') as file:
        return LICENCE not in file.readline() + file.readline()


def main():
    top = sys.argv[1]
    bad = [path for path in files(top, LICENSED) if unlicensed(path)]
    for path in bad:
        print(f'{path}: no licence line at its top')
    if shutil.which('clang-format') is None:
        print('clang-format is not installed; ./dev setup installs it')
        sys.exit(1 if bad else 77)
    result = subprocess.run(['clang-format', '--dry-run', '-Werror', '--ferror-limit=1',
                             *files(top, ('.c', '.h'))], check=False)
    sys.exit(bool(bad) or result.returncode)


main()
