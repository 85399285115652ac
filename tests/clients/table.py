#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Writes docs/clients.md from the families' rows and the records of suite "clients" in a build directory.
Every row must have passed on one host and on two hosts with the current build. With --check, verifies
that the page agrees with the rows.
"""
import argparse
import json
import os
import re
import sys

from build import digest
from families import FAMILIES
from place import PLACES
from row import typed

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../docs/clients.md')

HEAD = '''# Clients

These programs of Debian 12 work unmodified, started by `urxe run -- COMMAND`, except for the refused commands,
whose last column has the reason. The tests expect exactly these refusals. They run every command in two places:

| place | `urxed` |
|---|---|
| two processes of one host | without an uplink |
| two hosts: network namespaces with a veth cable | with an `af_packet:` uplink on each host |

Open MPI over two hosts needs `urxe run` on both ([openmpi](#openmpi)):

    urxe run -- mpirun --host HOST:2,OTHER:2 --mca orte_launch_agent "urxe run -- orted" \\
        --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any \\
        -x UCX_TLS=rc_v,self -x UCX_NET_DEVICES=urxe0:1 PROGRAM

| word in a command | meaning |
|---|---|
| SERVER | address of the server. If the table names no command for the server, it runs the client's command without SERVER |
| GID | index of the host's own GID, as `ibv_devinfo -v` prints it |
| COPY, MEMORY | files that the tests provide |

This page is generated: `./dev test --suite clients` runs the commands and leaves records, and
`python3 tests/clients/table.py build` writes the page from them.
'''

# What the families' rows cannot show. tests/hosts/vm/migrate_rdma.py does the same by QEMU's machine protocol.
MIGRATION = '''
## qemu

QEMU migrates a virtual machine by RDMA, with `qemu-system-x86` 7.2 on both sides. First start the destination, with the
options of the source and the destination's own IPv4 address (QEMU refuses IPv6 for RoCE):

    urxe run -- qemu-system-x86_64 OPTIONS -incoming rdma:192.0.2.2:4444

Then start the source, or use a machine that runs under `urxe run` already, and type in its monitor:

    urxe run -- qemu-system-x86_64 OPTIONS -monitor stdio
    (qemu) migrate_set_parameter max-bandwidth 100G
    (qemu) migrate_set_capability rdma-pin-all on
    (qemu) migrate -d rdma:192.0.2.2:4444
    (qemu) info migrate

- Without the first command of the monitor QEMU transfers at most 128 MiB/s.
- With `rdma-pin-all` both sides register all memory first, and the guest's memory need not fit in `ulimit -l`: urxe pins
  nothing. Without it, QEMU exchanges three messages for each MiB, which is slower
  ([performance.md](performance.md#qemus-migration)).
- On one host both sides use 127.0.0.1.
- `info migrate` shows the progress. `migrate_cancel` ends the migration: the guest goes on, and the destination's QEMU
  ends with an error.
- If the destination's QEMU dies, the source prints `cm event is 10` (disconnected), `info migrate` says `failed`, and the
  guest goes on. If the source's QEMU dies, the destination's QEMU ends with an error. The next migration succeeds.
- The source prints `connecting to destination` if nobody listens at the address.
'''


RATES = '\n| client | place | over rsockets | over TCP |\n|---|---|---:|---:|\n'


def key(row):
    return [getattr(row, 'server', ''), row.client]


def program(command):
    """The program's name, without the environment and the interpreter before it."""
    words = [word for word in command.split()
             if word not in ('env', '/usr/bin/python3') and '=' not in word and not word.startswith('-')]
    return os.path.basename(words[0])


def commands(row):
    """The table's cell: the client's command, and the server's where it differs by more than SERVER."""
    server, client = (typed(command) for command in key(row))
    if not server or client.replace(' SERVER', '') == server:
        return f'`{client}`'
    return f'`{client}`<br>server: `{server}`'


def section(name, family, versions):
    yield f'\n## {name}\n\n{family.__doc__.strip()}\n\n'
    for package in family.PACKAGES:
        yield f'- `{package}` {versions.get(package)}\n'
    yield '\n| program | command | result | reason |\n|---|---|---|---|\n'
    for row in family.ROWS:
        result, reason = ('refused', row.refusal.reason) if row.refusal else ('works', '')
        yield f'| {program(typed(row.client))} | {commands(row)} | {result} | {reason} |\n'


def shown_rate(rate):
    return f'{rate / 1e9:.2g} GB/s'


def rate_lines(places):
    """The rows of the table of rates; `places`: figures by the title of a place, and the client's command."""
    for place, figures in places.items():
        for command, rates in figures.items():
            yield f'| `{typed(command)}` | {place} | {shown_rate(rates["rsockets"])} | {shown_rate(rates["TCP"])} |\n'


def page(versions, rates):
    """`rates`: the lines of the table of rates."""
    parts = [HEAD]
    for name, family in FAMILIES.items():
        parts += section(name, family, versions)
        if hasattr(family, 'FIGURES'):
            parts += [RATES, *rates]
    return ''.join([*parts, MIGRATION])


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def checked(name, family, records, built):
    """Returns the versions of a family's packages, or exits if a row has not passed with this build."""
    for place, record in records.items():
        if record.get('build') != built:
            sys.exit(f'{name}, {PLACES[place].title}: not run since urxe was built')
        passed = [[row['server'], row['client']] for row in record['rows'] if not row['failure']]
        for row in family.ROWS:
            if key(row) not in passed:
                sys.exit(f'not passed, {PLACES[place].title}: {row.client}')
    versions = [record['packages'] for record in records.values()]
    if any(other != versions[0] for other in versions):
        sys.exit(f'{name}: the versions on one host and on two hosts differ: {versions}')
    return versions[0]


def write(build):
    versions, rates = {}, []
    for name, family in FAMILIES.items():
        records = {place: json.loads(read(os.path.join(build, 'clients', f'{name}-{place}.json')))
                   for place in PLACES}
        versions |= checked(name, family, records, digest(build))
        rates += rate_lines({PLACES[place].title: record.get('figures', {}) for place, record in records.items()})
    with open(PAGE, 'w', encoding='utf-8') as file:
        file.write(page(versions, rates))


def check(names):
    if names != list(FAMILIES):
        sys.exit(f'meson.build lists the families {names}, families.py {list(FAMILIES)}')
    found = read(PAGE)
    versions = dict(re.findall(r'^- `(\S+)` (\S+)$', found, re.MULTILINE))
    rates = re.findall(r'^\| .* \| [\d.]+ GB/s \| [\d.]+ GB/s \|\n', found, re.MULTILINE)
    wanted = page(versions, rates)
    if found != wanted:
        only = set(wanted.splitlines()) ^ set(found.splitlines())
        sys.exit('docs/clients.md does not agree with the rows: run suite clients, then '
                 'tests/clients/table.py. The difference:\n' + '\n'.join(sorted(only)))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('build', nargs='?', default='build')
parser.add_argument('--check', nargs='+', metavar='FAMILY',
                    help='verify the page and the list of families')
options = parser.parse_args()
if options.check:
    check(options.check)
else:
    write(options.build)
