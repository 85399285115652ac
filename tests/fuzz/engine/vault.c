/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vault.h"

#include <errno.h>
#include <string.h>

#include "require.h"

#define PAINT 0xc3

/* Pieces with even numbers are gaps. */
static uint32_t offset(enum vault_region region)
{
	return (2 * region + 1) * VAULT_PIECE;
}

static void reg(struct vault *vault, enum vault_region region)
{
	static const uint32_t access[] = {
		[VAULT_OPEN] = NODE_ACCESS | URXE_ACCESS_MW_BIND | URXE_ACCESS_FLUSH_GLOBAL |
			       URXE_ACCESS_FLUSH_PERSISTENT,
		[VAULT_READ_ONLY] = URXE_ACCESS_REMOTE_READ | URXE_ACCESS_MW_BIND,
		[VAULT_FOREIGN] = NODE_ACCESS | URXE_ACCESS_MW_BIND,
	};
	const struct urxe_extent extent = {vault->bytes + offset(region), VAULT_PIECE};
	const struct urxe_mr_attr attr = {
		.pd = region == VAULT_FOREIGN ? NODE_PD + 1 : NODE_PD,
		.access = access[region],
		.iova = vault_address(vault, region),
		.length = VAULT_PIECE,
		.extents = &extent,
		.n_extents = 1,
	};

	require(urxe_mr_reg(vault->node->dev, &attr, &vault->mr[region]) == 0);
}

void vault_open(struct vault *vault, struct node *node)
{
	vault->node = node;
	vault->iova = node->iova + 0x10000000;
	memset(vault->bytes, PAINT, sizeof(vault->bytes));
	for (int region = 0; region < VAULT_REGIONS; region++)
		reg(vault, region);
}

void vault_toggle(struct vault *vault)
{
	int rc;

	if (!vault->mr[VAULT_OPEN]) {
		vault_check(vault);
		reg(vault, VAULT_OPEN);
		return;
	}
	rc = urxe_mr_dereg(vault->mr[VAULT_OPEN]);
	require(rc == 0 || rc == -EBUSY);
	if (rc)
		return;
	vault->mr[VAULT_OPEN] = NULL;
	memcpy(vault->left, vault->bytes + offset(VAULT_OPEN), VAULT_PIECE);
}

uint32_t vault_key(const struct vault *vault, enum vault_region region)
{
	return vault->mr[region] ? urxe_mr_key(vault->mr[region]) : 0;
}

uint64_t vault_address(const struct vault *vault, enum vault_region region)
{
	return vault->iova + offset(region);
}

void vault_check(const struct vault *vault)
{
	uint32_t open = offset(VAULT_OPEN);

	for (uint32_t i = 0; i < sizeof(vault->bytes); i++)
		require(vault->bytes[i] == PAINT || (i >= open && i < open + VAULT_PIECE));
	if (!vault->mr[VAULT_OPEN])
		require(!memcmp(vault->left, vault->bytes + open, VAULT_PIECE));
}
