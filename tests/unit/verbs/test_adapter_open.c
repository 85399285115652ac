/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attachments to daemons that end or lack something meanwhile. The test plays the daemons. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "adapter/adapter.h"
#include "attach/attach.h"
#include "attach/engine_thread.h"
#include "vnic_loop.h"

#define MTU 1500

int __wrap_vnic_driver_attach(const char *dir, struct vnic_attach_welcome *welcome,
			      struct vnic_driver **nic);
int __wrap_vnic_driver_make_inbox(struct vnic_driver *nic, uint16_t mtu, struct vnic_inbox **inbox);
int __wrap_engine_thread_start(void);
void __wrap_engine_thread_stop(void);

static struct vnic_loop *loops[2];
static uint32_t attachments;
static int inbox_error; /* the first daemon's answer */

int __wrap_vnic_driver_attach(const char *dir, struct vnic_attach_welcome *welcome,
			      struct vnic_driver **nic)
{
	(void)dir;
	assert_true(attachments < 2);
	*welcome = (struct vnic_attach_welcome){
		.mac = {2, 0, 0, 0, 0, 1}, .mtu = MTU, .pkeys = {0xffff}, .qpn_first = 0x1000};
	welcome->port.link_mtu = MTU;
	assert_int_equal(vnic_loop_open(MTU, &loops[attachments]), 0);
	*nic = loops[attachments++]->driver;
	return 0;
}

int __wrap_vnic_driver_make_inbox(struct vnic_driver *nic, uint16_t mtu, struct vnic_inbox **inbox)
{
	assert_ptr_equal(nic, loops[attachments - 1]->driver);
	return attachments == 1 ? inbox_error : vnic_inbox_create(mtu, inbox);
}

int __wrap_engine_thread_start(void)
{
	return 0;
}

void __wrap_engine_thread_stop(void)
{
}

static int setup(void **state)
{
	(void)state;
	setenv("URXE_DIR", "/nowhere", 1);
	attachments = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < attachments; i++)
		vnic_loop_close(loops[i]);
	return 0;
}

static void check_open(int error, uint32_t daemons, bool has_inbox)
{
	uint32_t generation;

	inbox_error = error;
	assert_int_equal(adapter_open(&generation), 0);
	assert_int_equal(attachments, daemons);
	assert_int_equal(adapter.inbox != NULL, has_inbox);
	adapter_unref(generation);
}

/* As urxed that is restarted. */
static void the_next_daemon_makes_the_inbox(void **state)
{
	(void)state;
	check_open(-ECONNRESET, 2, true);
}

static void a_daemon_that_lacks_descriptors_makes_no_inbox(void **state)
{
	(void)state;
	check_open(-EMFILE, 1, false);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_next_daemon_makes_the_inbox),
		CASE(a_daemon_that_lacks_descriptors_makes_no_inbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
