// SPDX-License-Identifier: MIT
/*
 * States of tasks. Linux changes the bits of states between versions, so a capture contains the
 * meaning that they had in the recorded kernel.
 */
#include <string.h>

#include "format/barman_inside.h"

/* Captures without the fact have only the lowest byte, as in Linux from 4.14 on. */
static const struct kb_state low_byte[] = {
	{ 0x02, 'D' }, { 0x01, 'S' }, { 0x04, 'T' }, { 0x08, 't' },
	{ 0x40, 'P' }, { 0x20, 'Z' }, { 0x10, 'X' }, { 0x80, 'X' },
};

/* Letters of Linux, and their bits in the trace event sched_switch. */
static const struct kb_state ftrace[] = {
	{ 0x01, 'S' }, { 0x02, 'D' }, { 0x04, 'T' }, { 0x08, 't' },
	{ 0x10, 'X' }, { 0x20, 'Z' }, { 0x40, 'P' }, { 0x80, 'I' },
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
					       sizeof(low_byte) / sizeof(low_byte[0]);

	if (state <= 0)
		return state ? '?' : 'R';
	for (uint32_t i = 0; i < count; i++)
		if ((state & states[i].bits) == states[i].bits)
			return states[i].letter;
	return '?';
}

uint32_t kb_state_ftrace(const struct kb_header *header, int state)
{
	char letter = kb_state_letter(header, state);

	for (size_t i = 0; i < sizeof(ftrace) / sizeof(ftrace[0]); i++)
		if (ftrace[i].letter == letter)
			return ftrace[i].bits;
	return ftrace[0].bits;
}
