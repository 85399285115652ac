/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hostile guest's page directories: of regions, completion queues, receive queues, queue pairs
 * and fast registrations. The device lives on between inputs (world.h); an input writes a
 * directory, gives it to a command, uses the object while memory goes, and destroys it.
 *
 * A second walk of the directory says whether the command may succeed. A WRITE to a region must
 * reach exactly its pages, and none that was removed. Each request must complete. Pages that nobody
 * may access surround the guest's memory, and one region is read-only.
 */
#include <string.h>

#include "pvrdma_side.h"
#include "require.h"
#include "world.h"

#define INPUTS    4096
#define BYTES     96
#define POOL      16u /* pages that directories name, and nothing else uses */
#define TABLES    2u
#define ENTRIES   512u
#define PATCHED   12u /* entries that an input sets in the first table */
#define MAX_PIECE 512u

int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct side side = {.peer = &side};
static struct script in;
static uint64_t pool[POOL];
static uint64_t dir, tables[TABLES];

/* What was removed from the device: pages [first, first + n) of the pool. */
static uint32_t removed_first, removed_n;

/* --- The second walk */

static bool in_region(uint64_t addr, uint64_t start, uint64_t size)
{
	return addr >= start && addr - start < size;
}

static bool is_page(uint64_t addr, bool write)
{
	const struct guest *g = &side.guest;

	if (addr % PV_PAGE)
		return false;
	return in_region(addr, 0, g->low_size) || in_region(addr, GUEST_HIGH, g->high_size) ||
	       (!write && in_region(addr, GUEST_EXTRA, g->extra_size));
}

static uint64_t read_entry(uint64_t table, uint64_t index)
{
	return ((const uint64_t *)guest_at(&side.guest, table))[index];
}

/* The address of a page of the directory; UINT64_MAX: none. */
static uint64_t page_of(uint64_t at, uint64_t index, bool write)
{
	uint64_t table, page;

	if (!is_page(at, false) || index >= (uint64_t)ENTRIES * ENTRIES)
		return UINT64_MAX;
	table = read_entry(at, index / ENTRIES);
	if (!is_page(table, false))
		return UINT64_MAX;
	page = read_entry(table, index % ENTRIES);
	return is_page(page, write) ? page : UINT64_MAX;
}

static bool all_pages(uint64_t at, uint64_t n, bool write)
{
	for (uint64_t i = 0; i < n; i++)
		if (page_of(at, i, write) == UINT64_MAX)
			return false;
	return true;
}

static bool in_pool(uint64_t page)
{
	for (uint32_t i = 0; i < POOL; i++)
		if (pool[i] == page)
			return true;
	return false;
}

/*
 * Whether a page is none that the driver uses itself. The content of a page that serves as a table
 * may name such a page, too; then the object is destroyed without use.
 */
static bool is_spare(uint64_t page)
{
	bool spare = in_pool(page) || !page || page == dir ||
		     page == GUEST_HIGH + side.guest.high_size - PV_PAGE;

	for (uint32_t i = 0; i < TABLES; i++)
		spare |= page == tables[i];
	return spare;
}

static bool all_spare(uint64_t at, uint64_t first, uint64_t n)
{
	for (uint64_t i = first; i < first + n; i++)
		if (!is_spare(page_of(at, i, true)))
			return false;
	return true;
}

static bool is_removed(uint64_t page)
{
	for (uint32_t i = removed_first; i < removed_first + removed_n; i++)
		if (pool[i] == page)
			return true;
	return false;
}

/* --- The directory */

static uint64_t pick_entry(void)
{
	const uint8_t choice = script_get8(&in);
	const uint64_t high_end = GUEST_HIGH + side.guest.high_size;

	if (choice < 192)
		return pool[choice % POOL];
	switch (choice % 16) {
	case 0: return dir;
	case 1: return tables[choice / 16 % TABLES];
	case 2: return GUEST_EXTRA + choice / 16 * (uint64_t)PV_PAGE;
	case 4: return side.guest.low_size;
	case 3:
	case 5: return high_end - PV_PAGE;
	case 6: return high_end;
	case 7: return high_end - 8;
	case 8: return pool[0] + script_get8(&in);
	case 9: return UINT64_MAX;
	case 10: return UINT64_MAX & ~(uint64_t)(PV_PAGE - 1);
	case 11: return high_end << script_get8(&in) % 32;
	case 12: return GUEST_EXTRA + side.guest.extra_size;
	case 13: return GUEST_HIGH - PV_PAGE;
	default: return 0;
	}
}

static uint64_t *entries_of(uint64_t table)
{
	return guest_at(&side.guest, table);
}

/* An honest directory, of which the input changes entries. Returns its address. */
static uint64_t make_directory(void)
{
	uint64_t at = dir;

	memset(entries_of(dir), 0, TABLES * sizeof(uint64_t));
	for (uint32_t i = 0; i < TABLES; i++)
		entries_of(dir)[i] = tables[i];
	for (uint32_t i = 0; i < PATCHED; i++)
		entries_of(tables[0])[i] = pool[i];
	for (uint8_t n = script_get8(&in) % 8; n; n--)
		entries_of(tables[0])[script_get8(&in) % PATCHED] = pick_entry();
	switch (script_get8(&in) % 32) {
	case 0: entries_of(dir)[0] = pick_entry(); break;
	case 1: entries_of(dir)[1] = pick_entry(); break;
	case 2: entries_of(tables[1])[script_get8(&in) % 4] = pick_entry(); break;
	case 3: entries_of(tables[0])[ENTRIES - 1] = pick_entry(); break;
	case 4: at = pick_entry(); break;
	default: break;
	}
	return at;
}

/* Numbers of pages: mostly those of the first table that inputs change. */
static uint32_t pick_pages(void)
{
	const uint8_t choice = script_get8(&in);

	if (choice < 240)
		return choice % PATCHED + 1;
	if (choice < 255)
		return ENTRIES - 4 + choice % 8;
	return script_get8(&in) == 255 ? UINT32_MAX >> script_get8(&in) % 32
				       : script_get16(&in) % 4096;
}

/* --- Memory that goes: the device forgets it, and the file keeps it. */

static void remove_pool(void)
{
	const uint8_t choice = script_get8(&in);

	removed_n = choice % 4 ? 0 : 1 + choice / 4 % 3;
	removed_first = script_get8(&in) % (POOL - 3);
	for (uint32_t i = 0; i < removed_n; i++)
		pvrdma_memory_removed(side.guest.dev, pool[removed_first + i], PV_PAGE);
}

/* --- Requests */

static void repair(void)
{
	for (int i = 0; i < SIDE_QPS; i++)
		require(!qp_to(&side.guest, &side.qps[i], URXE_QPS_RESET));
	side_connect(&side);
}

/* Each request completes, with an error at the latest when its retries are used up. */
static uint32_t execute(struct pvrdma_sq_wqe_hdr *header, const struct pvrdma_sge *sge)
{
	struct net net = {.guest = {&side.guest, NULL}};
	struct pvrdma_cqe cqe;

	header->num_sge = sge ? 1 : 0;
	header->send_flags = URXE_SEND_SIGNALED;
	qp_post_send(&side.guest, &side.qps[0], header, sge);
	side_run(&side);
	if (!cq_poll(&side.guest, &side.cq, &cqe)) {
		net_run(&net);
		require(cq_poll(&side.guest, &side.cq, &cqe));
	}
	require(!cq_poll(&side.guest, &side.cq, &(struct pvrdma_cqe){0}));
	if (cqe.status != PVRDMA_WC_SUCCESS)
		repair();
	return cqe.status;
}

/* The content depends on the place in the page only, so pages may be in a region repeatedly. */
static uint8_t content(uint64_t addr, uint8_t seed)
{
	return (uint8_t)((addr % PV_PAGE) * 7 + seed);
}

struct region {
	uint64_t start, length, dir;
	uint32_t key;
	bool write;
};

/* Whether the bytes of a region are in pages of the pool only; *lost: in some that were removed. */
static bool is_testable(const struct region *r, uint64_t at, uint32_t n, bool *lost)
{
	const uint64_t first = (r->start % PV_PAGE + at) / PV_PAGE;
	const uint64_t last = (r->start % PV_PAGE + at + n - 1) / PV_PAGE;

	*lost = false;
	for (uint64_t i = first; i <= last; i++) {
		const uint64_t page = page_of(r->dir, i, r->write);

		if (!in_pool(page))
			return false;
		*lost |= is_removed(page);
	}
	return true;
}

static uint8_t *byte_of(const struct region *r, uint64_t at)
{
	const uint64_t offset = r->start % PV_PAGE + at;

	return (uint8_t *)guest_at(&side.guest, page_of(r->dir, offset / PV_PAGE, false)) +
	       offset % PV_PAGE;
}

/* A WRITE reaches all pages of its piece, or fails and changes nothing in those that are gone. */
static void write_region(const struct region *r)
{
	const uint64_t at = r->length > MAX_PIECE ? script_get16(&in) % (r->length - MAX_PIECE) : 0;
	const uint32_t n =
		1 + script_get16(&in) %
			    (r->length - at < MAX_PIECE ? (uint32_t)(r->length - at) : MAX_PIECE);
	const uint8_t seed = script_get8(&in);
	struct pvrdma_sq_wqe_hdr header = {.opcode = PVRDMA_WR_RDMA_WRITE};
	struct pvrdma_sge sge = buffer_sge(&side.buffer, 0, n);
	bool lost, testable = is_testable(r, at, n, &lost);
	const uint64_t first = (r->start % PV_PAGE + at) / PV_PAGE;
	const uint64_t last = (r->start % PV_PAGE + at + n - 1) / PV_PAGE;
	uint32_t status;

	if (!all_spare(r->dir, first, last - first + 1))
		return;
	for (uint32_t i = 0; testable && i < n; i++)
		*buffer_at(&side.guest, &side.buffer, i) = content(r->start + at + i, seed);
	header.wr.rdma.remote_addr = r->start + at;
	header.wr.rdma.rkey = r->key;
	status = execute(&header, &sge);
	if (!testable)
		return;
	require((status == PVRDMA_WC_SUCCESS) == !lost);
	for (uint32_t i = 0; !lost && i < n; i++)
		require(*byte_of(r, at + i) == content(r->start + at + i, seed));
}

static void read_region(const struct region *r)
{
	struct pvrdma_sq_wqe_hdr header = {.opcode = PVRDMA_WR_RDMA_READ};
	struct pvrdma_sge sge = buffer_sge(&side.buffer, 0, 1 + script_get16(&in) % MAX_PIECE);

	header.wr.rdma.remote_addr = r->start + script_get16(&in);
	header.wr.rdma.rkey = r->key;
	execute(&header, &sge);
}

/* --- Objects */

static void try_region(void)
{
	const uint8_t choice = script_get8(&in);
	const uint32_t pages = pick_pages(), offset = script_get16(&in) % PV_PAGE;
	const uint64_t length = (uint64_t)pages * PV_PAGE - script_get16(&in) % PV_PAGE;
	struct pv_cmd_create_mr create = {
		.start = (choice & 0x40 ? UINT64_MAX << 20 : SIDE_VA / PV_PAGE * PV_PAGE) + offset,
		.length = length,
		.pd_handle = side.guest.pd,
		.access_flags = choice & 0x80 ? 0 : SIDE_ACCESS,
		.nchunks = pages + choice % 4,
	};
	struct region r = {.start = create.start, .length = length, .write = !(choice & 0x80)};
	const uint64_t needed = (offset + length + PV_PAGE - 1) / PV_PAGE;
	uint32_t handle;
	bool valid;

	create.pdir_dma = r.dir = make_directory();
	valid = create.nchunks >= needed && create.nchunks <= PV_DIR_PAGES &&
		r.start + (length - 1) >= r.start && all_pages(r.dir, needed, r.write);
	require(!mr_create(&side.guest, &create, &handle, &r.key) == valid);
	if (!valid)
		return;
	remove_pool();
	if (r.write)
		write_region(&r);
	read_region(&r);
	require(!guest_handle_command(&side.guest, PV_CMD_DESTROY_MR, handle));
}

static void try_fast_registration(void)
{
	const uint8_t choice = script_get8(&in);
	const uint32_t pages = choice % 8;
	struct pvrdma_sq_wqe_hdr header = {.opcode = PVRDMA_WR_FAST_REG_MR};
	struct region r = {.start = SIDE_VA, .key = side.fast_key, .write = true};

	r.dir = make_directory();
	r.length = pages * PV_PAGE - script_get16(&in) % PV_PAGE;
	header.wr.fast_reg.iova_start = r.start;
	header.wr.fast_reg.pl_pdir_dma = r.dir;
	header.wr.fast_reg.page_shift = choice & 0x80 ? script_get8(&in) : PV_PAGE_SHIFT;
	header.wr.fast_reg.page_list_len = pages;
	header.wr.fast_reg.length = (uint32_t)r.length;
	header.wr.fast_reg.access_flags = SIDE_ACCESS;
	header.wr.fast_reg.rkey = r.key;
	if (execute(&header, NULL) != PVRDMA_WC_SUCCESS)
		return;
	require(r.start % PV_PAGE + r.length <= pages * PV_PAGE);
	require(all_pages(r.dir, (r.start % PV_PAGE + r.length + PV_PAGE - 1) / PV_PAGE, true));
	remove_pool();
	write_region(&r);
	header = (struct pvrdma_sq_wqe_hdr){.opcode = PVRDMA_WR_LOCAL_INV};
	header.ex.invalidate_rkey = r.key;
	require(execute(&header, NULL) == PVRDMA_WC_SUCCESS);
}

static uint32_t pick_slots(void)
{
	const uint8_t choice = script_get8(&in);

	return choice < 240 ? 1u << choice % 8 : choice % 2 ? 1u << choice % 32 : choice;
}

/* Bytes of a queue's request. */
static uint64_t request_size(uint64_t header, uint32_t sge)
{
	uint64_t size = 1;

	while (size < header + (uint64_t)sge * sizeof(struct pvrdma_sge))
		size *= 2;
	return size;
}

static uint64_t pages_for(uint64_t bytes)
{
	return (bytes + PV_PAGE - 1) / PV_PAGE;
}

/* Pages of the object that a command has made; false: the object may not be used. */
static bool check_pages(uint64_t at, uint64_t n)
{
	require(all_pages(at, n, true));
	return all_spare(at, 0, n);
}

static void ring(uint32_t offset, uint32_t value)
{
	pvrdma_reg_write(side.guest.dev, side.guest.now, PV_BAR_UAR, offset, value);
}

static void try_cq(void)
{
	union pv_request request = {.create_cq = {.cqe = pick_slots(), .nchunks = pick_pages()}};
	const uint64_t at = request.create_cq.pdir_dma = make_directory();
	const uint64_t bytes = request.create_cq.cqe * (uint64_t)sizeof(struct pvrdma_cqe);
	union pv_response response;
	uint32_t handle;

	if (guest_command(&side.guest, PV_CMD_CREATE_CQ, &request, &response))
		return;
	handle = response.create_cq.cq_handle;
	if (check_pages(at, 1 + pages_for(bytes))) {
		remove_pool();
		ring(PVRDMA_UAR_CQ_OFFSET, handle | PV_UAR_CQ_ARM);
	}
	require(!guest_handle_command(&side.guest, PV_CMD_DESTROY_CQ, handle));
}

static void try_srq(void)
{
	union pv_request request = {.create_srq = {.pd_handle = side.guest.pd,
						   .nchunks = pick_pages(),
						   .attrs = {.max_wr = pick_slots(),
							     .max_sge = script_get8(&in) % 36}}};
	const struct pv_srq_attr attrs = request.create_srq.attrs;
	const uint64_t at = request.create_srq.pdir_dma = make_directory();
	union pv_response response;
	uint32_t handle;

	if (guest_command(&side.guest, PV_CMD_CREATE_SRQ, &request, &response))
		return;
	handle = response.handle.handle;
	if (check_pages(at,
			1 + pages_for(attrs.max_wr * request_size(sizeof(struct pvrdma_rq_wqe_hdr),
								  attrs.max_sge)))) {
		remove_pool();
		ring(PVRDMA_UAR_SRQ_OFFSET, handle | PV_UAR_SRQ_RECV);
	}
	require(!guest_handle_command(&side.guest, PV_CMD_DESTROY_SRQ, handle));
}

static void fill_create_qp(struct pv_cmd_create_qp *c)
{
	*c = (struct pv_cmd_create_qp){
		.pd_handle = side.guest.pd,
		.send_cq_handle = side.cq.handle,
		.recv_cq_handle = side.cq.handle,
		.srq_handle = side.srq.handle,
		.max_send_wr = pick_slots(),
		.max_recv_wr = pick_slots(),
		.max_send_sge = script_get8(&in) % 36,
		.max_recv_sge = script_get8(&in) % 36,
		.total_chunks = (uint16_t)pick_pages(),
		.send_chunks = (uint16_t)pick_pages(),
		.qp_type = script_get8(&in) % 2 ? PV_QPT_RC : PV_QPT_UD,
		.is_srq = script_get8(&in) % 4 == 0,
	};
	c->pdir_dma = make_directory();
}

static bool check_qp_pages(const struct pv_cmd_create_qp *c)
{
	const uint64_t send = pages_for(
		c->max_send_wr * request_size(sizeof(struct pvrdma_sq_wqe_hdr), c->max_send_sge));
	const uint64_t recv =
		c->is_srq
			? 0
			: pages_for(c->max_recv_wr * request_size(sizeof(struct pvrdma_rq_wqe_hdr),
								  c->max_recv_sge));

	require(send <= c->send_chunks && 1u + c->send_chunks + recv <= c->total_chunks);
	return check_pages(c->pdir_dma, 1u + c->send_chunks + recv);
}

static void ring_qp(const struct qp *qp)
{
	const uint32_t bits =
		script_get8(&in) % 2 ? PV_UAR_QP_SEND | PV_UAR_QP_RECV : PV_UAR_QP_SEND;

	ring(PVRDMA_UAR_QP_OFFSET, qp->handle | bits);
	side_run(&side);
}

/* The pages of the requests have any content, and may be the header page, too. */
static void use_qp(const struct qp *qp, uint64_t header)
{
	struct pv_ring_state *state = guest_at(&side.guest, header);

	*state = (struct pv_ring_state){0};
	if (qp->type == PV_QPT_RC)
		qp_connect(&side.guest, qp, &side.guest, qp);
	else
		qp_datagram(&side.guest, qp);
	state->tx.prod_tail = script_get8(&in) % 8;
	state->rx.prod_tail = script_get8(&in) % 8;
	ring_qp(qp);
	remove_pool();
	ring_qp(qp);
}

static void drain_cq(void)
{
	struct pv_ring_indices *ring = cq_indices(&side.guest, &side.cq);

	ring->cons_head = ring->prod_tail;
}

static void try_qp(void)
{
	union pv_request request;
	union pv_response response;
	struct pv_cmd_create_qp create;
	struct qp qp;

	fill_create_qp(&request.create_qp);
	create = request.create_qp;
	if (guest_command(&side.guest, PV_CMD_CREATE_QP, &request, &response))
		return;
	qp = (struct qp){.handle = response.create_qp.qp_handle,
			 .qpn = response.create_qp.qpn,
			 .type = create.qp_type};
	if (check_qp_pages(&create))
		use_qp(&qp, page_of(create.pdir_dma, 0, true));
	require(!guest_handle_command(&side.guest, PV_CMD_DESTROY_QP, qp.handle));
}

/* --- The world */

static void make_pages(void)
{
	for (uint32_t i = 0; i < POOL; i++)
		pool[i] = guest_page(&side.guest);
	dir = guest_page(&side.guest);
	for (uint32_t i = 0; i < TABLES; i++)
		tables[i] = guest_page(&side.guest);
	for (uint32_t i = 0; i < TABLES * ENTRIES; i++)
		entries_of(tables[i / ENTRIES])[i % ENTRIES] = pool[i % POOL];
}

static void open_world(void)
{
	side.in = &in;
	in.left = 0;
	side_open(&side, 1);
	side_connect(&side);
	side_add_read_only_memory(&side);
	make_pages();
	/* The driver's own pages are none of those that directories name. */
	require(side.guest.next_high < GUEST_HIGH + side.guest.high_size - PV_PAGE);
}

/* The driver makes again what a hostile queue pair may have spent or broken. */
static void restart(void)
{
	side_restart(&side);
	side_connect(&side);
	side_add_read_only_memory(&side);
	make_pages();
}

static void run_input(const uint8_t *data, size_t size)
{
	const uint64_t overflows = pvrdma_counters(side.guest.dev)[PVRDMA_CQ_OVERFLOWS];

	in = (struct script){.at = data, .left = size};
	removed_n = 0;
	switch (script_get8(&in) % 8) {
	case 0: try_cq(); break;
	case 1: try_srq(); break;
	case 2:
	case 3: try_qp(); break;
	case 4: try_fast_registration(); break;
	default: try_region(); break;
	}
	drain_cq();
	if (pvrdma_counters(side.guest.dev)[PVRDMA_CQ_OVERFLOWS] != overflows)
		restart();
}

static void close_world(void)
{
	in.left = 0;
	side_finish(&side);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct world world = {INPUTS, BYTES, open_world, run_input, close_world, true};

	world_start(&world, argc, argv);
	return 0;
}
