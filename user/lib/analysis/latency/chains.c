// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "analysis/latency/chains.h"
#include "base/array.h"

void kb_chains_init(struct kb_chains *chains, uint32_t most)
{
	*chains = (struct kb_chains){ .free = KB_CHAIN_NONE, .most = most, .limit = most };
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

void kb_chains_drop(struct kb_chains *chains, uint32_t link)
{
	while (is_link(link) && !--chains->links[link].users) {
		uint32_t before = chains->links[link].before;

		chains->links[link].before = chains->free;
		chains->free = link;
		chains->used--;
		link = before;
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
	if (chains->used >= chains->limit)
		forget_half(chains);
	if (chains->free != KB_CHAIN_NONE)
		return true;
	return chains->nr < KB_CHAIN_CUT &&
	       KB_ARRAY_ROOM(chains->links, chains->room, (size_t)chains->nr + 1);
}

/* Make @link part of the link before it, if they are alike and nobody else uses that one. */
static bool extend(struct kb_chains *chains, uint32_t before, const struct kb_link *link)
{
	struct kb_chain_link *last = is_link(before) ? &chains->links[before] : NULL;

	if (!last || last->users != 1 || !kb_link_goes_on(&last->link, link))
		return false;
	last->link.end = link->end;
	last->link.ticks = link->ticks;
	return true;
}

uint32_t kb_chains_add(struct kb_chains *chains, uint32_t before, const struct kb_link *link)
{
	uint32_t number;

	if (extend(chains, before, link))
		return before;
	if (!make_room(chains))
		return KB_CHAIN_NONE;
	number = chains->free;
	if (number == KB_CHAIN_NONE)
		number = chains->nr++;
	else
		chains->free = chains->links[number].before;
	chains->links[number] = (struct kb_chain_link){
		.before = before, .users = 1, .link = *link,
	};
	chains->used++;
	return number;
}
