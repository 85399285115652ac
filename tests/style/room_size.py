#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Checks that each folder of the product has 5 to 25 files, so that a reader sees its subject in one listing."""
import os
import sys

FOLDERS = ('rxe', 'verbs', 'vnic', 'netdev', 'tools')
LEAST, MOST = 5, 25

# Folders of another size, and why.
EXCEPTIONS = {
    'rxe': 'meson.build; the folders in it are the rooms',
    'verbs': 'meson.build and the list of exported symbols; the folders in it are the rooms',
    'vnic': 'meson.build; the folders in it are the rooms',
    'tools': 'meson.build; the folders in it are the rooms',
    'netdev/qemu': 'one kind of port; together with netdev/shm it would have two subjects',
    'netdev/shm': 'one kind of port; together with netdev/qemu it would have two subjects',
    'tools/dist/debian/source': 'Debian prescribes the folder',
    'tools/dist/debian/tests': 'Debian prescribes the folder',
}


def sizes(top):
    """The folders that have files, and how many."""
    for folder in FOLDERS:
        for path, _, names in os.walk(os.path.join(top, folder)):
            names = [name for name in names if not name.endswith(('.pyc', '~', '.orig', '.rej'))]
            if names:
                yield os.path.relpath(path, top), len(names)


def main():
    counts = dict(sizes(sys.argv[1]))
    complaints = []
    for folder, count in sorted(counts.items()):
        fits = LEAST <= count <= MOST
        if not fits and folder not in EXCEPTIONS:
            complaints.append(f'{folder}/ has {count} files, not {LEAST} to {MOST}: split it by subject, or merge it')
        if fits and folder in EXCEPTIONS:
            complaints.append(f'{folder}/ has {count} files: it needs no exception')
    complaints += [f'{folder}/ has an exception, but no files' for folder in sorted(set(EXCEPTIONS) - set(counts))]
    for complaint in complaints:
        print(complaint)
    print(f'{len(counts)} folders, {len(complaints)} against the rule')
    sys.exit(bool(complaints) or not counts)


main()
