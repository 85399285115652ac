/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A bond: several uplinks (--uplink, its members) that serve the host as one (--bond). The switch
 * asks which member carries a frame; the daemon's main loop reports links and runs the timers.
 *
 * active-backup: one member carries all frames, the first of the command line if it is healthy.
 * balance: all healthy members carry frames; a flow stays on one member.
 *
 * A member fails if it loses its link, or if stations answer probes (bond_probe.h) through another
 * member but not through this one. If no member gets an answer, the same members go on.
 */
#ifndef URXE_URXED_BOND_BOND_H
#define URXE_URXED_BOND_BOND_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/bond/bond_health.h"

#define BOND_MEMBERS 8

/*
 * A round sends probes through all members with a link. It begins when the first of them is due.
 *
 * BOND_FRESH_NS: time from a member's last probe or answer until it is due, if it carries frames
 * and RoCE frames were sent or received lately (BOND_BUSY_NS).
 */
#define BOND_FRESH_NS 20000000ull
/* Time that a round of probes waits for answers. */
#define BOND_ROUND_NS 20000000ull
/*
 * A round in which RoCE frames arrived by the member does not count against it: answers to probes
 * may wait in a long queue behind these frames, or may be dropped there. But this number of such
 * rounds in succession counts, because frames may arrive although the host's own do not get
 * through.
 */
#define BOND_EXCUSED_ROUNDS 50
/* As BOND_FRESH_NS, for a member that failed, until it is healthy again. */
#define BOND_RETURN_NS 100000000ull
/* As BOND_FRESH_NS, for healthy members that carry no frames, or are idle. */
#define BOND_IDLE_NS 1000000000ull
/* Time after the last RoCE frame from which the members that carry frames count as idle. */
#define BOND_BUSY_NS 5000000000ull
/* Number and interval of the announcements of the host's addresses after a move. */
#define BOND_ANNOUNCEMENTS   3
#define BOND_ANNOUNCEMENT_NS 50000000ull

enum bond_mode { BOND_NONE, BOND_ACTIVE_BACKUP, BOND_BALANCE };

/* Reads "active-backup" or "balance"; BOND_NONE: another text. */
enum bond_mode bond_mode_parse(const char *text);

struct bond_ops {
	/*
	 * Sends probes through a member, given by its index among all uplinks; false: no station is
	 * known that could answer.
	 */
	bool (*probe)(void *ctx, uint32_t member);
	/*
	 * Announces the host's addresses through a member, given by its index among all uplinks, so
	 * that bridges learn to send the host's frames to this member.
	 */
	void (*announce)(void *ctx, uint32_t member);
};

struct bond_member {
	uint32_t uplink;  /* index among all uplinks */
	const char *name; /* for the log */
	struct bond_health health;
	uint64_t asked_at;    /* ns; of the last probe */
	uint64_t answered_at; /* ns; of the last answer */
	uint64_t heard_at;    /* ns; of the last RoCE frame to the host, or of bond_note_heard */
	uint32_t excused;     /* successive rounds without an answer, but with RoCE frames */
	uint64_t failovers;   /* how often other members took over because this one failed */
};

struct bond {
	/* BOND_NONE: the uplinks are independent, and the other members are not valid. */
	enum bond_mode mode;
	const struct bond_ops *ops;
	void *ctx;
	uint32_t mask; /* of members, by index among all uplinks */
	uint32_t port; /* index of the first member, by which the host knows the bond */
	struct bond_member members[BOND_MEMBERS];
	uint32_t n;
	uint32_t carriers[BOND_MEMBERS]; /* indices in `members` of those that carry frames */
	uint32_t n_carriers;             /* at least 1 */
	uint32_t moves;                  /* how often the carriers have changed */
	uint64_t busy_at;                /* ns; of the last RoCE frame */
	uint64_t round_at;               /* ns; when the current round of probes began; 0 = none */
	bool urgent;                     /* the next round begins at once */
	uint32_t dark;                   /* successive rounds without any answer */
	uint64_t announced_at;           /* ns */
	uint32_t announcements;          /* number of announcements that are still due */
};

/* --- Setting up and running */

/* Makes a bond of the uplinks in the mask; names[i] and links[i] belong to uplink i. */
void bond_init(struct bond *b, uint64_t now, enum bond_mode mode, uint32_t mask,
	       const char *const *names, const bool *links, const struct bond_ops *ops, void *ctx);
void bond_set_link(struct bond *b, uint64_t now, uint32_t uplink, bool up);
/* Handles expired timers; returns the next deadline. Moves frames to other members if needed. */
uint64_t bond_tick(struct bond *b, uint64_t now);

/* --- Frames. `uplink`: an index among all uplinks. */

static inline bool bond_has(const struct bond *b, uint32_t uplink)
{
	return b->mask >> uplink & 1;
}

/* The bond's port for members, else the uplink itself: MACs and neighbours are learned by it. */
static inline uint32_t bond_port_of(const struct bond *b, uint32_t uplink)
{
	return bond_has(b, uplink) ? b->port : uplink;
}

/* Returns the uplink that carries a flow. Any number identifies a flow. */
uint32_t bond_choose(const struct bond *b, uint32_t flow);
/* A bit for each member that carries frames, by its index in `members`. */
uint32_t bond_carrier_mask(const struct bond *b);
/*
 * Returns the member by which multicast frames leave. The switch drops the multicast frames that
 * other members receive, except for ARP and ND.
 */
uint32_t bond_lead(const struct bond *b);
bool bond_carries(const struct bond *b, uint32_t uplink);
/*
 * Call it when the switch, or processes by their own packet sockets, have sent RoCE frames: for
 * BOND_BUSY_NS the bond is not idle.
 */
static inline void bond_note_sent(struct bond *b, uint64_t now)
{
	b->busy_at = now;
}
/*
 * Call it when the interface of this member has received frames, perhaps RoCE frames to packet
 * sockets of processes. Like RoCE frames, they excuse a round without an answer.
 */
void bond_note_heard(struct bond *b, uint64_t now, uint32_t uplink);
/*
 * Call it when a station has answered a probe through this member: its unanswered rounds are
 * forgotten.
 */
void bond_note_answer(struct bond *b, uint64_t now, uint32_t uplink);
/*
 * Call it when a RoCE frame to the host has arrived by this member; `response`: it is an RC
 * response. In mode active-backup a response counts as an answer to a probe. In mode balance it
 * does not, because the request may have left by another member.
 */
void bond_note_roce(struct bond *b, uint64_t now, uint32_t uplink, bool response);
/*
 * Call it when a frame to the host came by a member that does not carry frames, because a bridge
 * has learned a wrong way. Announces the host's addresses again, at most once in BOND_ROUND_NS.
 */
void bond_note_astray(struct bond *b, uint64_t now);

/* --- For reports */

/* Returns the member's role: "active" if it carries frames and has a link, else "backup",
 * "recovering", "silent" or "down" by its health. */
const char *bond_role(const struct bond *b, uint32_t uplink);
/*
 * How often other members took over because this one failed; bond_failovers: the sum of all
 * members.
 */
uint64_t bond_failovers_of(const struct bond *b, uint32_t uplink);
uint64_t bond_failovers(const struct bond *b);

#endif
