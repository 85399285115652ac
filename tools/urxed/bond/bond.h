/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A bond: several uplinks (--uplink, its members) that serve the host as one (--bond). The switch
 * asks which member carries a frame; the daemon's main loop reports links and runs the timers.
 *
 * active-backup: one member carries all frames: the first of the command line if it is healthy.
 * balance: all healthy members carry frames; each flow stays on one member.
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
 * A round sends probes through all members with a link. It begins when one of them is due.
 *
 * BOND_FRESH_NS: a member that carries frames is due this long after its last probe or answer, if
 * RoCE frames were sent or received within BOND_BUSY_NS.
 */
#define BOND_FRESH_NS 20000000ull
/* Time that a round waits for answers to its probes. */
#define BOND_ROUND_NS 20000000ull
/*
 * A round without an answer does not count against a member if RoCE frames arrived through it:
 * answers to probes may wait in a long queue behind these frames, or may be dropped there. After
 * this number of such rounds in succession, further ones count, because frames may arrive although
 * the host's own do not get through.
 */
#define BOND_EXCUSED_ROUNDS 50
/* As BOND_FRESH_NS, for a member that has failed and is not healthy again yet. */
#define BOND_RETURN_NS 100000000ull
/* As BOND_FRESH_NS, for healthy members that carry no frames, or that carry frames but are idle. */
#define BOND_IDLE_NS 1000000000ull
/* The members that carry frames count as idle if the last RoCE frame was longer ago. */
#define BOND_BUSY_NS 5000000000ull
/* Number of announcements of the host's addresses after other members have taken over, and the
 * interval between them. */
#define BOND_ANNOUNCEMENTS   3
#define BOND_ANNOUNCEMENT_NS 50000000ull

enum bond_mode { BOND_NONE, BOND_ACTIVE_BACKUP, BOND_BALANCE };

/* Parses "active-backup" or "balance"; returns BOND_NONE for another text. */
enum bond_mode bond_mode_parse(const char *text);

struct bond_ops {
	/* Sends probes through a member, given by its index among all uplinks. Returns false if it
	 * knows no station that could answer. */
	bool (*probe)(void *ctx, uint32_t member);
	/* Announces the host's addresses through a member, given by its index among all uplinks. So
	 * bridges learn to send the host's frames to this member. */
	void (*announce)(void *ctx, uint32_t member);
};

struct bond_member {
	uint32_t uplink;  /* index among all uplinks */
	const char *name; /* for the log */
	struct bond_health health;
	uint64_t asked_at;    /* time of the last probe, ns */
	uint64_t answered_at; /* time of the last answer, ns */
	uint64_t heard_at;    /* time of the last RoCE frame to the host, or bond_note_heard, ns */
	uint32_t excused;     /* successive rounds with RoCE frames but without an answer */
	uint64_t failovers;   /* how often other members took over because this one failed */
};

struct bond {
	/* BOND_NONE: the uplinks are independent, and the other fields of struct bond are not
	 * valid. */
	enum bond_mode mode;
	const struct bond_ops *ops;
	void *ctx;
	uint32_t mask; /* the members, by index among all uplinks */
	uint32_t port; /* index of the first member, which stands for the bond */
	struct bond_member members[BOND_MEMBERS];
	uint32_t n;
	uint32_t carriers[BOND_MEMBERS]; /* the members that carry frames, by index in `members` */
	uint32_t n_carriers;             /* at least 1 */
	uint32_t moves;                  /* how often the carriers have changed */
	uint64_t busy_at;                /* time of the last RoCE frame, ns */
	uint64_t round_at;               /* start of the current round of probes, ns; 0 = none */
	bool urgent;                     /* the next round has to begin at once */
	uint32_t unanswered_rounds;      /* successive rounds in which no member got an answer */
	uint64_t announced_at;           /* time of the last announcements, ns */
	uint32_t announcements;          /* number of announcements that are still due */
};

/* --- Setting up and running */

/* Makes a bond of the uplinks in the bit mask; names[i] and links[i] belong to uplink i. */
void bond_init(struct bond *b, uint64_t now, enum bond_mode mode, uint32_t mask,
	       const char *const *names, const bool *links, const struct bond_ops *ops, void *ctx);
void bond_set_link(struct bond *b, uint64_t now, uint32_t uplink, bool up);
/* Handles expired timers; returns the time of the next one in ns. Lets other members carry frames
 * if they are better now. */
uint64_t bond_tick(struct bond *b, uint64_t now);

/* --- Frames. `uplink`: an index among all uplinks. */

static inline bool bond_has(const struct bond *b, uint32_t uplink)
{
	return b->mask >> uplink & 1;
}

/* Returns the bond's port for a member, else the uplink itself. The host knows MACs and neighbours
 * by this port. */
static inline uint32_t bond_port_of(const struct bond *b, uint32_t uplink)
{
	return bond_has(b, uplink) ? b->port : uplink;
}

/* Returns the uplink that carries the flow with this number; any number is valid. */
uint32_t bond_choose(const struct bond *b, uint32_t flow);
/* Returns a bit mask of the members that carry frames, by index in `members`. */
uint32_t bond_carrier_mask(const struct bond *b);
/*
 * Returns the member by which multicast frames leave. The switch drops the multicast frames that
 * other members receive, except for ARP and ND in mode balance.
 */
uint32_t bond_lead(const struct bond *b);
bool bond_carries(const struct bond *b, uint32_t uplink);
/* Call it when the switch, or processes by their own packet sockets, have sent RoCE frames: the
 * bond then counts as busy for BOND_BUSY_NS. */
static inline void bond_note_sent(struct bond *b, uint64_t now)
{
	b->busy_at = now;
}
/*
 * Call it when the interface of this member has received frames that may have been RoCE frames for
 * packet sockets of processes. Like RoCE frames at the switch, they excuse a round without an
 * answer.
 */
void bond_note_heard(struct bond *b, uint64_t now, uint32_t uplink);
/* Call it when a station has answered a probe through this member: the member's unanswered rounds
 * no longer count. */
void bond_note_answer(struct bond *b, uint64_t now, uint32_t uplink);
/*
 * Call it when a RoCE frame to the host has arrived through this member; `response`: it is an RC
 * response. In mode active-backup a response counts as an answer to a probe. In mode balance it
 * does not, because the request may have left through another member.
 */
void bond_note_roce(struct bond *b, uint64_t now, uint32_t uplink, bool response);
/*
 * Call it when a frame to the host has come through a member that carries no frames, so that a
 * bridge must have learned a wrong port. Announces the host's addresses again, at most once in
 * BOND_ROUND_NS.
 */
void bond_note_astray(struct bond *b, uint64_t now);

/* --- For reports */

/* Returns the member's role: "active" if it carries frames and has a link; otherwise, by its
 * health, "backup", "recovering", "silent" or "down". */
const char *bond_role(const struct bond *b, uint32_t uplink);
/* Return how often other members took over because this one failed; bond_failovers returns the sum
 * of all members. */
uint64_t bond_failovers_of(const struct bond *b, uint32_t uplink);
uint64_t bond_failovers(const struct bond *b);

#endif
