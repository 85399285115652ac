#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Counts the packets of a capture, to make expected.json of a fixture.

Implements the specification a second time, without any code of the engine.
    dissect.py CAPTURE > expected.json
"""
import ipaddress
import json
import struct
import sys
import zlib

SERVICES = {0: "RC", 1: "UC", 3: "UD"}
OPERATIONS = [
    "SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "SEND_LAST_IMM", "SEND_ONLY", "SEND_ONLY_IMM",
    "WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST", "WRITE_LAST_IMM", "WRITE_ONLY", "WRITE_ONLY_IMM",
    "READ_REQUEST", "READ_RESPONSE_FIRST", "READ_RESPONSE_MIDDLE", "READ_RESPONSE_LAST",
    "READ_RESPONSE_ONLY", "ACKNOWLEDGE", "ATOMIC_ACKNOWLEDGE", "COMPARE_SWAP", "FETCH_ADD",
    "RESERVED", "SEND_LAST_INV", "SEND_ONLY_INV",
]
ACKNOWLEDGE = 0x11
NAKS = {0: "nak_sequence", 1: "nak_invalid_request", 2: "nak_remote_access",
        3: "nak_remote_operational"}


def frames(data):
    """Frames of a classic pcap file with Ethernet link type."""
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at = 24
    while at + 16 <= len(data):
        captured = struct.unpack(order + "I", data[at + 8:at + 12])[0]
        yield data[at + 16:at + 16 + captured]
        at += 16 + captured


def split(frame):
    """(address family, source, destination, L3 header, BTH to ICRC), or None for other frames."""
    l3 = 18 if frame[12:14] == b"\x81\x00" else 14
    kind = frame[l3 - 2:l3]
    ip = frame[l3:]
    if kind == b"\x08\x00" and ip[9] == 17 and ip[22:24] == b"\x12\xb7":
        end = struct.unpack(">H", ip[2:4])[0]
        return 4, ip[12:16], ip[16:20], ip[:28], ip[28:end]
    if kind == b"\x86\xdd" and ip[6] == 17 and ip[42:44] == b"\x12\xb7":
        end = 40 + struct.unpack(">H", ip[4:6])[0]
        return 6, ip[8:24], ip[24:40], ip[:48], ip[48:end]
    if kind == b"\x89\x15":
        end = 40 + struct.unpack(">H", ip[4:6])[0]
        return 1, ip[8:24], ip[24:40], ip[:40], ip[40:end]
    return None


def icrc(family, header, transport):
    header, transport = bytearray(header), bytearray(transport[:-4])
    if family == 4:
        masked = [1, 8, 10, 11, 26, 27]
    else:
        header[0] |= 0x0F
        masked = [1, 2, 3, 7] + ([46, 47] if family == 6 else [])
    for i in masked:
        header[i] = 0xFF
    transport[4] = 0xFF
    return zlib.crc32(b"\xff" * 8 + header + transport)


def opcode_name(opcode):
    return SERVICES[opcode >> 5] + "_" + OPERATIONS[opcode & 31]


def ack_kind(syndrome):
    kind = syndrome >> 5
    if kind == 0:
        return "ack"
    return "nak_rnr" if kind == 1 else NAKS.get(syndrome & 31, "nak_other")


def dissect(data):
    opcodes, connections, right, total, other = {}, {}, 0, 0, 0
    for frame in frames(data):
        packet = split(frame)
        if not packet:
            other += 1
            continue
        family, source, destination, header, transport = packet
        total += 1
        right += struct.unpack("<I", transport[-4:])[0] == icrc(family, header, transport)
        name = opcode_name(transport[0])
        opcodes[name] = opcodes.get(name, 0) + 1
        qpn = int.from_bytes(transport[5:8], "big")
        key = (str(ipaddress.ip_address(source)), str(ipaddress.ip_address(destination)), qpn)
        connection = connections.setdefault(key, {"packets": 0, "acks": {}})
        connection["packets"] += 1
        if transport[0] == ACKNOWLEDGE:
            kind = ack_kind(transport[12])
            connection["acks"][kind] = connection["acks"].get(kind, 0) + 1
    return {
        "frames": total + other,
        "roce": total,
        "icrc": {"right": right, "wrong": total - right, "unverifiable": 0},
        "drops": {},
        "opcodes": dict(sorted(opcodes.items())),
        "connections": [
            {"source": k[0], "destination": k[1], "dest_qpn": k[2], **v}
            for k, v in sorted(connections.items())
        ],
    }


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as capture:
        json.dump(dissect(capture.read()), sys.stdout, indent=1)
        print()
