#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A process is saved, killed and restored, while its peer exchanges messages with it and knows nothing."""
import contextlib
import os
import re
import signal
import struct
import sys
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from checkpoint_pair import CheckpointPair, Commanded, ConnectedPair, move  # noqa: E402
from host import Failure, Host, main, until  # noqa: E402

LEASE_QPNS = 4096  # of a block
DAEMON_SECONDS = 5  # for which a stop waits for a daemon's answer


def restart_daemon(host, arguments=None):
    host.daemon.kill(signal.SIGKILL)
    host.daemon.wait(10)
    host.start_daemon(arguments)


def pkeys(*table):
    """Arguments of a daemon."""
    return [word for pkey in table for word in ('--pkey', pkey)]


@contextlib.contextmanager
def one_host(build, traveller_events=False, daemon=(), **environment):
    """Two programs of one host, which exchange messages before and after the block."""
    with Host(build, arguments=daemon) as host:
        host.environment.update(environment)
        pair = CheckpointPair(build, [host, host], traveller_events)
        pair.progress()
        yield pair
        pair.progress()
        pair.end()


def check_same_host(build):
    """Restored on the same host, several times, in the middle of messages."""
    with one_host(build) as pair:
        for _ in range(3):
            pair.progress()
            move(pair)


def check_packets(build):
    """The same without copies between the processes."""
    with one_host(build, URXE_TRANSPORT='packet') as pair:
        for _ in range(2):
            pair.progress()
            move(pair, 0.5)


def check_events(build):
    """A thread sleeps in ibv_get_cq_event while it is saved, and wakes up in the restored process."""
    with one_host(build, traveller_events=True) as pair:
        pair.drain()
        pair.traveller.obey('sleep')
        move(pair)
        pair.traveller.obey('sleep')
        for program in pair.both():
            program.obey('go')
        pair.progress()
        move(pair)


def check_unread_event(build):
    """An event that the program has not read is there after the restoration."""
    with one_host(build, traveller_events=True) as pair:
        for _ in range(30):  # an event may wake the thread while the program waits for its stop
            pair.traveller.obey('hold')
            pair.traveller.obey('free')
        pair.traveller.obey('hold')
        move(pair)


def check_abandoned(build):
    """The saved process goes on, and its peer too; its snapshot cannot be restored beside it."""
    with one_host(build) as pair:
        pair.save()
        copy = Commanded(pair.hosts[0], build, 'restore', *pair.files)
        answer = copy.answer()
        if not answer.startswith('error EEXIST: another process of this host has the queue pair numbers'):
            raise Failure(answer)
        pair.traveller.obey('resume', 'resumed')
        pair.progress()
        pair.traveller.obey('storm 200', 'stormed')
        pair.traveller.obey('misuse', 'refused')


def check_restart(build):
    """A restored process claims its QPNs from the next daemon, and is saved and restored with that daemon."""
    with one_host(build, URXE_RECONNECT_S='60') as pair:
        move(pair)
        pair.progress()
        restart_daemon(pair.hosts[0])
        pair.progress()
        move(pair)


def save_while_daemon_restarts(pair):
    """Orders a stop after the daemon has ended, and then starts the next one."""
    daemon = pair.hosts[0].daemon
    daemon.kill(signal.SIGKILL)
    daemon.wait(10)
    ordered = time.monotonic()
    pair.traveller.order('save ' + ' '.join(pair.files))
    time.sleep(0.3)  # so that the stop most often begins before the daemon
    pair.hosts[0].start_daemon()
    late = time.monotonic() - ordered > DAEMON_SECONDS
    answer = pair.traveller.answer(100)
    if late and answer.startswith('error ETIMEDOUT'):
        answer = pair.traveller.ask('save ' + ' '.join(pair.files))
    if answer != 'saved':
        raise Failure(answer)
    pair.traveller.obey('resume', 'resumed')


def check_stop_restart(build):
    """A stop begins while no daemon runs. The next daemon gets the program's claims, and the stop succeeds."""
    with one_host(build, URXE_RECONNECT_S='60') as pair:
        pair.traveller.obey('destroy_id')
        save_while_daemon_restarts(pair)
        pair.progress()
        move(pair)


def check_reported_events(build):
    """Without a daemon, the destruction of a restored ID reports the events that the saved process has fetched."""
    with Host(build) as host:
        host.environment.update(URXE_RECONNECT_S='1')
        pair = CheckpointPair(build, [host, host])
        pair.traveller.obey('resolve_id')
        move(pair)
        host.daemon.kill(signal.SIGKILL)
        pair.traveller.obey('destroy_id')


def restore_after_daemon(pair):
    """Restores the stopped process by a daemon that has started since its stop; the peer has gone on with that daemon."""
    pair.save()
    restart_daemon(pair.hosts[0])
    pair.traveller.kill()
    pair.restore()


def check_killed_restart(build):
    """Another daemon starts while a process is stopped, which is killed before it goes on, and restored."""
    with one_host(build, URXE_RECONNECT_S='60') as pair:
        restore_after_daemon(pair)
        pair.progress()
        move(pair)


def check_pkeys(build):
    """The new daemon has another P_Key table: the process gets an event, or is refused if a connection uses the entry."""
    with one_host(build, daemon=pkeys('0xffff', '0x8001'), URXE_RECONNECT_S='60') as pair:
        host = pair.hosts[0]
        pair.save()
        pair.traveller.kill()
        restart_daemon(host, pkeys('0x8001'))
        copy = Commanded(host, build, 'restore', *pair.files)
        if not re.fullmatch('error EADDRNOTAVAIL: queue pair 0x[0-9a-f]+: the device does not have its P_Key 0xffff at index 0',
                            copy.answer()):
            raise Failure(copy.program.describe())
        # A queue pair in INIT has index 1.
        restart_daemon(host, pkeys('0xffff', '0x8002'))
        pair.restore()
        pair.traveller.obey('event', 'P_Key change')
        pair.progress()
        pair.save()
        pair.traveller.kill()
        restart_daemon(host, pkeys('0xffff'))
        pair.restore()
        pair.traveller.obey('event', 'P_Key change')


def check_connections_killed_restart(build):
    """The same with IDs of rdma_cm."""
    with connected(build, URXE_RECONNECT_S='60') as pair:
        restore_after_daemon(pair)
        pair.exchange((0, 1))
        move(pair)
        end_connections(pair)


def check_damaged(build):
    """Restorations fail for a damaged stream, missing memory or a used descriptor; the next one in the same process works."""
    with one_host(build) as pair:
        pair.save()
        pair.traveller.kill()
        pair.restore(pair.hosts[0], 'damaged')


def add_block(stream, qpn_first):
    """Adds a block of queue pair numbers to the process record, which is the first one (docs/checkpoint.md)."""
    blocks = 24 + 12 + 6 + 2 + 4 + 4  # behind the header, kind and length, MAC, MTU, page size, last PD
    n, = struct.unpack_from('<I', stream, blocks)
    end = blocks + 4 + 4 * n
    changed = bytearray(stream[:end] + struct.pack('<I', qpn_first) + stream[end:])
    struct.pack_into('<I', changed, blocks, n + 1)
    struct.pack_into('<Q', changed, 28, struct.unpack_from('<Q', changed, 28)[0] + 4)
    struct.pack_into('<Q', changed, 16, len(changed))
    struct.pack_into('<I', changed, 12, zlib.crc32(changed[16:], zlib.crc32(changed[:12])))
    return changed


def check_block_taken(build):
    """Another process has the second block of queue pair numbers, and the error names this block."""
    with one_host(build) as pair:
        pair.save()
        pair.traveller.kill()
        with open(pair.files[0], 'rb') as file:
            stream = file.read()
        peer = next(qp for qp in pair.hosts[0].show('qp')['qps'] if qp['pid'] == pair.peer.program.process.pid)
        block = peer['qpn'] // LEASE_QPNS * LEASE_QPNS
        with open(pair.files[0], 'wb') as file:
            file.write(add_block(stream, block))
        answer = Commanded(pair.hosts[0], build, 'restore', *pair.files).answer()
        if answer != f'error EEXIST: another process of this host has the queue pair numbers from {block:#x} on':
            raise Failure(answer)
        with open(pair.files[0], 'wb') as file:
            file.write(stream)
        pair.restore()


# --- Connections of rdma_cm.

@contextlib.contextmanager
def connected(build, **environment):
    """Two connections, one made by each program."""
    with Host(build) as host:
        host.environment.update(environment)
        pair = ConnectedPair(build, [host, host], ['127.0.0.1', '127.0.0.1'])
        pair.connect(0, client=0)
        pair.connect(1, client=1)
        pair.exchange((0, 1))
        yield pair
        pair.end()


def end_connections(pair):
    """Both programs end a connection, and each listener takes a new one."""
    pair.exchange((0, 1))
    pair.connect(2, client=0)
    pair.connect(3, client=1)
    pair.exchange((2, 3))
    pair.quiet()
    for number in range(4):
        pair.disconnect(number, number % 2)


def check_connections(build):
    """IDs, connections, listeners and a group move with the process, twice; the peer has no event of it."""
    with connected(build) as pair:
        pair.traveller.obey('group')
        for _ in range(2):
            move(pair)
            pair.peer.obey('events', '0')
            pair.exchange((0, 1))
        pair.traveller.obey('joined')
        end_connections(pair)


def check_request(build):
    """A connection request that was not fetched is there after the restoration; others come while the process is away."""
    with connected(build) as pair:
        pair.begin(4, client=1)
        until(10, lambda: pair.traveller.ask('events') == '1', lambda: 'no request')
        pair.save()
        pair.traveller.kill()
        pair.begin(5, client=1)
        time.sleep(0.5)
        pair.peer.obey('events', '0')
        pair.restore()
        pair.finish(4, client=1)
        pair.finish(5, client=1)
        pair.exchange((4, 5))
        pair.disconnect(4, 0)
        pair.disconnect(5, 1)
        end_connections(pair)


def check_channels(build):
    """A thread opens and closes rdma_cm while the program is stopped, again and again."""
    with connected(build) as pair:
        pair.traveller.obey('storm 200', 'stormed')
        end_connections(pair)


def check_connections_abandoned(build):
    """The saved process goes on; its snapshot cannot be restored beside it."""
    with connected(build) as pair:
        pair.save()
        copy = Commanded(pair.hosts[0], build, 'restore', *pair.files, program=pair.program)
        answer = copy.answer()
        if not answer.startswith('error EEXIST'):
            raise Failure(answer)
        pair.traveller.obey('resume', 'resumed')
        end_connections(pair)


def check_connections_restart(build):
    """A restored process claims its IDs from the next daemon, and is saved and restored with that daemon."""
    with connected(build, URXE_RECONNECT_S='60') as pair:
        move(pair)
        restart_daemon(pair.hosts[0])
        pair.exchange((0, 1))
        move(pair)
        end_connections(pair)


def check_resume_restart(build):
    """Another daemon starts while a program is stopped; the program goes on, and claims what it has."""
    with connected(build, URXE_RECONNECT_S='60') as pair:
        pair.save()
        restart_daemon(pair.hosts[0])
        pair.traveller.obey('resume', 'resumed')
        pair.exchange((0, 1))
        move(pair)
        end_connections(pair)


def check_resume_late(build):
    """A stopped program claims what it has after all others."""
    with connected(build, URXE_RECONNECT_S='60') as pair:
        pair.save()
        restart_daemon(pair.hosts[0])
        time.sleep(4)  # longer than the time for claims of other programs
        pair.traveller.obey('resume', 'resumed')
        pair.exchange((0, 1))
        move(pair)
        end_connections(pair)


def check_connections_stop_restart(build):
    """The same with IDs of rdma_cm."""
    with connected(build, URXE_RECONNECT_S='60') as pair:
        save_while_daemon_restarts(pair)
        pair.exchange((0, 1))
        move(pair)
        end_connections(pair)


def check_unknown_ids(build):
    """The daemon has lost the program's IDs: the program cannot be stopped, and hears why."""
    with Host(build) as host:
        host.environment.update(URXE_RECONNECT_S='60')
        pair = ConnectedPair(build, [host, host], ['127.0.0.1', '127.0.0.1'])
        pair.connect(0, client=0)
        host.daemon.kill(signal.SIGKILL)
        host.daemon.wait(10)
        os.unlink(os.path.join(host.run_dir, 'urxed.ids'))
        host.start_daemon()
        answer = pair.traveller.ask('save ' + ' '.join(pair.files))
        if answer != 'error EIO: the rdma_cm IDs are lost: the urxed that knew them has ended':
            raise Failure(answer)
        pair.exchange([0])


def check_silent_daemon(build):
    """A daemon that does not answer delays a stop until its timeout only; later the program goes on, and is saved."""
    with connected(build) as pair:
        daemon = pair.hosts[0].daemon
        daemon.kill(signal.SIGSTOP)
        try:
            for _ in range(2):
                refuse_to_save(pair.traveller, pair.files, 'error ETIMEDOUT: urxed does not answer.*')
        finally:
            daemon.kill(signal.SIGCONT)
        pair.exchange((0, 1))
        move(pair)
        end_connections(pair)


def refuse_to_restore(pair, reason):
    """Another process is not restored while the daemon stands still."""
    pair.save()
    pair.traveller.kill()
    daemon = pair.hosts[0].daemon
    daemon.kill(signal.SIGSTOP)
    try:
        copy = Commanded(pair.hosts[0], pair.build, 'restore', *pair.files, program=pair.program)
        answer = copy.answer()
    finally:
        daemon.kill(signal.SIGCONT)
    if not re.fullmatch(reason, answer):
        raise Failure(answer)
    copy.kill()
    pair.hosts[0].show('qp')  # the daemon has seen the end of both processes
    pair.restore()


def check_restore_silent_daemon(build):
    """A restoration waits for a daemon that does not answer for some seconds only; a later one works."""
    with connected(build) as pair:
        refuse_to_restore(pair, r'error ETIMEDOUT: descriptor \d+: urxed does not answer')
        end_connections(pair)


def check_silent_resume(build):
    """A daemon that does not answer the end of a stop, nor the next stop, lets the program's IDs go on later."""
    with connected(build) as pair:
        pair.save()
        daemon = pair.hosts[0].daemon
        daemon.kill(signal.SIGSTOP)
        try:
            pair.traveller.obey('resume', 'resumed')
            for _ in range(2):
                refuse_to_save(pair.traveller, pair.files, 'error ETIMEDOUT: urxed does not answer.*')
        finally:
            daemon.kill(signal.SIGCONT)
        pair.connect(2, client=0)
        pair.exchange((0, 1, 2))
        pair.disconnect(2, 0)
        move(pair)
        end_connections(pair)


def check_connections_damaged(build):
    """A truncated stream is refused; then the whole one is restored."""
    with connected(build) as pair:
        pair.save()
        pair.traveller.kill()
        with open(pair.files[0], 'rb') as file:
            stream = file.read()
        with open(pair.files[0], 'wb') as file:
            file.write(stream[:-100])
        copy = Commanded(pair.hosts[0], build, 'restore', *pair.files, program=pair.program)
        answer = copy.answer()
        if not answer.startswith('error EBADMSG: the stream is truncated or damaged'):
            raise Failure(answer)
        with open(pair.files[0], 'wb') as file:
            file.write(stream)
        pair.restore()
        end_connections(pair)


def refuse_to_save(program, files, reason):
    """The program is not saved, and goes on."""
    answer = program.ask('save ' + ' '.join(files))
    if not re.fullmatch(reason, answer):
        raise Failure(answer)
    program.obey('events', '0')


CHECKS = {name[len('check_'):]: check for name, check in list(globals().items()) if name.startswith('check_')}

if __name__ == '__main__':
    main(lambda: CHECKS[sys.argv[2]](sys.argv[1]))
