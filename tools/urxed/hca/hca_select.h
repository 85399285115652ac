/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Chooses the HCA port that backs urxe0, and says of each other port why it is not used.
 * hca_monitor.c calls hca_select after each scan.
 */
#ifndef URXE_URXED_HCA_HCA_SELECT_H
#define URXE_URXED_HCA_HCA_SELECT_H

#include "urxed/hca/hca_scan.h"

#define HCA_CHOICE_ERROR 256
#define HCA_REASON       192

/* Number of uplinks on whose interfaces hca_select looks for an HCA; it ignores further ones. */
#define HCA_UPLINKS 8

/* The value of --hca. */
enum hca_mode {
	HCA_AUTO, /* a RoCE port on an uplink's interface */
	HCA_OFF,
	HCA_NAMED, /* the given port, even without an uplink on its interface */
};

struct hca_choice {
	enum hca_mode mode;
	char device[VNIC_HCA_NAME]; /* if HCA_NAMED */
	uint8_t port;               /* if HCA_NAMED; 0 = the first */
};

/*
 * Whether the text may name an RDMA device: at most VNIC_HCA_NAME - 1 letters, digits, '_', '-' and
 * '.', of which '-' and '.' are not the first.
 */
bool hca_is_device_name(const char *name);

/*
 * Parses "auto", "off", "NAME" or "NAME:PORT". -EINVAL: no name of a device, or no number of a
 * port; `error` has a sentence.
 */
int hca_choice_parse(const char *text, struct hca_choice *choice, char error[HCA_CHOICE_ERROR]);

/* The options and facts by which hca_select chooses. */
struct hca_wish {
	struct hca_choice choice;
	const char *sys;    /* where sysfs is mounted */
	const char *device; /* the name of urxe's own device; an HCA of the same name is not used */
	uint32_t n_uplinks;
	char uplinks[HCA_UPLINKS][HOST_NDEV_LEN]; /* interfaces of the uplinks; "" = none */
	bool xdp[HCA_UPLINKS]; /* an XDP program takes the RoCE packets of the uplink's interface */
};

struct hca_verdict {
	int uplink; /* index in wish->uplinks of the uplink on the port's interface; -1 = none */
	char reason[HCA_REASON]; /* why the port is not used; "" = it is used */
};

/*
 * Returns the index in the list of the chosen port, or -1 for none. Fills verdicts[i] for each port
 * i. `current` is the port in use (NULL = none), which stays chosen as long as it fits, even if its
 * state is no longer ACTIVE.
 */
int hca_select(const struct hca_list *list, const struct hca_wish *wish,
	       const struct vnic_attach_hca *current, struct hca_verdict verdicts[HCA_PORTS]);

#endif
