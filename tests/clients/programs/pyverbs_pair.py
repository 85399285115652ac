# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
pyverbs_pair.py [-d DEVICE] [-p PORT] GID_INDEX [SERVER]: server, or client of a server's address, with one RC and one UD queue
pair each: a SEND, a WRITE with immediate data, a READ, atomics and a datagram. Every byte is compared.
"""
import argparse
import json
import socket
import sys

import pyverbs.enums as e
from pyverbs.addr import AH, GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

PORT = 18516
GRH = 40
SIZE = 100000
ROOM = 4 * SIZE
QKEY = 0x11111111
RIGHTS = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_WRITE |
          e.IBV_ACCESS_REMOTE_ATOMIC)


def pattern(seed, length):
    return bytes((seed + i * 7 + i // 251) & 0xff for i in range(length))


def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f'{what}: {found[:40]}, not {wanted[:40]}')


class Peer:
    """One side, and the addresses of the other one."""

    def __init__(self, device, gid_index):
        self.gid_index = gid_index
        self.context = Context(name=device)
        self.pd = PD(self.context)
        self.mr = MR(self.pd, ROOM, RIGHTS)
        self.cq = CQ(self.context, 64)
        cap = QPCap(max_send_wr=8, max_recv_wr=8)
        self.rc, self.ud = (QP(self.pd, QPInitAttr(qp_type=kind, scq=self.cq, rcq=self.cq, cap=cap))
                            for kind in (e.IBV_QPT_RC, e.IBV_QPT_UD))

    def card(self):
        return {'gid': str(self.context.query_gid(1, self.gid_index)), 'rc': self.rc.qp_num,
                'ud': self.ud.qp_num, 'rkey': self.mr.rkey, 'addr': self.mr.buf}

    def connect(self, other):
        self.other = other
        self.path = AHAttr(gr=GlobalRoute(dgid=GID(other['gid']), sgid_index=self.gid_index), is_global=1,
                           port_num=1)
        attr = QPAttr(port_num=1)
        attr.qkey = QKEY
        self.ud.to_rts(attr)
        attr = QPAttr(port_num=1)
        attr.dest_qp_num = other['rc']
        attr.path_mtu = e.IBV_MTU_1024
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
        attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 18, 7, 7
        attr.qp_access_flags = RIGHTS
        attr.ah_attr = self.path
        self.rc.to_rts(attr)

    def piece(self, offset, length):
        return [SGE(self.mr.buf + offset, length, self.mr.lkey)]

    def receive(self, qp, offset, length):
        qp.post_recv(RecvWR(sg=self.piece(offset, length), num_sge=1))

    def done(self, opcode):
        n, found = self.cq.poll()
        while not n:
            n, found = self.cq.poll()
        if found[0].status or found[0].opcode != opcode:
            sys.exit(f'a completion: {found[0]}')
        return found[0]

    def send(self, opcode, completes, offset, length, atomic=None):
        wr = SendWR(opcode=opcode, num_sge=1, sg=self.piece(offset, length), imm_data=0x0badcafe)
        if atomic:
            wr.set_wr_atomic(self.other['rkey'], self.other['addr'], *atomic)
        elif opcode != e.IBV_WR_SEND:
            wr.set_wr_rdma(self.other['rkey'], self.other['addr'] + offset)
        self.rc.post_send(wr)
        self.done(completes)


def serve(me, tell):
    me.receive(me.rc, 0, SIZE)
    me.receive(me.rc, 0, 0)
    me.receive(me.ud, 3 * SIZE, GRH + 500)
    me.mr.write(pattern(3, SIZE), SIZE, 2 * SIZE)
    tell()  # ready for RC requests
    me.done(e.IBV_WC_RECV)
    expect('a SEND', me.mr.read(SIZE, 0), pattern(1, SIZE))
    if me.done(e.IBV_WC_RECV_RDMA_WITH_IMM).imm_data != 0x0badcafe:
        sys.exit('the immediate data is not what was sent')
    expect('a WRITE', me.mr.read(SIZE, SIZE), pattern(2, SIZE))
    me.mr.write((41).to_bytes(8, sys.byteorder), 8, 0)
    tell()  # ready for atomics
    me.done(e.IBV_WC_RECV)
    expect('a datagram', me.mr.read(500, 3 * SIZE + GRH), pattern(4, 500))
    tell()  # all requests are done
    expect('what atomics left', me.mr.read(8, 0), (99).to_bytes(8, sys.byteorder))


def ask(me, tell):
    tell()
    me.mr.write(pattern(1, SIZE), SIZE, 0)
    me.send(e.IBV_WR_SEND, e.IBV_WC_SEND, 0, SIZE)
    me.mr.write(pattern(2, SIZE), SIZE, SIZE)
    me.send(e.IBV_WR_RDMA_WRITE_WITH_IMM, e.IBV_WC_RDMA_WRITE, SIZE, SIZE)
    me.send(e.IBV_WR_RDMA_READ, e.IBV_WC_RDMA_READ, 2 * SIZE, SIZE)
    expect('a READ', me.mr.read(SIZE, 2 * SIZE), pattern(3, SIZE))
    tell()
    me.send(e.IBV_WR_ATOMIC_FETCH_AND_ADD, e.IBV_WC_FETCH_ADD, 0, 8, (1, 0))
    expect('a fetch and add', me.mr.read(8, 0), (41).to_bytes(8, sys.byteorder))
    me.send(e.IBV_WR_ATOMIC_CMP_AND_SWP, e.IBV_WC_COMP_SWAP, 0, 8, (42, 99))
    expect('a compare and swap', me.mr.read(8, 0), (42).to_bytes(8, sys.byteorder))
    me.mr.write(pattern(4, 500), 500, 3 * SIZE)
    wr = SendWR(num_sge=1, sg=me.piece(3 * SIZE, 500))
    wr.set_wr_ud(AH(me.pd, attr=me.path), me.other['ud'], QKEY)
    me.ud.post_send(wr)
    me.done(e.IBV_WC_SEND)
    tell()


def meet(address, port):
    if address:
        return socket.create_connection((address, port))
    with socket.create_server(('', port)) as listener:
        return listener.accept()[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('-d', dest='device', default='urxe0')
    parser.add_argument('-p', dest='port', type=int, default=PORT)
    parser.add_argument('gid_index', type=int)
    parser.add_argument('address', nargs='?')
    options = parser.parse_args()
    me = Peer(options.device, options.gid_index)
    # Two files: a file for both directions drops what it has read ahead when the program writes.
    with meet(options.address, options.port) as tcp, tcp.makefile('r') as received, tcp.makefile('w') as sent:
        def exchange(what=None):
            sent.write(json.dumps(what) + '\n')
            sent.flush()
            line = received.readline()
            if not line:
                sys.exit('the other side has ended')
            return json.loads(line)

        me.connect(exchange(me.card()))
        (ask if options.address else serve)(me, exchange)
    print('all is as it was sent')


if __name__ == '__main__':
    main()
