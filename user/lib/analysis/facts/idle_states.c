// SPDX-License-Identifier: MIT
/*
 * Linux compares the length of each halt with the states that are enabled, in
 * cpuidle_enter_state(): a state was too deep if the halt was shorter than its target residency,
 * and not deep enough if the halt without the time to leave the state was as long as that of the
 * next deeper one. Linux reads its clock beside the records, so close to a limit its word counts:
 * then the next state on that side would have paid.
 */
#include <errno.h>
#include <string.h>

#include "analysis/facts/idle_states.h"

#define FACT		"kbarman.idle."
#define STATES_MAX	256	/* a record has 8 bits for one */
#define ROWS_MAX	65536	/* more than machines have; a file may claim it */
#define EVERY_CPU	UINT32_MAX

struct row {
	uint64_t key;			/* kb_idle_state_key() */
	uint64_t residency, latency;	/* ns */
	bool disabled;
	const char *name;
};

/* Parse a decimal number at *@text. Moves *@text behind it and behind @end, if that follows. */
static bool number(const char **text, char end, uint32_t *value)
{
	uint64_t n = 0;
	const char *at = *text;

	if (*at < '0' || *at > '9')
		return false;
	for (; *at >= '0' && *at <= '9'; at++) {
		n = n * 10 + (uint64_t)(*at - '0');
		if (n > UINT32_MAX)
			return false;
	}
	if (*at != end)
		return false;
	*value = (uint32_t)n;
	*text = at + 1;
	return true;
}

/* "STATE=" or "STATE.CPU=" */
static bool parse_key(const char **fact, uint32_t *core, uint32_t *state)
{
	*core = EVERY_CPU;
	if (number(fact, '=', state))
		return *state < STATES_MAX;
	return number(fact, '.', state) && *state < STATES_MAX && number(fact, '=', core) &&
	       *core != EVERY_CPU;
}

static int take_fact(struct kb_idle_states *states, const char *fact)
{
	uint32_t core, state, residency, latency, disabled;
	struct row *row;
	uint64_t key;

	if (!parse_key(&fact, &core, &state) || !number(&fact, ',', &residency) ||
	    !number(&fact, ',', &latency) || !number(&fact, ',', &disabled) ||
	    states->rows.nr >= ROWS_MAX)
		return 0;
	key = kb_idle_state_key(core, (int)state);
	row = kb_table_get(&states->rows, &key);
	if (!row)
		return -ENOMEM;
	row->residency = residency * 1000ULL;
	row->latency = latency * 1000ULL;
	row->disabled = disabled;
	row->name = fact;
	return 0;
}

int kb_idle_states_create(struct kb_idle_states *states, const struct kb_header *header)
{
	const char *at = header->strings, *end;
	int ret = 0;

	kb_table_init(&states->rows, sizeof(struct row), 1);
	if (!at)
		return 0;
	for (end = at + header->string_table_length; !ret && at < end; at += strlen(at) + 1)
		if (strncmp(at, FACT, strlen(FACT)) == 0)
			ret = take_fact(states, at + strlen(FACT));
	return ret;
}

void kb_idle_states_release(struct kb_idle_states *states)
{
	kb_table_release(&states->rows);
}

static const struct row *find(const struct kb_idle_states *states, uint32_t core, int state)
{
	uint64_t own = kb_idle_state_key(core, state);
	uint64_t every = kb_idle_state_key(EVERY_CPU, state);
	const struct row *row;

	if (state < 0 || !states->rows.nr)
		return NULL;
	row = kb_table_find(&states->rows, &own);
	return row ? row : kb_table_find(&states->rows, &every);
}

struct kb_text kb_idle_states_name(const struct kb_idle_states *states, uint32_t core, int state)
{
	const struct row *row = find(states, core, state);

	return kb_text(row ? row->name : NULL);
}

uint64_t kb_idle_states_residency(const struct kb_idle_states *states, uint32_t core, int state)
{
	const struct row *row = find(states, core, state);

	return row ? row->residency : 0;
}

static int shallower(const struct kb_idle_states *states, uint32_t core, int state, uint64_t ns)
{
	int least = KB_STATE_UNKNOWN;

	while (state-- > 0) {
		const struct row *row = find(states, core, state);

		if (!row)
			return KB_STATE_UNKNOWN;
		if (row->disabled)
			continue;
		if (row->residency <= ns)
			return state;
		least = state;
	}
	return least;
}

static int deeper(const struct kb_idle_states *states, uint32_t core, int state, uint64_t ns)
{
	int deepest = KB_STATE_UNKNOWN;
	const struct row *row;

	while ((row = find(states, core, ++state))) {
		if (row->disabled)
			continue;
		if (deepest != KB_STATE_UNKNOWN && row->residency > ns)
			break;
		deepest = state;
	}
	return deepest;
}

int kb_idle_states_paid(const struct kb_idle_states *states, uint32_t core, int state,
			bool too_shallow, uint64_t ns)
{
	const struct row *row = find(states, core, state);

	if (!row)
		return KB_STATE_UNKNOWN;
	if (!too_shallow)
		return shallower(states, core, state, ns);
	return deeper(states, core, state, ns > row->latency ? ns - row->latency : 0);
}
