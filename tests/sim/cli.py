#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The command line of `urxe sim`: cli.py URXE CASE

same       equal options give equal output, and another seed gives another output
multicast  the trace has frames to groups, and their arrival
wrong      a wrong command gives one line with the error, and status 2
failure    a failure prints the command that repeats it, and leaves a capture
forever    a simulation without progress ends and reports it
json       the output is one consistent JSON object
strict     the options for go-back-N and congestion control reach the engines
migrate    the hosts that may move are saved and restored, and frames miss them
tables     each table has a figure in every cell, the same in every run
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../harness'))
from documented import check_document  # noqa: E402

# With meson's emulator of another processor, if any.
URXE = [*shlex.split(os.environ.get('MESON_EXE_WRAPPER', '')), os.path.abspath(sys.argv[1])]
BUSY = ['--nodes', '5', '--loss', '0.05', '--dup', '0.05', '--reorder', '0.05']
# Every frame is lost.
HOPELESS = ['--traffic', 'rc', '--loss', '1', '--max-losses', '0', '--retries', '1']


def sim(*options, cwd=None):
    return subprocess.run([*URXE, 'sim', *options], capture_output=True, text=True, cwd=cwd,
                          check=False)


def expect(condition, what):
    if not condition:
        sys.exit(f'not so: {what}')


def same():
    for form in [], ['--json'], ['--trace']:
        one, two = sim(*BUSY, *form), sim(*BUSY, *form)
        expect(one.returncode == 0, one.stdout + one.stderr)
        expect(one.stdout == two.stdout, f'two runs with {form} tell the same')
        expect(one.stdout != sim(*BUSY, *form, '--seed', '2').stdout, 'seeds differ')


def multicast():
    text = sim('--members', '4', '--nodes', '2', '--messages', '5', '--trace').stdout
    expect(' to group: UD_SEND_ONLY_IMM' in text, 'frames go to groups')
    expect(' to 2: ' not in text, 'each destination is a host')
    expect(re.search(r'host [01] qp 40000[0-3] received \d+ of qp 40000[0-3]', text), 'datagrams arrive')


def wrong():
    for options, word in [
            (['--loss', '2'], '--loss'), (['--loss', '-0.1'], '--loss'),
            (['--loss', 'nan'], '--loss'), (['--loss', ''], '--loss'),
            (['--nodes', '1'], '--nodes'), (['--nodes', '100001'], '--nodes'),
            (['--nodes', '0x10'], '--nodes'), (['--nodes', '2.5'], '--nodes'),
            (['--mtu', '1500'], '--mtu'), (['--timeout', '32'], '--timeout'),
            (['--traffic', 'everything'], '--traffic'), (['--pattern', ''], '--pattern'),
            (['--drop-mask', 'xyz'], '--drop-mask'),
            (['--drop-mask', '1' + '0' * 16], '--drop-mask'),
            (['--delay', '5 minutes'], '--delay'), (['--size', '1T'], '--size'),
            (['--rate', '25G', '--ecn', '5,4,0.1'], '--ecn'),
            (['--rate', '25G', '--ecn', '5K'], '--ecn'),
            (['--failures', '1', '--timeout', '0'], '--timeout'),
            (['--drains', '1', '--traffic', 'write'], '--drains'),
             (['--members', '1', '--traffic', 'write'], '--members'),
             (['--fast-regions', '1.5'], '--fast-regions'),
             (['--changes', '1', '--traffic', 'send'], '--changes'),
             (['--resizes', '1', '--traffic', 'read'], '--resizes'),
            (['--queue', '10K'], '--rate'), (['--ecn', '5K,200K,1%'], '--rate'),
            (['--warmup', '2s', '--time', '1s'], '--warmup'),
            (['--movers', 'some'], '--movers'),
            (['--announce', 'some'], '--announce'), (['--pause', '0'], '--pause'),
            (['--seeds', '0'], '--seeds'), (['--masks', '25'], '--masks'), (['--table', 'water'], '--table'), (['--seeds', '5', '--json'], '--seeds'),
            (['--json', '--trace'], '--trace'),
            (['--loss'], '--loss'), (['--unheard-of'], '--unheard-of'), (['extra'], 'extra')]:
        result = sim(*options)
        expect(result.returncode == 2, f'{options} is refused')
        expect(len(result.stderr.splitlines()) == 1 and word in result.stderr,
               f'{options} gets one line about {word}: {result.stderr}')
        expect(not result.stdout, f'{options} runs nothing')


def failure():
    with tempfile.TemporaryDirectory() as folder:
        result = sim(*HOPELESS, '--seed', '7', cwd=folder)
        expect(result.returncode == 1, 'a failure has status 1')
        again = re.search(r'again: urxe sim (.*)', result.stdout).group(1).split()
        name = re.search(r'frames: (\S+)', result.stdout).group(1)
        expect(name == 'urxe-sim-7.pcap' and os.path.exists(os.path.join(folder, name)),
               'the capture is named after the seed')
        repeated = sim(*again, cwd=folder)
        expect(repeated.stdout == result.stdout, f'{again} repeats the failure')
        replay = subprocess.run([*URXE, 'replay', os.path.join(folder, name), '--json'],
                                capture_output=True, text=True, check=False)
        summary = json.loads(replay.stdout)
        expect(replay.returncode == 0 and summary['roce'] > 0, 'the capture can be replayed')
        expect(any(c['requests']['duplicates'] for c in summary['connections']),
               'and shows the retries')
        # Each loss has a capture of its own.
        result = sim('--traffic', 'rc', '--retries', '0', '--masks', '3', '--messages', '3', cwd=folder)
        names = re.findall(r'frames: (\S+)', result.stdout)
        expect(len(names) > 1 and len(set(names)) == len(names), f'{names} differ')
        expect(all(os.path.exists(os.path.join(folder, name)) for name in names), f'{names} exist')
        # A request that ends by timeout is detected in one-way traffic, too.
        result = sim(*HOPELESS, '--traffic', 'write', '--pattern', 'pairs', '--qps', '1', '--messages',
                     '1', cwd=folder)
        expect('ended with status 12' in result.stdout, result.stdout)


def forever():
    with tempfile.TemporaryDirectory() as folder:
        result = sim(*HOPELESS, '--timeout', '0', cwd=folder)
        expect(result.returncode == 1 and 'no request makes progress' in result.stdout,
               'nothing moves any more')
        result = sim(*HOPELESS, '--timeout', '31', cwd=folder)
        expect(result.returncode == 1 and 'the time is up' in result.stdout,
               'the world ends at its limit')


def json_form():
    result = sim(*BUSY, '--rate', '10G', '--queue', '20K', '--timeout', '12', '--json')
    told = json.loads(result.stdout)
    check_document('sim', told)
    network, events = told['network'], told['events']
    expect(result.returncode == 0 and told['failure'] is None, result.stdout)
    expect(events['tx_packets'] == network['frames'], 'frames sent')
    expect(network['delivered'] == network['frames'] + network['duplicated'] - network['lost'] -
           network['tail_drops'], 'frames delivered')
    expect(network['lost'] > 0 and network['duplicated'] > 0, 'faults strike')
    expect(network['queue_max'] <= 20 * 1024, 'the queue keeps its limit')
    # The name of a capture need not be UTF-8.
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run([*URXE, 'sim', '--messages', '2', '--json', '--pcap', b'\xff"\\'],
                                capture_output=True, cwd=folder, check=False)
        expect(json.loads(result.stdout)['pcap'] == '\ufffd"\\', f'a name with a wrong byte is text: {result.stdout}')


def strict():
    bulk = ['--traffic', 'write', '--pattern', 'pairs', '--qps', '1', '--size', '1M', '--messages',
            '20', '--rate', '25G', '--delay', '10us', '--json']
    kept = {}
    for who in 'none', 'all', 'openers', 'targets':
        told = json.loads(sim(*bulk, '--loss', '0.2%', '--go-back-n', who).stdout)
        expect(told['failure'] is None and told['network']['lost'] > 0, f'{who}: {told}')
        kept[who] = told['events']['reordered']
    # The target is the responder: it keeps early packets unless it is strict.
    expect(kept['none'] > 0 and kept['openers'] > 0, f'a responder keeps early packets: {kept}')
    expect(kept['all'] == kept['targets'] == 0, f'a strict one does not: {kept}')
    crowd = [option if option != 'pairs' else 'incast' for option in bulk]
    crowd += ['--nodes', '5', '--ecn', '5K,50K,10%']
    marked = {control: json.loads(sim(*crowd, '--congestion', control).stdout)
              for control in ('dcqcn', 'none')}
    expect(marked['dcqcn']['network']['marked'] > 0 and
           marked['dcqcn']['events']['cnp_rcvd'] > 0, 'DCQCN gets marks and notifications')
    expect(marked['none']['network']['marked'] == 0, 'without, nothing can be marked')
    expect(marked['dcqcn']['network']['queue_mean'] < marked['none']['network']['queue_mean'],
           'DCQCN makes queues shorter')


def migrate():
    options = ['--traffic', 'write', '--pattern', 'pairs', '--qps', '1', '--size', '64K', '--messages', '400',
               '--timeout', '14', '--rate', '25G', '--delay', '10us', '--migrate', '1', '--json']
    for who in 'openers', 'targets':
        told = json.loads(sim(*options, '--movers', who, '--pause', '600us').stdout)
        expect(told['failure'] is None and told['moves'] == 1, f'{who} moves: {told}')
        expect(told['missed'] > 0, f'frames miss {who}: {told}')
    told = json.loads(sim(*options, '--movers', 'openers', '--migrate', '0').stdout)
    expect(told['moves'] == told['missed'] == 0, f'no host moves by itself: {told}')
    # A strict peer repeats the lost packets after its timeout of 67 ms, or as soon as the host asks for them.
    for heard, timeouts in ('none', True), ('self', False):
        told = json.loads(sim(*options, '--movers', 'targets', '--pause', '5ms', '--go-back-n', 'openers',
                              '--announce', heard).stdout)
        expect(told['failure'] is None and (told['events']['timeout'] > 0) == timeouts, f'{heard} hears: {told}')
    # 7 retries of 0.2 s are fewer than 2 s.
    with tempfile.TemporaryDirectory() as folder:
        result = sim(*options[:-1], '--movers', 'targets', '--pause', '2s', cwd=folder)
        expect(result.returncode == 1 and 'status 12' in result.stdout, result.stdout)


def slow():
    """On a slow link, a packet and a round trip take longer than the timers of DCQCN's paper."""
    for rate in 500e6, 1e9:
        result = sim('--nodes', '33', '--pattern', 'incast', '--qps', '1', '--traffic', 'write', '--size', '64K',
                     '--depth', '4', '--mtu', '4096', '--timeout', '14', '--messages', '100000', '--delay', '100us',
                     '--rate', str(int(rate)), '--queue', '1M', '--ecn', '5K,200K,1%', '--window', '256',
                     '--time', '6s', '--warmup', '2s', '--json')
        told = json.loads(result.stdout)
        expect(told['failure'] is None, result.stdout)
        expect(told['goodput_bps'] > 0.7 * rate, f'goodput: {told["goodput_bps"]}')
        expect(told['fairness'] > 0.9, f'fairness: {told["fairness"]}')
        expect(told['network']['queue_mean'] < 300000, f'mean queue: {told["network"]["queue_mean"]}')


def tables():
    for name, rows, columns in ('loss', 14, 5), ('incast', 4, 9), ('blackout', 6, 5), ('pause', 5, 7):
        options = ['--table', name, '--time', '5ms', '--messages', '10']
        result = sim(*options)
        expect(result.returncode == 0, result.stdout)
        lines = [line for line in result.stdout.splitlines() if re.match(r'\| (\d|no limit)', line)]
        expect(len(lines) == rows, f'{name} has {rows} rows: {result.stdout}')
        for line in lines:
            cells = [cell.strip() for cell in line.strip('|').split('|')]
            expect(len(cells) == columns and all(cells), f'{columns} cells: {line}')
        expect(sim(*options).stdout == result.stdout, f'{name} is the same again')
    for options, cell in (['--time', '1ms'], r'\d+\.[1-9]'), (['--messages', '1'], '-'):
        text = sim('--table', 'loss', *options).stdout
        expect(re.search(rf'\n\| 0 % \| {cell}', text), f'{options} measures what there is: {text}')


CASES = {'same': same, 'multicast': multicast, 'wrong': wrong, 'failure': failure, 'forever': forever, 'json': json_form,
         'slow': slow, 'strict': strict, 'tables': tables, 'migrate': migrate}
CASES[sys.argv[2]]()
