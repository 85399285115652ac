#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What urxe show tells, as JSON and as text, and what it says where it cannot."""
import json
import os
import subprocess
import sys

from host import Failure, Host, Pair, main, until


def show(host, *arguments):
    """urxe show's exit status, output and errors."""
    result = subprocess.run([host.urxe, 'show', '--run-dir', host.run_dir, *arguments],
                            capture_output=True, text=True, timeout=20,
                            env=host.environment, check=False)
    return result.returncode, result.stdout, result.stderr


def report(host, *topic):
    status, text, errors = show(host, '--json', *topic)
    if status or errors:
        raise Failure(f'urxe show --json {topic}: status {status}, {errors}')
    return json.loads(text)


def expect(what, found, wanted):
    if found != wanted:
        raise Failure(f'{what}: {found!r}, not {wanted!r}')


def check_topics(build):
    """Two programs at work are seen, each with its port and its lease, by text and by JSON."""
    with Host(build) as host:
        pair = Pair(host, host, ['ib_write_bw', '-F', '-D', '8'])
        until(10, lambda: len(report(host, 'port')['ports']) == 2,
              lambda: f'no two ports: {report(host)}')
        found = report(host)
        check_host(host, found['host'])
        pids = sorted(program.process.pid for program in (pair.server, pair.client))
        expect('pids of ports', sorted(port['pid'] for port in found['ports']), pids)
        expect('pids of leases', sorted(lease['pid'] for lease in found['leases']), pids)
        for lease in found['leases']:
            expect('program', lease['program'], 'ib_write_bw')
            expect('uid', lease['uid'], os.getuid())
            expect('lease', lease['qpn_first'] % lease['qpn_count'], 0)
        until(5, lambda: all(port['counters']['tx_frames'] > 100
                             for port in report(host, 'port')['ports']),
              lambda: f'nothing moves: {report(host)}')
        check_text(host, pids)
        pair.kill()
        until(10, lambda: not report(host)['leases'], lambda: f'still leased: {report(host)}')


def check_host(host, told):
    expect('pid', told['pid'], host.daemon_pid())
    expect('run_dir', told['run_dir'], host.run_dir)
    expect('device', told['device'], 'urxe0')
    expect('pkeys', told['pkeys'], [0xffff])
    expect('GIDs', [(gid['index'], gid['type']) for gid in told['gids']],
           [(i, 'rocev2' if i < 3 else 'rocev1') for i in range(6)])
    expect('private', told['private'], False)


def check_text(host, pids):
    """Every topic has a table that names what JSON has."""
    for topic, words in (('host', [str(host.daemon_pid()), host.run_dir, 'fe80::', '0xffff']),
                         ('port', [f'process {pid}' for pid in pids]),
                         ('lease', ['0x001000', '4096', 'ib_write_bw']),
                         ('counter', ['tx_frames'])):
        for arguments in ((topic,), (topic, '--long')):
            status, text, errors = show(host, *arguments)
            if status or errors or not all(word in text for word in words):
                raise Failure(f'urxe show {topic}: status {status}, not all of {words} in\n'
                              f'{text}{errors}')
    status, text, _ = show(host)
    expect('overview', (status, all(f'process {pid}' in text for pid in pids)), (0, True))
    if 'no process holds the destination QPN' not in show(host, 'counter', '--long')[1]:
        raise Failure('--long does not say what counters mean')


def refused(host, status, *arguments):
    """A command that must end in one sentence."""
    found = show(host, *arguments)
    if found[0] != status or found[1] or len(found[2].splitlines()) != 1:
        raise Failure(f'urxe show {arguments}: {found}')


def check_no_daemon(build):
    """No daemon, and one that was killed: one sentence."""
    with Host(build, daemon=False) as host:
        refused(host, 1)
        host.start_daemon()
        host.daemon.kill()
        refused(host, 1, 'host')


def check_mistakes(build):
    with Host(build) as host:
        refused(host, 2, 'nonsense')
        refused(host, 2, 'host', 'port')
        refused(host, 2, '--nonsense')
        with open('/dev/full', 'w', encoding='utf-8') as full:
            result = subprocess.run([host.urxe, 'show', '--run-dir', host.run_dir], stdout=full,
                                    stderr=subprocess.PIPE, text=True, timeout=20, check=False)
        expect('status on a full disk', result.returncode, 1)


CHECKS = {'topics': check_topics, 'no_daemon': check_no_daemon, 'mistakes': check_mistakes}

if __name__ == '__main__':
    main(lambda: CHECKS[sys.argv[2]](sys.argv[1]))
