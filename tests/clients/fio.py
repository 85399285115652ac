# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
fio's engine `rdma`. The receiver of sends compares their contents. It has room for all of them at once, as
the sender asks for no repetition where there is none.
"""
import re

from host import Failure
from row import Connected

PACKAGES = ['fio']
JOB = '--ioengine=rdma --port=8888 --bs=64k --size=4m'


def check(client, _server):
    if not re.search(r'issued rwts: total=0,64,0,0 ', client):
        raise Failure('not 64 blocks')


def row(verb, options=''):
    return Connected(server=f'fio --name=server {JOB} --rw=read --iodepth=128{options}',
                     client=f'fio --name=client {JOB} --rw=write --hostname={{}} --verb={verb}{options}',
                     check=check)


ROWS = [
    row('write'),
    row('read'),
    row('send'),
    row('send', ' --thread --verify=crc32c --verify_state_save=0'),
]
