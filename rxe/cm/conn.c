/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void cm_count(struct cm *cm, enum cm_counter counter)
{
	cm->counters[counter]++;
}

uint64_t cm_draw(struct cm *cm)
{
	return siphash_word(&cm->key, cm->drawn++);
}

/* --- Tables. Peers choose IDs and GUIDs, so the hash has a secret key: else a peer could choose
 * numbers that all hash into one bucket. */

static uint32_t hash_bucket(const struct cm *cm, uint64_t a, uint32_t b)
{
	return (uint32_t)(siphash_word(&cm->key, ~(siphash_word(&cm->key, ~a) ^ b)) % CM_BUCKETS);
}

static struct cm_conn *find_id(const struct cm *cm, uint32_t local_id)
{
	struct cm_conn *conn;

	LIST_FOREACH(conn, &cm->by_id[hash_bucket(cm, 0, local_id)], id_link)
	if (conn->local_id == local_id)
		return conn;
	return NULL;
}

bool cm_has_id(const struct cm *cm, uint32_t local_id)
{
	return find_id(cm, local_id);
}

static bool is_from(const struct cm_conn *conn, const struct cm_path *path)
{
	return !memcmp(conn->channel.path.dgid, path->dgid, sizeof(path->dgid));
}

static bool has_mac_of(const struct cm_conn *conn, const struct cm_path *path)
{
	return !memcmp(conn->channel.path.mac, path->mac, sizeof(path->mac));
}

struct cm_conn *cm_find_from(const struct cm *cm, const struct cm_path *path, uint32_t local_id)
{
	struct cm_conn *conn = find_id(cm, local_id);

	return conn && is_from(conn, path) ? conn : NULL;
}

struct cm_conn *cm_find_pair(const struct cm *cm, const struct cm_path *path, uint32_t local_id,
			     uint32_t remote_id)
{
	struct cm_conn *conn = cm_find_from(cm, path, local_id);

	return conn && conn->remote_id == remote_id ? conn : NULL;
}

struct cm_conn *cm_find_peer(const struct cm *cm, const struct cm_path *path, uint64_t guid,
			     uint32_t remote_id)
{
	struct cm_conn *conn;

	LIST_FOREACH(conn, &cm->by_peer[hash_bucket(cm, guid, remote_id)], peer_link)
	if (conn->remote_guid == guid && conn->remote_id == remote_id && is_from(conn, path))
		return conn;
	return NULL;
}

struct cm_conn *cm_find_qpn(const struct cm *cm, const struct cm_path *path, uint64_t guid,
			    uint32_t qpn)
{
	struct cm_conn *conn;

	LIST_FOREACH(conn, &cm->by_qpn[hash_bucket(cm, guid, qpn)], qpn_link)
	if (conn->remote_guid == guid && conn->channel.remote_qpn == qpn && is_from(conn, path) &&
	    !CM_IN(conn, CM_S(TIMEWAIT)) && !(conn->half_open && !has_mac_of(conn, path)))
		return conn;
	return NULL;
}

void cm_know_peer(struct cm_conn *conn)
{
	struct cm *cm = conn->cm;
	uint32_t by_id = hash_bucket(cm, conn->remote_guid, conn->remote_id);
	uint32_t by_qpn = hash_bucket(cm, conn->remote_guid, conn->channel.remote_qpn);

	LIST_INSERT_HEAD(&cm->by_peer[by_id], conn, peer_link);
	LIST_INSERT_HEAD(&cm->by_qpn[by_qpn], conn, qpn_link);
	conn->by_peer = true;
}

static void forget_peer(struct cm_conn *conn)
{
	if (!conn->by_peer)
		return;
	LIST_REMOVE(conn, peer_link);
	LIST_REMOVE(conn, qpn_link);
	conn->by_peer = false;
}

/* --- Requests that are half open */

static uint16_t hash_source(const struct cm *cm, const struct cm_path *path, uint64_t service_id)
{
	uint64_t words[2], mac = 0, hash = siphash_word(&cm->key, service_id);

	memcpy(words, path->dgid, sizeof(words));
	memcpy(&mac, path->mac, sizeof(path->mac));
	hash = siphash_word(&cm->key, mac ^ hash);
	hash = siphash_word(&cm->key, words[1] ^ hash);
	return (uint16_t)hash_bucket(cm, words[0] ^ hash, 0);
}

bool cm_is_crowded(struct cm *cm, const struct cm_path *path, uint64_t service_id)
{
	if (path->local || cm->half_open[hash_source(cm, path, service_id)] < CM_HALF_OPEN_MAX)
		return false;
	cm_count(cm, CM_COUNT_CROWDED);
	return true;
}

void cm_enter_half_open(struct cm_conn *conn)
{
	conn->source = hash_source(conn->cm, &conn->channel.path, conn->channel.service_id);
	conn->half_open = true;
	conn->cm->half_open[conn->source]++;
}

static struct cm_conn *find_oldest_unconfirmed(struct cm *cm)
{
	struct cm_conn *oldest = TAILQ_FIRST(&cm->unconfirmed[false]);

	return oldest ? oldest : TAILQ_FIRST(&cm->unconfirmed[true]);
}

void cm_enter_unconfirmed(struct cm_conn *conn, uint64_t now)
{
	struct cm *cm = conn->cm;

	if (cm->n_unconfirmed == CM_UNCONFIRMED_MAX) {
		cm_count(cm, CM_COUNT_CROWDED);
		cm_report_no_answer(find_oldest_unconfirmed(cm), now);
	}
	conn->unconfirmed = true;
	TAILQ_INSERT_TAIL(&cm->unconfirmed[conn->channel.path.known], conn, unconfirmed_link);
	cm->n_unconfirmed++;
}

void cm_leave_half_open(struct cm_conn *conn)
{
	struct cm *cm = conn->cm;

	if (conn->half_open)
		cm->half_open[conn->source]--;
	conn->half_open = false;
	if (!conn->unconfirmed)
		return;
	TAILQ_REMOVE(&cm->unconfirmed[conn->channel.path.known], conn, unconfirmed_link);
	cm->n_unconfirmed--;
	conn->unconfirmed = false;
}

/* --- Released connections */

void cm_enter_released(struct cm_conn *conn)
{
	conn->released = true;
	TAILQ_INSERT_TAIL(&conn->cm->released, conn, released_link);
	conn->cm->n_released++;
}

static void leave_released(struct cm_conn *conn)
{
	if (!conn->released)
		return;
	TAILQ_REMOVE(&conn->cm->released, conn, released_link);
	conn->cm->n_released--;
}

/* Frees a released connection before its end, because more than CM_RELEASED_MAX are released. If
 * its DREQ still waits for cm_tick, sends the DREQ now, once: else the peer would get none. */
static void drop_connection(struct cm_conn *conn)
{
	cm_count(conn->cm, CM_COUNT_CROWDED);
	if (CM_IN(conn, CM_S(DREQ_SENT)) && conn->unsent)
		cm_post_again(conn);
	cm_conn_free(conn);
}

void cm_drop_released(struct cm *cm)
{
	while (cm->n_released > CM_RELEASED_MAX)
		drop_connection(TAILQ_FIRST(&cm->released));
}

/* --- Life of a connection */

struct cm_conn *cm_conn_new(struct cm *cm, const struct cm_path *path)
{
	uint32_t local_id;

	/* At most CM_CONNS_MAX of 2^32 IDs are taken, so a free one comes soon. */
	do
		local_id = (uint32_t)cm_draw(cm);
	while (!local_id || find_id(cm, local_id));
	return cm_conn_new_as(cm, path, local_id);
}

struct cm_conn *cm_conn_new_as(struct cm *cm, const struct cm_path *path, uint32_t local_id)
{
	struct cm_conn *conn;

	if (cm->n == CM_CONNS_MAX || find_id(cm, local_id) || heap_reserve(&cm->timers, cm->n + 1))
		return NULL;
	conn = calloc(1, sizeof(*conn));
	if (!conn)
		return NULL;
	conn->local_id = local_id;
	conn->cm = cm;
	conn->channel.path = *path;
	conn->channel.path.has_mac = false;
	LIST_INSERT_HEAD(&cm->by_id[hash_bucket(cm, 0, conn->local_id)], conn, id_link);
	cm->n++;
	return conn;
}

void cm_conn_free(struct cm_conn *conn)
{
	cm_await_no_more(conn);
	cm_leave_half_open(conn);
	leave_released(conn);
	forget_peer(conn);
	LIST_REMOVE(conn, id_link);
	conn->cm->n--;
	conn->cm->n_frozen -= conn->frozen;
	free(conn);
}

void cm_enter_idle(struct cm_conn *conn)
{
	cm_await_no_more(conn);
	cm_leave_half_open(conn);
	forget_peer(conn);
	conn->state = CM_IDLE;
	if (!conn->owned)
		cm_conn_free(conn);
}

void cm_enter_timewait(struct cm_conn *conn, uint64_t now)
{
	cm_leave_half_open(conn);
	conn->state = CM_TIMEWAIT;
	heap_set(&conn->cm->timers, &conn->timer,
		 now + cm_time_ns(cm_bounded(conn->channel.ack_timeout)));
}

uint8_t cm_ack_timeout(uint8_t ack_delay, uint8_t lifetime)
{
	uint8_t timeout = lifetime + 1;

	/* The exponent of the sum: the larger exponent, plus 1 if both are about equal. */
	if (timeout >= ack_delay)
		timeout += ack_delay + 1 >= timeout;
	else
		timeout = ack_delay + (timeout + 1 >= ack_delay);
	return timeout > 31 ? 31 : timeout;
}

/* --- Messages */

bool cm_is_answer(const struct cm_conn *conn, const struct cm_mad *mad)
{
	if (mad->tid == conn->tid)
		return true;
	cm_count(conn->cm, CM_COUNT_FORGED);
	return false;
}

void cm_tell(struct cm_conn *conn, enum cm_event event, const struct cm_mad *mad)
{
	if (conn->owned)
		conn->cm->ops->event(conn->ctx, event, mad);
}

static void send_mad(struct cm_conn *conn, const uint8_t bytes[CM_MAD_LEN])
{
	cm_count(conn->cm, CM_COUNT_OUT);
	conn->cm->ops->send(conn->cm->ctx, &conn->channel.path, bytes);
}

void cm_post(struct cm_conn *conn, const struct cm_mad *mad)
{
	cm_mad_build(mad, conn->sent);
	conn->sent_attr = mad->attr;
	send_mad(conn, conn->sent);
}

void cm_post_again_by_tick(struct cm_conn *conn, uint64_t now)
{
	conn->unsent = true;
	heap_set(&conn->cm->timers, &conn->timer, now);
}

void cm_post_by_tick(struct cm_conn *conn, uint64_t now, const struct cm_mad *mad)
{
	cm_mad_build(mad, conn->sent);
	conn->sent_attr = mad->attr;
	cm_post_again_by_tick(conn, now);
}

void cm_post_again(struct cm_conn *conn)
{
	send_mad(conn, conn->sent);
}

void cm_post_aside(struct cm_conn *conn, const struct cm_mad *mad)
{
	uint8_t bytes[CM_MAD_LEN];

	cm_mad_build(mad, bytes);
	send_mad(conn, bytes);
}

void cm_await(struct cm_conn *conn, uint64_t now)
{
	conn->retries = conn->max_retries;
	heap_set(&conn->cm->timers, &conn->timer, now + conn->timeout_ns);
}

void cm_await_no_more(struct cm_conn *conn)
{
	heap_remove(&conn->cm->timers, &conn->timer);
}

void cm_enter_established(struct cm_conn *conn)
{
	cm_await_no_more(conn);
	cm_leave_half_open(conn);
	conn->state = CM_ESTABLISHED;
}

int cm_set_private(struct cm_mad *mad, const void *data, uint32_t len)
{
	if (len > cm_private_len(mad->attr))
		return -EINVAL;
	if (len)
		memcpy(mad->private_data, data, len);
	return 0;
}

struct cm_mad cm_make_mra(const struct cm_conn *conn, enum cm_about about)
{
	return (struct cm_mad){
		.attr = CM_MRA,
		.tid = conn->tid,
		.mra = {conn->local_id, conn->remote_id, (uint8_t)about, CM_MRA_TIMEOUT},
	};
}

struct cm_mad cm_make_pair(const struct cm_conn *conn, enum cm_attr attr)
{
	return (struct cm_mad){
		.attr = (uint16_t)attr,
		.tid = conn->tid,
		.pair = {conn->local_id, conn->remote_id, conn->channel.remote_qpn},
	};
}

uint64_t cm_path_key(const struct cm_path *path)
{
	uint64_t words[2];

	memcpy(words, path->dgid, sizeof(words));
	return ~(words[0] * 31 + words[1]);
}

enum cm_state cm_state(const struct cm_conn *conn)
{
	return conn->state;
}

const struct cm_channel *cm_channel(const struct cm_conn *conn)
{
	return &conn->channel;
}
