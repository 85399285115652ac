/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/report/report_hca.h"

#include "common/json_fields.h"

static const char *name_roce(const struct hca_port *p)
{
	if (p->v1 && p->v2)
		return "v1, v2";
	return p->v2 ? "v2" : p->v1 ? "v1" : "";
}

static json_t *make_uplink(const struct hca_monitor *h, const struct hca_verdict *v)
{
	return v->uplink < 0 ? json_null() : json_text_or_null(h->wish.uplinks[v->uplink]);
}

static json_t *make_port(const struct hca_monitor *h, int i)
{
	const struct hca_port *p = &h->list.ports[i];
	const struct hca_verdict *v = &h->verdicts[i];

	return json_pack("{s:s, s:i, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:o}",
			 "device", p->device, "port", (int)p->number, "kind",
			 hca_kind_name(p->kind), "driver", json_text_or_null(p->driver), "firmware",
			 json_text_or_null(p->firmware), "state", hca_state_name(p->state), "mtu",
			 json_number_or_null(p->mtu), "speed_gbps",
			 p->speed_mbps ? json_real(p->speed_mbps / 1000.0) : json_null(),
			 "interface", json_text_or_null(p->ndev), "uplink", make_uplink(h, v),
			 "roce", json_text_or_null(name_roce(p)), "used", i == h->chosen, "reason",
			 json_text_or_null(v->reason));
}

json_t *report_hcas(const struct hca_monitor *h)
{
	json_t *list = json_array();

	for (int i = 0; i < (int)h->list.n; i++)
		json_array_append_new(list, make_port(h, i));
	return list;
}
