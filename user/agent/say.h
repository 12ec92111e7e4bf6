/* SPDX-License-Identifier: MIT */
/*
 * The agent's messages, a line each on standard error. For the journal each begins with its level in
 * angle brackets.
 */
#ifndef KB_AGENT_SAY_H
#define KB_AGENT_SAY_H

enum agent_level { AGENT_ERROR = 3, AGENT_WARNING = 4, AGENT_NOTICE = 5, AGENT_INFO = 6 };

void agent_say(enum agent_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
