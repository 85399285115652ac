#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Checks the undefined and exported symbols of a library with nm.

symbols.py pure LIBRARY.a     the engine: no clock, socket, thread, file or stdio
symbols.py preload LIBRARY.so the preload: exports only names of libc and libibverbs
                              that it interposes, and the functions for checkpointers;
                              needs no library but libc
"""
import re
import subprocess
import sys

# The functions that the engine may call: memory functions of libc, and ISA-L's CRC.
PURE = {
    'malloc', 'calloc', 'realloc', 'free', 'aligned_alloc', 'abort',
    'memcpy', 'memmove', 'memset', 'memcmp', 'memchr', 'strcmp', 'strlen',
    'crc32_gzip_refl',
    # Functions that compilers insert.
    '_GLOBAL_OFFSET_TABLE_', '__stack_chk_fail',
}


# The public functions of liburxe.so.
CHECKPOINT = {f'urxe_checkpoint_{name}' for name in ('quiesce', 'save', 'resume', 'restore', 'error')}


def output(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def symbols(path, *options):
    """Names in nm's listing, without the versions of shared libraries."""
    lines = output('nm', '--format=posix', *options, path).splitlines()
    return {line.split()[0].split('@')[0] for line in lines if len(line.split()) >= 2}


def check_pure(path):
    called = symbols(path, '--undefined-only') - symbols(path, '--defined-only', '--extern-only')
    complaints = [f'calls {name}' for name in sorted(called - PURE)]
    if not called:
        complaints.append('calls nothing at all: not the library that was meant')
    # A writable global would be state outside of a device. Tables of pointers in position-independent code are in
    # .data.rel.ro, which is read-only after loading.
    written = re.findall(r'\bO\s+(?:\.data(?!\.rel\.ro)|\.bss|\*COM\*)\S*\s+\S+\s+(\S+)$',
                         output('objdump', '-t', path), re.MULTILINE)
    complaints += [f'has a writable global, {name}' for name in written]
    return complaints


def check_preload(path):
    shown = symbols(path, '--dynamic', '--defined-only')
    libc = symbols('/lib/x86_64-linux-gnu/libc.so.6', '--dynamic', '--defined-only')
    complaints = [f'exports {name}, which it cannot mean to interpose'
                  for name in sorted(shown - libc - CHECKPOINT - {'ibv_resolve_eth_l2_from_gid'})]
    needed = re.findall(r'NEEDED\s+(\S+)', output('objdump', '-p', path))
    complaints += [f'drags {name} into every program' for name in needed
                   if not re.match(r'(libc|libm|ld-linux-x86-64)\.', name)]
    if not shown:
        complaints.append('exports nothing')
    return complaints


def main():
    kind, path = sys.argv[1:]
    complaints = {'pure': check_pure, 'preload': check_preload}[kind](path)
    for complaint in complaints:
        print(f'{path} {complaint}')
    sys.exit(bool(complaints))


main()
