/* SPDX-License-Identifier: GPL-2.0-only */
/* Code addresses as the CPU would fetch from them. */
#ifndef KBARMAN_PLAIN_ADDRESS_H
#define KBARMAN_PLAIN_ADDRESS_H

#include <linux/compiler.h>

/* A code @address without a pointer authentication code. Context: any. */
static __always_inline unsigned long kbarman_plain_address(unsigned long address)
{
#ifdef CONFIG_ARM64
	/* xpaclri, which is a nop on CPUs without pointer authentication. */
	register unsigned long link asm("x30") = address;

	asm("hint #7" : "+r" (link));
	return link;
#else
	return address;
#endif
}

#endif /* KBARMAN_PLAIN_ADDRESS_H */
