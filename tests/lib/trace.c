/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "trace.h"

#include <inttypes.h>

#include <rxe/opcode.h>
#include <rxe/packet.h>

static void put32(FILE *file, uint32_t value)
{
	fwrite(&value, sizeof(value), 1, file);
}

FILE *trace_pcap_open(const char *path)
{
	FILE *file = fopen(path, "wb");

	if (!file)
		return NULL;
	put32(file, 0xa1b23c4d); /* pcap with nanoseconds, in this host's byte order */
	put32(file, 2 | 4u << 16);
	put32(file, 0);
	put32(file, 0);
	put32(file, 65535);
	put32(file, 1); /* LINKTYPE_ETHERNET */
	return file;
}

static void write_pcap(FILE *file, uint64_t now, const uint8_t *data, uint32_t len)
{
	put32(file, (uint32_t)(now / 1000000000));
	put32(file, (uint32_t)(now % 1000000000));
	put32(file, len);
	put32(file, len);
	fwrite(data, len, 1, file);
}

static void write_text(FILE *file, uint64_t now, unsigned from, const uint8_t *data, uint32_t len)
{
	struct urxe_packet p;
	enum urxe_drop drop = urxe_packet_parse(&p, data, len);

	fprintf(file, "%12" PRIu64 " %c ", now, 'A' + from);
	if (drop) {
		fprintf(file, "%s (%u bytes)\n", urxe_drop_name(drop), len);
		return;
	}
	fprintf(file, "%-24s qp %06x psn %06x%s%s", urxe_opcodes[p.opcode].name, p.dest_qpn, p.psn,
		p.ack_req ? " ack-req" : "", p.solicited ? " solicited" : "");
	if (urxe_opcodes[p.opcode].flags & URXE_OPF_RETH)
		fprintf(file, " va %" PRIx64 " length %u", p.reth.va, p.reth.length);
	if (urxe_opcodes[p.opcode].flags & URXE_OPF_AETH)
		fprintf(file, " syndrome %02x msn %u", p.aeth.syndrome, p.aeth.msn);
	fprintf(file, " payload %u\n", p.payload_len);
}

void trace_frame(struct trace *trace, uint64_t now, unsigned from, const uint8_t *data,
		 uint32_t len)
{
	if (!trace)
		return;
	if (trace->text)
		write_text(trace->text, now, from, data, len);
	if (trace->pcap)
		write_pcap(trace->pcap, now, data, len);
}
