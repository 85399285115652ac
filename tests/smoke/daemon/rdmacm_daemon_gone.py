#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
A program over librdmacm whose daemon the test kills when the program prints "ready". A listener and another
ID each get one event, and can be destroyed; no further event arrives. The program has opened the device and
closed everything once before, which must not matter.
"""
import ctypes
import errno
import os
import select

TCP = 0x106
DEVICE_REMOVAL = 11
IDS = 2
SECONDS = 60

rdmacm = ctypes.CDLL('librdmacm.so.1', use_errno=True)


class Channel(ctypes.Structure):
    _fields_ = [('fd', ctypes.c_int)]


class Event(ctypes.Structure):
    """The beginning of struct rdma_cm_event."""
    _fields_ = [('id', ctypes.c_void_p), ('listen_id', ctypes.c_void_p), ('event', ctypes.c_int),
                ('status', ctypes.c_int)]


def must(rc, what):
    if rc:
        raise SystemExit(f'{what}: {os.strerror(ctypes.get_errno())}')


def removed(channel):
    """Returns the ID of the next event, which must be DEVICE_REMOVAL."""
    event = ctypes.POINTER(Event)()
    if not select.select([channel.contents.fd], [], [], SECONDS)[0]:
        raise SystemExit('no event comes')
    must(rdmacm.rdma_get_cm_event(channel, ctypes.byref(event)), 'rdma_get_cm_event')
    if event.contents.event != DEVICE_REMOVAL:
        raise SystemExit(f'event {event.contents.event}')
    found = event.contents.id
    must(rdmacm.rdma_ack_cm_event(event), 'rdma_ack_cm_event')
    return found


def close_all():
    os.open('/dev/infiniband/rdma_cm', os.O_RDWR)
    os.closerange(3, os.sysconf('SC_OPEN_MAX'))


def run():
    close_all()
    rdmacm.rdma_create_event_channel.restype = ctypes.POINTER(Channel)
    channel = rdmacm.rdma_create_event_channel()
    ids = [ctypes.c_void_p() for _ in range(IDS)]
    for one in ids:
        must(rdmacm.rdma_create_id(channel, ctypes.byref(one), None, TCP), 'rdma_create_id')
    must(rdmacm.rdma_listen(ids[0], 1), 'rdma_listen')
    print('ready', flush=True)
    told = sorted(removed(channel) for _ in ids)
    if told != sorted(one.value for one in ids):
        raise SystemExit(f'told are {told}, not {ids}')
    event = ctypes.POINTER(Event)()
    if not rdmacm.rdma_get_cm_event(channel, ctypes.byref(event)):
        raise SystemExit('one event too many')
    if ctypes.get_errno() != errno.EIO:
        raise SystemExit(f'no EIO: {os.strerror(ctypes.get_errno())}')
    for one in ids:
        must(rdmacm.rdma_destroy_id(one), 'rdma_destroy_id')


run()
