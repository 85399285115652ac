/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "region.h"

#include <err.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "peer.h"
#include "row.h"

#define ALIGNED (2 * MIB) /* a huge page of x86-64 */

static bool with_verbs;
static struct endpoint endpoint;
static int first_number, channels;

void region_start(bool with_urxe)
{
	with_verbs = with_urxe;
	/* Programs that rows execute get no descriptor of the test or of `urxe run`. */
	if (close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC))
		err(1, "close_range");
	first_number = dup(STDIN_FILENO);
	close(first_number);
	if (with_verbs)
		peer_start(&endpoint);
}

void region_stop(void)
{
	if (with_verbs)
		peer_stop(&endpoint);
}

int region_first_number(void)
{
	return first_number;
}

int region_descriptors(void)
{
	return with_verbs ? 3 + channels : 0;
}

void region_open_channel(void)
{
	if (with_verbs && !ibv_create_comp_channel(endpoint.pd->context))
		err(1, "ibv_create_comp_channel");
	channels++;
}

uint8_t *region_reserve(size_t size)
{
	size_t align = size < ALIGNED ? PAGE : ALIGNED;
	uint8_t *room =
		mmap(NULL, size + 2 * align + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t at = ((uintptr_t)room + align) & ~(align - 1);

	if (room == MAP_FAILED)
		err(1, "mmap of %zu bytes", size);
	if (mprotect((void *)at, size, PROT_READ | PROT_WRITE))
		err(1, "mprotect");
	return (uint8_t *)at;
}

static struct region register_with(uint8_t *bytes, size_t size, int more)
{
	struct region region = {.bytes = bytes, .size = size};

	if (!with_verbs)
		return region;
	region.mr = ibv_reg_mr(endpoint.pd, bytes, size,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | more);
	if (!region.mr)
		err(1, "ibv_reg_mr");
	return region;
}

struct region region_register(uint8_t *bytes, size_t size)
{
	return register_with(bytes, size, 0);
}

struct region region_register_on_demand(uint8_t *bytes, size_t size)
{
	return register_with(bytes, size, IBV_ACCESS_ON_DEMAND);
}

struct region region_map(size_t size)
{
	return region_register(region_reserve(size), size);
}

void region_deregister(struct region *region)
{
	if (region->mr && ibv_dereg_mr(region->mr))
		err(1, "ibv_dereg_mr");
	region->mr = NULL;
}

void region_unmap(struct region *region)
{
	region_deregister(region);
	if (munmap(region->bytes, region->size))
		err(1, "munmap");
}

static void receive(struct region *region, uint8_t seed)
{
	uint32_t size = region->size < PEER_SEND ? (uint32_t)region->size : PEER_SEND;
	struct ibv_sge sge = {(uintptr_t)region->bytes, size, region->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	if (ibv_post_recv(endpoint.qp, &wr, &bad))
		err(1, "ibv_post_recv");
	peer_send(size, seed);
	endpoint_success(&endpoint);
}

void region_fill(struct region *region, uint8_t seed)
{
	if (with_verbs) {
		peer_write((uintptr_t)region->bytes, region->mr->rkey, region->size, seed);
		receive(region, seed);
		return;
	}
	for (size_t at = 0; at < region->size; at += PAGE)
		memset(region->bytes + at, (uint8_t)(seed + at / PAGE), PAGE);
}

void region_write_to_peer(const struct region *region)
{
	struct ibv_sge sge = {(uintptr_t)region->bytes, (uint32_t)region->size, 0};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.rdma = {endpoint.remote_addr, endpoint.rkey}};

	if (!with_verbs) {
		for (size_t at = 0; at < region->size; at += PAGE)
			(void)*(volatile uint8_t *)(region->bytes + at);
		return;
	}
	sge.lkey = region->mr->lkey;
	if (ibv_post_send(endpoint.qp, &wr, &bad))
		err(1, "ibv_post_send");
	endpoint_success(&endpoint);
}

bool region_holds(const uint8_t *bytes, size_t size, uint8_t seed)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != (uint8_t)(seed + i / PAGE))
			return false;
	return true;
}

const char *region_says(const struct region *region, uint8_t seed)
{
	return region_holds(region->bytes, region->size, seed) ? "yes" : "no";
}

void region_poll(void)
{
	struct ibv_wc wc;

	if (with_verbs && ibv_poll_cq(endpoint.cq, 1, &wc))
		errx(1, "a completion of no request");
}
