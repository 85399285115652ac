# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Identifies the build of urxe that ran the clients."""
import hashlib
import os

# The files that run beside a client.
FILES = ['verbs/liburxe.so', 'tools/urxe', 'tools/urxed']


def digest(build):
    """A digest of the files, which differs after each change."""
    found = hashlib.sha256()
    for name in FILES:
        with open(os.path.join(build, name), 'rb') as file:
            found.update(file.read())
    return found.hexdigest()
