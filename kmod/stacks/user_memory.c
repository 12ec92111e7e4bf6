// SPDX-License-Identifier: GPL-2.0-only
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "compat/mm.h"
#include "stacks/user_memory.h"

#ifdef CONFIG_S390
/*
 * Whether the entries allow the program to read @address. Before the CPU finds a page, Linux marks
 * entries of old pages and those of PROT_NONE alike. A bit for software tells them apart, which
 * get_user_page_fast_only() looks at only with CONFIG_NUMA_BALANCING. Interrupts are off: nobody
 * frees tables then.
 */
static bool page_entry_allows(unsigned long address)
{
	pgd_t *pgd = pgd_offset(current->mm, address);
	p4d_t *p4d;
	pud_t *pud;
	pmd_t *pmd, middle;

	if (pgd_none(*pgd))
		return false;
	p4d = p4d_offset(pgd, address);
	if (p4d_none(*p4d))
		return false;
	pud = pud_offset(p4d, address);
	if (pud_none(*pud) || pud_val(*pud) & _REGION3_ENTRY_LARGE)
		return false;
	pmd = pmd_offset(pud, address);
	middle = READ_ONCE(*pmd);
	if (pmd_none(middle))
		return false;
	if (pmd_val(middle) & _SEGMENT_ENTRY_LARGE)
		return pmd_val(middle) & _SEGMENT_ENTRY_READ;
	return pte_val(READ_ONCE(*pte_offset_kernel(&middle, address))) & _PAGE_READ;
}

static bool page_is_readable(unsigned long address)
{
	unsigned long flags;
	bool readable;

	local_irq_save(flags);
	readable = page_entry_allows(address);
	local_irq_restore(flags);
	return readable;
}
#else
/* get_user_page_fast_only() refuses what the CPU would refuse, but for the mark of age. */
static bool page_is_readable(unsigned long address)
{
	return true;
}
#endif

/* Linux looks at user memory in an interrupt only where faults are off, and debug kernels say so. */
static bool page_get(unsigned long address, struct page **page)
{
	bool got;

	pagefault_disable();
	got = get_user_page_fast_only(address, 0, page);
	pagefault_enable();
	return got;
}

bool kbarman_read_old_page(void *to, unsigned long from, size_t size)
{
	struct page *page;
	bool low;

	/* There nobody may drop what could be the last reference to a page. */
	if (in_nmi() || IS_ENABLED(CONFIG_PREEMPT_RT) || from >= KBARMAN_TASK_SIZE_MAX ||
	    !page_is_readable(from) || !page_get(from, &page))
		return false;
	low = !PageHighMem(page);
	if (low)
		memcpy(to, page_address(page) + offset_in_page(from), size);
	put_page(page);
	return low;
}
