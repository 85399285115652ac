#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Runs the rows of one family of clients in one place, and leaves a record of what became of them in
the build directory, of which table.py makes docs/clients.md.
"""
import argparse
import json
import os
import re
import subprocess
import time

from families import FAMILIES
from place import PLACES
from host import Failure, main
from row import outcome, typed


def version(package):
    result = subprocess.run(['dpkg-query', '-W', '-f', '${Version}', package],
                            capture_output=True, text=True, check=False)
    if result.returncode or not result.stdout:
        raise Failure(f'the package {package} is not installed: ./dev test --suite clients does that')
    return result.stdout


def run_row(row, at):
    """Returns what went wrong, None where nothing did."""
    start = time.monotonic()
    print(f'{typed(row.client)}: ', end='', flush=True)
    try:
        row.run(at)
        for host in (at.server, at.client):
            if not host.daemon.running():
                raise Failure(f'urxed has ended: {host.daemon.describe()}')
    except Failure as failure:
        print(f'FAILED: {failure}', flush=True)
        return str(failure)
    print(f'{outcome(row)}, {time.monotonic() - start:.1f} s', flush=True)
    return None


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--family', required=True, choices=FAMILIES)
    parser.add_argument('--place', required=True, choices=PLACES)
    parser.add_argument('--only', default='', help='a regular expression: rows whose client has it')
    options = parser.parse_args()
    family = FAMILIES[options.family]
    record = {'packages': {package: version(package) for package in family.PACKAGES}, 'rows': []}
    with PLACES[options.place](options.build) as at:
        for row in family.ROWS:
            if not re.search(options.only, row.client):
                continue
            record['rows'].append({'server': getattr(row, 'server', ''), 'client': row.client,
                                   'failure': run_row(row, at)})
    os.makedirs(os.path.join(options.build, 'clients'), exist_ok=True)
    with open(os.path.join(options.build, 'clients', f'{options.family}-{options.place}.json'), 'w',
              encoding='utf-8') as file:
        json.dump(record, file, indent=1)
    failed = [row['client'] for row in record['rows'] if row['failure']]
    if failed:
        raise Failure(f'{len(failed)} of {len(record["rows"])} rows: {", ".join(failed)}')


if __name__ == '__main__':
    main(run)
