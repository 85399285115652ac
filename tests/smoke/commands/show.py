#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`urxe show`: its JSON and text output, and its errors."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from documented import check_document, keys_of  # noqa: E402
from host import BUSY, Failure, Host, Pair, Program, free_port, main, skip, until  # noqa: E402

QUESTIONS = 20
SILENT = 40
WAIT_S = 2


def show(host, *arguments):
    """Exit status, output and errors of `urxe show`. Other work on the machine may delay answers."""
    result = subprocess.run([host.urxe, 'show', '--run-dir', host.run_dir, '--wait', '1s', *arguments],
                            capture_output=True, text=True, timeout=20 * BUSY,
                            env=host.environment, check=False)
    return result.returncode, result.stdout, result.stderr


def expect(what, found, wanted):
    if found != wanted:
        raise Failure(f'{what}: {found!r}, not {wanted!r}')


def names(found, key='process'):
    return sorted({row[key] for row in found})


def check_topics(build):
    """Each topic shows two running programs, as text and as JSON."""
    with Host(build) as host:
        # Packets, because copies between processes are not counted in bytes.
        pair = Pair(host, host, ['env', 'URXE_TRANSPORT=packet', 'ib_write_bw', '-F',
                                 '--run_infinitely', '-D', '1', '-q', '2'])
        until(10, lambda: len(host.show('qp')['qps']) == 4 and all(
            qp['counters'].get('rx_bytes', 0) > 10000 for qp in host.show('qp')['qps']),
              lambda: f'nothing moves: {host.show()}')
        processes = sorted(f'ib_write_bw-{program.process.pid}'
                           for program in (pair.server, pair.client))
        found = host.show()
        check_documented(found)
        check_host(host, found['host'])
        check_parts(found, processes)
        check_text(host, processes)
        check_captured(host)
        check_stopped(host, pair, processes)
        pair.kill()
        until(10, lambda: not host.show()['leases'], lambda: f'still leased: {host.show()}')


# The headers in the source tree that document the keys.
TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../..')
HEADERS = ['tools/urxed/report/report.h', 'tools/urxed/report/control_client.h',
           'tools/urxe/show/report_jobs.h', 'tools/urxe/show/report_paths.h',
           'verbs/session/state_document.h']


def check_documented(found):
    """urxe(1) and the headers document every key."""
    check_document('show', found)
    words = set()
    for name in HEADERS:
        with open(os.path.join(TREE, name), encoding='utf-8') as file:
            words.update(re.findall(r'\w+', file.read()))
    expect('keys that no header has', keys_of(found) - words, set())


def check_parts(found, processes):
    expect('ports', names([port for port in found['ports'] if port['kind'] == 'process'], 'name'),
           processes)
    for part in ('leases', 'qps', 'mrs', 'transports'):
        expect(part, names(found[part]), processes)
    for lease in found['leases']:
        expect('lease', (lease['uid'], lease['answered'], lease['qps'], lease['mrs'],
                         lease['qpn_first'] % lease['qpn_count'], lease['job']),
               (os.getuid(), True, 2, 1, 0, f'env-{lease["pid"]}'))
    for qp in found['qps']:
        expect('queue pair', (qp['type'], qp['path_mtu'], qp['path']), ('RC', 4096, 'direct'))
        expect('uplinks', (qp['sends_by'], qp['receives_by']), (None, None))
        if qp['state'] not in ('RTR', 'RTS'):
            raise Failure(f'a queue pair in use is in {qp["state"]}')
    expect('peers', sorted(qp['dest_qpn'] for qp in found['qps']),
           sorted(qp['qpn'] for qp in found['qps']))
    expect('transports', sorted((way['process'], way['peer'], way['qps'])
                                for way in found['transports']),
           [(processes[0], processes[1], 2), (processes[1], processes[0], 2)])
    for process in processes:
        if not any(counter['of'] == process and counter['name'] == 'tx_packets'
                   and counter['meaning'] for counter in found['counters']):
            raise Failure(f'{process} counts no packets: {found["counters"]}')


def check_captured(host):
    """During a capture frames go through the switch, and afterwards through the inboxes again."""
    capture = host.spawn([host.urxe, 'capture', '-w', '/dev/null', '--run-dir', host.run_dir])
    for program, wanted in ((capture, {('switch', 'a capture runs')}),
                            (None, {('direct', 'same host and user')})):
        until(10, lambda wanted=wanted: {(way['path'], way['why']) for way in
                                         host.show('transport')['transports']} == wanted,
              lambda wanted=wanted: f'not {wanted}: {host.show("transport")}')
        if program:
            program.kill(signal.SIGINT)


def check_stopped(host, pair, processes):
    """`urxe show` names a stopped process after some time, and shows the other one."""
    pair.client.kill(signal.SIGSTOP)
    job = f'env-{pair.client.process.pid}'
    shown = []

    def right():
        """On a busy machine the other process may not answer in time either."""
        shown[:] = show(host, 'qp')
        status, text, errors = shown
        return (not status and len(errors.splitlines()) == 2 and f'of job {job} does not answer' in errors
                and sum(process in text for process in processes) == 1)

    for _ in range(3):
        until(10, right, lambda: f'not the running process alone, with an error about the stopped one: {shown}')
    pair.client.kill(signal.SIGCONT)
    expect('queue pairs', len(host.show('qp')['qps']), 4)


def check_silent(build):
    """
    Many stopped processes delay the command no more than one does. If it waited for each, it would take four times the
    bound, which is also enough for a busy machine.
    """
    with Host(build) as host:
        programs = [host.start('ibv_asyncwatch', '-d', 'urxe0') for _ in range(SILENT + 1)]
        until(20, lambda: [lease['answered'] for lease in host.show('lease')['leases']] == [True] * len(programs),
              lambda: f'not all are attached: {host.show("lease")}')
        for program in programs[1:]:
            program.kill(signal.SIGSTOP)
        start = time.monotonic()
        status, text, errors = show(host, 'lease', '--wait', f'{WAIT_S}s', '--json')
        took = time.monotonic() - start
        if took > SILENT * WAIT_S / 4:
            raise Failure(f'took {took} s with {SILENT} stopped processes')
        silent = [f'ibv_asyncwatch-{program.process.pid} of job ' in errors for program in programs]
        expect('status', status, 0)
        expect('silent', silent, [False] + [True] * SILENT)
        expect('answers', sorted((lease['pid'], lease['answered']) for lease in json.loads(text)['leases']),
               sorted((program.process.pid, program is programs[0]) for program in programs))


def check_ids(build):
    """Topic id shows a listener and both ends of a connection, with their processes."""
    if not shutil.which('rping'):
        skip('no rping: the package rdmacm-utils is not installed')
    with Host(build) as host:
        server = host.start('rping', '-s', '-p', '7001')
        until(20, lambda: [row['state'] for row in host.show('id')['ids']] == ['listen'],
              lambda: f'nobody listens: {host.show("id")} {server.describe()}')
        listener, = host.show('id')['ids']
        expect('listener', (listener['process'], listener['space'], listener['src'],
                            listener['cm']),
               (f'rping-{server.process.pid}', 'TCP', '0.0.0.0:7001', None))
        client = host.start('rping', '-c', '-a', '127.0.0.1', '-p', '7001')
        until(20, lambda: [row['cm'] for row in host.show('id')['ids']].count('ESTABLISHED') == 2,
              lambda: f'not connected: {host.show("id")} {client.describe()}')
        check_documented(host.show())
        ends = sorted((row for row in host.show('id')['ids'] if row['cm']),
                      key=lambda row: row['pid'] == client.process.pid)
        expect('queue pairs', [row['qpn'] for row in ends],
               [row['peer_qpn'] for row in reversed(ends)])
        expect('addresses', [row['src'] for row in ends], [row['dst'] for row in reversed(ends)])
        if 'ESTABLISHED' not in show(host, 'id')[1]:
            raise Failure(f'no table of IDs: {show(host, "id")}')
        counted = {row['name']: row['value'] for row in host.show('counter')['counters']
                   if row['of'] == 'cm'}
        if counted['cm_in'] < 3:
            raise Failure(f'messages are not counted: {counted}')


def check_busy(build):
    """A process whose threads post and poll without pause still answers."""
    with Host(build) as host:
        program = host.start(os.path.join(build, 'tests/smoke/verbs_busy'))
        until(20, lambda: 'busy' in program.output(), program.describe)
        for _ in range(QUESTIONS):
            expect('queue pairs', len(host.show('qp')['qps']), 3)


def check_host(host, told):
    expect('pid', told['pid'], host.daemon_pid())
    expect('run_dir', told['run_dir'], host.run_dir)
    expect('device', told['device'], 'urxe0')
    expect('pkeys', told['pkeys'], [0xffff])
    expect('GIDs', [gid['type'] for gid in told['gids']], ['rocev2'] * 3 + ['rocev1'] * 3)
    expect('private', told['private'], False)
    expect('up', told['up'], True)


def check_text(host, processes):
    """The text of each topic has a table with the contents of the JSON."""
    for topic, words in (('host', [str(host.daemon_pid()), host.run_dir, 'fe80::', '0xffff']),
                         ('port', processes),
                         ('qp', [*processes, '0x001000', 'RC', '4096']),
                         ('mr', [*processes, 'local-read,local-write,remote-write']),
                         ('lease', [*processes, '0x001000', '4096']),
                         ('transport', processes),
                         ('counter', [*processes, 'direct_sent', 'rx_packets'])):
        for arguments in ((topic,), (topic, '--long')):
            status, text, errors = show(host, *arguments)
            if status or errors or not all(word in text for word in words):
                raise Failure(f'urxe show {topic}: status {status}, not all of {words} in\n'
                              f'{text}{errors}')
    status, text, _ = show(host)
    expect('overview', (status, all(process in text for process in processes)), (0, True))
    for meaning in ('no process holds the destination QPN', 'packets accepted'):
        if meaning not in show(host, 'counter', '--long')[1]:
            raise Failure(f'--long does not say "{meaning}"')


def refused(host, status, *arguments):
    """Checks a command that must fail with one line."""
    found = show(host, *arguments)
    if found[0] != status or found[1] or len(found[2].splitlines()) != 1:
        raise Failure(f'urxe show {arguments}: {found}')


def check_strangers(host):
    """Another user gets an error."""
    if os.getuid() != 0:
        return
    os.chmod(host.run_dir, 0o755)
    result = subprocess.run(['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups',
                             '--inh-caps=-all', host.urxe, 'show', '--run-dir', host.run_dir],
                            capture_output=True, text=True, timeout=20 * BUSY, check=False)
    if (result.returncode, result.stdout) != (1, '') or 'belongs to another user' not in result.stderr:
        raise Failure(f'another user: {result}')


def check_root(build):
    """Root may look at the daemon of another user, and capture there."""
    if os.getuid() != 0:
        skip('only root may ask the daemon of another user')
    with Host(build, user='nobody') as host:
        host.start('ibv_asyncwatch', '-d', 'urxe0')
        environment = {**host.environment, 'HOME': '/root'}

        def ask(*topic):
            result = subprocess.run([host.urxe, 'show', '--json', '--run-dir', host.run_dir, '--wait', '1s', *topic],
                                    capture_output=True, text=True, timeout=20 * BUSY, env=environment, check=False)
            expect('status and errors', (result.returncode, result.stderr), (0, ''))
            return json.loads(result.stdout)

        until(10, lambda: [lease['answered'] for lease in ask('lease')['leases']] == [True], lambda: ask())
        check_documented(ask())
        capture = Program([host.urxe, 'capture', '--run-dir', host.run_dir], environment)
        host.programs.append(capture)
        until(10, lambda: ask('host')['host']['captures'] == 1, capture.describe)
        capture.kill(signal.SIGINT)
        expect('status of the capture', capture.wait(10), 0)


PID_NAMESPACE = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc']


def check_containers(build):
    """Programs that share a run directory, and no PID namespace, are told apart, and why their packets cross the switch."""
    with Host(build, prefix=PID_NAMESPACE) as host:
        pair = Pair(host, host, ['ib_write_bw', '-F', '--run_infinitely', '-D', '1'])
        wanted = [('switch', 'a PID namespace that urxed does not see')] * 2
        until(20, lambda: [(way['path'], way['why']) for way in host.show('transport')['transports']] == wanted,
              lambda: f'not two processes by the switch: {host.show("transport")}')
        pair.kill()


def check_namespaces(build):
    """A daemon in another PID namespace: its numbers are those of other processes here."""
    if subprocess.run([*PID_NAMESPACE, 'true'], capture_output=True, check=False).returncode:
        skip('no PID namespace can be made')
    check_containers(build)
    with Host(build, daemon=False) as host:
        host.environment['URXE_JOB'] = 'wrong'
        other = host.spawn(['sleep', '1000'])
        script = ('"$@" true; echo $(($0 - 1)) >/proc/sys/kernel/ns_last_pid; URXE_JOB=right "$@" ibv_asyncwatch; true')
        host.spawn([*PID_NAMESPACE, 'sh', '-c', script, str(other.process.pid), *host.command([])])
        until(20, lambda: host.answers() and [lease['pid'] for lease in host.show('lease')['leases']] == [other.process.pid],
              lambda: f'another process: {host.show("lease")}')
        expect('job', host.show('lease')['leases'][0]['job'], None)


def check_no_daemon(build):
    """One line of error without a daemon, and with a stopped, foreign or killed daemon."""
    with Host(build, daemon=False) as host:
        refused(host, 1)
        host.start_daemon()
        host.daemon.kill(signal.SIGSTOP)
        refused(host, 1, 'host')
        host.daemon.kill(signal.SIGCONT)
        check_strangers(host)
        host.daemon.kill()
        refused(host, 1, 'host')


def check_bytes(build):
    """A path of the run directory that is no UTF-8 is shown but for those bytes."""
    with Host(build, daemon=False) as host:
        parent = host.run_dir
        host.run_dir = os.path.join(parent, '\udcffrun')
        host.start_daemon([])
        expect('run_dir', host.show('host')['host']['run_dir'], f'{parent}/?run')


def check_mistakes(build):
    with Host(build) as host:
        refused(host, 2, 'nonsense')
        refused(host, 2, 'host', 'port')
        refused(host, 2, '--nonsense')
        with open('/dev/full', 'w', encoding='utf-8') as full:
            result = subprocess.run([host.urxe, 'show', '--run-dir', host.run_dir], stdout=full,
                                    stderr=subprocess.PIPE, text=True, timeout=20 * BUSY, check=False)
        expect('status on a full disk', result.returncode, 1)


# Bytes of the largest document that a process can send, and of the memory that urxe may use then.
LARGEST = 64 << 20
MEMORY = 1 << 30
# What acts on a terminal: as it is, as C1 in one byte and in UTF-8, and what reverses text.
CONTROLS = ['\x1b[2J', '\x7f', '\x9b31m', '\u202e', '\u2066']


def documents():
    """What hostile processes answer, and a word of the reason why it is not shown."""
    for control in CONTROLS + [f'\\u{ord(text[0]):04x}{text[1:]}' for text in CONTROLS]:
        for text in (f'{{"program":"{control}"}}', f'{{"qps":[{{"type":"{control}"}}]}}',
                     f'{{"qps":[{{"counters":{{"{control}":1}}}}]}}', f'{{"mrs":[{{"{control}":1}}]}}',
                     f'{{"counters":{{"{control}":1}}}}'):
            yield text.encode(), 'no process writes'
    yield b'{"program":"\x9b31m"}', 'no process writes'
    yield b'{"qps":[' + b'{},' * ((LARGEST - 100) // 3) + b'{}]}', 'numbers'
    yield b'{"x":' + b'[' * (LARGEST - 100), 'no process writes'
    yield b'{"counters":{' + b'"timeout":1,' * ((LARGEST - 100) // 12) + b'"timeout":1}}', 'more than'


def check_no_controls(what, text):
    found = [c for c in text if c != '\n' and (c < ' ' or '\x7f' <= c <= '\x9f' or c in '\u202e\u2066')]
    if found:
        raise Failure(f'{what} has control characters: {found[:10]!r}')


def show_limited(host, *arguments):
    """urxe show with little memory: status, output, errors."""
    result = subprocess.run(['prlimit', f'--as={MEMORY}', host.urxe, 'show', '--run-dir',
                             host.run_dir, '--wait', '10s', *arguments], capture_output=True, timeout=60 * BUSY,
                            env=host.environment, check=False)
    return result.returncode, result.stdout.decode(), result.stderr.decode()


def check_hostile(build):
    """What a hostile process answers neither reaches the terminal nor costs memory."""
    with Host(build) as host:
        honest = host.start('ibv_rc_pingpong', '-g', '1', '-p', str(free_port()))
        until(10, lambda: host.show('qp')['qps'], lambda: honest.describe())
        for number, (document, reason) in enumerate(documents()):
            path = os.path.join(host.top, 'document')
            with open(path, 'wb') as file:
                file.write(document)
            boaster = host.spawn([os.path.join(build, 'tests/smoke/boaster'), host.run_dir, path])
            until(10, lambda: 'attached' in boaster.output(), lambda: boaster.describe())
            topics = ['qp', 'mr', 'counter', 'lease', 'transport'] if number == 0 else ['qp']
            for arguments in ([topic, *more] for topic in topics for more in ([], ['--long'], ['--json'])):
                status, text, errors = show_limited(host, *arguments)
                if status or f'the answer of boaster-{boaster.process.pid} is not shown' not in errors \
                        or reason not in errors:
                    raise Failure(f'{arguments} {document[:40]}: {status}, {errors}')
                check_no_controls(arguments, text + errors)
                if 'qp' in arguments and 'ibv_rc_pingpong' not in text:
                    raise Failure(f'{arguments}: the honest program is missing: {text}')
            boaster.kill()


CHECKS = {'topics': check_topics, 'ids': check_ids, 'busy': check_busy, 'silent': check_silent,
          'hostile': check_hostile, 'root': check_root, 'namespaces': check_namespaces,
          'no_daemon': check_no_daemon, 'bytes': check_bytes, 'mistakes': check_mistakes}

if __name__ == '__main__':
    main(lambda: CHECKS[sys.argv[2]](sys.argv[1]))
