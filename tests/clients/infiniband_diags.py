# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The programs of the package that read the state of a port from sysfs. Most others send management datagrams, which RoCE does
not have.
"""
import re

from host import Failure
from row import Refusal, Row

PACKAGES = ['infiniband-diags']


def check_active(client, _server):
    if not re.search(r"CA 'urxe0'\n(.*\n)*\s+State: Active", client):
        raise Failure(f'no active port: {client}')


def check_status(client, _server):
    if not re.search(r"device 'urxe0' port 1 status:\n(.*\n)*\s+state:\s+4: ACTIVE\n(.*\n)*\s+link_layer:\s+Ethernet", client):
        raise Failure(f'not the state of port 1: {client}')


ROWS = [
    Row('ibstat', check=check_active),
    Row('ibstatus urxe0:1', check=check_status),
    Row('ibstatus', refusal=Refusal(
        'it needs `chdir` to /sys/class/infiniband, which only a kernel with RDMA has', 'Fatal error', 255)),
]
