#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The device process of a virtual machine uses the device of another urxe as its HCA. The machine is made by hand
(machine_on_hca.c), and has an address of the HCA. Its peer is a native program on the HCA's device.
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import START_SECONDS, Failure, Host, main, until  # noqa: E402
from nested import OUTER, Nested, set_port, without_hca, write_port  # noqa: E402

SECONDS = 60
LEASED = 0x800000  # leases begin here while an HCA backs the device


class Machine:
    """The device process, and the program that plays the machine."""

    def __init__(self, build, outer, nested, *options):
        path = os.path.join(nested.top, 'machine')
        self.nested = nested
        self.device = outer.start(nested.urxe, 'vm', '--run-dir', nested.run_dir, '--socket', path,
                                  '--name', 'guest', *options)
        until(START_SECONDS, lambda: os.path.exists(f'{path}.1') or not self.device.running(), self.device.describe)
        self.program = outer.start(os.path.join(build, 'tests/smoke/machine_on_hca'), path, 'hca0',
                                   stdin=subprocess.PIPE)
        self.lines = 0
        self.answer('open')

    def answer(self, command):
        """The number behind the command's name in the next line of output."""
        self.lines += 1
        until(SECONDS, lambda: self.program.output().count('\n') >= self.lines or not self.program.running(),
              self.describe)
        lines = self.program.output().splitlines()
        if len(lines) < self.lines or lines[self.lines - 1].split()[0] != command:
            raise Failure(f'{command}: {self.describe()}')
        return int((lines[self.lines - 1].split() + ['0'])[1])

    def run(self, command):
        self.program.process.stdin.write(f'{command}\n'.encode())
        self.program.process.stdin.flush()
        return self.answer(command)

    def describe(self):
        return f'{self.device.describe()}\n{self.program.describe()}'

    def qp(self, number):
        return next(qp for qp in self.nested.show('qp')['qps'] if qp['qpn'] == number)

    def counter(self, name):
        rows = [row['value'] for row in self.nested.show('counter')['counters'] if row['name'] == name]
        return sum(rows)

    def check(self, command, by_hca, reason):
        before = self.counter('hca_requests')
        number = self.run(command)
        qp = self.qp(number)
        requests = self.counter('hca_requests') - before
        print(f'{command}: QP {number:#x}, path {qp["path"]}, {qp["way_reason"]}, {requests} requests by the HCA')
        if by_hca != (qp['path'] == 'hca') or by_hca != bool(requests) or by_hca != (number < LEASED):
            raise Failure(f'{command}: the wrong way: {qp}\n{self.describe()}')
        if qp['way_reason'] != reason:
            raise Failure(f'{command}: the wrong reason: {qp}')

    def end(self):
        self.program.kill()
        self.device.kill()


def check_ways(build, outer, nested):
    machine = Machine(build, outer, nested)
    for _ in range(2):
        machine.check('rc', True, 'another host')
        machine.run('close')
        machine.check('srq', True, 'datagrams or a shared receive queue')
        machine.run('close')
        machine.check('ud', True, 'datagrams or a shared receive queue')
        machine.run('close')
    return machine


def check_restart(nested, machine):
    """Connections by the HCA outlive the daemon."""
    machine.check('rc', True, 'another host')
    nested.daemon.kill()
    machine.run('again')
    nested.start_daemon()
    until(10, lambda: 'joined the urxed' in machine.device.errors(), machine.describe)
    number = machine.run('again')
    until(10, lambda: 'qps' in nested.show('qp'), machine.describe)
    if machine.qp(number)['path'] != 'hca':
        raise Failure(f'not by the HCA after the restart: {machine.describe()}')
    machine.run('close')


def await_create(machine, by_hca):
    """New queue pairs are the HCA's, or the engine's, as soon as the device process knows the state of the port."""
    def create():
        number = machine.run('create')
        machine.run('close')
        return (number < LEASED) == by_hca
    until(10, create, machine.describe)


def check_port_down(outer, nested, machine):
    """A queue pair stays at an HCA whose port is down; later ones are the engine's until the port is active."""
    machine.check('rc', True, 'another host')
    set_port(outer, nested, '1: DOWN')
    number = machine.run('again')
    if machine.qp(number)['path'] != 'hca':
        raise Failure(f'the queue pair has left the HCA: {machine.describe()}')
    machine.run('close')
    await_create(machine, by_hca=False)
    set_port(outer, nested, '4: ACTIVE')
    await_create(machine, by_hca=True)


def check_host(outer, nested):
    """A host without an uplink has the link state and the addresses of its HCA, also while a machine has a port."""
    for state, up in ('1: DOWN', False), ('4: ACTIVE', True):
        write_port(outer, state)
        until(10, lambda up=up: nested.show('host')['host']['up'] == up, lambda s=state: f'not {s}: {nested.show("host")}')
    for attribute, text in ('ndevs/9', 'lo'), ('types/9', 'RoCE v2'):
        write_port(outer, text, f'gid_attrs/{attribute}')
    write_port(outer, '0000:0000:0000:0000:0000:ffff:c000:0263', 'gids/9')
    until(10, lambda: '::ffff:192.0.2.99' in [gid['gid'] for gid in nested.show('host')['host']['gids']],
          lambda: f'no GID of the new address: {nested.show("host")}')


def check_change(outer, nested, machine):
    """Queue pairs of an HCA that goes fail, and later ones are the engine's until it returns."""
    machine.check('rc', True, 'another host')
    with without_hca(outer, nested):
        machine.run('fails')
        machine.run('close')
        if 'has gone' not in machine.device.errors():
            raise Failure(f'the HCA is still there: {machine.describe()}')
        number = machine.run('create')
        if number < LEASED or machine.qp(number)['way_reason'] is not None:
            raise Failure(f'a queue pair without an HCA: {machine.qp(number)}')
        machine.run('close')
    until(10, lambda: len(re.findall('executes queue pairs', machine.device.errors())) == 2, machine.describe)
    number = machine.run('create')
    if number >= LEASED:
        raise Failure(f'the HCA has returned, and the QPN is {number:#x}: {machine.describe()}')
    machine.end()


def check_engine(build, outer, nested):
    """--way engine: no HCA."""
    machine = Machine(build, outer, nested, '--way', 'engine')
    number = machine.run('create')
    if number < LEASED or 'executes queue pairs' in machine.device.errors():
        raise Failure(f'QPN {number:#x} in spite of --way engine: {machine.describe()}')
    machine.end()


def run():
    build = sys.argv[1]
    with Host(build, arguments=OUTER) as outer:
        with Nested(build, outer) as nested:
            machine = check_ways(build, outer, nested)
            check_restart(nested, machine)
            check_port_down(outer, nested, machine)
            check_host(outer, nested)
            check_change(outer, nested, machine)
            check_engine(build, outer, nested)


if __name__ == '__main__':
    main(run)
