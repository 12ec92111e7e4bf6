// SPDX-License-Identifier: MIT
/*
 * A program that writes marks into the recording. It needs only kbarman/mark.h:
 *
 *	cc marks.c -o marks && kbarman record -- ./marks && kbarman script
 */
#include <stdio.h>

#include <kbarman/mark.h>

static struct kb_mark_channel phase = KB_MARK_CHANNEL(1, "phase");
static struct kb_mark_series found = KB_MARK_SERIES("primes", "found", "primes");

static int is_prime(unsigned int n)
{
	for (unsigned int i = 2; i * i <= n; i++)
		if (n % i == 0)
			return 0;
	return n > 1;
}

int main(void)
{
	unsigned int primes = 0;

	for (unsigned int million = 0; million < 3; million++) {
		char text[32];

		snprintf(text, sizeof(text), "million %u", million + 1);
		kb_mark_on(&phase, text);
		for (unsigned int n = 0; n < 1000000; n++)
			primes += is_prime(million * 1000000 + n);
		kb_mark_value(&found, primes);
	}
	kb_mark_off(&phase);
	kb_mark_bookmark(KB_MARK_RGB(0x00a000), "all found");
	printf("%u primes\n", primes);
	return 0;
}
