# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
NCCL itself needs a GPU. The tests' own program uses libibverbs as NCCL's network plugin does: `dlopen`, and `dlvsym` with
the versions of the symbols; a thread that waits for asynchronous events; regions with relaxed ordering; the question
whether the device has DMA-BUF. Eight threads have four queue pairs in each direction and one that is connected to itself.
Receivers write addresses to memory that senders poll; senders divide messages of up to 1 MiB among four queue pairs.
Every byte is compared.
"""
from debuggers import prints
from row import Pair

PACKAGES = ['libibverbs1']
PORT = 18517

ROWS = [Pair(server='{programs}/nccl_payload {gid}', client='{programs}/nccl_payload {gid} {}',
             check=prints('all is as it was sent'), port=PORT)]
