# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Tools that look into a program, and the compiler's sanitizers. `fresh_memory` is the tests' own program: its two processes
compare what SEND, WRITE, READ, an atomic and a datagram brought into memory that they have not initialised.
`fresh_memory_address` is compiled with `-fsanitize=address`, `fresh_memory_thread` with `-fsanitize=thread`.

- While a debugger has stopped a program, it acknowledges nothing, where an HCA would. A peer waits for `timeout` and
  `retry_cnt` of its queue pair, then its requests fail: a connection that is to be debugged needs a `timeout` of 20 or more.
- A program that unmaps registered memory may get SIGSEGV or SIGBUS within `liburxe.so`, which the library handles. Tell gdb
  `handle SIGSEGV SIGBUS nostop noprint pass`.
- Memcheck takes registered memory as initialised from `ibv_reg_mr` on. Memory that the program's `malloc` hands out within a
  region afterwards counts as uninitialised again, and so does memory of an implicit on-demand region.
- `strace -f` shows the calls of the engine thread, too. Doorbells are no system calls of the program: use `urxe capture`.
"""
import re
from dataclasses import dataclass

from host import Failure
from row import Pair, Row

PACKAGES = ['gdb', 'strace', 'linux-perf', 'valgrind', 'gcc']
PORT = 18515


@dataclass(frozen=True)
class Silent(Row):
    """A command that may write nothing to standard error."""

    def judge(self, client, server=None):
        super().judge(client, server)
        if client.errors():
            raise Failure('a message on standard error')


def prints(pattern):
    def check(client, server):
        for text in (client, server):
            if text and not re.search(pattern, text):
                raise Failure(f'no {pattern}: {text}')
    return check


def pingpong(tool, check, **options):
    server = f'{tool} ibv_rc_pingpong -g {{gid}} -c -n 100'
    return Pair(server=server, client=f'{server} {{}}', check=check, port=PORT, **options)


MEMCHECK = 'valgrind -q --error-exitcode=9'
ROWS = [
    pingpong('gdb -batch -ex run --args', prints('exited normally')),
    pingpong("gdb -batch -ex 'break ibv_dereg_mr' -ex run -ex backtrace -ex continue --args",
             prints(r'#0 .*ibv_dereg_mr(.*\n)*.*exited normally')),
    pingpong('strace -f -c -o /dev/stdout', prints('% time')),
    pingpong('perf stat -e task-clock', prints('100 iters in')),
    pingpong('perf record -q -e cpu-clock -o /dev/null', prints('100 iters in')),
    pingpong(MEMCHECK, prints('100 iters in')),
    Silent(f'{MEMCHECK} {{programs}}/fresh_memory {{gid}}', check=prints('all is as it was sent')),
    Silent('{programs}/fresh_memory_address {gid}', check=prints('all is as it was sent')),
    Silent('{programs}/fresh_memory_thread {gid}', check=prints('all is as it was sent')),
]
