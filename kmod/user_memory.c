// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/string.h>

#include "compat/mm.h"
#include "user_memory.h"

bool kbarman_read_old_page(void *to, unsigned long from, size_t size)
{
	struct page *page;
	bool low;

	/* There nobody may drop what could be the last reference to a page. */
	if (in_nmi() || IS_ENABLED(CONFIG_PREEMPT_RT) || from >= KBARMAN_TASK_SIZE_MAX ||
	    !get_user_page_fast_only(from, 0, &page))
		return false;
	low = !PageHighMem(page);
	if (low)
		memcpy(to, page_address(page) + offset_in_page(from), size);
	put_page(page);
	return low;
}
