#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`urxe capture --state` and `urxe replay --engine`: engines do in the replay what they did in the capture."""
import json
import os
import re
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from documented import check_document  # noqa: E402
from host import BUSY, Failure, Host, Pair, main, open_files, size_of, succeed, until  # noqa: E402

# MiB/s. The capture's ring of 4 MiB has room for 100 ms at the first rate; on a busy machine the capture waits longer.
RATES = (20, 5, 1)
SCENES = {
    'success': {'errors': {}, 'naks_sent': 0},
    'access': {'errors': {'REM_ACCESS_ERR': 1}, 'naks_sent': 1},
    'rnr': {'errors': {'RNR_RETRY_EXC_ERR': 1}, 'naks_sent': 4},
    'drop': {'errors': {}, 'drops': 'bad_qkey'},
}


def start(host, path, *arguments):
    program = host.spawn([host.urxe, 'capture', '--run-dir', host.run_dir, '--state', '-w', path, *arguments])
    until(10, lambda: not program.running()
          or any('urxe-capture' in file for file in open_files(program.process.pid)),
          lambda: f'does not begin: {program.describe()}')
    return program


def read_maps(program):
    with open(f'/proc/{program.process.pid}/maps', encoding='utf-8') as file:
        return file.read()


def limit(rate):
    return ['--rate_limit', str(rate), '--rate_units', 'M', '--rate_limit_type', 'SW']


def finish(program):
    program.kill(signal.SIGINT)
    succeed(program, 10)
    if 'no state' in program.errors():
        raise Failure(program.describe())


def replay(host, *arguments):
    """The results of `urxe replay --engine`, and its exit status."""
    result = subprocess.run([host.urxe, 'replay', '--json', '--engine', *arguments], capture_output=True, text=True,
                            check=False, timeout=60 * BUSY)
    if result.returncode not in (0, 1) or not result.stdout:
        raise Failure(f'urxe replay: status {result.returncode}, {result.stderr}')
    return json.loads(result.stdout), result.returncode


def check_same(host, path, *arguments):
    """Each engine did the same, in frames that the capture has, and its recording has an end. Returns the results."""
    results, status = replay(host, path, *arguments)
    for result in results:
        if result['result'] != 'same' or result['sent'] != result['sent_captured'] or not result['whole']:
            raise Failure(f'{json.dumps(results, indent=1)}')
    if status or not results:
        raise Failure(f'status {status}, {results}')
    return results


def check_documents(host, path):
    for name, arguments in ('replay', [path]), ('replay-engine', ['--engine', path]):
        result = subprocess.run([host.urxe, 'replay', '--json', *arguments], capture_output=True, text=True, check=True)
        check_document(name, json.loads(result.stdout))


def check_scene(host, path, wanted):
    """The results of the only process are those of the scene, and the text has them, too."""
    result, = check_same(host, path)
    if result['errors'] != wanted['errors'] or result['naks_sent'] < wanted.get('naks_sent', 0):
        raise Failure(f'{result}')
    if 'drops' in wanted and not result['drops'].get(wanted['drops']):
        raise Failure(f'no frame dropped: {result}')
    if not result['received'] or not result['calls'] or not result['completions']:
        raise Failure(f'nothing happened: {result}')
    text = subprocess.run([host.urxe, 'replay', '--engine', path], capture_output=True, text=True, check=True).stdout
    for name in (*wanted['errors'], 'the engine did the same'):
        if name not in text:
            raise Failure(f'no {name}: {text}')
    check_documents(host, path)
    # Tools that do not know the recordings read the frames.
    summary = subprocess.run([host.urxe, 'replay', path], capture_output=True, text=True, check=False)
    if summary.returncode or 'RoCE packets' not in summary.stdout:
        raise Failure(f'urxe replay: {summary}')


def check(build, scene):
    """The capture begins when the QPs are connected; and once more, before the program begins."""
    program = os.path.join(build, 'tests/smoke/verbs_replay')
    with Host(build) as host:
        for early in (False, True):
            path = os.path.join(host.top, f'{scene}-{early}.pcapng')
            capture = start(host, path) if early else None
            scenery = host.start(program, scene, stdin=subprocess.PIPE)
            until(10, lambda one=scenery: 'connected' in one.output() or not one.running(), scenery.describe)
            if not early:
                capture = start(host, path)
                until(10, lambda where=path: size_of(where) > 1000, lambda: 'no state')
            scenery.process.stdin.write(b'\n')
            scenery.process.stdin.close()
            succeed(scenery, 30)
            finish(capture)
            check_scene(host, path, SCENES[scene])


def capture_middle(host, argv, path):
    """Captures frames of two programs in the middle of their transfers, at a rate at which none is lost."""
    for rate in RATES:
        pair = Pair(host, host, [*argv, '-F', '-D', '300', '-t', '8', *limit(rate)])
        until(10, lambda: sum(lease['qps'] for lease in host.show()['leases']) == 2, pair.client.describe)
        capture = start(host, path, '-c', '3000')
        succeed(capture, 60)
        pair.kill()
        if ' 0 lost' in capture.errors():
            return
        until(10, lambda: not host.show()['leases'], pair.client.describe)
    raise Failure(f'loses frames at each rate: {capture.describe()}')


def check_middle(build):
    """A capture begins and ends in the middle of transfers: by packets, by copies before it, READs and SENDs."""
    for argv in (['ib_write_bw', '-s', '4096'], ['ib_send_bw', '-s', '20000'], ['ib_read_bw', '-s', '65536']):
        with Host(build) as host:
            path = os.path.join(host.top, 'middle.pcapng')
            capture_middle(host, argv, path)
            results, status = replay(host, path)
            for result in results:
                if result['result'] not in ('same', 'capture_ends'):
                    raise Failure(f'{argv}: {json.dumps(results, indent=1)}')
            if status or len(results) != 2 or not sum(result['received'] for result in results):
                raise Failure(f'{argv}: status {status}, {results}')


def check_late_answer(build):
    """A process that is stopped answers later than COUNT frames after the capture's start, and is in the file."""
    with Host(build) as host:
        path = os.path.join(host.top, 'late.pcapng')
        traffic = Pair(host, host, ['ib_write_bw', '-F', '-s', '4096', '-D', '300', *limit(RATES[0])])
        late = host.start(os.path.join(build, 'tests/smoke/verbs_replay'), 'success', stdin=subprocess.PIPE)
        until(10, lambda: 'connected' in late.output(), late.describe)
        until(10, lambda: any(qp['state'] == 'RTS' and qp['process'].startswith('ib_write_bw')
                              for qp in host.show('qp')['qps']), traffic.client.describe)
        late.kill(signal.SIGSTOP)
        capture = start(host, path, '-c', '20')
        until(10, lambda: size_of(path) > 100000 or not capture.running(), capture.describe)
        late.kill(signal.SIGCONT)
        succeed(capture, 20)
        results, status = replay(host, path)
        if status or len(results) != 3 or 'no state' in capture.errors():
            raise Failure(f'status {status}, {results}\n{capture.describe()}')
        if not sum(result['received'] for result in results):
            raise Failure(f'no frame after the answers: {results}')
        late.kill()
        traffic.kill()


def check_files(build):
    """Two files in place of one; a process that is selected; killed programs; damaged and foreign files."""
    program = os.path.join(build, 'tests/smoke/verbs_replay')
    with Host(build) as host:
        path, plain = (os.path.join(host.top, name) for name in ('state.pcapng', 'plain.pcapng'))
        capture = start(host, path)
        frames = host.spawn([host.urxe, 'capture', '--run-dir', host.run_dir, '-w', plain])
        second = host.spawn([host.urxe, 'capture', '--run-dir', host.run_dir, '--state', '-w', '/dev/null'])
        if second.wait(10) != 1 or '--state' not in second.errors():
            raise Failure(f'a second capture with --state: {second.describe()}')
        until(10, lambda: any('urxe-capture' in file for file in open_files(frames.process.pid)), frames.describe)
        for scene in ('success', 'rnr'):
            scenery = host.start(program, scene, stdin=subprocess.PIPE)
            scenery.process.stdin.write(b'\n')
            scenery.process.stdin.close()
            succeed(scenery, 30)
        # Each ring is 32 MiB of memory, and a capture may outlive thousands of programs.
        until(10, lambda: 'urxe-record' not in read_maps(capture), lambda: 'keeps the rings of programs that have ended')
        killed = host.start(program, 'success', stdin=subprocess.PIPE)
        until(10, lambda: 'connected' in killed.output(), killed.describe)
        killed.kill()
        finish(capture)
        finish(frames)
        results, status = replay(host, path, plain)
        if status or [result['result'] for result in results] != ['same'] * 3:
            raise Failure(f'two files: {results}')
        if [result['whole'] for result in results] != [True, True, False]:
            raise Failure(f'the last program was killed: {results}')
        pid = str(results[1]['pid'])
        selected, status = replay(host, path, '--process', pid)
        if status or [str(result['pid']) for result in selected] != [pid]:
            raise Failure(f'process {pid}: {selected}')
        check_differences(host, path, plain)
        check_lost_frames(host, path, plain)


def check_differences(host, path, plain):
    changed = os.path.join(host.top, 'changed.pcapng')
    # The status of the last completion in error: 13, RNR_RETRY_EXC_ERR, of the wr_id 3 (IBV_WR_SEND + 1).
    wr_id = (3).to_bytes(8, 'little')
    with open(path, 'rb') as file:
        data = file.read()
    status = (13).to_bytes(4, 'little')
    at = next(at for at in range(len(data)) if data.startswith(wr_id, at) and data[at + 12:at + 16] == status)
    with open(changed, 'wb') as file:
        file.write(data[:at + 12] + b'\x0a' + data[at + 13:])
    results, code = replay(host, changed)
    found = [result for result in results if result['result'] == 'different']
    if code != 1 or len(found) != 1 or 'REM_ACCESS_ERR' not in found[0]['expected'] \
            or 'RNR_RETRY_EXC_ERR' not in found[0]['actual']:
        raise Failure(f'a changed completion: {results}')
    # Cut within a block: what is before it is replayed.
    with open(changed, 'wb') as file:
        file.write(data[:len(data) * 2 // 3])
    results, code = replay(host, changed)
    calls, all_calls = (sum(result['calls'] for result in some) for some in (results, replay(host, path)[0]))
    if code or {result['result'] for result in results} - {'same', 'capture_ends'} or not 0 < calls < all_calls:
        raise Failure(f'a cut file: status {code}, {calls} of {all_calls} calls, {json.dumps(results, indent=1)}')
    for wrong in (['--engine', plain], ['--engine', '/nonexistent'], ['--engine', '/dev/null'],
                  ['--engine', path, '--process', 'nobody']):
        result = subprocess.run([host.urxe, 'replay', *wrong], capture_output=True, text=True, check=False)
        if result.returncode != 1 or len(result.stderr.splitlines()) != 1:
            raise Failure(f'{wrong}: {result}')
    for wrong in (['--all', path], ['--engine'], ['--engine', path, path, path]):
        result = subprocess.run([host.urxe, 'replay', *wrong], capture_output=True, text=True, check=False)
        if result.returncode != 2:
            raise Failure(f'{wrong}: {result}')


def blocks(data):
    """Start, end and type of each block of a pcapng file."""
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from('<II', data, at)
        yield at, at + length, kind
        at += length


def check_lost_frames(host, path, plain):
    """A frame that the capture lost is missing: the replay does not take a similar frame in its place."""
    lossy = os.path.join(host.top, 'lossy.pcapng')
    with open(plain, 'rb') as file:
        data = file.read()
    frames = [(begin, end) for begin, end, kind in blocks(data) if kind == 6]
    found = set()
    # An odd step: a capture has most frames twice, from the sender and to the receiver.
    for begin, end in frames[::len(frames) // 24 | 1]:
        with open(lossy, 'wb') as file:
            file.write(data[:begin] + data[end:])
        results, _ = replay(host, path, lossy)
        found |= {result['result'] for result in results}
    if 'frame_missing' not in found or found - {'same', 'frame_missing', 'capture_ends'}:
        raise Failure(f'{len(frames)} frames, one of them lost: {found}')


def check_hca(build):
    """A process that an HCA backs, which is the device of another urxe: both commands say why it is not recorded."""
    with Host(build, arguments=('--device', 'hca0')) as outer:
        prefix = [outer.urxe, 'run', '--run-dir', outer.run_dir, '--']
        with Host(build, prefix=prefix, arguments=('--hca', 'hca0')) as host:
            host.urxe = outer.urxe  # both libraries are of one installation
            for way in 'hca', 'engine':
                host.environment['URXE_WAY'] = way
                path = os.path.join(host.top, f'{way}.pcapng')
                server = host.start('ibv_rc_pingpong', '-d', 'urxe0', '-g', '1')
                until(10, lambda: host.show('qp')['qps'], server.describe)
                capture = start(host, path)
                until(10, lambda one=capture, where=path: 'no state' in one.errors() or size_of(where) > 1000,
                      capture.describe)
                capture.kill(signal.SIGINT)
                succeed(capture, 10)
                text = subprocess.run([host.urxe, 'replay', '--engine', path], capture_output=True, text=True, check=False)
                server.kill()
                until(10, lambda: not host.show('qp')['qps'], server.describe)
                for said in capture.errors(), text.stdout:
                    if ('an HCA backs its device' in said) != (way == 'hca'):
                        raise Failure(f'{way}: {capture.errors()}\n{text}')
                if text.returncode != (way == 'hca'):
                    raise Failure(f'{way}: {text}')


CHECKS = {'middle': check_middle, 'late_answer': check_late_answer, 'files': check_files, 'hca': check_hca}

if __name__ == '__main__':
    main(lambda: CHECKS[sys.argv[2]](sys.argv[1]) if sys.argv[2] in CHECKS else check(sys.argv[1], sys.argv[2]))
