/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/doctor/check.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/json_fields.h"

/*
 * Returns nft's list of the chains of the family netdev; NULL: nft is missing or fails. Only chains
 * of this family, at an interface's ingress or egress, concern packet sockets. These receive frames
 * before the chains of the families ip, ip6 and inet, and send frames behind them.
 */
static json_t *list_netdev_chains(void)
{
	FILE *in = popen("nft -j list chains netdev 2>/dev/null", "re");
	json_t *document = NULL;
	bool done;

	if (!in)
		return NULL;
	document = json_loadf(in, JSON_DISABLE_EOF_CHECK, NULL);
	done = !pclose(in);
	if (!done) {
		json_decref(document);
		return NULL;
	}
	return document;
}

/*
 * The finding names the chain, and not its interface: nft names that in JSON only in versions newer
 * than 1.0.6.
 */
void check_firewall(struct findings *f)
{
	json_t *document = list_netdev_chains(), *element;
	const char *name = NULL, *table = NULL;
	size_t i;

	json_array_foreach(json_object_get(document, "nftables"), i, element)
	{
		const json_t *chain = json_object_get(element, "chain");

		if (json_get_text(chain, "hook")) {
			name = json_get_text(chain, "name");
			table = json_get_text(chain, "table");
		}
	}
	if (name)
		finding_add(
			f, "firewall", FINDING_NOTE, "nft list ruleset netdev",
			"the chain %s of the table %s takes an interface's frames before urxed: it "
			"has to pass UDP port 4791",
			name, table ? table : "?");
	else if (document)
		finding_add(f, "firewall", FINDING_OK, NULL,
			    "rules of nftables and iptables do not concern packet sockets");
	else
		finding_add(
			f, "firewall", FINDING_OK, NULL,
			"rules of nftables and iptables do not concern packet sockets; nft lists "
			"chains at interfaces for root only");
	json_decref(document);
}
