# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The rooms of verbs/ and rxe/ and their order, as docs/architecture.md shows it."""
import re

# From the lowest to the highest. A room calls and includes those before it.
ROOMS = ['hca', 'session', 'process', 'memory', 'samehost', 'engine', 'adapter', 'objects', 'queues', 'poll', 'daemon',
         'attach', 'requests', 'uverbs', 'rdmacm', 'checkpoint', 'interpose']

# The same for rxe/. All rooms include the structures of objects/, so the order holds for calls only.
RXE_ROOMS = ['util', 'wire', 'record', 'objects', 'memory', 'congestion', 'offload', 'requester', 'responder', 'device',
             'state']

# Rooms whose files call each other in one direction only.
WITHOUT_CIRCLE = {'verbs': [], 'rxe': ['state']}


def room(path):
    """The room of a source file; None: it is in none."""
    match = re.match(r'verbs/([a-z]+)/', path)
    return match.group(1) if match and match.group(1) in ROOMS else None


def room_above(low, high, rooms=None):
    """Whether the room `high` is above the room `low`."""
    rooms = rooms or ROOMS
    return low is not None and high is not None and rooms.index(high) > rooms.index(low)
