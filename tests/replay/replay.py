#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tests of `urxe replay`.

    replay.py URXE fixture DIRECTORY   the output for capture.pcap equals expected.json
    replay.py URXE flips DIRECTORY     a flip of any bit that the ICRC covers is detected
    replay.py URXE damaged DIRECTORY   cut short, empty, no capture, snap-truncated
    replay.py URXE made DIRECTORY      ICRCs of synthetic captures equal those of a second implementation
    replay.py URXE runs                UDP GSO runs of packets that have no payload are cut
    replay.py URXE collection          captures that may not be published, in $URXE_CAPTURES
"""
import glob
import json
import os
import shlex
import struct
import subprocess
import sys
import tempfile

import dissect

SKIP = 77
PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
# Captures of other projects: number of packets, and of packets with the right ICRC.
COLLECTION = {"huawei_hns_send_imm.pcap": 105, "rocev1_made_from_ib_grh.pcap": 6}


def run(urxe, path, *options):
    return subprocess.run([*urxe, "replay", path, *options], capture_output=True, text=True, timeout=60)


def report(urxe, path):
    done = run(urxe, path, "--json")
    return done.returncode, json.loads(done.stdout)


def check(condition, text):
    if not condition:
        sys.exit("FAILED: " + text)


def connections(found):
    """Connections by their endpoints, without counts of 0."""
    return {
        (c["source"], c["destination"], c["dest_qpn"]):
            (c["packets"], {kind: n for kind, n in c["acks"].items() if n})
        for c in found
    }


def compare(got, expected, name):
    for key in ("frames", "roce", "drops", "opcodes"):
        check(got[key] == expected[key], f"{name}: {key}: {got[key]}, not {expected[key]}")
    for key, value in expected["icrc"].items():
        check(got["icrc"][key] == value, f"{name}: icrc {key}: {got['icrc'][key]}, not {value}")
    mine, theirs = connections(got["connections"]), connections(expected["connections"])
    check(mine == theirs, f"{name}: connections: {mine}, not {theirs}")


def fixture(urxe, directory):
    capture = os.path.join(directory, "capture.pcap")
    with open(os.path.join(directory, "expected.json"), encoding="utf-8") as file:
        expected = json.load(file)
    status, got = report(urxe, capture)
    check(status == 0, f"{capture}: exit status {status}")
    compare(got, expected, capture)
    text = run(urxe, capture)
    check(text.returncode == 0, f"{capture}: without --json: exit status {text.returncode}")
    check(f"{expected['icrc']['right']} right" in text.stdout, f"{capture}: the text does not say so")


def write_pcap(path, frames):
    """frames: bytes, or (bytes captured, length on the wire)."""
    with open(path, "wb") as file:
        file.write(PCAP_HEADER)
        for frame in frames:
            data, length = frame if isinstance(frame, tuple) else (frame, len(frame))
            file.write(struct.pack("<IIII", 1, 0, len(data), length) + data)


def open_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def read_frames(directory, name):
    return list(dissect.frames(open_bytes(os.path.join(directory, name, "capture.pcap"))))


def rocev1_frame():
    """RC SEND_ONLY of five bytes over RoCEv1 (Annex A16), because no capture of RoCEv1 may be published."""
    transport = bytes.fromhex("04f0ffff00001234800000070102030405000000")
    header = struct.pack(">IHBB", 6 << 28 | 0x2A << 20 | 0x12345, len(transport) + 4, 0x1B, 63)
    header += bytes.fromhex("fe80" + "00" * 13 + "01" + "fe80" + "00" * 13 + "02")
    icrc = dissect.icrc(1, header, transport + bytes(4))
    ethernet = bytes.fromhex("020000000002" "020000000001" "8915")
    return ethernet + header + transport + struct.pack("<I", icrc)


def covered_bits(frame):
    """Numbers of the bits, from the IP or GRH header on, that the ICRC covers (A16.5, A17.3.3)."""
    family, _, _, header, transport = dissect.split(frame)
    masked = {8 * (14 + len(header) + 4) + i for i in range(8)}
    if family == 4:
        octets = [1, 8, 10, 11, 26, 27]
    else:
        octets = [1, 2, 3, 7] + ([46, 47] if family == 6 else [])
        masked |= {8 * 14 + i for i in range(4, 8)}
    for octet in octets:
        masked |= {8 * (14 + octet) + i for i in range(8)}
    end = 14 + len(header) + len(transport)
    return [bit for bit in range(8 * 14, 8 * end) if bit not in masked]


def identifying_bits(family):
    """Numbers of the bits that identify RoCEv2: IP version, IHL or fragment field, protocol, and UDP port."""
    parts = [(14, 8), (20, 16), (23, 8), (36, 16)] if family == 4 else [(14, 4), (20, 8), (56, 16)]
    return [8 * octet + i for octet, n in parts for i in range(n)]


def flip(frame, bit):
    spoiled = bytearray(frame)
    spoiled[bit // 8] ^= 0x80 >> bit % 8
    return bytes(spoiled)


def flips(urxe, directory):
    samples = {
        "IPv4": read_frames(directory, "rc/fetch-add")[0],
        "IPv6": next(f for f in read_frames(directory, "cm/rping-v6") if len(f) < 100),
        "RoCEv1": rocev1_frame(),
    }
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "flip.pcap")
        for name, frame in samples.items():
            write_pcap(path, [frame])
            check(run(urxe, path).returncode == 0, f"{name}: the frame itself is not right")
            bits = covered_bits(frame)
            write_pcap(path, [frame, *(flip(frame, bit) for bit in bits), frame])
            status, got = report(urxe, path)
            check(status != 0, f"{name}: exit status 0")
            check(got["icrc"]["right"] == 2, f"{name}: a flipped bit was not noticed: {got['icrc']}")
            check(sum(got["drops"].values()) == len(bits), f"{name}: {len(bits)} bits flipped: {got['drops']}")
            print(f"{name}: {len(bits)} flipped bits noticed")
        for name, family in ("IPv4", 4), ("IPv6", 6):
            bits = identifying_bits(family)
            write_pcap(path, [flip(samples[name], bit) for bit in bits])
            got = report(urxe, path)[1]
            check(got["icrc"]["wrong"] == len(bits), f"{name}: {len(bits)} identifying bits flipped: {got['icrc']}")


def refused(urxe, path, what, text):
    done = run(urxe, path)
    check(done.returncode not in (0, 2) and done.returncode > 0, f"{what}: status {done.returncode}")
    check(text in done.stderr + done.stdout, f"{what}: said {done.stderr!r}")
    check(len(done.stderr.splitlines()) <= 1, f"{what}: more than a sentence: {done.stderr!r}")


def damaged(urxe, directory):
    with open(os.path.join(directory, "ud/send-v4/capture.pcap"), "rb") as file:
        whole = file.read()
    frames = read_frames(directory, "ud/send-v4")
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "x.pcap")

        def put(data):
            with open(path, "wb") as out:
                out.write(data)

        put(b"")
        refused(urxe, path, "empty file", "is not a capture file")
        put(b"These are not the frames you are looking for.\n" * 9)
        refused(urxe, path, "text file", "is not a capture file")
        for cut in (1, 10, 23):
            put(whole[:cut])
            refused(urxe, path, f"cut to {cut} bytes", "is not a capture file")
        for cut in (24 + 5, 24 + 16, 24 + 16 + 40, len(whole) - 1):
            put(whole[:cut])
            done = run(urxe, path)
            check(done.returncode == 1, f"cut to {cut} bytes: status {done.returncode}")
            check("cut short" in done.stderr or "truncated" in done.stderr,
                  f"cut to {cut} bytes: said {done.stderr!r}")
        write_pcap(path, [])
        refused(urxe, path, "no frames", "no RoCE")
        write_pcap(path, [b"\xff" * 12 + b"\x08\x06" + bytes(46)])
        refused(urxe, path, "ARP alone", "no RoCE")
        put(whole[:20] + struct.pack("<I", 101) + whole[24:])
        done = run(urxe, path)
        check(done.returncode == 1, f"raw IP link type: status {done.returncode}")
        # With a snap length: a packet that cannot be checked does not count as right.
        for snap in (len(frames[0]) - 1, len(frames[0]) - 4, 60):
            write_pcap(path, frames + [(frames[0][:snap], len(frames[0]))])
            status, got = report(urxe, path)
            check(status == 1, f"snap length {snap}: status {status}")
            check(got["icrc"]["unverifiable"] == 1, f"snap length {snap}: {got['icrc']}")
            check(got["icrc"]["right"] == len(frames), f"snap length {snap}: {got['icrc']}")
        refused(urxe, os.path.join(scratch, "absent.pcap"), "absent file", "cannot open")
        done = subprocess.run([*urxe, "replay"], capture_output=True, text=True, timeout=60)
        check(done.returncode == 2, "no file named")


def made(urxe, directory):
    """Synthetic captures may have wrong packets on purpose; both implementations must agree about them."""
    total = 0
    for text in sorted(glob.glob(os.path.join(directory, "*", "*", "fixture.txt"))):
        path = os.path.join(os.path.dirname(text), "capture.pcap")
        if os.path.exists(os.path.join(os.path.dirname(text), "expected.json")) or not os.path.exists(path):
            continue
        packets = [dissect.split(frame) for frame in dissect.frames(open_bytes(path))]
        right = sum(dissect.icrc(p[0], p[3], p[4]) == struct.unpack("<I", p[4][-4:])[0] for p in packets)
        status, got = report(urxe, path)
        check(status == (right != len(packets)), f"{path}: exit status {status}")
        check(got["roce"] == len(packets) and got["icrc"]["right"] == right,
              f"{path}: {got['roce']} packets, {got['icrc']}; not {len(packets)}, {right} right")
        total += len(packets)
    check(total, f"{directory} has no made captures")
    print(f"{total} packets")


def gso_run(opcode, extended, count):
    """A UDP GSO packet over IPv6 of `count` packets, each of which has its headers and no payload."""
    ethernet = bytes.fromhex("020000000002" "020000000001" "86dd")
    addresses = bytes.fromhex("fe80" + "00" * 13 + "01" + "fe80" + "00" * 13 + "02")

    def headers(length):
        return struct.pack(">IHBB", 6 << 28, length, 17, 64) + addresses + struct.pack(">HHHH", 50000, 4791, length, 0)

    run = b""
    for psn in range(count):
        packet = struct.pack(">BBHII", opcode, 0, 0xFFFF, 9, psn) + extended
        whole = headers(8 + len(packet) + 4)
        run += packet + struct.pack("<I", dissect.icrc(6, whole, packet + bytes(4)))
    return ethernet + headers(8 + len(run)) + run


def runs(urxe):
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "run.pcap")
        for opcode, extended in (0x13, 28), (0x14, 28), (0x1C, 20):
            write_pcap(path, [gso_run(opcode, bytes(extended), 3)])
            status, got = report(urxe, path)
            check(status == 0 and got["gso_runs"] == 1 and got["icrc"]["right"] == 3,
                  f"opcode {opcode:#x}: status {status}, {got}")
        write_pcap(path, [gso_run(0x14, bytes(28), 1), gso_run(0x14, bytes(28), 3)[:-1] + b"?"])
        status, got = report(urxe, path)
        check(status == 1 and got["icrc"]["wrong"] == 1, f"the last packet is damaged: status {status}, {got}")


def collection(urxe):
    directory = os.environ.get("URXE_CAPTURES")
    if not directory:
        print("skipped: URXE_CAPTURES names no directory of captures")
        sys.exit(SKIP)
    for name, packets in COLLECTION.items():
        status, got = report(urxe, os.path.join(directory, name))
        check(status == 0 and got["roce"] == packets and got["icrc"]["right"] == packets,
              f"{name}: status {status}, {got['roce']} packets, {got['icrc']}")
    paths = sorted(glob.glob(os.path.join(directory, "linux-rxe", "*.pcap")))
    check(paths, f"{directory}/linux-rxe has no captures")
    for path in paths:
        with open(path, "rb") as file:
            expected = dissect.dissect(file.read())
        status, got = report(urxe, path)
        check(status == 0, f"{path}: exit status {status}")
        compare(got, expected, path)
    print(f"{len(COLLECTION) + len(paths)} captures")


if __name__ == "__main__":
    COMMANDS = {"fixture": fixture, "flips": flips, "damaged": damaged, "made": made,
                "runs": runs, "collection": collection}
    # With meson's emulator of another processor, if any.
    COMMANDS[sys.argv[2]]([*shlex.split(os.environ.get("MESON_EXE_WRAPPER", "")), sys.argv[1]], *sys.argv[3:])
