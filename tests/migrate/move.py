#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
A virtual machine with urxe inside moves by stock QEMU's live migration from one host's urxed to another's, is stopped,
saved and restored, while programs that compare every byte run between the machine and a peer that knows nothing of it.
"""
import argparse
import contextlib
import os
import re
import statistics
import tempfile
import time

from ends import CONTENTS, ECHO, FLOW, Check, Flow, InMachine, OnHost, Perftest, Rping, longest_pause
from moving import Moving, MovingImage
from ports import KINDS, TAP, Lan, Tap
from host import Failure, Program, main, until
from ranks import FabricRanks, MpiMovingImage, Ranks, compile_ranks
import pauses
import timeline
from rdma import VERBS_CHECK

MOVING_MAC, STAYING_MAC = '52:54:00:00:00:10', '52:54:00:00:00:11'
MOVING, STAYING = '192.0.2.10', '192.0.2.11'
PEERS = ['urxe', 'source', 'machine', 'rxe']  # 'source': processes of the host that the machine leaves
PATIENT = ['-t', '18']  # 1.1 s: for events that last longer than a live migration
# 4.3 s, or three times that with urxe: a pause that ends before LONGEST_MS was ended by no timeout.
VERY_PATIENT, LONGEST_MS = ['-t', '20'], 4000
# The end of verbs_flow whose connection breaks.
BROKEN = r'verbs_flow: completion: [\w ]*(retry counter exceeded|remote invalid request error|Flushed Error)[\w ]*\n'
# The end of verbs_flow by SIGQUIT, if it waits for a message only.
IDLE = 'verbs_flow: ended: no request waits for its completion\n'
ECHO_PORT = 18800
SETTLE = 1.5  # seconds of traffic between two events


class World:
    """The hosts, the machine that moves, and its peer."""

    def __init__(self, stack, options, image):
        self.lan = stack.enter_context(Lan(options.build, options.kind, pins if options.pins else no_pins))
        self.vm = stack.enter_context(Moving(image, self.lan.ports[0], MOVING_MAC, MOVING, 'moving', options.memory,
                                             disk(stack, options)))
        self.vm.use_urxe()
        self.moving = InMachine(self.vm)
        self.peer = self.make_peer(stack, options, image)
        self.host = OnHost(options.build, self.lan.hosts[2])
        self.vm.start(f'machine_echo {ECHO_PORT}')
        self.vm.wait_listening(ECHO_PORT)
        self.watchers = {kind: stack.enter_context(running(
            [*self.host.host.prefix, 'python3', pauses.__file__, kind, MOVING, str(ECHO_PORT)])) for kind in pauses.KINDS}
        self.frames = stack.enter_context(running(
            [*self.lan.wire.prefix(), 'python3', timeline.__file__, TAP if options.peer == 'rxe' else 'port3',
             MOVING_MAC])) if options.timeline else None
        self.timelines = []
        self.gaps = []  # of the flow that runs
        self.measured = []  # (title, gap, {what pauses: ms})
        # Neither end hears of a move: rdma_rxe heeds no RARP, and the vmxnet3 driver announces nothing.
        self.unheard = options.peer == 'rxe' and 'vmxnet3' in options.kind

    def make_peer(self, stack, options, image):
        if options.peer in ('urxe', 'source'):
            return OnHost(options.build, self.lan.hosts[0 if options.peer == 'source' else 2])
        port = self.lan.neighbour if options.peer == 'machine' else Tap(self.lan.wire)
        other = stack.enter_context(Moving(image, port, STAYING_MAC, STAYING, options.peer, options.memory))
        if options.peer == 'machine':
            other.use_urxe()
        else:
            other.use_rxe()
        return InMachine(other)

    def other_port(self):
        return self.lan.ports[1 - self.lan.ports.index(self.vm.at)]

    def move(self):
        move = self.vm.migrate(self.other_port())
        time.sleep(SETTLE)
        return move

    def measure(self, flow):
        """Moves the machine under a flow; `report` prints the pauses."""
        self.gaps.append(self.move())
        flow.check_running()

    def report(self, flow, title):
        """Prints the pauses beside QEMU's downtime, when the flow has ended and a machine shows its output."""
        output = flow.programs[flow.ends.index(self.peer)].output()
        booted_at = self.peer.booted_at()
        ends = [gap.stopped_at for gap in self.gaps[1:]] + [time.time()]
        frames = timeline.parse(self.frames.output()) if self.frames else None
        for gap, end in zip(self.gaps, ends):
            if frames:
                self.timelines.append((title, timeline.timeline(frames, gap.stopped_at, gap.resumed_at, end)))
            silent = {'messages': longest_pause(output, gap.stopped_at, end, booted_at)} | {
                kind: longest_pause(watcher.output(), gap.stopped_at, end) for kind, watcher in self.watchers.items()}
            self.measured.append((title, gap, silent))
            print(f'  {title}: downtime {gap.downtime_ms:.0f} ms (stop to resume {gap.gap_ms:.1f}), pauses in ms: '
                  f'{listed(silent)}', flush=True)
        self.gaps = []

    def check_pauses(self, title):
        """
        The pauses of messages beyond the machine's own ones have ended without a timeout of VERY_PATIENT. If neither end
        hears of the move, and the machine waits for nothing just then, one may.
        """
        long = [silent['messages'] for name, gap, silent in self.measured
                if name == title and silent['messages'] - gap.gap_ms > LONGEST_MS]
        if len(long) > self.unheard:
            raise Failure(f'{title}: pauses of {long} ms, as long as the timeout')

    def summarize(self):
        """Prints medians."""
        for title in dict.fromkeys(row[0] for row in self.measured):
            rows = [row for row in self.measured if row[0] == title]
            print(f'{title}, {len(rows)} times: downtime {statistics.median(row[1].downtime_ms for row in rows):.0f} ms',
                  flush=True)
            for kind in rows[0][2]:
                print(f'  pause beyond it, {kind}: {spread([silent[kind] - gap.gap_ms for _, gap, silent in rows])}')
            for kind in self.watchers:
                print(f'  pause of messages minus that of {kind}: '
                      f'{spread([silent["messages"] - silent[kind] for _, _, silent in rows])}', flush=True)
            self.summarize_timelines(title)

    def summarize_timelines(self, title):
        """Prints medians of the events, and then the events of each migration."""
        rows = [row for found, row in self.timelines if found == title]
        for event in rows[0] if rows else ():
            times = [row[event] for row in rows if row[event] is not None]
            if times:
                each = ', '.join('-' if row[event] is None else f'{row[event]:.1f}' for row in rows)
                print(f'  {event}: {spread(times)}, {len(times)} times: {each}', flush=True)


def listed(silent):
    return ', '.join(f'{kind} {ms:.1f}' for kind, ms in silent.items())


def spread(times):
    return f'{statistics.median(times):.1f} ms ({min(times):.1f} to {max(times):.1f})'


def disk(stack, options):
    """QEMU's arguments for a disk to which the guest can save its memory."""
    if 'hibernate' not in options.scenes:
        return []
    path = os.path.join(stack.enter_context(tempfile.TemporaryDirectory()), 'disk')
    with open(path, 'wb') as file:
        file.truncate(options.memory << 20)
    return ['-drive', f'if=virtio,format=raw,file={path}']


def no_pins(_uplinks):
    return []


def pins(uplinks):
    """Options of a urxed: the machine's MAC is at its port, the second one, or behind the cable."""
    ports = ('2', '1') if uplinks > 1 else ()
    return [word for pin in (*(f'{MOVING_MAC}={port}' for port in ports), f'{MOVING}={MOVING_MAC}')
            for word in ('--fdb', pin)]


@contextlib.contextmanager
def running(argv):
    program = Program(argv, os.environ)
    try:
        yield program
    finally:
        program.kill()


# --- What happens to the machine

def migrate_flow(world):
    """Two moves, with the client at either end."""
    for server, client in ((world.moving, world.peer), (world.peer, world.moving)):
        flow = Flow(server, client)
        for _ in range(2):
            world.measure(flow)
        flow.finish()
        world.report(flow, 'migration')


def migrate_patient(world):
    """
    A peer that hears of no announcement would wait for its local ACK timeout, if the machine did not ask for what was
    lost. A machine that hears of none either asks only if it waits for an answer itself.
    """
    title = 'migration with a local ACK timeout of 4.3 s'
    for server, client in ((world.moving, world.peer), (world.peer, world.moving)):
        flow = Flow(server, client, VERY_PATIENT)
        for _ in range(3):
            world.measure(flow)
        flow.finish()
        world.report(flow, title)
    world.check_pauses(title)


def migrate_ten(world):
    """Ten moves back and forth during one conversation."""
    flow = Flow(world.moving, world.peer)
    for _ in range(10):
        world.measure(flow)
    flow.finish()
    world.report(flow, 'migration')


def move_while_running(world, program):
    """Moves the machine again and again until the program ends."""
    moves = 0
    while program.running():
        world.move()
        moves += program.running()
    program.finish()
    if not moves:
        raise Failure(f'{program.title} ended before the end of a move')
    print(f'  {program.title}: all bytes right, {moves} moves', flush=True)


def migrate_linger(world):
    """
    The source's QEMU ends when the machine's announcements are over, so the port that the machine has left sends that
    QEMU nothing more. The machine returns to that port.
    """
    title = 'migration with a late end of the source'
    flow = Flow(world.moving, world.peer, PATIENT)
    for _ in range(4):
        world.gaps.append(world.vm.migrate(world.other_port(), linger=1))
        time.sleep(SETTLE)
        flow.check_running()
    flow.finish()
    world.report(flow, title)
    if not all(silent['messages'] for name, _, silent in world.measured if name == title):
        raise Failure('no message between two migrations')


def migrate_rping(world):
    for server, client in ((world.moving, world.peer), (world.peer, world.moving)):
        move_while_running(world, Rping(server, client))


def migrate_check(world):
    for server, client in ((world.moving, world.peer), (world.peer, world.moving)):
        move_while_running(world, Check(server, client))


def migrate_perftest(world):
    for words in ('ib_write_bw', '-n', '4000'), ('ib_send_lat', '-n', '1000'):
        for server, client in ((world.moving, world.peer), (world.peer, world.moving)):
            move_while_running(world, Perftest(server, client, *words))


def announced_stops(world):
    """
    Stops as long as a migration's downtime, announced as a migration is. Unlike a migration they leave QEMU the code
    that it has translated of the machine's.
    """
    flow = Flow(world.moving, world.peer)
    time.sleep(SETTLE)  # a pause counts from a message to the next one
    for _ in range(10):
        world.gaps.append(world.vm.stop_and_cont(0.1, announces=True))
        time.sleep(SETTLE)
        flow.check_running()
    flow.finish()
    world.report(flow, 'announced stop')


def stop_and_cont(world):
    flow = Flow(world.moving, world.peer, PATIENT)
    for seconds in (0.1, 1, 2):
        world.vm.stop_and_cont(seconds)
        time.sleep(SETTLE)
        flow.check_running()
    flow.finish()


def cancel(world):
    """A migration is cancelled; the next one succeeds."""
    flow = Flow(world.moving, world.peer)
    world.vm.cancel_migration(world.other_port())
    time.sleep(SETTLE)
    world.measure(flow)
    flow.finish()
    world.report(flow, 'migration')


def suspend_to_file(world):
    """The machine is saved to a file, its QEMU ends, and another host starts it from the file."""
    flow = Flow(world.moving, world.peer, PATIENT)
    for _ in range(2):
        world.vm.suspend(world.other_port())
        time.sleep(SETTLE)
        flow.check_running()
    flow.finish()


def hibernate(world):
    """The guest itself suspends to disk, and resumes at the other host."""
    flow = Flow(world.moving, world.peer, ['-t', '21'])
    for _ in range(2):
        world.vm.hibernate(world.other_port())
        time.sleep(SETTLE)
        flow.check_running()
    flow.finish()


def snapshots(world):
    """
    savevm and loadvm. A connection to a peer outside goes on if the machine goes back to where it stands. One within the
    machine goes on from any earlier state.
    """
    with tempfile.TemporaryDirectory() as folder:
        vm = world.vm
        vm.add_disk(os.path.join(folder, 'snapshots'))
        flow = Flow(world.moving, world.peer, PATIENT)
        time.sleep(SETTLE)
        vm.place.qmp.ask('stop')
        vm.snapshot('still')
        vm.restore('still')
        vm.place.qmp.ask('cont')
        time.sleep(SETTLE)
        flow.finish()
        flow = Flow(world.moving, world.moving, PATIENT)
        vm.snapshot('running')
        time.sleep(SETTLE)
        for _ in range(2):
            vm.restore('running')
            time.sleep(SETTLE)
        flow.finish()
        expect_error(Flow(world.moving, world.peer), vm)


def expect_error(flow, vm):
    """
    The machine goes back, and its peer outside does not. An end that waits for an acknowledgement must report an error.
    An end that waits for a message only gets no error of RC. Neither end may report wrong data.
    """
    vm.snapshot('past')
    time.sleep(SETTLE)
    vm.restore('past')
    until(60, lambda: not flow.running(), lambda: f'no error: {flow.describe()}')
    until(60, lambda: not any(one.running() and end.awaits_ack() for one, end in zip(flow.programs, flow.ends)),
          lambda: f'no error of an end that waits for an acknowledgement: {flow.describe()}')
    for program, end in zip(flow.programs, flow.ends):
        if program.running() and end.awaits_ack() is None:
            ask_flow(program, end)
    errors = [one.errors() for one in flow.programs if not one.running()]
    if not all(text == IDLE or re.fullmatch(BROKEN, text) for text in errors):
        raise Failure(f'other errors: {errors}')
    print(f'  after loadvm: {errors}', flush=True)


def ask_flow(program, end):
    """Only the program itself knows what it waits for. It does not report an error later than this."""
    give_up = time.monotonic() + 60
    while program.running() and time.monotonic() < give_up:
        time.sleep(0.5)
    if program.running():
        end.quit_flow()
        until(60, lambda: not program.running(), lambda: f'hangs: {program.describe()}')


def run_mpi(world):
    move_while_running(world, Ranks(world.peer, world.vm))


def run_mpi_over_libfabric(world):
    move_while_running(world, FabricRanks(world.peer, world.vm))


SCENES = {'flow': migrate_flow, 'patient': migrate_patient, 'ten': migrate_ten, 'linger': migrate_linger,
          'rping': migrate_rping, 'check': migrate_check, 'perftest': migrate_perftest, 'stop': stop_and_cont,
          'announced': announced_stops, 'cancel': cancel, 'file': suspend_to_file, 'hibernate': hibernate, 'snapshots': snapshots,
          'mpi': run_mpi, 'fabric': run_mpi_over_libfabric}


def run():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument('build')
    options.add_argument('--kind', choices=KINDS, required=True)
    options.add_argument('--peer', choices=PEERS, required=True)
    options.add_argument('--scenes', nargs='+', choices=SCENES, required=True)
    options.add_argument('--memory', type=int, default=400, help='MB of each machine')
    options.add_argument('--timeline', action='store_true', help='print the events between the stop and the next message')
    options.add_argument('--pins', action='store_true', help='the MAC and the address of the machine are pinned')
    options = options.parse_args()
    programs = [os.path.join(options.build, path) for path in (FLOW, ECHO, VERBS_CHECK, CONTENTS)]
    with contextlib.ExitStack() as stack:
        if {'mpi', 'fabric'} & set(options.scenes):
            image = MpiMovingImage(options.build, [*programs, compile_ranks(stack)])
        else:
            image = MovingImage(options.build, programs)
        world = World(stack, options, image)
        for name in options.scenes:
            print(f'{name}: {options.kind}, {options.peer}', flush=True)
            start = time.monotonic()
            SCENES[name](world)
            print(f'  {time.monotonic() - start:.1f} s', flush=True)
        world.summarize()


if __name__ == '__main__':
    main(run)
