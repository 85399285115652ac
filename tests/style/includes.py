#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Checks every #include against the table of docs/architecture.md. The build gives each folder few include
directories; this test also checks headers that the compiler would accept, such as system headers.
"""
import functools
import glob
import os
import pathlib
import re
import sys

from rooms import room, room_above

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)

# Headers of libc without clocks, files, sockets, threads and stdio.
PURE_LIBC = ('assert|byteswap|endian|errno|inttypes|limits|stdalign|stdarg|stdatomic|stdbool|'
             r'stddef|stdint|stdlib|string|sys/queue|sys/types')
OURS = r'(rxe|cm|netdev|vnic|verbs|tools)/'
DPDK = r'(rte_|dpdk)'
RDMA_CORE = r'(infiniband|rdma)/'

# folder: (permitted, forbidden), as prefixes of the name in <>.
RULES = {
    'rxe': (rf'rxe/|({PURE_LIBC})\.h$|isa-l/crc\.h$', None),
    'rxe/cm': (rf'cm/|({PURE_LIBC})\.h$', None),
    'netdev': (r'netdev/|(?!{})'.format(OURS), f'{DPDK}|{RDMA_CORE}'),
    'vnic': (r'vnic/|(?!{})'.format(OURS), f'{DPDK}|{RDMA_CORE}|pcap'),
    'verbs': (r'rxe/|cm/attach_protocol\.h$|netdev/packet_port\.h$|'
              r'vnic/(driver|attach_protocol|inbox|record_ring)\.h$|(?!{})'.format(OURS),
              rf'{DPDK}|pcap|infiniband/(?!verbs\.h|verbs_api\.h)'),
    'verbs/pvrdma': (rf'rxe/|vnic/(guest_memory|dirty_log)\.h$|rdma/vmw_pvrdma-abi\.h$|({PURE_LIBC})\.h$', None),
    'verbs/session': (rf'rxe/|vnic/attach_protocol\.h$|(?!{OURS})', f'{DPDK}|{RDMA_CORE}|pcap'),
    'verbs/samehost': (rf'rxe/|vnic/(attach_protocol|inbox)\.h$|(?!{OURS})', f'{DPDK}|{RDMA_CORE}|pcap'),
    'verbs/hca': (rf'rxe/|infiniband/verbs\.h$|(?!{OURS}|{RDMA_CORE})', f'{DPDK}|pcap'),
    'tools': ('', f'{DPDK}|{RDMA_CORE}|pcap'),
    'tests': ('', DPDK),
}

# Files with further permitted headers, which no other file of their folder may include.
EXCEPTIONS = {
    r'netdev/(dpdk/([a-z]+/)?[a-z_0-9]+|xdp/arp_nd_socket)\.[ch]$': DPDK,
    r'tools/urxed/switch/tables/dpdk_[a-z_]+\.[ch]$': DPDK,
    r'tests/bench/limits/dpdk_[a-z_]+\.c$': DPDK,
    r'tools/urxed/cm/ucma[a-z_]*\.[ch]$': r'rdma/rdma_user_cm\.h$',
    r'vnic/(device|vfio)/[a-z_0-9]+\.[ch]$': r'rxe/state_stream\.h$',
}


def owner(path):
    """The folder whose rules apply to a file."""
    return max((folder for folder in RULES if path.startswith(folder + os.sep)), key=len)


def sources(top):
    for folder in {folder.split(os.sep)[0] for folder in RULES}:
        for path, _, names in os.walk(os.path.join(top, folder)):
            for name in names:
                if name.endswith(('.c', '.h')):
                    path_in_top = os.path.relpath(os.path.join(path, name), top)
                    yield owner(path_in_top), path_in_top


def side(path):
    """The side of the vNIC that a file belongs to; None for files of both sides."""
    match = re.match(r'vnic/(?:include/vnic/)?(driver|device)', path)
    return match.group(1) if match else None


def wrong_side(path, target):
    return side(path) and side(target) and side(path) != side(target)


def check_system(folder, path, name):
    """An include in <>: a public header of urxe, or a system header."""
    allowed, forbidden = RULES[folder]
    for pattern, besides in EXCEPTIONS.items():
        if re.match(pattern, path) and re.match(besides, name):
            return None
    if not re.match(allowed, name) or (forbidden and re.match(forbidden, name)):
        return f'{folder}/ may not include <{name}>'
    if wrong_side(path, f'vnic/include/{name}'):
        return f'the vNIC\'s sides share only its registers, not <{name}>'
    return None


@functools.cache
def inner_folders(top, folder):
    """The folders in a folder, then the folders in these."""
    return sorted(glob.glob('*/', root_dir=os.path.join(top, folder))) + sorted(glob.glob('*/*/', root_dir=os.path.join(top, folder)))


def find_private(top, folder, path, name):
    """The places of a header in quotes: beside the file, above it, and then in the rooms of its folder."""
    places = [os.path.join(parent, name) for parent in list(pathlib.PurePath(path).parents)[:-1]]
    places += [os.path.join(folder, inner, name) for inner in inner_folders(top, folder)]
    return [place for place in places if os.path.isfile(os.path.join(top, place))]


def check_private(top, folder, path, name):
    """An include in quotes: a private header of the same folder."""
    found = find_private(top, folder, path, name)
    if found and owner(found[0]) == folder:
        if wrong_side(path, found[0]):
            return f'the vNIC\'s driver and device side may not share "{name}"'
        return None
    # Unit tests may include private headers of tools/ and verbs/, which have no public headers. Ports and transports of
    # tests/lib/device/ implement private interfaces of netdev/ and vnic/.
    places = {'tests': ('tools', 'verbs'), 'tests/lib/device': ('tools', 'verbs', 'netdev', 'vnic/common', 'vnic/inbox')}
    if any(os.path.isfile(os.path.join(top, place, name)) for place in places.get(os.path.dirname(path), places.get(folder, ()))):
        return None
    return f'"{name}" is no header of {folder}/'


def check_room(top, folder, path, kind, name):
    """An include between rooms of verbs/."""
    found = find_private(top, folder, path, name) if kind == '"' else [os.path.join('verbs', name)]
    if found and room_above(room(path), room(found[0])):
        return f'{room(path)}/ may not include "{name}": {room(found[0])}/ is above it'
    return None


def check(top):
    complaints = []
    count = 0
    for folder, path in sources(top):
        with open(os.path.join(top, path), encoding='utf-8') as file:
            text = file.read()
        for match in INCLUDE.finditer(text):
            kind, name = match.groups()
            count += 1
            wrong = (check_system(folder, path, name) if kind == '<'
                     else check_private(top, folder, path, name))
            wrong = wrong or check_room(top, folder, path, kind, name)
            if wrong:
                line = text.count('\n', 0, match.start()) + 1
                complaints.append(f'{path}:{line}: {wrong}')
    return count, complaints


def main():
    count, complaints = check(sys.argv[1])
    for complaint in complaints:
        print(complaint)
    print(f'{count} includes, {len(complaints)} against the rules')
    sys.exit(bool(complaints) or count == 0)


main()
