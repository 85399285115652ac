#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
./dev guest: boots a virtual machine with the devices of `urxe vm`, or two on one switch, and joins the terminal to a
shell in it.
"""
import argparse
import contextlib
import os
import select
import shutil
import socket
import sys
import termios
import tty

from vm import Device, Vm, make_image
from ends import wait_gid
from host import Host, main

HOST, ADDRESSES = '192.0.2.9', ['192.0.2.1', '192.0.2.2']
SWITCH_KEY = b'\x1d'  # Ctrl-]
END_OF_INPUT = b'\x04'  # Ctrl-D
WELCOME = '''
This is a virtual machine with Debian's kernel. Its NIC is a vmxnet3 and its RDMA device a PVRDMA, both of urxe.
Try: ibv_devinfo
     ib_write_bw & sleep 1; ib_write_bw {own}
'''
OTHER = '''Ctrl-] goes to the other machine. Run `ib_write_bw` there, and here: ib_write_bw {other}
'''
END = 'Ctrl-D or "exit" ends the demo.\n'


class Screen:
    """A shell on the console of a machine."""

    def __init__(self, vm, text):
        self.vm = vm
        self.text = text
        self.unseen = b''
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(vm.terminal)
        size = shutil.get_terminal_size()
        # The job leads a session, so the console that it opens becomes its terminal, and Ctrl-C works.
        self.shell = vm.start(f"export HOME=/tmp TERM=linux PS1='{vm.name}# '; cd /tmp; dmesg -n 1; "
                              'exec </dev/ttyS0 >/dev/ttyS0 2>&1; '
                              f'stty rows {size.lines} cols {size.columns}; exec sh -i')

    def ended(self):
        return not self.shell.running()


def show(data):
    os.write(sys.stdout.fileno(), data)


class Terminal:
    """Joins this terminal to one screen at a time."""

    def __init__(self, screens):
        self.screens = screens
        self.current = screens[0]
        self.input = [sys.stdin.fileno()]

    def run(self):
        self.show_current()
        while not any(screen.ended() for screen in self.screens):
            ready = select.select([*self.input, *(screen.socket for screen in self.screens)], [], [], 0.2)[0]
            for screen in self.screens:
                if screen.socket in ready:
                    self.take_output(screen)
            if self.input and self.input[0] in ready:
                self.take_input()
            if not self.input and not ready:
                # Again and again: the shell does not see it while a program has the terminal.
                self.current.socket.sendall(END_OF_INPUT)
        for screen in self.screens:
            screen.socket.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                self.take_output(screen)

    def show_current(self):
        show(f'\n--- {self.current.vm.name} ---\n{self.current.text}'.replace('\n', '\r\n').encode())
        show(self.current.unseen)
        self.current.unseen = b''

    def take_output(self, screen):
        data = screen.socket.recv(65536)
        if screen is self.current:
            show(data)
        else:
            screen.unseen = (screen.unseen + data)[-65536:]

    def take_input(self):
        data = os.read(self.input[0], 1024)
        if not data:
            self.input = []
        before, key, after = data.partition(SWITCH_KEY)
        self.current.socket.sendall(before)
        if key and len(self.screens) > 1:
            self.current = self.screens[1 - self.screens.index(self.current)]
            self.show_current()
            self.current.socket.sendall(after)


@contextlib.contextmanager
def raw_terminal():
    """Passes each key to the machine, Ctrl-C too."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def boot(image, host, number, stack):
    print(f'starting machine {number}', flush=True)
    vm = stack.enter_context(Vm(image, Device(host, number), ADDRESSES[number - 1], f'vm{number}'))
    wait_gid(vm, vm.address)
    return vm


def make_screen(vm, others):
    text = WELCOME.format(own=vm.address) + ''.join(OTHER.format(other=other.address) for other in others) + END
    return Screen(vm, text)


def run():
    parser = argparse.ArgumentParser(prog='./dev guest', description=__doc__)
    parser.add_argument('build', help=argparse.SUPPRESS)
    parser.add_argument('--two', action='store_true', help='two machines on one switch')
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        image = make_image(options.build)
        host = stack.enter_context(Host(options.build, arguments=['--address', f'{HOST}/24']))
        vms = [boot(image, host, number, stack) for number in range(1, 3 if options.two else 2)]
        screens = [make_screen(vm, [other for other in vms if other is not vm]) for vm in vms]
        with raw_terminal():
            Terminal(screens).run()


if __name__ == '__main__':
    main(run)
