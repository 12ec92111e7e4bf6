// SPDX-License-Identifier: MIT
/*
 * States of tasks. Linux changes the bits of states between versions, so a capture contains the
 * meaning that they had in the recorded kernel.
 */
#include <string.h>

#include "base/array.h"
#include "format/barman/inside.h"

/* Further bits of task_struct.__state and exit_state in Linux from 4.14 on. */
enum { EXIT_DEAD = 0x10, EXIT_ZOMBIE = 0x20, TASK_PARKED = 0x40, TASK_DEAD = 0x80 };

/* Captures without the fact have only the lowest byte, as in Linux from 4.14 on. */
static const struct kb_state low_byte[] = {
	{ KB_TASK_UNINTERRUPTIBLE, KB_LETTER_DISK_SLEEP },
	{ KB_TASK_INTERRUPTIBLE, KB_LETTER_SLEEPING },
	{ KB_TASK_STOPPED, KB_LETTER_STOPPED },
	{ KB_TASK_TRACED, KB_LETTER_TRACED },
	{ TASK_PARKED, KB_LETTER_PARKED },
	{ EXIT_ZOMBIE, KB_LETTER_ZOMBIE },
	{ EXIT_DEAD, KB_LETTER_DEAD },
	{ TASK_DEAD, KB_LETTER_DEAD },
};

static const struct kb_state ftrace[] = {
	{ KB_FTRACE_SLEEPING, KB_LETTER_SLEEPING },
	{ KB_FTRACE_DISK_SLEEP, KB_LETTER_DISK_SLEEP },
	{ KB_FTRACE_STOPPED, KB_LETTER_STOPPED },
	{ KB_FTRACE_TRACED, KB_LETTER_TRACED },
	{ KB_FTRACE_DEAD, KB_LETTER_DEAD },
	{ KB_FTRACE_ZOMBIE, KB_LETTER_ZOMBIE },
	{ KB_FTRACE_PARKED, KB_LETTER_PARKED },
	{ KB_FTRACE_IDLE, KB_LETTER_IDLE },
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/*
 * Parse "I402,D2,S1": letters with their bits in hexadecimal. Parsing ends at the first damaged
 * one.
 */
void barman_read_states(struct kb_header *header, const char *fact)
{
	header->wide_states = true;
	header->nr_states = 0;
	while (is_letter(*fact) && header->nr_states < KB_STATES_MAX) {
		char letter = *fact++;
		uint32_t bits = 0;

		for (; hex_digit(*fact) >= 0 && bits <= 0xfff; fact++)
			bits = bits * 16 + (uint32_t)hex_digit(*fact);
		if (!bits || (*fact && *fact != ','))
			return;
		header->states[header->nr_states++] = (struct kb_state){ (uint16_t)bits, letter };
		if (*fact)
			fact++;
	}
}

char kb_state_letter(const struct kb_header *header, int state)
{
	const struct kb_state *states = header->wide_states ? header->states : low_byte;
	uint32_t count = header->wide_states ? header->nr_states :
					       ARRAY_SIZE(low_byte);

	if (state <= 0)
		return state ? KB_LETTER_UNKNOWN : KB_LETTER_RUNNING;
	for (uint32_t i = 0; i < count; i++)
		if ((state & states[i].bits) == states[i].bits)
			return states[i].letter;
	return KB_LETTER_UNKNOWN;
}

uint32_t kb_state_ftrace(const struct kb_header *header, int state)
{
	char letter = kb_state_letter(header, state);

	for (size_t i = 0; i < ARRAY_SIZE(ftrace); i++)
		if (ftrace[i].letter == letter)
			return ftrace[i].bits;
	return KB_FTRACE_SLEEPING;
}
