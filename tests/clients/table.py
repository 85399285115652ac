#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Makes docs/clients.md of the rows and of the records that the suite "clients" has left in a build
directory, where each row has to have passed in each place with what is built there. With --check,
says whether the page has exactly the rows that there are.
"""
import argparse
import json
import os
import re
import sys

from build import digest
from families import FAMILIES
from place import PLACES
from row import outcome, typed

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../docs/clients.md')

HEAD = '''# Clients

Programs of Debian 12, unmodified, by the commands that are typed behind `urxe run --`. Each row ran between two
processes of one host, whose urxed has no uplink, and between two hosts: two network namespaces, a veth cable and an
`af_packet:` uplink at either end. SERVER is the server's address, GID the index of the host's own GID as `ibv_devinfo -v`
has it. What is refused has its reason there, and the tests want exactly that refusal.

This page is made by `python3 tests/clients/table.py build` of the records that `./dev test --suite clients` leaves.
'''


def key(row):
    return [getattr(row, 'server', ''), row.client]


def section(name, family, versions):
    yield f'\n## {name}\n\n{family.__doc__.strip()}\n\n'
    for package in family.PACKAGES:
        yield f'- `{package}` {versions.get(package)}\n'
    yield '\n| server | client | |\n|---|---|---|\n'
    for row in family.ROWS:
        server, client = (f'`{typed(command)}`' if command else '' for command in key(row))
        yield f'| {server} | {client} | {outcome(row)} |\n'


def page(versions):
    parts = [HEAD]
    for name, family in FAMILIES.items():
        parts += section(name, family, versions)
    return ''.join(parts)


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def checked(name, family, records, built):
    """The versions of a family's packages, which ran all its rows in all places with that build."""
    for place, record in records.items():
        if record.get('build') != built:
            sys.exit(f'{name}, {PLACES[place].title}: not run since urxe was built')
        passed = [[row['server'], row['client']] for row in record['rows'] if not row['failure']]
        for row in family.ROWS:
            if key(row) not in passed:
                sys.exit(f'not passed, {PLACES[place].title}: {row.client}')
    versions = [record['packages'] for record in records.values()]
    if any(other != versions[0] for other in versions):
        sys.exit(f'{name}: one version on one host, another on two: {versions}')
    return versions[0]


def write(build):
    versions = {}
    for name, family in FAMILIES.items():
        records = {place: json.loads(read(os.path.join(build, 'clients', f'{name}-{place}.json')))
                   for place in PLACES}
        versions |= checked(name, family, records, digest(build))
    with open(PAGE, 'w', encoding='utf-8') as file:
        file.write(page(versions))


def check(names):
    if names != list(FAMILIES):
        sys.exit(f'meson has the families {names}, families.py {list(FAMILIES)}')
    found = read(PAGE)
    versions = dict(re.findall(r'^- `(\S+)` (\S+)$', found, re.MULTILINE))
    wanted = page(versions)
    if found != wanted:
        only = set(wanted.splitlines()) ^ set(found.splitlines())
        sys.exit('docs/clients.md is not of these rows: run the suite clients, then '
                 'tests/clients/table.py. What differs:\n' + '\n'.join(sorted(only)))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('build', nargs='?', default='build')
parser.add_argument('--check', nargs='+', metavar='FAMILY',
                    help='the page, and that these are the families')
options = parser.parse_args()
if options.check:
    check(options.check)
else:
    write(options.build)
