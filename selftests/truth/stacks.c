// SPDX-License-Identifier: MIT
/*
 * A program whose stack is hard to unwind: without frame pointers, with alloca, a realigned
 * frame, recursion, tail calls, callbacks of libc, calls through the PLT, longjmp and signals, and a
 * constructor that _init calls.
 * selftests/host/test_unwind_walker.c executes it one instruction at a time.
 */
#include <alloca.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE	__attribute__((noinline, noclone))

static jmp_buf back;
static volatile int handled;
static volatile double sum;

static NOINLINE int leaf(int n)
{
	return n * 3 + handled;
}

/* As libcrypto does: _init calls it, whose beginning and end are those of the C library. */
#if defined(__x86_64__) || defined(__i386__)
__asm__(".pushsection .init, \"ax\", %progbits\n\tcall constructor\n\t.popsection");

__attribute__((used, visibility("hidden"))) void constructor(void);
void constructor(void)
{
	sum = leaf((int)sum);
}
#endif

static NOINLINE int with_alloca(int n)
{
	char *room = alloca(n * 16 + 1);

	memset(room, n, n * 16 + 1);
	return leaf(room[n]) + room[0];
}

static NOINLINE int realigned(int n)
{
	_Alignas(64) volatile char room[192];

	for (unsigned int i = 0; i < sizeof(room); i++)
		room[i] = (char)(i * n);
	return room[n] + with_alloca(n & 15);
}

static NOINLINE int deep(int n)
{
	volatile int room[8] = { n };

	return n ? deep(n - 1) + room[0] : leaf(n);
}

static NOINLINE int tail(int n)
{
	if (n > 3)
		return tail(n - 1) * 1;
	return realigned(n);
}

static int compare(const void *a, const void *b)
{
	return leaf(*(const int *)a) - leaf(*(const int *)b);
}

static NOINLINE int sorted(int n)
{
	int numbers[24];

	for (int i = 0; i < 24; i++)
		numbers[i] = (i * 7 + n) % 24;
	qsort(numbers, 24, sizeof(int), compare);
	return numbers[n % 24];
}

static NOINLINE void jump(int n)
{
	volatile int room[4] = { n };

	if (n)
		jump(n - 1);
	longjmp(back, 1 + room[0]);
}

static void handler(int number, siginfo_t *info, void *context)
{
	handled += number;
	sum += info && context ? leaf(handled) : 0;
}

/* Ends with a call that does not return. */
static NOINLINE __attribute__((noreturn)) void leave(int n)
{
	fflush(stdout);
	exit(n);
}

/* With an argument: no signals. */
int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	struct timespec now;
	char text[128];
	int n = 0;

	(void)argc;
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 4; i++) {
		n += tail(8 + i) + deep(12) + sorted(i);
		snprintf(text, sizeof(text), "%d %s %.3f", n, "text", i * 1.5);
		sum += strtod(text, NULL) + pow(i, 1.5) + sin(i);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (!setjmp(back))
			jump(4);
		if (!argv[1])
			raise(SIGUSR1);
		free(realloc(malloc(100 * i + 1), 5000));
	}
	printf("%d %d\n", n, handled);
	leave(0);
}
