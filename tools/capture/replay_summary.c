/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "capture/replay_summary.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include <rxe/opcode.h>

#include "common/ether.h"
#include "common/printable.h"

#define ADDRESS_LEN INET6_ADDRSTRLEN

static const char *format_address(const struct flow *f, const struct urxe_gid *gid,
				  char text[ADDRESS_LEN])
{
	if (f->net == URXE_NET_IPV4)
		return inet_ntop(AF_INET, gid->raw + 12, text, ADDRESS_LEN);
	return inet_ntop(AF_INET6, gid->raw, text, ADDRESS_LEN);
}

static const char *get_net_name(uint8_t net)
{
	static const char *const names[] = {[URXE_NET_ROCEV1] = "rocev1",
					    [URXE_NET_IPV4] = "rocev2-ipv4",
					    [URXE_NET_IPV6] = "rocev2-ipv6"};

	return names[net];
}

static const char *get_service_name(uint8_t service)
{
	switch (service) {
	case URXE_SERVICE_RC: return "RC";
	case URXE_SERVICE_UC: return "UC";
	case URXE_SERVICE_RD: return "RD";
	case URXE_SERVICE_UD: return "UD";
	case URXE_SERVICE_CNP: return "CNP";
	case URXE_SERVICE_XRC: return "XRC";
	default: return "other";
	}
}

/* The QP that sends a flow; false: unknown. */
static bool get_source_qpn(const struct flow *f, uint32_t *qpn)
{
	*qpn = f->peer ? f->peer->dest_qpn : f->src_qpn;
	return f->peer || f->service == URXE_SERVICE_UD;
}

/* --- As text */

static void print_track(const char *what, const struct flow_track *t)
{
	if (!t->packets)
		return;
	printf("    %-9s %8" PRIu64 "  PSN %u..%u", what, t->packets, t->first_psn, t->last_psn);
	if (t->gaps)
		printf(", %" PRIu64 " gaps", t->gaps);
	if (t->missing)
		printf(", %" PRIu64 " PSNs never seen", t->missing);
	if (t->late)
		printf(", %" PRIu64 " late", t->late);
	if (t->duplicates)
		printf(", %" PRIu64 " duplicates", t->duplicates);
	if (t->restarts)
		printf(", %" PRIu64 " restarts", t->restarts);
	putchar('\n');
}

static void print_flow(const struct flow *f)
{
	char from[ADDRESS_LEN], to[ADDRESS_LEN];
	uint32_t qpn, i;

	printf("  %s", format_address(f, &f->sgid, from));
	if (get_source_qpn(f, &qpn))
		printf(" QP 0x%06x", qpn);
	printf(" -> %s QP 0x%06x  %s, %s", format_address(f, &f->dgid, to), f->dest_qpn,
	       get_service_name(f->service), get_net_name(f->net));
	if (f->mtu)
		printf(", MTU %u", f->mtu);
	printf(", %" PRIu64 " packets\n", f->packets);
	print_track("requests", &f->requests);
	print_track("responses", &f->responses);
	for (i = 0; i < FLOW_ACK_COUNT; i++)
		if (f->acks[i])
			printf("    %-9s %8" PRIu64 "\n", flow_ack_name(i), f->acks[i]);
}

void replay_summary_print(const struct replay_summary *s)
{
	const struct flow *f;
	char file[PATH_MAX];
	uint32_t i;

	printable_copy(file, sizeof(file), s->file);
	printf("%s: %" PRIu64 " frames, %" PRIu64 " RoCE packets\n", file, s->frames, s->roce);
	printf("ICRC: %" PRIu64 " right, %" PRIu64 " wrong, %" PRIu64 " unverifiable", s->right,
	       s->wrong, s->unverifiable);
	if (s->snapped)
		printf(" (%" PRIu64 " of them cut by the snap length)", s->snapped);
	putchar('\n');
	if (s->gso_runs)
		printf("UDP GSO: %" PRIu64 " frames of the capture had several packets each\n",
		       s->gso_runs);
	for (i = 0; i < URXE_DROP_COUNT; i++)
		if (s->drops[i])
			printf("malformed: %" PRIu64 " %s (%s)\n", s->drops[i], urxe_drop_name(i),
			       urxe_drop_text(i));
	if (!s->roce)
		return;
	puts("opcodes:");
	for (i = 0; i < 256; i++)
		if (s->opcodes[i])
			printf("  %-24s %8" PRIu64 "\n", urxe_opcodes[i].name, s->opcodes[i]);
	puts("connections:");
	for (i = 0; (f = flow_at(s->flows, i)); i++)
		print_flow(f);
}

/* --- As JSON */

static void print_json_count(const char *name, uint64_t n, bool *first)
{
	printf("%s\"%s\": %" PRIu64, *first ? "" : ", ", name, n);
	*first = false;
}

static void print_json_track(const char *name, const struct flow_track *t)
{
	if (!t->packets) {
		printf(",\n     \"%s\": null", name);
		return;
	}
	printf(",\n     \"%s\": {\"packets\": %" PRIu64 ", \"first_psn\": %u, \"last_psn\": %u, "
	       "\"gaps\": %" PRIu64 ", \"missing\": %" PRIu64 ", \"late\": %" PRIu64
	       ", \"duplicates\": %" PRIu64 ", \"restarts\": %" PRIu64 "}",
	       name, t->packets, t->first_psn, t->last_psn, t->gaps, t->missing, t->late,
	       t->duplicates, t->restarts);
}

static void print_json_optional(const char *name, bool known, uint32_t value)
{
	if (known)
		printf(", \"%s\": %u", name, value);
	else
		printf(", \"%s\": null", name);
}

static void print_json_flow(const struct flow *f)
{
	char from[ADDRESS_LEN], to[ADDRESS_LEN];
	bool first = true, known;
	uint32_t qpn, i;

	known = get_source_qpn(f, &qpn);
	printf("    {\"source\": \"%s\", \"destination\": \"%s\", \"dest_qpn\": %u",
	       format_address(f, &f->sgid, from), format_address(f, &f->dgid, to), f->dest_qpn);
	print_json_optional("source_qpn", known, qpn);
	printf(",\n     \"net\": \"%s\", \"service\": \"%s\"", get_net_name(f->net),
	       get_service_name(f->service));
	print_json_optional("mtu", f->mtu, f->mtu);
	printf(", \"packets\": %" PRIu64, f->packets);
	print_json_track("requests", &f->requests);
	print_json_track("responses", &f->responses);
	printf(",\n     \"acks\": {");
	for (i = 0; i < FLOW_ACK_COUNT; i++)
		print_json_count(flow_ack_name(i), f->acks[i], &first);
	printf("}}");
}

static void print_json_drops(const struct replay_summary *s)
{
	bool first = true;
	uint32_t i;

	printf("},\n  \"drops\": {");
	for (i = 0; i < URXE_DROP_COUNT; i++)
		if (s->drops[i])
			print_json_count(urxe_drop_name(i), s->drops[i], &first);
	printf("},\n  \"opcodes\": {");
	first = true;
	for (i = 0; i < 256; i++)
		if (s->opcodes[i])
			print_json_count(urxe_opcodes[i].name, s->opcodes[i], &first);
}

void replay_summary_print_json(const struct replay_summary *s)
{
	const struct flow *f;
	bool first = true;
	uint32_t i;

	printf("{\n  \"file\": ");
	printable_json(stdout, s->file);
	printf(",\n  \"frames\": %" PRIu64 ",\n  \"gso_runs\": %" PRIu64 ",\n  \"roce\": %" PRIu64
	       ",\n  \"icrc\": {",
	       s->frames, s->gso_runs, s->roce);
	print_json_count("right", s->right, &first);
	print_json_count("wrong", s->wrong, &first);
	print_json_count("unverifiable", s->unverifiable, &first);
	print_json_count("snapped", s->snapped, &first);
	print_json_drops(s);
	printf("},\n  \"connections\": [");
	for (i = 0; (f = flow_at(s->flows, i)); i++) {
		printf("%s\n", i ? "," : "");
		print_json_flow(f);
	}
	printf("%s]\n}\n", i ? "\n  " : "");
}
