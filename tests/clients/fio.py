# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
fio with its engine `rdma`. For SENDs the receiver compares the contents. For WRITEs and READs fio compares nothing,
whatever `--verify` says: its engine (`engines/rdma.c`) is FIO_UNIDIR. So the tests let fio put its buffers into
files by `--mem`, and compare these: each block that the client wrote to MEMORY, the server's file, must have the
checksum of the client. Each block of COPY, the client's file, must be a block of MEMORY.
The server posts receives for all SENDs in advance (`--iodepth=128`), because fio's client does not retry without a receive.
"""
import hashlib
import os
import re
import struct

from host import Failure
from row import Connected, copy, memory

PACKAGES = ['fio']
BLOCK = 64 << 10
BLOCKS = 64  # transferred by each run
SERVED = 128  # buffers of the server; fio's client picks one at random for each transfer
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


def nonzero_blocks(path):
    """Returns the blocks of a file that contain a byte other than zero."""
    with open(path, 'rb') as file:
        contents = file.read()
    found = [contents[at:at + BLOCK] for at in range(0, len(contents), BLOCK)]
    return [block for block in found if any(block)]


def verified_number(block):
    """Checks a block's MD5, as fio's `--verify=md5` stores it, and returns the block's number."""
    magic, _, length, *_, number, _, digest = HEADER.unpack_from(block)
    if (magic, length) != (MAGIC, BLOCK) or digest != hashlib.md5(block[HEADER.size:]).digest():
        raise Failure(f'a block with a wrong checksum: {block[:HEADER.size].hex()}')
    return number


class CheckedWrite(Connected):
    """Checks that the server's memory contains the blocks that the client wrote."""

    def run(self, at):
        store(memory(at.server), bytes(SERVED * BLOCK))
        super().run(at)
        numbers = [verified_number(block) for block in nonzero_blocks(memory(at.server))]
        if len(numbers) < BLOCKS // 4 or len(set(numbers)) < len(numbers):
            raise Failure(f'the server has the blocks {numbers}')


class CheckedRead(Connected):
    """Checks that the client's buffers contain blocks of the server's memory."""

    def run(self, at):
        store(memory(at.server), os.urandom(SERVED * BLOCK))
        served = set(nonzero_blocks(memory(at.server)))
        store(copy(at.server), bytes(FETCHED * BLOCK))
        super().run(at)
        found = nonzero_blocks(copy(at.server))
        if len(found) != FETCHED or not set(found) <= served:
            raise Failure('the client has read blocks that the server does not have')


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
    row(CheckedWrite, 'write', MAPPED, ' --verify=md5 --verify_state_save=0'),
    row(CheckedRead, 'read', MAPPED, f' --iodepth={FETCHED} --mem=mmapshared:{{copy}}'),
    row(Connected, 'send', VERIFIED, VERIFIED),
]
