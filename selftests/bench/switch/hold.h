/* SPDX-License-Identifier: MIT */
/* What the programs that keep a tracer running share. */
#ifndef KBARMAN_BENCH_HOLD_H
#define KBARMAN_BENCH_HOLD_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void __attribute__((noreturn)) die(const char *what)
{
	perror(what);
	exit(1);
}

/* The tracer runs: say so, and sleep until standard input ends. */
static inline void hold(void)
{
	char byte;

	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

#endif /* KBARMAN_BENCH_HOLD_H */
