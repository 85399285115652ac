/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The communication ID of a connection, which a message from its peer has to name. */
#ifndef URXE_TEST_CONN_ID_H
#define URXE_TEST_CONN_ID_H

#include <cm/cm.h>

static inline uint32_t conn_id(const struct cm_conn *conn)
{
	struct cm_saved saved;

	cm_save(conn, &saved);
	return saved.local_id;
}

#endif
