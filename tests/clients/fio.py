# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
fio's engine `rdma`. The receiver of sends compares their contents itself. It has room for all of them at once, as
the sender asks for no repetition where there is none. Of writes and reads fio compares nothing, whatever `--verify`
says (`engines/rdma.c`): the engine is FIO_UNIDIR, of which a client reads nothing back, and at a server no such block
ever completes. But its buffers may be a file, by `--mem`. So in MEMORY, the server's, each block that was written
to has to have the checksum that the client gave it, and in COPY, the client's, each block that was read has to be
one of MEMORY.
"""
import hashlib
import os
import re
import struct

from host import Failure
from row import Connected, copy, memory

PACKAGES = ['fio']
BLOCK = 64 << 10
BLOCKS = 64  # that are transferred
SERVED = 128  # buffers of the server, of which the client draws one each time
FETCHED = 16  # buffers of the client
HEADER = struct.Struct('<HHIQQIIHHI16s')  # verify_header and vhdr_md5 of fio's verify.h
MAGIC = 0xacca
JOB = '--ioengine=rdma --port=8888 --bs=64k --size=4m'


def check(client, _server):
    if not re.search(rf'issued rwts: total=0,{BLOCKS},0,0 ', client):
        raise Failure(f'not {BLOCKS} blocks')


def store(path, contents):
    with open(path, 'wb') as file:
        file.write(contents)


def blocks(path):
    """Those of a file that are not all zeros."""
    with open(path, 'rb') as file:
        contents = file.read()
    found = [contents[at:at + BLOCK] for at in range(0, len(contents), BLOCK)]
    return [block for block in found if any(block)]


def numbered(block):
    """The number of a block that has the checksum in it, as fio's `--verify=md5` makes it."""
    magic, _, length, *_, number, _, digest = HEADER.unpack_from(block)
    if (magic, length) != (MAGIC, BLOCK) or digest != hashlib.md5(block[HEADER.size:]).digest():
        raise Failure(f'a block that is not as it was sent: {block[:HEADER.size].hex()}')
    return number


class Written(Connected):
    """The server's memory has what the client has written."""

    def run(self, at):
        store(memory(at.server), bytes(SERVED * BLOCK))
        super().run(at)
        numbers = [numbered(block) for block in blocks(memory(at.server))]
        if len(numbers) < BLOCKS // 4 or len(set(numbers)) < len(numbers):
            raise Failure(f'the server has the blocks {numbers}')


class Fetched(Connected):
    """The client has what was in the server's memory."""

    def run(self, at):
        store(memory(at.server), os.urandom(SERVED * BLOCK))
        served = set(blocks(memory(at.server)))
        store(copy(at.server), bytes(FETCHED * BLOCK))
        super().run(at)
        found = blocks(copy(at.server))
        if len(found) != FETCHED or not set(found) <= served:
            raise Failure('what the client has read is not what the server has')


def row(kind, verb, server='', client=''):
    return kind(server=f'fio --name=server {JOB} --rw=read --iodepth={SERVED}{server}',
                client=f'fio --name=client {JOB} --rw=write --hostname={{}} --verb={verb}{client}',
                check=check)


MAPPED = ' --mem=mmapshared:{memory}'
VERIFIED = ' --thread --verify=crc32c --verify_state_save=0'

ROWS = [
    row(Connected, 'write'),
    row(Connected, 'read'),
    row(Connected, 'send'),
    row(Written, 'write', MAPPED, ' --verify=md5 --verify_state_save=0'),
    row(Fetched, 'read', MAPPED, f' --iodepth={FETCHED} --mem=mmapshared:{{copy}}'),
    row(Connected, 'send', VERIFIED, VERIFIED),
]
