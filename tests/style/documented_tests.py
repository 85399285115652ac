#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Checks that each test and fuzz target exists that docs/security.md names beside a threat."""
import fnmatch
import json
import os
import re
import sys

FUZZ_TARGETS = re.compile(r'fuzz targets? ((?:`\w+`(?:, | and )?)+)')
NAME = re.compile(r'`([\w*]+)`')


def main():
    source, build = sys.argv[1:]
    with open(os.path.join(build, 'meson-info/intro-tests.json'), encoding='utf-8') as tests:
        names = [test['name'] for test in json.load(tests)]
    complaints, checked = [], 0
    with open(os.path.join(source, 'docs/security.md'), encoding='utf-8') as page:
        for number, line in enumerate(page, 1):
            if not line.startswith(('|', 'Tests: ')):
                continue
            text = line.split('|')[-2] if line.startswith('|') else line
            wanted = NAME.findall(FUZZ_TARGETS.sub('', text))
            wanted += ['fuzz_' + name for targets in FUZZ_TARGETS.findall(text) for name in NAME.findall(targets)]
            checked += len(wanted)
            complaints += [f'docs/security.md:{number}: no test {name}' for name in wanted
                           if not fnmatch.filter(names, name)]
    print('\n'.join(complaints) or f'{checked} names of tests')
    sys.exit(bool(complaints) or not checked)


main()
