#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Runs the rows of one family of clients in one place, and records their results in the build directory.
table.py writes docs/clients.md from these records.
"""
import argparse
import json
import os
import re
import subprocess
import time

from build import digest
from families import FAMILIES
from place import ALL_PLACES
from host import Failure, main
from row import outcome, typed


def version(package):
    result = subprocess.run(['dpkg-query', '-W', '-f', '${Version}', package],
                            capture_output=True, text=True, check=False)
    if result.returncode or not result.stdout:
        raise Failure(f'the package {package} is not installed: ./dev test --suite clients does that')
    return result.stdout


def run_row(row, at):
    """Returns the text of the failure, or None."""
    start = time.monotonic()
    print(f'{typed(row.client)}: ', end='', flush=True)
    try:
        row.run(at)
        for host in (at.server, at.client):
            if not host.daemon.running():
                raise Failure(f'urxed has ended: {host.daemon.describe()}')
    except Failure as failure:
        # The lines by which the test waits for a server do not help the reader.
        text = re.sub(r'^urxe\[\d+\]: .*: ok\n', '', str(failure), flags=re.MULTILINE)
        print(f'FAILED: {text}', flush=True)
        return text
    print(f'{outcome(row)}, {time.monotonic() - start:.1f} s', flush=True)
    return None


class Record:
    """
    The results of a family's rows in one place. Results of other package versions or of another build of
    urxe are dropped; a row that runs again replaces its result.
    """

    def __init__(self, options, packages):
        folder = os.path.join(options.build, 'clients')
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, f'{options.family}-{options.place}.json')
        self.rows = {}
        self.figures = {}
        try:
            with open(self.path, encoding='utf-8') as file:
                before = json.load(file)
        except (FileNotFoundError, ValueError):  # ValueError: an earlier run was killed while it wrote
            before = None
        self.packages = {package: version(package) for package in packages}
        self.build = digest(options.build)
        if before and (before['packages'], before.get('build')) == (self.packages, self.build):
            self.rows = {(row['server'], row['client']): row['failure'] for row in before['rows']}
            self.figures = before.get('figures', {})

    def add(self, row, failure):
        self.rows[(getattr(row, 'server', ''), row.client)] = failure
        with open(self.path, 'w', encoding='utf-8') as file:
            json.dump({'packages': self.packages, 'build': self.build, 'figures': self.figures,
                       'rows': [{'server': server, 'client': client, 'failure': failure}
                                for (server, client), failure in self.rows.items()]}, file, indent=1)


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--family', required=True, choices=FAMILIES)
    parser.add_argument('--place', required=True, choices=ALL_PLACES)
    parser.add_argument('--only', default='', help='a regular expression that selects rows by their client command')
    options = parser.parse_args()
    family = FAMILIES[options.family]
    record = Record(options, family.PACKAGES)
    rows = [row for row in family.ROWS if re.search(options.only, row.client)]
    if not rows:
        raise Failure(f'no row of {options.family} fits {options.only}')
    failed = []
    with ALL_PLACES[options.place](options.build) as at:
        for row in rows:
            failure = run_row(row, at)
            record.figures |= getattr(family, 'FIGURES', {})
            record.add(row, failure)
            if failure:
                failed.append(row.client)
    if failed:
        raise Failure(f'{len(failed)} of {len(rows)} rows: {", ".join(failed)}')


if __name__ == '__main__':
    main(run)
