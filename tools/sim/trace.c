/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/trace.h"

#include <inttypes.h>
#include <stdbool.h>

#include <netdev/netdev.h>

#include <rxe/opcode.h>
#include <rxe/packet.h>

#include "sim/network/address.h"

static void write_line(FILE *file, uint64_t now, uint32_t from, const uint8_t *data, uint32_t len)
{
	struct urxe_packet p;
	enum urxe_drop drop = urxe_packet_parse(&p, data, len);

	fprintf(file, "%12" PRIu64 " host %u to ", now, from);
	if (address_is_group(data))
		fputs("group: ", file);
	else
		fprintf(file, "%u: ", address_host(data));
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

/* Whether a frame goes from one of the trace's hosts to the other, or to a group. */
static bool is_wanted(const struct trace *trace, uint32_t from, const uint8_t *data)
{
	const unsigned other = from == trace->host[0];

	if (trace->host[0] == TRACE_ALL)
		return true;
	return (from == trace->host[0] || from == trace->host[1]) &&
	       (address_is_group(data) || address_host(data) == trace->host[other]);
}

void trace_frame(struct trace *trace, uint64_t now, uint32_t from, const uint8_t *data,
		 uint32_t len)
{
	const struct netdev_frame frame = {.data = data, .len = len, .time = now};

	if (!is_wanted(trace, from, data))
		return;
	if (trace->text)
		write_line(trace->text, now, from, data, len);
	if (trace->pcap)
		netdev_tx(trace->pcap, now, &frame, 1);
}
