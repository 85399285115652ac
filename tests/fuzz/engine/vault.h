/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that no peer may write, between writable regions: gaps without a key, a read-only region,
 * a region of another protection domain, and a region that the script registers and deregisters.
 */
#ifndef URXE_FUZZ_VAULT_H
#define URXE_FUZZ_VAULT_H

#include "node.h"

#define VAULT_PIECE 1024

enum vault_region { VAULT_OPEN, VAULT_READ_ONLY, VAULT_FOREIGN, VAULT_REGIONS };

struct vault {
	struct node *node;
	uint64_t iova;                     /* of bytes[0] */
	struct urxe_mr *mr[VAULT_REGIONS]; /* NULL: not registered */
	uint8_t bytes[(2 * VAULT_REGIONS + 1) * VAULT_PIECE];
	uint8_t left[VAULT_PIECE]; /* contents of the open region at its deregistration */
};

void vault_open(struct vault *vault, struct node *node);
/* Registers the open region, or deregisters it if no window is bound to it. */
void vault_toggle(struct vault *vault);
/* The region's key; 0 if it is not registered. */
uint32_t vault_key(const struct vault *vault, enum vault_region region);
uint64_t vault_address(const struct vault *vault, enum vault_region region);
void vault_check(const struct vault *vault);

#endif
