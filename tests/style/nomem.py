#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Checks that tests/lib/engine/nomem.c wraps every engine call that may allocate memory.

    nomem.py DIRECTORY CALL...

A function in the headers of DIRECTORY may allocate if it gives out an object that the caller may change, or if its
comment mentions ENOMEM. CALLs are
the functions that nomem.c wraps.
"""
import pathlib
import re
import sys

headers, *wrapped = sys.argv[1:]
text = '\n'.join(path.read_text() for path in pathlib.Path(headers).glob('*.h'))
declarations = re.findall(
    r'((?:/\*(?:[^*]|\*(?!/))*\*/\s*)?)\bint (urxe_\w+)\(([^;]*)\);', text)
missing = [name for comment, name, parameters in declarations
           if (re.search(r'(?:^|,)(?!\s*const\b)[^,]*\*\*', parameters) or 'ENOMEM' in comment) and name not in wrapped]
for name in missing:
    print(f'{name} may run out of memory, but tests/lib/engine/nomem.c does not wrap it')
sys.exit(1 if missing or not declarations else 0)
