/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "pvrdma_driver.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "require.h"

#define PAGES_PER_TABLE 512u
#define WIDE_MTU        4200 /* packets of 4096 bytes fit */

/* --- Memory */

static void map_region(struct guest *g, uint64_t addr, uint64_t size, uint64_t offset)
{
	require(!vnic_guest_memory_map(g->memory, addr, size, g->fd, offset, true));
}

static void on_interrupt(void *ctx, uint32_t vector)
{
	struct guest *g = ctx;

	require(vector < PV_VECTORS);
	g->interrupts[vector]++;
}

static void map_regions(struct guest *g)
{
	map_region(g, 0, g->low_size, 0);
	map_region(g, GUEST_HIGH, g->high_size, GUEST_LOW_SIZE);
}

static void open_memory(struct guest *g, const struct guest_attr *attr)
{
	*g = (struct guest){
		.id = attr->id,
		.roce_v1 = attr->roce_v1,
		.ipv6 = attr->ipv6,
		.mac = {2, 0, 0, 0, 1, attr->id},
		.next_low = PV_PAGE,
		.next_high = GUEST_HIGH,
		.low_size = attr->small ? GUEST_SMALL : GUEST_LOW_SIZE,
		.high_size = attr->small ? GUEST_SMALL : GUEST_HIGH_SIZE,
		.extra_size = attr->small ? GUEST_SMALL : GUEST_EXTRA_SIZE,
	};
	g->fd = memfd_create("guest", MFD_CLOEXEC);
	require(g->fd >= 0 && !ftruncate(g->fd, GUEST_MEMORY));
	g->bytes = mmap(NULL, GUEST_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, g->fd, 0);
	require(g->bytes != MAP_FAILED);
	require(!vnic_guest_memory_create(&g->memory));
	map_regions(g);
}

void guest_open(struct guest *g, const struct guest_attr *attr)
{
	open_memory(g, attr);
	g->attr = (struct pvrdma_attr){
		.memory = g->memory,
		.mac = {2, 0, 0, 0, 1, attr->id},
		.mtu = attr->mtu ? attr->mtu : GUEST_MTU,
		.roce_v1 = attr->roce_v1,
		.seed = attr->id,
		.interrupt = on_interrupt,
		.ctx = g,
		.owner = attr->owner,
		.uar = attr->uar,
	};
	require(!pvrdma_create(&g->attr, &g->dev));
}

void guest_open_remote(struct guest *g, const struct guest_attr *attr)
{
	open_memory(g, attr);
	for (int i = 0; i < PV_VECTORS; i++)
		g->eventfds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

void guest_attach(struct guest *g, struct vfio_client *client, bool rdma)
{
	require(!vfio_map(client, 0, g->low_size, g->fd, 0));
	require(!vfio_map(client, GUEST_HIGH, g->high_size, g->fd, GUEST_LOW_SIZE));
	vfio_set_master(client);
	if (!rdma)
		return;
	g->client = client;
	for (uint32_t i = 0; i < PV_VECTORS; i++)
		vfio_set_eventfd(client, i, g->eventfds[i]);
}

static bool is_mapped(const struct guest *g, uint64_t addr, uint64_t size)
{
	return vnic_guest_memory_range(g->memory, addr, size, true);
}

void guest_clear(struct guest *g)
{
	uint32_t count;

	vnic_guest_memory_regions(g->memory, &count);
	if (count != (g->keep_extra ? 3 : 2) || !is_mapped(g, 0, g->low_size) ||
	    !is_mapped(g, GUEST_HIGH, g->high_size)) {
		vnic_guest_memory_unmap(g->memory, 0, GUEST_EXTRA + GUEST_EXTRA_SIZE);
		map_regions(g);
	}
	memset(g->bytes, 0, g->low_size);
	memset(g->bytes + GUEST_LOW_SIZE, 0, g->high_size);
	memset(g->bytes + GUEST_LOW_SIZE + GUEST_HIGH_SIZE, 0, g->extra_size);
	guest_pages_free(&g->async);
	guest_pages_free(&g->cq_notify);
	g->next_low = PV_PAGE;
	g->next_high = GUEST_HIGH;
	g->high_next = false;
}

void guest_reopen(struct guest *g)
{
	pvrdma_destroy(g->dev);
	guest_clear(g);
	g->now = g->token = 0;
	memset(g->interrupts, 0, sizeof(g->interrupts));
	require(!pvrdma_create(&g->attr, &g->dev));
}

static void get_nic(void *ctx, struct pvrdma_nic *nic)
{
	*nic = *(struct pvrdma_nic *)ctx;
}

static uint32_t take_no_qpn(void *ctx)
{
	(void)ctx;
	return 0;
}

static void connect_to_any(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	(void)ctx, (void)mac, (void)qpn;
}

void guest_give_nic(struct guest *g, struct pvrdma_owner *owner, struct pvrdma_nic *nic)
{
	*owner = (struct pvrdma_owner){
		.take_qpn = take_no_qpn, .connecting = connect_to_any, .nic = get_nic, .ctx = nic};
	g->attr.owner = owner;
	guest_reopen(g);
}

void guest_open_copy(const struct guest *g, struct guest *copy)
{
	*copy = *g;
	copy->fd = memfd_create("guest", MFD_CLOEXEC);
	require(copy->fd >= 0 && !ftruncate(copy->fd, GUEST_MEMORY));
	copy->bytes = mmap(NULL, GUEST_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, copy->fd, 0);
	require(copy->bytes != MAP_FAILED);
	require(!vnic_guest_memory_create(&copy->memory));
	map_regions(copy);
	if (is_mapped(g, GUEST_EXTRA, g->extra_size))
		map_region(copy, GUEST_EXTRA, g->extra_size, GUEST_LOW_SIZE + GUEST_HIGH_SIZE);
	copy->attr.memory = copy->memory;
	copy->dev = NULL;
}

static void close_half(struct guest *g)
{
	pvrdma_destroy(g->dev);
	vnic_guest_memory_destroy(g->memory);
	munmap(g->bytes, GUEST_MEMORY);
	close(g->fd);
}

void guest_save(struct guest *g, uint8_t **stream, size_t *length)
{
	pvrdma_pause(g->dev, g->now);
	require(!pvrdma_save(g->dev, g->now, stream, length));
}

int guest_restore(struct guest *g, const uint8_t *stream, size_t length)
{
	struct guest copy;
	int rc;

	guest_open_copy(g, &copy);
	require(!pvrdma_create(&copy.attr, &copy.dev));
	rc = pvrdma_restore(copy.dev, copy.now, stream, length);
	if (rc) {
		close_half(&copy);
		pvrdma_resume(g->dev, g->now);
		return rc;
	}
	memcpy(copy.bytes, g->bytes, GUEST_MEMORY);
	close_half(g);
	*g = copy;
	pvrdma_resume(g->dev, g->now);
	return 0;
}

int guest_migrate(struct guest *g)
{
	uint8_t *stream;
	size_t length;
	int rc;

	guest_save(g, &stream, &length);
	rc = guest_restore(g, stream, length);
	free(stream);
	return rc;
}

void guest_close(struct guest *g)
{
	pvrdma_destroy(g->dev);
	vnic_guest_memory_destroy(g->memory);
	munmap(g->bytes, GUEST_MEMORY);
	close(g->fd);
	guest_pages_free(&g->async);
	guest_pages_free(&g->cq_notify);
}

void *guest_at(const struct guest *g, uint64_t addr)
{
	if (addr < GUEST_LOW_SIZE)
		return g->bytes + addr;
	if (addr - GUEST_HIGH < GUEST_HIGH_SIZE)
		return g->bytes + GUEST_LOW_SIZE + (addr - GUEST_HIGH);
	require(addr - GUEST_EXTRA < GUEST_EXTRA_SIZE);
	return g->bytes + GUEST_LOW_SIZE + GUEST_HIGH_SIZE + (addr - GUEST_EXTRA);
}

uint64_t guest_page(struct guest *g)
{
	uint64_t *next = g->high_next ? &g->next_high : &g->next_low;
	uint64_t page = *next;

	*next += PV_PAGE;
	if (g->next_low < g->low_size)
		g->high_next = !g->high_next;
	else
		g->high_next = true;
	require(g->next_high <= GUEST_HIGH + g->high_size);
	memset(guest_at(g, page), 0, PV_PAGE);
	return page;
}

void guest_pages(struct guest *g, uint32_t n, struct pages *pages)
{
	uint64_t *dir, *table = NULL;

	*pages = (struct pages){.n = n, .dir = guest_page(g)};
	pages->addr = malloc(n * sizeof(*pages->addr));
	require(pages->addr);
	dir = guest_at(g, pages->dir);
	for (uint32_t i = 0; i < n; i++) {
		if (i % PAGES_PER_TABLE == 0) {
			dir[i / PAGES_PER_TABLE] = guest_page(g);
			table = guest_at(g, dir[i / PAGES_PER_TABLE]);
		}
		pages->addr[i] = table[i % PAGES_PER_TABLE] = guest_page(g);
	}
}

void guest_pages_free(struct pages *pages)
{
	free(pages->addr);
	pages->addr = NULL;
}

void guest_plug(struct guest *g)
{
	map_region(g, GUEST_EXTRA, g->extra_size, GUEST_LOW_SIZE + GUEST_HIGH_SIZE);
	pvrdma_memory_added(g->dev);
}

void guest_unplug(struct guest *g, uint64_t addr, uint64_t size)
{
	pvrdma_memory_removed(g->dev, addr, size);
	require(!vnic_guest_memory_unmap(g->memory, addr, size));
}

/* --- Registers */

/* Interrupts since the last call, of a device behind a client. */
static void count_interrupts(struct guest *g)
{
	eventfd_t n;

	for (int i = 0; i < PV_VECTORS; i++)
		if (!eventfd_read(g->eventfds[i], &n))
			g->interrupts[i] += (uint32_t)n;
}

uint32_t guest_read(struct guest *g, uint32_t reg)
{
	uint32_t value;

	if (g->client)
		return vfio_read(g->client, PV_BAR_REG, reg);
	require(!pvrdma_reg_read(g->dev, PV_BAR_REG, reg, &value));
	return value;
}

void guest_write(struct guest *g, uint32_t reg, uint32_t value)
{
	if (g->client) {
		require(!vfio_write(g->client, PV_BAR_REG, reg, value));
		count_interrupts(g);
		return;
	}
	require(!pvrdma_reg_write(g->dev, g->now, PV_BAR_REG, reg, value));
}

void guest_doorbell(struct guest *g, uint32_t page, uint32_t offset, uint32_t value)
{
	if (g->attr.uar)
		memcpy((uint8_t *)g->attr.uar + page * PV_PAGE + offset, &value, sizeof(value));
	else if (g->client)
		require(!vfio_write(g->client, PV_BAR_UAR, (uint64_t)page * PV_PAGE + offset,
				    value));
	else
		require(!pvrdma_reg_write(g->dev, g->now, PV_BAR_UAR, page * PV_PAGE + offset,
					  value));
}

void guest_prepare(struct guest *g)
{
	struct pv_shared_region *region;

	g->dsr = guest_page(g);
	g->request = guest_page(g);
	g->response = guest_page(g);
	guest_pages_free(&g->async);
	guest_pages_free(&g->cq_notify);
	guest_pages(g, GUEST_RING_PAGES, &g->async);
	guest_pages(g, GUEST_RING_PAGES, &g->cq_notify);
	region = guest_at(g, g->dsr);
	*region = (struct pv_shared_region){
		.driver_version = PV_VERSION,
		.cmd_slot_dma = g->request,
		.resp_slot_dma = g->response,
		.async_ring_pages = {.num_pages = g->async.n, .pdir_dma = g->async.dir},
		.cq_ring_pages = {.num_pages = g->cq_notify.n, .pdir_dma = g->cq_notify.dir},
		.uar_pfn64 = GUEST_UAR_PFN,
	};
}

void guest_load(struct guest *g)
{
	guest_write(g, PV_REG_DSRLOW, (uint32_t)g->dsr);
	guest_write(g, PV_REG_DSRHIGH, (uint32_t)(g->dsr >> 32));
}

void guest_activate(struct guest *g)
{
	guest_write(g, PV_REG_IMR, 0);
	guest_write(g, PV_REG_CTL, PV_CTL_ACTIVATE);
}

void guest_start(struct guest *g)
{
	struct urxe_gid gid;

	guest_prepare(g);
	guest_load(g);
	guest_activate(g);
	require(!guest_read(g, PV_REG_ERR));
	guest_gid(g, &gid);
	require(!guest_bind(g, 0, &gid, PV_NO_VLAN));
	g->pd = guest_pd(g, 0);
}

const struct pv_device_caps *guest_caps(const struct guest *g)
{
	return &((struct pv_shared_region *)guest_at(g, g->dsr))->caps;
}

/* --- Commands */

static bool is_awaited(uint32_t cmd)
{
	switch (cmd) {
	case PV_CMD_DESTROY_PD:
	case PV_CMD_DESTROY_MR:
	case PV_CMD_DESTROY_CQ:
	case PV_CMD_DESTROY_QP:
	case PV_CMD_DESTROY_UC:
	case PV_CMD_DESTROY_SRQ:
	case PV_CMD_MODIFY_SRQ:
	case PV_CMD_CREATE_BIND:
	case PV_CMD_DESTROY_BIND: return false;
	default: return true;
	}
}

/* As Linux' driver, waits 10 s at most for the interrupt of a response that a device behind a
 * client has not stored yet. */
static void await_response(struct guest *g, uint32_t before)
{
	struct pollfd interrupt = {.fd = g->eventfds[PV_VECTOR_RESPONSE], .events = POLLIN};

	if (g->interrupts[PV_VECTOR_RESPONSE] != before)
		return;
	require(poll(&interrupt, 1, 10000) == 1);
	count_interrupts(g);
}

void guest_begin_command(struct guest *g, uint32_t cmd, union pv_request *request)
{
	request->hdr.cmd = cmd;
	request->hdr.response = ++g->token;
	memcpy(guest_at(g, g->request), request, sizeof(*request));
	guest_write(g, PV_REG_REQUEST, 0);
}

int guest_command(struct guest *g, uint32_t cmd, union pv_request *request,
		  union pv_response *response)
{
	uint32_t before, err;

	/* A device that has moved may have repeated an interrupt. */
	if (g->client)
		count_interrupts(g);
	before = g->interrupts[PV_VECTOR_RESPONSE];
	guest_begin_command(g, cmd, request);
	err = guest_read(g, PV_REG_ERR);
	if (!err && g->client && is_awaited(cmd))
		await_response(g, before);
	/* A driver that sees an error does not wait; a late interrupt would confuse it. */
	if (err)
		require(g->interrupts[PV_VECTOR_RESPONSE] == before);
	else
		require(g->interrupts[PV_VECTOR_RESPONSE] - before == is_awaited(cmd));
	if (err)
		return -(int)err;
	memcpy(response, guest_at(g, g->response), sizeof(*response));
	require(response->hdr.response == g->token && response->hdr.ack == PV_CMD_ACK + cmd);
	return -response->hdr.err;
}

int guest_handle_command(struct guest *g, uint32_t cmd, uint32_t handle)
{
	union pv_request request = {.handle = {.handle = handle}};
	union pv_response response;

	return guest_command(g, cmd, &request, &response);
}

uint32_t guest_pd(struct guest *g, uint32_t context)
{
	union pv_request request = {.handle = {.handle = context}};
	union pv_response response;

	require(!guest_command(g, PV_CMD_CREATE_PD, &request, &response));
	return response.handle.handle;
}

void guest_gid(const struct guest *g, struct urxe_gid *gid)
{
	const struct urxe_gid ipv4 = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, g->id}};
	const struct urxe_gid local = {
		{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 1, g->id}};

	*gid = g->roce_v1 || g->ipv6 ? local : ipv4;
}

int guest_bind(struct guest *g, uint32_t index, const struct urxe_gid *gid, uint32_t vlan)
{
	union pv_request request = {
		.create_bind = {
			.mtu = 1024,
			.vlan = vlan,
			.index = index,
			.gid_type = g->roce_v1 ? PV_GID_TYPE_ROCE_V1 : PV_GID_TYPE_ROCE_V2,
		}};
	union pv_response response;

	memcpy(request.create_bind.new_gid, gid->raw, sizeof(gid->raw));
	return guest_command(g, PV_CMD_CREATE_BIND, &request, &response);
}

void guest_enter_context(struct guest *g, uint32_t page)
{
	union pv_request request = {.create_uc = {.pfn64 = GUEST_UAR_PFN + page}};
	union pv_response response;

	require(!guest_command(g, PV_CMD_CREATE_UC, &request, &response));
	g->context = response.handle.handle;
	g->uar_page = page;
	g->pd = guest_pd(g, g->context);
}

/* --- Queues */

/* Driver's side of rings: its index, modulo twice the number of slots, in the header page. */
static uint32_t ring_next(uint32_t index, uint32_t slots)
{
	return (index + 1) & (2 * slots - 1);
}

static void *slot_at(const struct guest *g, const struct pages *pages, uint32_t first_page,
		     uint32_t index, uint32_t slots, uint32_t size)
{
	uint64_t offset = (uint64_t)(index & (slots - 1)) * size;

	return (uint8_t *)guest_at(g, pages->addr[first_page + offset / PV_PAGE]) +
	       offset % PV_PAGE;
}

static uint32_t pages_of(uint64_t bytes)
{
	return (uint32_t)((bytes + PV_PAGE - 1) / PV_PAGE);
}

static uint32_t power_of_two(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power *= 2;
	return power;
}

int cq_try_open(struct guest *g, struct cq *cq, uint32_t cqe, uint32_t context)
{
	union pv_request request = {.create_cq = {.cqe = cqe, .ctx_handle = context}};
	union pv_response response;
	int rc;

	*cq = (struct cq){.slots = cqe};
	guest_pages(g, 1 + pages_of(cqe * sizeof(struct pvrdma_cqe)), &cq->pages);
	request.create_cq.nchunks = cq->pages.n;
	request.create_cq.pdir_dma = cq->pages.dir;
	rc = guest_command(g, PV_CMD_CREATE_CQ, &request, &response);
	if (rc) {
		guest_pages_free(&cq->pages);
		return rc;
	}
	require(response.create_cq.cqe == cqe);
	cq->handle = response.create_cq.cq_handle;
	return 0;
}

void cq_open(struct guest *g, struct cq *cq, uint32_t cqe)
{
	require(!cq_try_open(g, cq, cqe, g->context));
}

void cq_close(struct guest *g, struct cq *cq)
{
	require(!guest_handle_command(g, PV_CMD_DESTROY_CQ, cq->handle));
	guest_pages_free(&cq->pages);
}

struct pv_ring_indices *cq_indices(const struct guest *g, const struct cq *cq)
{
	return &((struct pv_ring_state *)guest_at(g, cq->pages.addr[0]))->rx;
}

bool cq_poll(struct guest *g, struct cq *cq, struct pvrdma_cqe *cqe)
{
	struct pv_ring_indices *indices = cq_indices(g, cq);

	if (indices->prod_tail == indices->cons_head)
		return false;
	*cqe = *(struct pvrdma_cqe *)slot_at(g, &cq->pages, 1, indices->cons_head, cq->slots,
					     sizeof(*cqe));
	indices->cons_head = ring_next(indices->cons_head, cq->slots);
	return true;
}

void cq_arm(struct guest *g, const struct cq *cq, bool solicited)
{
	guest_doorbell(g, g->uar_page, PVRDMA_UAR_CQ_OFFSET,
		       cq->handle | (solicited ? PV_UAR_CQ_ARM_SOL : PV_UAR_CQ_ARM));
}

int srq_try_open(struct guest *g, struct srq *srq, uint32_t max_wr, uint32_t max_sge,
		 uint32_t limit)
{
	union pv_request request = {
		.create_srq = {
			.pd_handle = g->pd,
			.attrs = {.max_wr = max_wr, .max_sge = max_sge, .srq_limit = limit}}};
	union pv_response response;
	int rc;

	*srq = (struct srq){.slots = max_wr};
	srq->wqe_size = power_of_two(
		(uint32_t)(sizeof(struct pvrdma_rq_wqe_hdr) + max_sge * sizeof(struct pvrdma_sge)));
	guest_pages(g, 1 + pages_of((uint64_t)max_wr * srq->wqe_size), &srq->pages);
	request.create_srq.nchunks = srq->pages.n;
	request.create_srq.pdir_dma = srq->pages.dir;
	rc = guest_command(g, PV_CMD_CREATE_SRQ, &request, &response);
	if (rc)
		guest_pages_free(&srq->pages);
	else
		srq->handle = response.handle.handle;
	return rc;
}

void srq_close(struct guest *g, struct srq *srq)
{
	require(!guest_handle_command(g, PV_CMD_DESTROY_SRQ, srq->handle));
	guest_pages_free(&srq->pages);
}

static uint32_t or_default(uint32_t n, uint32_t otherwise)
{
	return n ? n : otherwise;
}

int qp_try_open(struct guest *g, struct qp *qp, const struct qp_attr *attr)
{
	const uint32_t sge = or_default(attr->sge, 2);
	union pv_request request = {.create_qp = {.pd_handle = g->pd,
						  .send_cq_handle = attr->send_cq->handle,
						  .recv_cq_handle = attr->recv_cq->handle,
						  .max_send_sge = sge,
						  .qp_type = attr->type}};
	struct pv_cmd_create_qp *create = &request.create_qp;
	union pv_response response;
	uint32_t send_pages, recv_pages;
	int rc;

	*qp = (struct qp){.type = attr->type, .send_slots = or_default(attr->send_wr, 16)};
	qp->send_size = power_of_two(
		(uint32_t)(sizeof(struct pvrdma_sq_wqe_hdr) + sge * sizeof(struct pvrdma_sge)));
	qp->recv_size = power_of_two(
		(uint32_t)(sizeof(struct pvrdma_rq_wqe_hdr) + sge * sizeof(struct pvrdma_sge)));
	if (attr->srq) {
		create->is_srq = 1;
		create->srq_handle = attr->srq->handle;
		/* Without a receive queue, a driver may leave anything here. */
		create->max_recv_wr = create->max_recv_sge = UINT32_MAX;
	} else {
		create->max_recv_sge = sge;
		create->max_recv_wr = qp->recv_slots = or_default(attr->recv_wr, 16);
	}
	send_pages = pages_of((uint64_t)qp->send_slots * qp->send_size);
	recv_pages = pages_of((uint64_t)qp->recv_slots * qp->recv_size);
	qp->recv_page = 1 + send_pages;
	guest_pages(g, 1 + send_pages + recv_pages, &qp->pages);
	create->max_send_wr = qp->send_slots;
	create->pdir_dma = qp->pages.dir;
	create->total_chunks = (uint16_t)qp->pages.n;
	create->send_chunks = (uint16_t)send_pages;
	rc = guest_command(g, PV_CMD_CREATE_QP, &request, &response);
	if (rc) {
		guest_pages_free(&qp->pages);
		return rc;
	}
	require(response.create_qp.max_send_wr == qp->send_slots);
	qp->handle = response.create_qp.qp_handle;
	qp->qpn = response.create_qp.qpn;
	return 0;
}

void qp_open(struct guest *g, struct qp *qp, const struct qp_attr *attr)
{
	require(!qp_try_open(g, qp, attr));
}

void qp_close(struct guest *g, struct qp *qp)
{
	require(!guest_handle_command(g, PV_CMD_DESTROY_QP, qp->handle));
	guest_pages_free(&qp->pages);
}

struct pv_ring_state *qp_state_page(const struct guest *g, const struct qp *qp)
{
	return guest_at(g, qp->pages.addr[0]);
}

int qp_modify(struct guest *g, const struct qp *qp, const struct pv_qp_attr *attrs, uint32_t mask)
{
	union pv_request request = {
		.modify_qp = {.qp_handle = qp->handle, .attr_mask = mask, .attrs = *attrs}};
	union pv_response response;

	return guest_command(g, PV_CMD_MODIFY_QP, &request, &response);
}

int qp_to(struct guest *g, const struct qp *qp, uint32_t state)
{
	const struct pv_qp_attr attrs = {.qp_state = state};

	return qp_modify(g, qp, &attrs, URXE_QP_STATE);
}

uint32_t qp_query(struct guest *g, const struct qp *qp, struct pv_qp_attr *attrs)
{
	union pv_request request = {.query_qp = {.qp_handle = qp->handle}};
	union pv_response response;

	require(!guest_command(g, PV_CMD_QUERY_QP, &request, &response));
	if (attrs)
		*attrs = response.query_qp.attrs;
	return response.query_qp.attrs.qp_state;
}

static void fill_address(const struct guest *peer, struct pv_ah_attr *attr)
{
	struct urxe_gid gid;

	guest_gid(peer, &gid);
	*attr = (struct pv_ah_attr){.ah_flags = 1, .port_num = 1, .hop_limit = 64};
	memcpy(attr->dgid, gid.raw, sizeof(attr->dgid));
	memcpy(attr->dmac, peer->mac, sizeof(attr->dmac));
}

void qp_receive(struct guest *g, const struct qp *qp, const struct guest *peer,
		const struct qp *peer_qp)
{
	struct pv_qp_attr attrs = {
		.qp_state = URXE_QPS_INIT,
		.port_num = 1,
		.path_mtu = g->attr.mtu >= WIDE_MTU ? URXE_MTU_4096 : URXE_MTU_1024,
		.dest_qp_num = peer_qp->qpn,
		.rq_psn = 100,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.qp_access_flags = URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_READ |
				   URXE_ACCESS_REMOTE_ATOMIC,
	};

	fill_address(peer, &attrs.ah_attr);
	require(!qp_modify(g, qp, &attrs,
			   URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT |
				   URXE_QP_ACCESS_FLAGS));
	attrs.qp_state = URXE_QPS_RTR;
	require(!qp_modify(g, qp, &attrs,
			   URXE_QP_STATE | URXE_QP_AV | URXE_QP_PATH_MTU | URXE_QP_DEST_QPN |
				   URXE_QP_RQ_PSN | URXE_QP_MAX_DEST_RD_ATOMIC |
				   URXE_QP_MIN_RNR_TIMER));
}

void qp_connect(struct guest *g, const struct qp *qp, const struct guest *peer,
		const struct qp *peer_qp)
{
	const struct pv_qp_attr attrs = {
		.qp_state = URXE_QPS_RTS,
		.sq_psn = 100,
		.max_rd_atomic = 4,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	qp_receive(g, qp, peer, peer_qp);
	require(!qp_modify(g, qp, &attrs,
			   URXE_QP_STATE | URXE_QP_TIMEOUT | URXE_QP_RETRY_CNT | URXE_QP_RNR_RETRY |
				   URXE_QP_SQ_PSN | URXE_QP_MAX_QP_RD_ATOMIC));
}

void qp_datagram(struct guest *g, const struct qp *qp)
{
	struct pv_qp_attr attrs = {
		.qp_state = URXE_QPS_INIT,
		.port_num = 1,
		.qkey = qp->type == PV_QPT_GSI ? 0x80010000 : GUEST_QKEY,
	};
	/* Linux gives QP 1 no port. */
	uint32_t mask = URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_QKEY;

	require(!qp_modify(g, qp, &attrs,
			   qp->type == PV_QPT_GSI ? mask : mask | (uint32_t)URXE_QP_PORT));
	require(!qp_to(g, qp, URXE_QPS_RTR));
	attrs.qp_state = URXE_QPS_RTS;
	require(!qp_modify(g, qp, &attrs, URXE_QP_STATE | URXE_QP_SQ_PSN));
}

void qp_av(const struct guest *g, const struct guest *peer, struct pvrdma_av *av)
{
	struct urxe_gid gid;

	guest_gid(peer, &gid);
	*av = (struct pvrdma_av){.port_pd = g->pd | 1u << 24, .hop_limit = 64};
	memcpy(av->dgid, gid.raw, sizeof(av->dgid));
	memcpy(av->dmac, peer->mac, sizeof(av->dmac));
}

bool qp_write_send(struct guest *g, struct qp *qp, const struct pvrdma_sq_wqe_hdr *header,
		   const struct pvrdma_sge *sges)
{
	struct pv_ring_indices *ring = &qp_state_page(g, qp)->tx;
	uint8_t *slot;

	if (ring->prod_tail == (ring->cons_head ^ qp->send_slots))
		return false;
	slot = slot_at(g, &qp->pages, 1, ring->prod_tail, qp->send_slots, qp->send_size);
	memcpy(slot, header, sizeof(*header));
	if (sges && sizeof(*header) + header->num_sge * sizeof(*sges) <= qp->send_size)
		memcpy(slot + sizeof(*header), sges, header->num_sge * sizeof(*sges));
	ring->prod_tail = ring_next(ring->prod_tail, qp->send_slots);
	return true;
}

void qp_post_send(struct guest *g, struct qp *qp, const struct pvrdma_sq_wqe_hdr *header,
		  const struct pvrdma_sge *sges)
{
	require(qp_write_send(g, qp, header, sges));
	guest_doorbell(g, g->uar_page, PVRDMA_UAR_QP_OFFSET, qp->handle | PV_UAR_QP_SEND);
}

static void write_recv(void *slot, uint64_t wr_id, const struct pvrdma_sge *sges, uint32_t n)
{
	struct pvrdma_rq_wqe_hdr header = {.wr_id = wr_id, .num_sge = n};

	memcpy(slot, &header, sizeof(header));
	if (sges)
		memcpy((uint8_t *)slot + sizeof(header), sges, n * sizeof(*sges));
}

void qp_post_recv(struct guest *g, struct qp *qp, uint64_t wr_id, const struct pvrdma_sge *sges,
		  uint32_t n)
{
	struct pv_ring_indices *ring = &qp_state_page(g, qp)->rx;

	require(ring->prod_tail != (ring->cons_head ^ qp->recv_slots));
	write_recv(slot_at(g, &qp->pages, qp->recv_page, ring->prod_tail, qp->recv_slots,
			   qp->recv_size),
		   wr_id, sges, n);
	ring->prod_tail = ring_next(ring->prod_tail, qp->recv_slots);
	guest_doorbell(g, g->uar_page, PVRDMA_UAR_QP_OFFSET, qp->handle | PV_UAR_QP_RECV);
}

void srq_post(struct guest *g, struct srq *srq, uint64_t wr_id, const struct pvrdma_sge *sges,
	      uint32_t n)
{
	struct pv_ring_indices *ring =
		&((struct pv_ring_state *)guest_at(g, srq->pages.addr[0]))->rx;

	require(ring->prod_tail != (ring->cons_head ^ srq->slots));
	write_recv(slot_at(g, &srq->pages, 1, ring->prod_tail, srq->slots, srq->wqe_size), wr_id,
		   sges, n);
	ring->prod_tail = ring_next(ring->prod_tail, srq->slots);
	guest_doorbell(g, g->uar_page, PVRDMA_UAR_SRQ_OFFSET, srq->handle | PV_UAR_SRQ_RECV);
}

/* --- Registered memory */

int mr_create(struct guest *g, const struct pv_cmd_create_mr *create, uint32_t *handle,
	      uint32_t *key)
{
	union pv_request request = {.create_mr = *create};
	union pv_response response;
	int rc = guest_command(g, PV_CMD_CREATE_MR, &request, &response);

	if (rc)
		return rc;
	require(response.create_mr.lkey == response.create_mr.rkey);
	*handle = response.create_mr.mr_handle;
	*key = response.create_mr.lkey;
	return 0;
}

void buffer_open(struct guest *g, struct buffer *buffer, uint64_t va, uint64_t length,
		 uint32_t access)
{
	struct pv_cmd_create_mr create = {
		.start = va, .length = length, .pd_handle = g->pd, .access_flags = access};

	*buffer = (struct buffer){.va = va, .length = length};
	guest_pages(g, pages_of(va % PV_PAGE + length), &buffer->pages);
	create.pdir_dma = buffer->pages.dir;
	create.nchunks = buffer->pages.n;
	require(!mr_create(g, &create, &buffer->handle, &buffer->key));
}

void buffer_close(struct guest *g, struct buffer *buffer)
{
	require(!guest_handle_command(g, PV_CMD_DESTROY_MR, buffer->handle));
	guest_pages_free(&buffer->pages);
}

uint8_t *buffer_at(const struct guest *g, const struct buffer *buffer, uint64_t offset)
{
	uint64_t at = buffer->va % PV_PAGE + offset;

	return (uint8_t *)guest_at(g, buffer->pages.addr[at / PV_PAGE]) + at % PV_PAGE;
}

static uint8_t pattern(uint64_t offset, uint8_t seed)
{
	return (uint8_t)(offset * 31 + (offset >> 8) * 7 + seed);
}

void buffer_fill(const struct guest *g, const struct buffer *buffer, uint64_t offset,
		 uint64_t length, uint8_t seed)
{
	for (uint64_t i = 0; i < length; i++)
		*buffer_at(g, buffer, offset + i) = pattern(i, seed);
}

bool buffer_has(const struct guest *g, const struct buffer *buffer, uint64_t offset,
		uint64_t length, uint8_t seed)
{
	for (uint64_t i = 0; i < length; i++)
		if (*buffer_at(g, buffer, offset + i) != pattern(i, seed))
			return false;
	return true;
}

struct pvrdma_sge buffer_sge(const struct buffer *buffer, uint64_t offset, uint32_t length)
{
	return (struct pvrdma_sge){
		.addr = buffer->va + offset, .length = length, .lkey = buffer->key};
}

/* --- Events */

/* Linux' driver counts as here, though its number of slots is no power of two. */
static bool read_event(struct guest *g, const struct pages *pages, void *element, uint32_t size)
{
	struct pv_ring_indices *ring = &((struct pv_ring_state *)guest_at(g, pages->addr[0]))->rx;
	uint32_t slots = (pages->n - 1) * PV_PAGE / size;
	uint64_t offset;

	require(!(ring->prod_tail & ~(2 * slots - 1)));
	if (ring->prod_tail == ring->cons_head)
		return false;
	offset = (uint64_t)(ring->cons_head & (slots - 1)) * size;
	memcpy(element,
	       (uint8_t *)guest_at(g, pages->addr[1 + offset / PV_PAGE]) + offset % PV_PAGE, size);
	ring->cons_head = ring_next(ring->cons_head, slots);
	return true;
}

bool guest_event(struct guest *g, struct pv_eqe *eqe)
{
	return read_event(g, &g->async, eqe, sizeof(*eqe));
}

bool guest_notification(struct guest *g, uint32_t *handle)
{
	struct pv_cqne cqne = {0};
	bool some = read_event(g, &g->cq_notify, &cqne, sizeof(cqne));

	*handle = cqne.info;
	return some;
}
