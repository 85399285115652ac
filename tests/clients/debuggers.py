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
import os
import re
import subprocess
from dataclasses import dataclass

from host import Failure
from row import PROGRAMS, Pair, Row

PACKAGES = ['gdb', 'strace', 'linux-perf', 'valgrind', 'gcc']
PORT = 18515
HARNESS = os.path.join(PROGRAMS, '../../harness')


def compile_verbs(top, path):
    """Compiles a program of the tests' own over libibverbs, with the sanitizer that its name ends with."""
    source, _, sanitizer = re.fullmatch(r'(.*?)(_(address|thread))?', path).groups()
    program = os.path.join(top, os.path.basename(path))
    argv = ['gcc', '-g', '-O1', '-o', program, f'-I{HARNESS}', f'{source}.c',
            *(os.path.join(HARNESS, f'{name}.c') for name in ('endpoint', 'exchange')), '-libverbs']
    made = subprocess.run(argv + ([f'-fsanitize={sanitizer}'] if sanitizer else []), capture_output=True, text=True,
                          check=False)
    if made.returncode:
        raise Failure(f'gcc: {made.stderr}')
    return program


@dataclass(frozen=True)
class Compiled(Row):
    """A command with a program of the tests' own at its end, which may write nothing to standard error."""

    def argv(self, at):
        *words, path, gid = super().argv(at)
        return [*words, compile_verbs(at.client.top, path), gid]

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
    Compiled(f'{MEMCHECK} {{programs}}/fresh_memory {{gid}}', check=prints('all is as it was sent')),
    Compiled('{programs}/fresh_memory_address {gid}', check=prints('all is as it was sent')),
    Compiled('{programs}/fresh_memory_thread {gid}', check=prints('all is as it was sent')),
]
