// SPDX-License-Identifier: GPL-2.0-only
/* 6.12 (1e4c64b71c9b) added memory that is reserved by name: reserve_mem=. */
#include <linux/mm.h>

static __maybe_unused int compat(phys_addr_t *start, phys_addr_t *size)
{
	return reserve_mem_find_by_name("name", start, size);
}
