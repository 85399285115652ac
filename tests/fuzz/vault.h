/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that nobody may write, between memory that everybody may: gaps without
 * a key, a region that can only be read, one of another protection domain, and
 * one that comes and goes.
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
	uint8_t left[VAULT_PIECE]; /* what the open region held when it went */
};

void vault_open(struct vault *vault, struct node *node);
/* Registers the open region, or deregisters it where no window is bound to it. */
void vault_toggle(struct vault *vault);
/* 0 where the region is gone. */
uint32_t vault_key(const struct vault *vault, enum vault_region region);
uint64_t vault_address(const struct vault *vault, enum vault_region region);
void vault_check(const struct vault *vault);

#endif
