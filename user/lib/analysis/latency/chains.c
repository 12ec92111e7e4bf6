// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "analysis/latency/chains.h"
#include "base/array.h"

void kb_chains_init(struct kb_chains *chains, uint32_t most)
{
	*chains = (struct kb_chains){
		.free = KB_CHAIN_NONE, .most = most, .limit = most, .needed = INT64_MIN,
	};
}

void kb_chains_release(struct kb_chains *chains)
{
	free(chains->links);
	kb_chains_init(chains, chains->most);
}

static bool is_link(uint32_t link)
{
	return link < KB_CHAIN_CUT;
}

uint32_t kb_chains_hold(struct kb_chains *chains, uint32_t link)
{
	if (is_link(link))
		chains->links[link].users++;
	return link;
}

static void give_back(struct kb_chains *chains, uint32_t link)
{
	chains->links[link].before = chains->free;
	chains->free = link;
	chains->used--;
}

void kb_chains_drop(struct kb_chains *chains, uint32_t link)
{
	struct kb_chain_link *links = chains->links;
	uint32_t rest = KB_CHAIN_NONE;	/* links whose other chain is not dropped yet: a list */

	for (;;) {
		while (is_link(link) && !--links[link].users) {
			uint32_t before = links[link].before;

			if (is_link(links[link].through)) {
				links[link].before = rest;
				rest = link;
			} else {
				give_back(chains, link);
			}
			link = before;
		}
		if (rest == KB_CHAIN_NONE)
			break;
		link = rest;
		rest = links[link].before;
		give_back(chains, link);
		link = links[link].through;
	}
}

void kb_chains_forget(struct kb_chains *chains, int64_t until)
{
	uint32_t i, before;

	for (i = 0; i < chains->nr; i++) {
		before = chains->links[i].before;
		if (!chains->links[i].users || !is_link(before) ||
		    chains->links[before].link.end > until)
			continue;
		chains->links[i].before = KB_CHAIN_CUT;
		kb_chains_drop(chains, before);
	}
}

static int compare(const void *left, const void *right)
{
	const int64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* The time before which about half of the links ended that others have before them. */
static int64_t middle(const struct kb_chains *chains)
{
	int64_t ends[1024] = { 0 };
	uint32_t step = chains->nr / 1024 + 1, nr = 0, i;

	for (i = 0; i < chains->nr; i += step)
		if (chains->links[i].users && is_link(chains->links[i].before))
			ends[nr++] = chains->links[chains->links[i].before].link.end;
	qsort(ends, nr, sizeof(ends[0]), compare);
	return nr ? ends[nr / 2] : INT64_MAX;
}

/*
 * Forget the older half. That takes a look at every link, so a quarter of those that are left have
 * to come before the next time.
 */
static void forget_half(struct kb_chains *chains)
{
	uint64_t limit;

	kb_chains_forget(chains, middle(chains));
	limit = (uint64_t)chains->used + chains->used / 4 + 1;
	chains->limit = limit < chains->most ? chains->most :
			limit < KB_CHAIN_CUT ? (uint32_t)limit : KB_CHAIN_CUT;
}

/* Make room for one more link. False: no memory. */
static bool make_room(struct kb_chains *chains)
{
	if (chains->used >= chains->limit) {
		kb_chains_forget(chains, chains->needed);
		if (chains->used > chains->limit - chains->limit / 4)
			forget_half(chains);
	}
	if (chains->free != KB_CHAIN_NONE)
		return true;
	return chains->nr < KB_CHAIN_CUT &&
	       KB_ARRAY_ROOM(chains->links, chains->room, (size_t)chains->nr + 1);
}

/* Make @link part of the link before it, if they are alike and nobody else uses that one. */
static bool extend(struct kb_chains *chains, uint32_t before, const struct kb_link *link)
{
	struct kb_chain_link *last = is_link(before) ? &chains->links[before] : NULL;

	if (!last || last->users != 1 || last->through != KB_CHAIN_NONE ||
	    !kb_link_goes_on(&last->link, link))
		return false;
	last->link.end = link->end;
	last->link.ticks = link->ticks;
	return true;
}

uint32_t kb_chains_add_through(struct kb_chains *chains, uint32_t before,
			       const struct kb_link *link, uint32_t through)
{
	uint32_t number;

	if (!make_room(chains))
		return KB_CHAIN_NONE;
	number = chains->free;
	if (number == KB_CHAIN_NONE)
		number = chains->nr++;
	else
		chains->free = chains->links[number].before;
	chains->links[number] = (struct kb_chain_link){
		.before = before, .through = kb_chains_hold(chains, through),
		.users = 1, .link = *link,
	};
	chains->used++;
	return number;
}

uint32_t kb_chains_add(struct kb_chains *chains, uint32_t before, const struct kb_link *link)
{
	if (extend(chains, before, link))
		return before;
	return kb_chains_add_through(chains, before, link, KB_CHAIN_NONE);
}
