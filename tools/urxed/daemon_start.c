/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/daemon_state.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/rundir.h"
#include "urxed/bond/bond_host.h"
#include "urxed/epoll_watch.h"
#include "urxed/hca/hca_identity.h"
#include "urxed/hostnet/address_conflict.h"
#include "urxed/privilege/fd_guard.h"
#include "urxed/privilege/namespace_query.h"
#include "urxed/privilege/privilege.h"
#include "urxed/privilege/vm_socket.h"
#include "urxed/report/telemetry.h"
#include "urxed/session/session_uplink.h"
#include "urxed/switch/forward.h"
#include "urxed/sysfs_tree.h"
#include "urxed/vhost/vhost_spawner.h"

#define DEFAULT_PKEY "0xffff" /* IBA 10.9.1.2 */

/* --- Callbacks of neigh.h */

static void neigh_send(void *ctx, int uplink, const uint8_t *frame, uint32_t len)
{
	struct daemon *d = ctx;

	switch_send(&d->sw, uplink, frame, len);
}

static const uint8_t *neigh_mac(void *ctx, int uplink)
{
	struct daemon *d = ctx;

	/*
	 * All members of a bond use the host's MAC. So do the host's addresses that have no uplink.
	 */
	return uplink < 0 || bond_has(&d->sw.bond, (uint32_t)uplink) ? d->host.mac
								     : d->uplinks.at[uplink].mac;
}

static void neigh_send_by(void *ctx, int member, const uint8_t *frame, uint32_t len)
{
	struct daemon *d = ctx;

	bond_host_answer(&d->sw, (uint32_t)member, frame, len);
}

static void neigh_answer(void *ctx, struct neigh_waiter *w, int status,
			 const struct vnic_next_hop *hop)
{
	struct daemon *d = ctx;

	if (w->asker == NEIGH_FOR_SESSION)
		session_resolved(w, status, hop);
	else
		rdmacm_neigh_answer(&d->rdmacm, w, status, hop);
}

static const struct neigh_ops neigh_ops = {neigh_send, neigh_mac, neigh_answer, neigh_send_by};

/* --- Start */

/* Starts the helper processes, before DPDK has threads. */
static int start_helpers(struct daemon *d, char error[DAEMON_ERROR])
{
	int rc = fd_guard_start();

	if (!rc)
		rc = namespace_query_start();
	if (!rc)
		rc = vm_socket_start(d->options.uplinks, d->options.n_uplinks);
	if (!rc)
		rc = vhost_spawner_start(d->options.uplinks, d->options.n_uplinks);
	if (rc)
		snprintf(error, DAEMON_ERROR, "cannot start a helper process: %s", strerror(-rc));
	return rc;
}

static int drop_privileges(struct daemon *d, char error[DAEMON_ERROR])
{
	return privilege_drop(privilege_needed(d->options.uplinks, d->options.n_uplinks), error);
}

void daemon_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
}

void daemon_take_hca_addresses(struct daemon *d, const struct hca_port *p)
{
	uint32_t left_out = hca_identity_set_addresses(p, &d->host);

	if (left_out)
		log_line("%u addresses of %s have no GID: the table has room for %d", left_out,
			 p->device, HOST_ADDRESSES);
}

static const char *device_name(const struct daemon *d)
{
	return d->options.device ? d->options.device : HOST_DEVICE;
}

/*
 * Returns the sysfs in which the daemon finds RDMA devices: /sys, or for the daemon of a nested
 * `urxe run` the tree of the outer one, whose device may be the HCA.
 */
static const char *kernel_sys(void)
{
	static char path[PATH_MAX];
	const char *outer = getenv("URXE_OUTER_DIR");

	if (!outer || snprintf(path, sizeof(path), "%s/" VNIC_SYSFS_NAME, outer) >= PATH_MAX)
		return "/sys";
	return path;
}

static bool has_node(const char *run_dir, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/dev/infiniband/%s", run_dir, name) < PATH_MAX &&
	       !access(path, F_OK);
}

/*
 * Returns whether the device's node is VNIC_UVERBS_OTHER, not VNIC_UVERBS_NAME
 * (vnic/attach_protocol.h). A program of a nested `urxe run` sees the outer daemon's device, too.
 * So the inner device takes whichever node name and node GUID the outer one does not have.
 */
static bool needs_other_node(const char *device)
{
	const char *outer = getenv("URXE_OUTER_DIR");

	if (outer && has_node(outer, VNIC_UVERBS_NAME))
		return true;
	if (outer && has_node(outer, VNIC_UVERBS_OTHER))
		return false;
	return strcmp(device, HOST_DEVICE) != 0;
}

/* Opens the HCA monitor before the uplinks: if rdma_rxe has bound UDP port 4791 on an uplink's
 * interface, the uplink opens only if the monitor finds an HCA there. */
static int find_hcas(struct daemon *d, char error[DAEMON_ERROR])
{
	(void)error;
	hca_monitor_open(&d->hca, &d->options.hca, kernel_sys(), device_name(d));
	return 0;
}

static int open_uplinks(struct daemon *d, char error[DAEMON_ERROR])
{
	const struct daemon_options *o = &d->options;
	int rc = o->bond == BOND_NONE ? 0 : uplink_set_check_bond(o->uplinks, o->n_uplinks, error);

	return rc
		       ?: uplink_set_open(&d->uplinks, o->uplinks, o->n_uplinks, &o->impair,
					  &d->hca, error);
}

/*
 * Gives the host the MAC of the first uplink and the addresses of kernel interfaces. If the first
 * uplink is no kernel interface, the host also gets a link-local address. Makes the bond if the
 * options ask for one.
 */
static int set_up_uplink_addresses(struct daemon *d, char error[DAEMON_ERROR])
{
	struct host *h = &d->host;

	memcpy(h->mac, d->uplinks.at[0].mac, ETHER_MAC_LEN);
	if (d->options.bond != BOND_NONE && uplink_set_bond(&d->uplinks, h->mac, error))
		return -EINVAL;
	if (!d->uplinks.at[0].kernel)
		host_add_link_local(h, 0);
	return kernel_sync_start(&d->kernel, h, d->uplinks.at, d->uplinks.n, &d->hca, error);
}

void daemon_name_uplinks(struct daemon *d)
{
	for (uint32_t i = 0; i < d->options.n_uplinks; i++) {
		const struct uplink *u = &d->uplinks.at[i];

		hca_monitor_set_uplink(&d->hca, i, u->kernel ? u->ifname : "", uplink_is_xdp(u));
	}
}

static void choose_hca(struct daemon *d)
{
	daemon_name_uplinks(d);
	hca_monitor_start(&d->hca);
	hca_monitor_fill(&d->hca, &d->host.hca);
	hca_monitor_fill_table(&d->hca, &d->host.hca_table);
	d->host.hca_rate = hca_monitor_rate(&d->hca);
}

/*
 * Gives a host without an uplink its addresses: those of its HCA, if it has one, else generated
 * ones.
 */
static int set_up_own_addresses(struct daemon *d)
{
	const struct hca_port *p = hca_monitor_chosen(&d->hca);

	if (!p)
		return host_add_generated(&d->host);
	hca_identity_set_mac(p, &d->host);
	daemon_take_hca_addresses(d, p);
	return 0;
}

/*
 * Fills the P_Key table. Never fails: options.c has checked each P_Key, and the table has room for
 * DAEMON_PKEYS.
 */
static void set_up_pkeys(struct daemon *d)
{
	uint32_t i;

	if (!d->options.n_pkeys)
		host_add_pkey(&d->host, DEFAULT_PKEY);
	for (i = 0; i < d->options.n_pkeys; i++)
		host_add_pkey(&d->host, d->options.pkeys[i]);
}

static int set_up_host(struct daemon *d, char error[DAEMON_ERROR])
{
	uint32_t i;
	int uplink, rc;

	host_init(&d->host);
	snprintf(d->host.device, sizeof(d->host.device), "%s", device_name(d));
	d->host.other_node = needs_other_node(d->host.device);
	choose_hca(d);
	lease_store_reserve_addresses(&d->lease_store, &d->host);
	if (d->options.mtu)
		d->host.mtu = d->host.mtu_limit = d->options.mtu;
	set_up_pkeys(d);
	rc = d->uplinks.n ? set_up_uplink_addresses(d, error) : set_up_own_addresses(d);
	if (!rc)
		rc = uplink_set_check_mtu(&d->uplinks, d->options.mtu, error);
	uplink = uplink_set_address_port(&d->uplinks);
	for (i = 0; i < d->options.n_addresses && !rc; i++) {
		rc = host_add_text(&d->host, d->options.addresses[i], uplink);
		if (rc)
			snprintf(error, DAEMON_ERROR,
				 "address %s exceeds the limit: a host has at most %d addresses",
				 d->options.addresses[i], HOST_ADDRESSES);
	}
	return rc;
}

/*
 * Probes whether other stations have the host's addresses; a conflict ends the start. Skips the
 * probe if programs of an earlier daemon may claim leases: they have just used the addresses, so no
 * other station has them.
 */
static int check_addresses(struct daemon *d, char error[DAEMON_ERROR])
{
	return lease_store_prune_claims(&d->lease_store)
		       ? 0
		       : address_conflict_probe(&d->host, &d->uplinks, error);
}

/* Watches the kernel's uevents of RDMA devices. If the daemon cannot receive uevents, it only logs
 * the error: programs then see those kernel devices that exist at the start. */
static int watch_ibdevs(struct daemon *d, char error[DAEMON_ERROR])
{
	int rc = host_ibdevs_open(&d->ibdevs);

	if (!rc)
		return epoll_watch_add(d->epoll_fd, host_ibdevs_fd(&d->ibdevs), &d->ibdevs, error);
	log_line("cannot watch the kernel's RDMA devices for changes: %s", strerror(-rc));
	return 0;
}

static int watch_descriptors(struct daemon *d, char error[DAEMON_ERROR])
{
	sigset_t set;
	int rc;

	daemon_signals(&set);
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	d->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (d->epoll_fd < 0 || d->signal_fd < 0) {
		rc = -errno;
		snprintf(error, DAEMON_ERROR, "cannot create epoll set or signalfd: %s",
			 strerror(-rc));
		return rc;
	}
	rc = epoll_watch_add(d->epoll_fd, d->signal_fd, &d->signal_fd, error);
	/* The switch polls uplinks and doorbells in any case; their events only wake the thread. */
	if (!rc)
		rc = uplink_set_watch(&d->uplinks, d->epoll_fd, error);
	if (!rc && kernel_sync_fd(&d->kernel) >= 0)
		rc = epoll_watch_add(d->epoll_fd, kernel_sync_fd(&d->kernel), &d->kernel, error);
	if (!rc)
		rc = watch_ibdevs(d, error);
	if (!rc)
		hca_monitor_watch(&d->hca, d->epoll_fd, now_ns());
	return rc;
}

static int claim_run_dir(struct daemon *d, char error[DAEMON_ERROR])
{
	int rc = rundir_create(d->options.run_dir, error);

	/*
	 * If the directory of a private daemon exists already, a killed private daemon has left it.
	 */
	d->own_dir = rc > 0 || d->options.own_dir || d->options.private;
	if (rc >= 0)
		rc = d->lock_fd = rundir_lock(d->options.run_dir, d->own_dir, error);
	if (rc < 0)
		return rc;
	telemetry_prepare(d->options.run_dir);
	return 0;
}

static int open_lease_store(struct daemon *d, char error[DAEMON_ERROR])
{
	int rc = lease_store_open(&d->lease_store, d->options.run_dir);

	if (rc)
		snprintf(error, DAEMON_ERROR, "cannot use " LEASE_STORE_NAME " in %s: %s",
			 d->options.run_dir, strerror(-rc));
	return rc;
}

/* While a virtual machine has a port, makes the uplinks receive frames to all MACs, because the
 * machine has a MAC of its own. Undoes that after the last machine has left. */
static void hear_for_machines(struct daemon *d)
{
	const bool all = d->sw.vm_mask;
	char error[UPLINK_ERROR];

	for (uint32_t i = 0; i < d->options.n_uplinks; i++) {
		struct uplink *u = &d->uplinks.at[i];

		if (u->hears_all == all && !u->hears_some)
			continue;
		if (all ? uplink_hear_all(u, error) : uplink_hear_own(u, error))
			log_line("%s", error);
	}
}

/* The callback of vm_port_set: a machine has joined or left. While a machine has a port, processes
 * have no direct uplinks, because frames to machines must pass the switch. */
static void handle_vm_port_change(void *ctx)
{
	struct daemon *d = ctx;
	char error[UPLINK_ERROR];

	d->uplinks.n = d->sw.n_uplinks;
	d->host.machines = vm_port_set_has_machine(&d->vm_ports);
	d->neigh.vm_mask = d->sw.vm_mask;
	hear_for_machines(d);
	if (uplink_set_watch(&d->uplinks, d->epoll_fd, error))
		log_line("%s", error);
	direct_uplink_fill(&d->direct_uplink, &d->host);
	sessions_update_uplink(&d->sessions);
	sessions_send_port(&d->sessions);
}

static int open_vm_ports(struct daemon *d, char error[DAEMON_ERROR])
{
	return vm_port_set_open(&d->vm_ports, d->options.run_dir, d->options.group, error)
		       ?: epoll_watch_add(d->epoll_fd, d->vm_ports.epoll_fd, &d->vm_ports, error);
}

static int open_rdmacm(struct daemon *d, char error[DAEMON_ERROR])
{
	return rdmacm_open(&d->rdmacm, d->options.run_dir, d->options.group, now_ns(), &d->sessions,
			   error);
}

void daemon_link_ibdevs(struct daemon *d)
{
	int rc = 0;

	if (!rundir_is_lost(d->options.run_dir))
		rc = host_ibdevs_link(d->options.run_dir, kernel_sys());
	if (rc)
		log_line("cannot link the kernel's RDMA devices: %s", strerror(-rc));
}

static int publish_device(struct daemon *d, char error[DAEMON_ERROR])
{
	int rc = device_files_create(&d->files, d->options.run_dir, &d->host, d->options.group);

	lease_store_put_addresses(&d->lease_store, &d->host);
	if (rc) {
		snprintf(error, DAEMON_ERROR, "cannot write to %s: %s", d->options.run_dir,
			 strerror(-rc));
		return rc;
	}
	d->made_sysfs = true;
	daemon_link_ibdevs(d);
	/* Logged only at the end of the start, so that a daemon that fails to start prints its
	 * error alone. */
	uplink_set_log_pages(&d->uplinks);
	uplink_set_log_bond_mtu(&d->uplinks, d->host.mtu_limit);
	return listener_open(&d->listener, d->options.run_dir, d->options.group, &d->sessions,
			     error);
}

static int pin_address(struct daemon *d, const char *text, const struct address_pin *pin,
		       char error[DAEMON_ERROR])
{
	int rc = address_pins_add(&d->neigh.pins, pin);

	if (rc)
		snprintf(error, DAEMON_ERROR, "fdb %s: the address is pinned already", text);
	return rc;
}

/* Pins MACs to ports, and addresses to MACs (--fdb). */
static int pin_fdb_entries(struct daemon *d, char error[DAEMON_ERROR])
{
	struct address_pin pin;
	int rc = 0;

	for (uint32_t i = 0; i < d->options.n_fdb && !rc; i++) {
		const char *text = d->options.fdb[i];

		rc = address_pin_parse(text, &pin) ? switch_pin(&d->sw, text, error)
						   : pin_address(d, text, &pin, error);
	}
	return rc;
}

static int hear_vm_macs(struct daemon *d, char error[DAEMON_ERROR])
{
	if (!d->sw.vm_mask)
		return 0;
	d->neigh.vm_mask = d->sw.vm_mask;
	return uplink_set_hear_all(&d->uplinks, error);
}

static int hear_addresses(struct daemon *d, char error[DAEMON_ERROR])
{
	int rc = 0;

	for (uint32_t i = 0; i < HOST_ADDRESSES && !rc; i++) {
		const struct host_address *a = &d->host.addresses[i];

		if (a->valid && a->uplink != HOST_NO_UPLINK)
			rc = uplink_set_hear_address(&d->uplinks, a, error);
	}
	return rc;
}

/* Starts DPDK, and makes the switch and its tables. The uplinks are already open, because DPDK
 * takes the list of PCI devices at its start. */
static int set_up_switch(struct daemon *d, char error[DAEMON_ERROR])
{
	int rc = netdev_dpdk_start(error, DAEMON_ERROR);

	if (rc)
		return rc;
	neigh_init(&d->neigh, &d->host, &neigh_ops, d);
	kernel_sync_serve_neigh(&d->kernel, &d->neigh);
	rc = switch_init(&d->sw, &d->host, &d->neigh, d->uplinks.at, d->uplinks.n);
	if (rc)
		snprintf(error, DAEMON_ERROR, "cannot make the switch's tables: %s", strerror(-rc));
	else
		bond_host_start(&d->sw, now_ns(), d->options.bond);
	if (!rc)
		rc = pin_fdb_entries(d, error);
	return rc ?: hear_vm_macs(d, error) ?: hear_addresses(d, error);
}

static int set_up_clients(struct daemon *d, char error[DAEMON_ERROR])
{
	d->direct_uplink = (struct direct_uplink){d->options.direct_uplink, &d->host, &d->uplinks,
						  &d->neigh.pins,           &d->hca,  &d->sw.bond};
	direct_uplink_fill(&d->direct_uplink, &d->host);
	d->sw.introduce = session_introduce;
	d->sessions = (struct sessions){.epoll_fd = d->epoll_fd,
					.host = &d->host,
					.sw = &d->sw,
					.neigh = &d->neigh,
					.lease_store = &d->lease_store,
					.direct_uplink = &d->direct_uplink};
	sessions_start(&d->sessions);
	d->checks_inboxes = true;
	return epoll_watch_add(d->epoll_fd, fd_guard_fd(), &d->checks_inboxes, error)
		       ?: monitor_open(&d->monitor, error);
}

/* The steps of the start in their order. After a failed step, daemon_stop undoes the steps before
 * it. */
static int (*const start_steps[])(struct daemon *d, char error[DAEMON_ERROR]) = {
	start_helpers, claim_run_dir,   open_lease_store,  find_hcas,       open_uplinks,
	set_up_host,   check_addresses, watch_descriptors, set_up_switch,   set_up_clients,
	open_vm_ports, open_rdmacm,     publish_device,    drop_privileges,
};

int daemon_start(const struct daemon_options *options, struct daemon **daemon,
		 char error[DAEMON_ERROR])
{
	struct daemon *d = calloc(1, sizeof(*d));
	int rc = 0;

	if (!d) {
		snprintf(error, DAEMON_ERROR, "out of memory");
		return -ENOMEM;
	}
	d->options = *options;
	d->lock_fd = d->epoll_fd = d->signal_fd = d->listener.fd = -1;
	d->lease_store.fd = -1;
	monitor_init(&d->monitor, d->options.run_dir, d->options.private, &d->sessions, &d->uplinks,
		     &d->rdmacm, &d->hca);
	vm_port_set_init(&d->vm_ports, &d->sw, &d->options.vm_users, handle_vm_port_change, d);
	for (size_t i = 0; i < sizeof(start_steps) / sizeof(start_steps[0]) && !rc; i++)
		rc = start_steps[i](d, error);
	if (rc)
		daemon_stop(d);
	else
		*daemon = d;
	return rc;
}

void daemon_stop(struct daemon *d)
{
	/*
	 * Before sessions_close, which would remove the leases of connected programs from the file.
	 */
	const bool has_programs =
		lease_store_close(&d->lease_store, d->options.run_dir, !d->options.private);

	monitor_close(&d->monitor);
	vm_port_set_close(&d->vm_ports);
	sessions_close_all(&d->sessions);
	rdmacm_close(&d->rdmacm);
	listener_close(&d->listener);
	/* The files stay if programs continue with the next daemon, because these read the files
	 * meanwhile. */
	if (d->made_sysfs && !has_programs)
		sysfs_tree_remove(d->options.run_dir);
	switch_fini(&d->sw);
	neigh_fini(&d->neigh);
	host_ibdevs_close(&d->ibdevs);
	hca_monitor_close(&d->hca);
	kernel_sync_stop(&d->kernel);
	uplink_set_close(&d->uplinks);
	fd_guard_stop();
	namespace_query_stop();
	vm_socket_stop();
	vhost_spawner_stop();
	if (d->signal_fd >= 0)
		close(d->signal_fd);
	if (d->epoll_fd >= 0)
		close(d->epoll_fd);
	if (d->lock_fd >= 0) {
		rundir_remove(d->options.run_dir, TELEMETRY_DIR);
		rundir_release(d->options.run_dir, d->lock_fd, d->own_dir);
	}
	free(d);
}
