#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Ends and restarts under load: of the guest's drivers and kernel, of the machine, of `urxe vm`, and of urxed. Afterwards
the same programs must work again, and the other machine and the host must have lost nothing.
"""
import contextlib
import sys

from ends import CHECKED, CONNECTED, run_both_ways, run_connected_both_ways, run_pair, wait_gid
from verbs import Lab, add_host
from vm import Vm
from host import main, succeed, until

PORT = 18700
PROGRAMS = [CHECKED[0], CHECKED[3]]
WAIT_EVENT = 'until [ $(grep -c "{}" /tmp/events) -ge {} ]; do usleep 20000; done'
DRIVERS = ['vmw_pvrdma', 'vmxnet3']


def check_all(one, two):
    """Programs between both machines, in both directions."""
    for vm in one, two:
        wait_gid(vm, vm.address)
    one.wait_neighbour(two.address)
    run_both_ways(one, two, PROGRAMS)
    run_connected_both_ways(one, two, CONNECTED[:1])


@contextlib.contextmanager
def load(server, client):
    """WRITEs between two machines that never end by themselves; they may end with any status."""
    jobs = [server.start(f'ib_write_bw -F --run_infinitely -D 1 -p {PORT} -d {server.RDMA} -x {server.gid(server.address)}')]
    server.wait_listening(PORT)
    jobs.append(client.start(f'ib_write_bw -F --run_infinitely -D 1 -p {PORT} -d {client.RDMA} '
                             f'-x {client.gid(client.address)} {server.address}'))
    client.run('until rdma resource show qp | grep -q "state RTS"; do usleep 20000; done; sleep 1')
    yield
    for vm in server, client:
        if vm.qemu.running():
            vm.start('killall -9 ib_write_bw').wait(60)


# --- The guest

def check_unload(lab, one, two):
    """The drivers leave the devices, and return."""
    for _ in range(3):
        one.unload(*DRIVERS)
        one.load(*reversed(DRIVERS))
        one.configure()
        check_all(one, two)


def check_unload_while_used(lab, one, two):
    """The PVRDMA driver is unbound while a program has queue pairs: it waits for the program's end."""
    with load(two, one):
        unbinding = one.start('echo 0000:00:05.1 >/sys/bus/pci/drivers/vmw_pvrdma/unbind')
        one.run('sleep 1; killall -9 ib_write_bw')
        succeed(unbinding, 60)
    one.run('echo 0000:00:05.1 >/sys/bus/pci/drivers/vmw_pvrdma/bind')
    check_all(one, two)


def check_port(lab, one, two):
    """The NIC goes down and up, and programs get the events of the RDMA device's port."""
    watch = one.start('ibv_asyncwatch >/tmp/events')
    for number in range(1, 4):
        one.run(f'ip link set {one.nic()} down')
        one.run(WAIT_EVENT.format('PORT_ERR', number))
        one.configure()
        one.run(WAIT_EVENT.format('PORT_ACTIVE', number))
        check_all(one, two)
    one.run('killall ibv_asyncwatch')
    watch.wait(60)


def check_reboot(lab, one, two):
    with load(two, one):
        one.reboot()
    check_all(one, two)


def check_kernel_crash(lab, one, two):
    """The guest's kernel panics in the middle of a transfer, and boots."""
    with load(two, one):
        one.crash()
    check_all(one, two)


# --- The machine

def check_power(lab, one, two):
    """QEMU is killed in the middle of a transfer; a new machine connects to the same device process."""
    with load(two, one):
        one.kill()
    with Vm(lab.image, one.device, one.address, 'vm1') as again:
        check_all(again, two)
        again.expect_healthy()


# --- Processes of the host

def check_device(lab, one, two):
    """`urxe vm` is killed. Its machine loses the device, the other machine works, and a new machine takes its place."""
    with load(two, one):
        one.device.kill()
    one.start('ibv_devinfo')
    run_pair(two, two, PROGRAMS[0])
    one.kill()
    one.device.start()
    with Vm(lab.image, one.device, one.address, 'vm1') as again:
        check_all(again, two)


def check_daemon(lab, one, two):
    """urxed is killed and started again; the machines go on."""
    host = one.device.host
    for _ in range(2):
        with load(two, one):
            host.daemon.kill()
            host.start_daemon()
        until(60, lambda: one.start(f'ping -c 1 -W 1 {two.address}').wait(60) == 0, one.describe)
        check_all(one, two)


PARTS = {
    'guest': [check_unload, check_unload_while_used, check_port, check_reboot, check_kernel_crash],
    'machine': [check_power],
    'device': [check_device],
    'daemon': [check_daemon],
}


def run():
    build, part = sys.argv[1:]
    with contextlib.ExitStack() as stack:
        lab, host = Lab(build, stack), add_host(build, stack)
        one, two = lab.boot(host), lab.boot(host)
        for check in PARTS[part]:
            print(check.__name__, flush=True)
            check(lab, one, two)
        two.expect_healthy()


if __name__ == '__main__':
    main(run)
