# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A daemon that refuses programs in a form that all versions understand, as one of another version does."""
import contextlib
import os
import socket
import struct
import threading


def refuse_programs(listener, statuses):
    """Answers each connection with the next status, and all after these with the last one."""
    connections = []
    while True:
        try:
            connections.append(listener.accept()[0])
        except OSError:
            return
        connections[-1].recv(4096)
        status = statuses[min(len(connections), len(statuses)) - 1]
        with contextlib.suppress(BrokenPipeError):
            connections[-1].send(struct.pack('=Ii', 1, -status))


@contextlib.contextmanager
def refusing_daemon(run_dir, statuses):
    """Serves the run directory, which has no other daemon."""
    path = os.path.join(run_dir, 'urxed.sock')
    if os.path.exists(path):
        os.unlink(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen()
        thread = threading.Thread(target=refuse_programs, args=(listener, statuses))
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
