#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Checks the output of ibv_devices and ibv_devinfo -v, and the nodes of the device."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import Failure, Host, main  # noqa: E402

INFO = [
    r'hca_id:\turxe0$',
    r'transport:\s+InfiniBand',
    r'phys_port_cnt:\s+1$',
    # The advertised limits; the conformance tests create as many objects, at most 65,536 of a kind.
    r'max_qp:\s+65536$',
    r'max_qp_wr:\s+32767$',
    r'max_mr_size:\s+0xffffffffffffffff$',
    r'max_sge:\s+32$',
    r'max_sge_rd:\s+32$',
    r'max_cq:\s+1048576$',
    r'max_cqe:\s+1048575$',
    r'max_mr:\s+1048576$',
    r'max_pd:\s+1048576$',
    r'max_qp_rd_atom:\s+128$',
    r'max_qp_init_rd_atom:\s+128$',
    r'max_res_rd_atom:\s+8388608$',
    r'max_mw:\s+1048576$',
    r'max_ah:\s+1048576$',
    r'max_srq:\s+1048576$',
    r'max_srq_wr:\s+32767$',
    r'max_srq_sge:\s+32$',
    r'max_mcast_grp:\s+1024$',
    r'max_mcast_qp_attach:\s+64$',
    r'max_total_mcast_qp_attach:\s+65536$',
    r'max_pkeys:\s+16$',
    r'max_ee:\s+0$',
    r'max_rdd:\s+0$',
    r'max_raw_ipv6_qp:\s+0$',
    r'max_raw_ethy_qp:\s+0$',
    r'max_fmr:\s+0$',
    r'completion_timestamp_mask not supported$',
    r'core clock not supported$',
    r'atomic_cap:\s+ATOMIC_HCA',
    r'state:\s+PORT_ACTIVE \(4\)$',
    r'max_mtu:\s+4096',
    r'active_mtu:\s+4096',
    r'link_layer:\s+Ethernet$',
    # Link-local IPv6, IPv4 and ULA IPv6: first as RoCEv2, then as RoCEv1.
    r'GID\[ *0\]:\s+fe80:.*RoCE v2$',
    r'GID\[ *1\]:\s+::ffff:169\.254\.\d+\.\d+, RoCE v2$',
    r'GID\[ *2\]:\s+fd[0-9a-f]{2}:.*RoCE v2$',
    r'GID\[ *16\]:\s+fe80:.*RoCE v1$',
    r'GID\[ *17\]:.*RoCE v1$',
    r'GID\[ *18\]:\s+fd[0-9a-f]{2}:.*RoCE v1$',
]


def run():
    with Host(sys.argv[1]) as host:
        listing = host.run('ibv_devices')
        if not re.search(r'^\s+urxe0\s+[0-9a-f]{16}$', listing, re.MULTILINE):
            raise Failure(f'ibv_devices does not list urxe0:\n{listing}')
        nodes = host.run('ls', '/dev/infiniband').split()
        if not os.path.exists('/dev/infiniband') and nodes != ['rdma_cm', 'uverbs1024']:
            raise Failure(f'/dev/infiniband contains {nodes}')
        info = host.run('ibv_devinfo', '-v', '-d', 'urxe0')
        print(listing, info)
        for pattern in INFO:
            if not re.search(pattern, info, re.MULTILINE):
                raise Failure(f'ibv_devinfo -v has no line like {pattern}:\n{info}')


main(run)
