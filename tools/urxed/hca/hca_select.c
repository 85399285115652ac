/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hca/hca_select.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "urxed/hca/hca_netdev.h"

/* --- The option */

/* Allows only names that need no quoting in sysfs, JSON, tables, shells and the syntax of --hca. */
bool hca_is_device_name(const char *name)
{
	if (!*name || *name == '.' || *name == '-' || strlen(name) >= VNIC_HCA_NAME)
		return false;
	return !name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				  "_-.")];
}

static bool parse_port(const char *text, uint8_t *port)
{
	unsigned long number;
	char *end;

	if (*text < '1' || *text > '9')
		return false;
	number = strtoul(text, &end, 10);
	*port = (uint8_t)number;
	return !*end && number <= UINT8_MAX;
}

int hca_choice_parse(const char *text, struct hca_choice *choice, char error[HCA_CHOICE_ERROR])
{
	struct hca_choice c = {.mode = HCA_NAMED};
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);

	if (!strcmp(text, "auto") || !strcmp(text, "off")) {
		*choice = (struct hca_choice){.mode = *text == 'a' ? HCA_AUTO : HCA_OFF};
		return 0;
	}
	if (len < sizeof(c.device))
		memcpy(c.device, text, len);
	if (!hca_is_device_name(c.device) || (colon && !parse_port(colon + 1, &c.port))) {
		snprintf(error, HCA_CHOICE_ERROR,
			 "hca %s is neither auto, off, nor a device with an optional port; "
			 "examples: mlx5_0, mlx5_0:2",
			 text);
		return -EINVAL;
	}
	*choice = c;
	return 0;
}

/* --- The choice */

static void set_reason(struct hca_verdict *v, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void set_reason(struct hca_verdict *v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(v->reason, sizeof(v->reason), fmt, ap);
	va_end(ap);
}

/* Returns the first uplink whose frames leave by an interface of the port; -1: none. */
static int find_uplink(const struct hca_port *p, const struct hca_wish *wish)
{
	for (uint32_t i = 0; i < wish->n_uplinks; i++) {
		const char *last = "";

		for (uint32_t j = 0; j < p->n_gids; j++) {
			const char *ndev = p->gids[j].ndev;

			/* Searches each interface once: most GIDs of a port are of the same
			 * interface. */
			if (strcmp(ndev, last) &&
			    hca_netdev_is_above(wish->sys, wish->uplinks[i], ndev))
				return (int)i;
			last = ndev;
		}
	}
	return -1;
}

static bool is_named(const struct hca_port *p, const struct hca_list *list,
		     const struct hca_choice *c)
{
	return p == hca_find_port(list, c->device, c->port);
}

/*
 * Whether the uplink's XDP program would take packets to queue pairs that rdma_rxe executes. The
 * program decides by blocks of QPNs, and in the same block the engine may execute queue pairs. HCAs
 * in hardware take their packets before the program sees them.
 */
static bool loses_packets(const struct hca_port *p, const struct hca_wish *wish,
			  const struct hca_verdict *v)
{
	return v->uplink >= 0 && wish->xdp[v->uplink] && hca_port_is_rdma_rxe(p);
}

/* Sets v->reason if --hca or the uplinks rule out a port that could otherwise carry RoCE
 * connections. */
static void judge_choice(const struct hca_port *p, const struct hca_list *list,
			 const struct hca_wish *wish, struct hca_verdict *v)
{
	const struct hca_choice *c = &wish->choice;

	if (c->mode == HCA_OFF)
		set_reason(v, "--hca off");
	else if (c->mode == HCA_NAMED && !is_named(p, list, c))
		set_reason(v, "--hca names another port: %s", c->device);
	else if (c->mode == HCA_AUTO && v->uplink < 0 && !wish->n_uplinks)
		set_reason(v, "urxed has no uplink on its interface %s", p->ndev);
	else if (c->mode == HCA_AUTO && v->uplink < 0)
		set_reason(v, "no uplink sends by its interface %s", p->ndev);
	else if (loses_packets(p, wish, v))
		set_reason(v, "an af_xdp: uplink would take its packets: use af_packet:%s",
			   p->ndev);
}

/* Sets v->reason if the port cannot back urxe0 with any --hca and uplinks. Does not look at the
 * port's state. */
static void judge_port(const struct hca_port *p, const struct hca_wish *wish, struct hca_verdict *v)
{
	if (p->kind != HCA_ROCE)
		set_reason(v, "%s, not RoCE",
			   p->kind == HCA_OTHER ? "its transport is unknown"
						: hca_kind_name(p->kind));
	else if (!strcmp(p->device, wish->device))
		set_reason(v, "it has the name of urxe's own device: --device chooses another");
	else if (!p->n_gids)
		set_reason(v, "it has no RoCE GID");
	else if (!p->verbs)
		set_reason(
			v,
			"it has no verbs device: it is being removed, or ib_uverbs is not loaded");
}

static bool is_current(const struct hca_port *p, const struct vnic_attach_hca *current)
{
	return current && !strcmp(p->device, current->name) && p->number == current->port;
}

/* Fills *v. Rules out a port that is not ACTIVE, except the port in use, which keeps its queue
 * pairs while it is down. */
static void judge(const struct hca_port *p, const struct hca_list *list,
		  const struct hca_wish *wish, const struct vnic_attach_hca *current,
		  struct hca_verdict *v)
{
	*v = (struct hca_verdict){.uplink = find_uplink(p, wish)};
	judge_port(p, wish, v);
	if (!v->reason[0])
		judge_choice(p, list, wish, v);
	if (!v->reason[0] && p->state != HCA_ACTIVE && !is_current(p, current))
		set_reason(v, "its port is %s",
			   p->state == HCA_DOWN ? "down" : "in an unknown state");
}

/* Prefers the port in use, then a port of an earlier uplink, then an earlier port of the list. */
static bool is_better(const struct hca_list *list, const struct hca_verdict *verdicts,
		      const struct vnic_attach_hca *current, int i, int best)
{
	if (best < 0 || is_current(&list->ports[i], current))
		return true;
	return !is_current(&list->ports[best], current) &&
	       verdicts[i].uplink < verdicts[best].uplink;
}

int hca_select(const struct hca_list *list, const struct hca_wish *wish,
	       const struct vnic_attach_hca *current, struct hca_verdict verdicts[HCA_PORTS])
{
	int best = -1;

	for (int i = 0; i < (int)list->n; i++) {
		judge(&list->ports[i], list, wish, current, &verdicts[i]);
		if (!verdicts[i].reason[0] && is_better(list, verdicts, current, i, best))
			best = i;
	}
	for (int i = 0; i < (int)list->n; i++)
		if (i != best && !verdicts[i].reason[0])
			set_reason(&verdicts[i], "%s backs the device", list->ports[best].device);
	return best;
}
