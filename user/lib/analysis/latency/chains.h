/* SPDX-License-Identifier: MIT */
/*
 * Chains of links that share their beginnings: each link knows the one before it, and perhaps a
 * chain in which its time was spent. What no chain needs any more is given back. If there are too
 * many links, all chains lose their older half. Each keeps its last link, so the more chains are
 * held, the more links there may be.
 */
#ifndef KB_LIB_ANALYSIS_LATENCY_CHAINS_H
#define KB_LIB_ANALYSIS_LATENCY_CHAINS_H

#include <string.h>

#include <kbarman/path.h>

#define KB_CHAIN_NONE	UINT32_MAX	/* no link: the chain begins */
#define KB_CHAIN_CUT	(UINT32_MAX - 1)	/* the links before are gone */

struct kb_chains {
	struct kb_chain_link {
		uint32_t before;	/* number of the link before it, or one of the above */
		uint32_t through;	/* the chain where its time was spent, or KB_CHAIN_NONE */
		uint32_t users;		/* links and holders; 0: free */
		struct kb_link link;
	} *links;
	uint32_t nr, room;
	uint32_t free;			/* a list by `before`; KB_CHAIN_NONE: empty */
	uint32_t used;
	uint32_t most, limit;		/* links; the second one grows with the number of chains */
	int64_t needed;			/* ns: what ended before may be forgotten at any time */
};

/* Whether @next is more of the same. */
static inline bool kb_link_goes_on(const struct kb_link *link, const struct kb_link *next)
{
	return link->end == next->start && link->kind == next->kind &&
	       link->task_id == next->task_id && link->by.kind == next->by.kind &&
	       link->by.id == next->by.id && link->by.behind == next->by.behind &&
	       link->waiter == next->waiter && memcmp(&link->object, &next->object, sizeof(next->object)) == 0;
}

static inline uint64_t kb_link_ns(const struct kb_link *link)
{
	return (uint64_t)link->end - (uint64_t)link->start;
}

/*
 * What wakes the task: by this, links are added up, not by what was in front of the task in
 * queues.
 */
static inline struct kb_origin kb_link_waker(const struct kb_link *link)
{
	const struct kb_origin nobody = { .kind = KB_TILE_UNKNOWN };

	return link->kind == KB_LINK_WAIT ? link->by : nobody;
}

/* At most @most links, at least 2; more only if more than half as many chains are held. */
void kb_chains_init(struct kb_chains *chains, uint32_t most);
void kb_chains_release(struct kb_chains *chains);

/*
 * Put @link behind @before, which the caller holds, and whose hold passes to the new link. Returns
 * the number of the link, which the caller holds, or KB_CHAIN_NONE without memory; then @before is
 * held as before.
 */
uint32_t kb_chains_add(struct kb_chains *chains, uint32_t before, const struct kb_link *link);

/*
 * The same for a time that was spent in the chain @through, which is held from now on. It is never
 * joined.
 */
uint32_t kb_chains_add_through(struct kb_chains *chains, uint32_t before,
			       const struct kb_link *link, uint32_t through);

/* Hold @link once more, and let it go. It may be one of the two that are no links. */
uint32_t kb_chains_hold(struct kb_chains *chains, uint32_t link);
void kb_chains_drop(struct kb_chains *chains, uint32_t link);

/* Forget what ended at @until or before. */
void kb_chains_forget(struct kb_chains *chains, int64_t until);

#endif
