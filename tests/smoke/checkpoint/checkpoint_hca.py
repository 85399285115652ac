#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
A process whose queue pairs an HCA runs is saved, killed and restored. The HCA is the device of another urxe, `outer`. The
peer uses that device itself, and knows nothing. The new host is `outer` without the HCA: it has the MAC and the addresses
that the HCA had.
"""
import contextlib
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from checkpoint_pair import CheckpointPair, Commanded, ConnectedPair, move  # noqa: E402
from host import Failure, Host, main, until  # noqa: E402
from nested import OUTER, Nested  # noqa: E402


PEER_QPS = 5  # of verbs_checkpoint: four connections, and one that is idle


class NewHost:
    """
    Programs on the device of `outer`. Both libraries are loaded, as in the saved process, so that each library has the
    address that it had there.
    """

    def __init__(self, outer, nested):
        self.outer = outer
        self.nested = nested

    def start(self, *argv, stdin):
        return self.outer.spawn([self.outer.urxe, 'run', '--run-dir', self.nested.run_dir, '--',
                                 self.outer.urxe, 'run', '--run-dir', self.outer.run_dir, '--', *argv], stdin)


@contextlib.contextmanager
def hosts(build, transport='packet', log='warning'):
    """The host of the HCA, and the host that the HCA backs. The HCA counts the packets of copied requests wrongly."""
    with Host(build, arguments=OUTER) as outer, Nested(build, outer) as nested:
        nested.transport = outer.environment['URXE_TRANSPORT'] = transport
        nested.log = log  # programs that write to standard error fail
        nested.environment['URXE_RECONNECT_S'] = '60'
        yield outer, nested


def paths(nested):
    return [qp['path'] for qp in nested.show('qp')['qps'] if qp['state'] == 'RTS']


@contextlib.contextmanager
def native_peer(build, work, transport='packet'):
    """The HCA runs the queue pairs of the program that is saved."""
    with hosts(build, transport) as (outer, nested):
        pair = CheckpointPair(build, [nested, outer], work=work, peer_device='hca0')
        pair.progress()
        if set(paths(nested)) != {'hca'}:
            raise Failure(f'not by the HCA: {paths(nested)}')
        yield pair, outer, nested


def end_saved(pair, outer):
    """Saves the process, and kills it. Its numbers are free then."""
    pair.save()
    pair.traveller.kill()
    until(30, lambda: len(outer.show('qp')['qps']) == PEER_QPS, lambda: f'the old process lives: {outer.show("qp")}')


def move_to_engine(pair, outer, nested):
    """Saves the process, and restores it where no HCA is, twice."""
    new_host = NewHost(outer, nested)
    end_saved(pair, outer)
    pair.restore(new_host)
    for program in pair.both():
        program.obey('go')
    pair.progress()
    move(pair, 0.1, new_host)
    pair.progress()


def check_moved(build):
    """Requests of all kinds. The peer posts none while the process is stopped, so none is half executed."""
    with native_peer(build, 'shared') as (pair, outer, nested):
        pair.quiet(pair.peer)
        move_to_engine(pair, outer, nested)
        pair.end()


def check_sends(build):
    """The peer sends all the time, and repeats its SENDs until the restored process answers."""
    with native_peer(build, 'sends') as (pair, outer, nested):
        move_to_engine(pair, outer, nested)
        pair.end()


def refuse(pair, reason, milliseconds=60000):
    answer = pair.traveller.ask(f'save {" ".join(pair.files)} {milliseconds}')
    if not re.fullmatch(reason, answer):
        raise Failure(answer)


def check_refused(build):
    """The HCA does not tell its current PSNs. The process goes on by the HCA."""
    with native_peer(build, 'plain', 'auto') as (pair, _outer, nested):
        refuse(pair, r'error EOPNOTSUPP: queue pair 0x[0-9a-f]+: the engine cannot go on with it in place of the HCA: '
                     r'its driver does not tell the current PSNs; with --way engine .*')
        pair.progress()
        if set(paths(nested)) != {'hca'}:
            raise Failure(f'not by the HCA any more: {paths(nested)}')
        pair.end()


def await_standstill(program):
    """The program's peer is stopped: nothing completes any more, and requests are outstanding."""
    last = None

    def stands_still():
        nonlocal last
        before, last = last, program.report()
        return last == before and any(posted > completed for posted, completed, _, _ in last)
    until(10, stands_still, lambda: f'goes on: {last}')


def check_unanswered(build):
    """Requests of the HCA do not end in time. The process goes on by the HCA, and is saved later."""
    with native_peer(build, 'sends') as (pair, outer, nested):
        pair.peer.program.kill(signal.SIGSTOP)
        try:
            await_standstill(pair.traveller)
            refuse(pair, 'error ETIMEDOUT: the HCA has requests that do not end', 500)
        finally:
            pair.peer.program.kill(signal.SIGCONT)
        pair.progress()
        if set(paths(nested)) != {'hca'}:
            raise Failure(f'not by the HCA any more: {paths(nested)}')
        move_to_engine(pair, outer, nested)
        pair.end()


# The engine waits so long for a pause of the peers; then it stops the queue pairs of the HCA.
STOP_MS = 300


def go_on(pair, outer, nested):
    """
    The process goes on: all queue pairs by the HCA, or all in software. In software they do not reach the peer, which is
    beside the HCA, so the process moves to where the HCA was.
    """
    until(10, lambda: len({path == 'hca' for path in paths(nested)}) == 1, lambda: f'both ways: {nested.show("qp")}')
    by_hca = 'hca' in paths(nested)
    print(f'by the HCA: {by_hca}')
    if by_hca:
        pair.progress()
    else:
        move_to_engine(pair, outer, nested)
    pair.end()


def check_deadline(build):
    """The time ends near the moment at which the HCA's queue pairs stop. They go on by the HCA, or in software."""
    for milliseconds in range(STOP_MS - 20, STOP_MS + 40, 10):
        with native_peer(build, 'sends') as (pair, outer, nested):
            answer = pair.traveller.ask(f'storm 1 {milliseconds}')
            if answer != 'stormed' and not answer.startswith('error ETIMEDOUT: '):
                raise Failure(answer)
            print(f'{milliseconds} ms: {answer}')
            go_on(pair, outer, nested)


def restart(host):
    host.daemon.kill(signal.SIGKILL)
    host.daemon.wait(10)
    host.start_daemon()


def check_killed(build):
    """urxed is killed near the moment at which the HCA's queue pairs stop. The program is stopped with the next urxed."""
    for milliseconds in range(STOP_MS - 20, STOP_MS + 40, 10):
        with native_peer(build, 'sends') as (pair, outer, nested):
            pair.traveller.order('storm 1')
            time.sleep(milliseconds / 1000)
            restart(nested)
            answer = pair.traveller.answer()
            if answer != 'stormed':
                raise Failure(answer)
            print(f'{milliseconds} ms: {answer}')
            go_on(pair, outer, nested)


def check_numbers(build):
    """Two programs of the host with the HCA: the engine runs their queue pairs, with numbers that the HCA has chosen."""
    with hosts(build, log='error') as (_outer, nested):
        pair = CheckpointPair(build, [nested, nested], work='plain')
        pair.progress()
        if 'hca' in paths(nested):
            raise Failure(f'by the HCA: {paths(nested)}')
        for _ in range(2):
            move(pair)
            pair.progress()
        restart(nested)
        pair.progress()
        pair.save()
        copy = Commanded(nested, build, 'restore', *pair.files)
        answer = copy.answer()
        if not answer.startswith('error EEXIST: another process of this host has the queue pair numbers'):
            raise Failure(answer)
        pair.traveller.obey('resume', 'resumed')
        pair.progress()
        pair.end()


def check_number_taken(build):
    """
    A process of the new host has the number of a queue pair. The restoration fails, leaves nothing behind, and succeeds
    when that process has ended.
    """
    with native_peer(build, 'sends') as (pair, outer, nested):
        qpn = next(qp['qpn'] for qp in nested.show('qp')['qps'] if qp['state'] == 'RTS')
        end_saved(pair, outer)
        holder = outer.spawn([os.path.join(build, 'tests/smoke/number_holder'), outer.run_dir, str(qpn)])
        until(10, lambda: holder.output() == 'held\n', holder.describe)
        pair.traveller = Commanded(NewHost(outer, nested), build, 'restore', *pair.files, 'number')
        answer = pair.traveller.answer()
        if answer != f'queue pair {qpn:#x}: another process of this host has its number':
            raise Failure(answer)
        holder.kill()
        until(10, lambda: f'process {holder.process.pid} detached' in outer.daemon.errors(), outer.daemon.errors)
        if len(outer.show('qp')['qps']) != PEER_QPS:
            raise Failure(f'left behind: {outer.show("qp")}')
        pair.traveller.obey('', 'restored')
        for program in pair.both():
            program.obey('go')
        pair.progress()
        pair.end()


def check_shared(build):
    """A shared receive queue without queue pairs is saved. A listener of the kernel's rdma_cm is refused with its reason."""
    with hosts(build) as (_outer, nested):
        files = [os.path.join(nested.top, name) for name in ('stream', 'memory', 'maps')]

        def start():
            program = Commanded(nested, build, 'run', '0.0.0.0', program=ConnectedPair.program)
            if program.answer() != 'ready':
                raise Failure(program.program.describe())
            program.obey('queue')
            return program

        def refused(program, reason):
            answer = program.ask('save ' + ' '.join(files))
            if not re.fullmatch(reason, answer):
                raise Failure(answer)
            program.obey('events', '0')
        program = start()
        program.obey('save ' + ' '.join(files), 'saved')
        program.obey('resume', 'resumed')
        program.obey('shared')
        program.obey('save ' + ' '.join(files), 'saved')
        program.obey('resume', 'resumed')
        program.obey('events', '0')
        program = start()
        program.ask('listen')
        refused(program, r"error EOPNOTSUPP: rdma_cm ID \d+: .* belongs to the kernel's rdma_cm")


CHECKS = {name[len('check_'):]: check for name, check in list(globals().items()) if name.startswith('check_')}

if __name__ == '__main__':
    main(lambda: CHECKS[sys.argv[2]](sys.argv[1]))
