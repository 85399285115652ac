#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Checks the undefined and exported symbols of a library with nm.

symbols.py pure LIBRARY.a     the engine: no clock, socket, thread, file or stdio
symbols.py preload LIBRARY.so the preload: exports only names of libc and libibverbs
                              that it interposes, and the functions for checkpointers;
                              needs no library but libc
symbols.py rooms verbs LIBRARY.a...
symbols.py rooms rxe LIBRARY.a...
                              each room uses functions and data of lower rooms only,
                              and some rooms have no circle of calls between their files
"""
import re
import subprocess
import sys

from rooms import ROOMS, RXE_ROOMS, WITHOUT_CIRCLE, room_above

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
# Functions of libibverbs that liburxe.so interposes.
LIBIBVERBS = {'ibv_dofork_range', 'ibv_dontfork_range', 'ibv_fork_init', 'ibv_is_fork_initialized',
              'ibv_resolve_eth_l2_from_gid'}


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
    libc = symbols(output('gcc', '-print-file-name=libc.so.6').strip(), '--dynamic', '--defined-only')
    complaints = [f'exports {name}, which it cannot mean to interpose'
                  for name in sorted(shown - libc - CHECKPOINT - LIBIBVERBS)]
    needed = re.findall(r'NEEDED\s+(\S+)', output('objdump', '-p', path))
    complaints += [f'drags {name} into every program' for name in needed
                   if not re.match(r'(libc|libm|ld-linux-[-\w]+)\.', name)]
    if not shown:
        complaints.append('exports nothing')
    return complaints


def room_symbols(paths):
    """Pairs of the object file and a symbol: those that files define, and those that they use."""
    defined, used = {}, set()
    for line in output('nm', '--format=posix', '-A', *paths).splitlines():
        # meson names the object of room/file.c room_file.c.o.
        match = re.match(r'\S*\[(?:\S*/)?([a-z]+)_(\S+)\.o\]: (\S+) (\w)', line)
        if not match:
            continue
        room, file, name, kind = match.groups()
        if kind == 'U':
            used.add((room, file, name))
        elif kind in 'TDBR':
            defined[name] = room, file
    return defined, used


def find_circle(room, defined, used):
    """The files of a room that call each other in a circle; files that do not are removed until none is left."""
    calls = set()
    for caller_room, file, name in used:
        to, to_file = defined.get(name, (None, None))
        if caller_room == room == to and to_file != file:
            calls.add((file, to_file))
    left = None
    while calls != left:
        left = calls
        calls = {(file, to) for file, to in left
                 if any(to == caller for caller, _ in left) and any(file == called for _, called in left)}
    return sorted({file for file, _ in calls})


def check_rooms(folder, *paths):
    """
    Calls of libc by name do not count, although interpose/ defines some of these functions: its files that do so
    are in none of the libraries.
    """
    rooms = {'verbs': ROOMS, 'rxe': RXE_ROOMS}[folder]
    defined, used = room_symbols(paths)
    complaints = []
    between = set()
    for room, file, name in sorted(used):
        to, to_file = defined.get(name, (room, file))
        between |= {to, room} if to != room else set()
        if room_above(room, to, rooms):
            complaints.append(f'{room}/{file} uses {name} of {to}/{to_file}, which is above it')
    missing = set(rooms) - between
    for room in WITHOUT_CIRCLE[folder]:
        complaints += [f'the files {", ".join(circle)} of {room}/ call each other in a circle'
                       for circle in [find_circle(room, defined, used)] if circle]
    return complaints + [f'no symbol of {room}/ was found' for room in sorted(missing)]


def main():
    kind, *paths = sys.argv[1:]
    complaints = {'pure': check_pure, 'preload': check_preload, 'rooms': check_rooms}[kind](*paths)
    for complaint in complaints:
        print(f'{paths[-1]} {complaint}')
    sys.exit(bool(complaints))


main()
