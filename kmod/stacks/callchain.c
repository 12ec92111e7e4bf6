// SPDX-License-Identifier: GPL-2.0-only
/*
 * Call chains: see callchain.h.
 *
 * User memory determines a chain of frame pointers, and it may contain anything. So each frame must
 * be at a higher address than the one before it, as on a stack; then no frame is seen twice. The
 * number of frames is limited, too.
 */
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>

#include "capture/memory.h"
#include "capture/storage.h"
#include "compat/mm.h"
#include "here.h"
#include "maps/maps.h"
#include "ring/clock.h"
#include "stacks/callchain.h"
#include "stacks/frames.h"
#include "stacks/known_chain.h"
#include "stacks/sparse_stack.h"
#include "stacks/user_words.h"

#define LIBRARY_BYTES	(1UL << 30)	/* of addresses: libraries are in these */
#define LEVELS		4	/* task, softirq, irq, NMI */
#define STACK_LEVELS	2	/* of these, the outermost, can have sparse stacks */

static unsigned long chain_addresses_max(const struct kbarman_session *session)
{
	return sizeof(struct bm_kbarman_callchain) +
	       session->config.max_stack * sizeof(bm_uintptr);
}

unsigned long kbarman_callchain_max(const struct kbarman_session *session)
{
	unsigned long bytes = chain_addresses_max(session);

	if (session->chain_parts & KBARMAN_CONFIGURE_CHAIN_STACK)
		bytes += kbarman_sparse_stack_max(session->config.stack_bytes);
	return bytes;
}

/* Where the piece of level @depth begins among all of them. */
static size_t chain_piece_at(const struct kbarman_session *session, unsigned int depth)
{
	size_t addresses = offsetof(struct kbarman_callchain, head) + chain_addresses_max(session);
	size_t small = ALIGN(addresses, sizeof(u64)), large = small;
	unsigned int larges = min_t(unsigned int, depth, STACK_LEVELS);

	if (session->chain_parts & KBARMAN_CONFIGURE_CHAIN_STACK)
		large = ALIGN(addresses + kbarman_sparse_stack_room(session->config.stack_bytes),
			      sizeof(u64));
	return larges * large + (depth - larges) * small;
}

/* Bytes of known chains, which are behind the pieces. */
static unsigned long chain_known_bytes(const struct kbarman_session *session)
{
	return session->config.flags & KBARMAN_CONFIGURE_CHAIN_KERNEL ? kbarman_known_bytes() : 0;
}

unsigned long kbarman_callchain_memory(const struct kbarman_session *session)
{
	if (!(session->config.flags & KBARMAN_CONFIGURE_CHAIN))
		return 0;
	return chain_piece_at(session, LEVELS) + chain_known_bytes(session);
}

int kbarman_callchain_add(struct kbarman_session *session, int cpu)
{
	struct kbarman_chain_memory *memory = &per_cpu_ptr(session->each, cpu)->chains;
	size_t bytes = kbarman_callchain_memory(session);
	int error;

	if (memory->bytes || !bytes)
		return 0;
	error = kbarman_capture_charge(session->capture, bytes);
	if (error)
		return error;
	memory->depth = 0;
	memory->bytes = kbarman_memory_pages(bytes, cpu_to_node(cpu));
	if (memory->bytes) {
		memory->known = chain_known_bytes(session) ?
					memory->bytes + chain_piece_at(session, LEVELS) : NULL;
		return 0;
	}
	kbarman_capture_refund(session->capture, bytes);
	return -ENOMEM;
}

void kbarman_callchain_free(struct kbarman_session *session)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct kbarman_chain_memory *memory = &per_cpu_ptr(session->each, cpu)->chains;

		if (!memory->bytes)
			continue;
		kbarman_memory_free(memory->bytes);
		memory->bytes = NULL;
		memory->known = NULL;
		kbarman_capture_refund(session->capture, kbarman_callchain_memory(session));
	}
}

/* Returns NULL if there is no memory, or if writers nest deeper than LEVELS. */
static struct kbarman_callchain *chain_get_piece(struct kbarman_cpu *here)
{
	struct kbarman_chain_memory *memory = &here->chains;
	struct kbarman_callchain *chain;
	unsigned int depth = memory->depth;

	if (unlikely(depth >= LEVELS || !memory->bytes))
		return NULL;
	/*
	 * An interrupt before this store uses the same piece, and gives it back before it returns.
	 */
	WRITE_ONCE(memory->depth, depth + 1);
	barrier();
	chain = memory->bytes + (unlikely(depth) ? chain_piece_at(here->session, depth) : 0);
	chain->stack_bytes = 0;
	chain->head.nr = 0;
	chain->head.nr_kernel = 0;
	return chain;
}

void kbarman_callchain_put(struct kbarman_cpu *here, struct kbarman_callchain *chain)
{
	if (!chain)
		return;
	barrier();
	here->chains.depth--;
}

/* ---- frames ---- */

/* Follow the frame records from @place on, which have words of @word bytes. */
static __always_inline void frames_follow(struct kbarman_frames *frames,
					  const struct kbarman_user_place *place, unsigned int word)
{
	bm_uintptr *to = frames->addresses + frames->nr, *end = frames->addresses + frames->max;
	unsigned long frame = place->frame, record[2], address;

	while (frame && to < end && kbarman_user_record(record, frame - place->behind, word)) {
		address = kbarman_plain_address(record[1]);
		/*
		 * An address outside of user space ends the chain: readers could take it for a
		 * kernel address.
		 */
		if (!address || address >= KBARMAN_TASK_SIZE_MAX)
			break;
		*to++ = address;
		frame = record[0] > frame ? record[0] : 0;
	}
	frames->nr = to - frames->addresses;
}

/* Context: user faults off. */
static void frames_add_user(struct kbarman_frames *frames, struct pt_regs *regs)
{
	struct kbarman_user_place place = {};

	kbarman_user_place(&place, regs);
	if (!place.pc || !kbarman_frames_add(frames, place.pc))
		return;
	if (place.caller && !kbarman_frames_add(frames, kbarman_plain_address(place.caller)))
		return;
	if (place.word == sizeof(long))
		frames_follow(frames, &place, sizeof(long));
	else
		frames_follow(frames, &place, sizeof(u32));
}

/*
 * How long the scan of a stack may take. Samples are taken in handlers of perf, which allows all
 * events of the machine to sample less often if the handlers take too long on average.
 */
static u64 chain_stack_ticks(const struct kbarman_session *session, bool samples)
{
	u32 ns = samples ? session->config.stack_ns : 0;

	return ns ? mul_u64_u32_div(kbarman_clock_hz(), ns, NSEC_PER_SEC) + 1 : 0;
}

/* ---- where the code and the stack of the current task are ---- */

/* True if @sp may point into the stack at @range. An empty stack's points to the end. */
static bool range_is_of(const struct kbarman_range *range, unsigned long sp)
{
	return sp - range->low <= range->span && range->span;
}

/* The stack that the program gave Linux for signals. */
static bool range_of_signals(struct kbarman_range *range, unsigned long sp)
{
	*range = (struct kbarman_range) { current->sas_ss_sp, current->sas_ss_size };
	return range_is_of(range, sp);
}

/*
 * The stack that Linux made for the program. Arguments and environment are above it. Its mapping
 * has no more pages than all mappings of this kind.
 */
static bool range_of_program(struct kbarman_range *range, unsigned long sp)
{
	const struct mm_struct *mm = current->mm;
	unsigned long end = READ_ONCE(mm->start_stack);
	unsigned long bytes = min(READ_ONCE(mm->stack_vm), end >> PAGE_SHIFT) << PAGE_SHIFT;

	*range = (struct kbarman_range) { end - bytes, bytes };
	return range_is_of(range, sp);
}

/* From @sp to the end of @range, inside of what a user can have. */
static struct kbarman_range range_above(const struct kbarman_range *range, unsigned long sp)
{
	unsigned long end = min_t(unsigned long, range->low + range->span, KBARMAN_TASK_SIZE_MAX);

	return (struct kbarman_range) { sp, end > sp ? end - sp : 0 };
}

static bool task_find_stack(const struct kbarman_session *session, struct kbarman_range *stack,
			    struct pt_regs *regs)
{
	unsigned long sp = user_stack_pointer(regs);
	struct kbarman_range range;

	*stack = (struct kbarman_range) { sp, 0 };
	if (sp >= KBARMAN_TASK_SIZE_MAX)
		return false;
	if (range_of_signals(&range, sp) || range_of_program(&range, sp) ||
	    kbarman_maps_stack(session, regs, &range)) {
		*stack = range_above(&range, sp);
		return true;
	}
	stack->span = PAGE_SIZE - offset_in_page(sp);
	return false;
}

/*
 * Set @ranges, but not `plain`. The stack's range begins at the stack pointer of @regs, which are of
 * user code. False: where the stack ends is not known, and the range ends with the page.
 *
 * The program is between start_code and end_code. Its libraries are below mmap_base, where other
 * memory is, too: until the session knows better.
 */
static bool task_find_ranges(const struct kbarman_session *session,
			     struct kbarman_sparse_ranges *ranges, struct pt_regs *regs)
{
	const struct mm_struct *mm = current->mm;
	unsigned long libraries = min(mm->mmap_base, LIBRARY_BYTES);
	bool known = task_find_stack(session, &ranges->stack, regs);

	ranges->code[0] = (struct kbarman_range) { mm->start_code, mm->end_code - mm->start_code };
	if (!kbarman_maps_libraries(session, &ranges->code[1])) {
		memset(&ranges->code[1], 0, KBARMAN_LIBRARY_RANGES * sizeof(ranges->code[1]));
		ranges->code[1] = (struct kbarman_range) { mm->mmap_base - libraries, libraries };
	}
	kbarman_sparse_ranges_close(ranges);
	return known;
}

/* ---- sparse stacks ---- */

/*
 * The user's first frame, and the stack instead of more frames. Not inline: kernels that clear
 * variables on the stack would clear the ranges for chains of frames, too.
 */
static noinline void chain_add_stack(struct kbarman_cpu *here, struct kbarman_callchain *chain,
				     struct kbarman_frames *frames, struct pt_regs *regs,
				     bool samples)
{
	const struct kbarman_session *session = here->session;
	u64 ticks = chain_stack_ticks(session, samples);
	struct kbarman_sparse_ranges ranges;
	struct bm_kbarman_stack *stack;
	bool known;

	kbarman_frames_add(frames, instruction_pointer(regs));
	/* Deeper levels have no room for one. */
	if (here->chains.depth > STACK_LEVELS)
		return;
	known = task_find_ranges(session, &ranges, regs);
	/* Bit 55 tells the kernel's addresses, and the bits above are a tag. */
	ranges.plain = IS_ENABLED(CONFIG_ARM64_PTR_AUTH) ?
			       kbarman_plain_address(GENMASK_ULL(54, 0)) : ~0UL;
	stack = (void *)&chain->addresses[frames->nr];
	chain->stack_bytes = kbarman_sparse_stack_gather(stack, regs, &ranges,
							 session->config.stack_bytes, known,
							 ticks);
	if (chain->stack_bytes)
		chain->head.nr_kernel |= BM_KBARMAN_CHAIN_STACK;
}

/*
 * The registers with which the current task left its user code. NULL if the task has no user code.
 */
static struct pt_regs *task_user_regs(struct pt_regs *regs)
{
	if (regs && user_mode(regs))
		return regs;
	/* The task may be changing other bits of its flags. */
	if (!current->mm || data_race(current->flags) & PF_KTHREAD)
		return NULL;
	/* execve() loads a program: the registers are those of the one before it. */
	if (!READ_ONCE(current->mm->end_code))
		return NULL;
	/* Workers that Linux makes for a program have memory of the program, and no code. */
	regs = task_pt_regs(current);
	return instruction_pointer(regs) ? regs : NULL;
}

/* Add the user's part, if it is wanted and @regs, which may be NULL, can be followed now. */
static void chain_add_user(struct kbarman_cpu *here, struct kbarman_callchain *chain,
			   struct kbarman_frames *frames, struct pt_regs *regs, bool samples)
{
	const struct kbarman_session *session = here->session;
	bool wanted = session->chain_parts & (KBARMAN_CONFIGURE_CHAIN_USER |
					      KBARMAN_CONFIGURE_CHAIN_STACK);

	if (wanted && regs && kbarman_user_is_here()) {
		/*
		 * Before the record is made, so that no mapping row is stamped later than its
		 * record.
		 */
		kbarman_maps_sampled(session);
		frames->skip = false;
		if (session->chain_parts & KBARMAN_CONFIGURE_CHAIN_STACK) {
			chain_add_stack(here, chain, frames, regs, samples);
		} else {
			kbarman_user_faults_off();
			frames_add_user(frames, regs);
			kbarman_user_faults_on();
		}
	}
	chain->head.nr = frames->nr;
}

static struct kbarman_callchain *chain_gather(struct kbarman_cpu *here, struct pt_regs *regs,
					      const void *iterator)
{
	const struct kbarman_session *session = here->session;
	struct kbarman_callchain *chain = chain_get_piece(here);
	struct kbarman_frames frames;

	if (unlikely(!chain))
		return NULL;
	frames = (struct kbarman_frames) {
		.addresses = chain->addresses,
		.max = session->config.max_stack,
		.skip = !regs,
		.iterator = (unsigned long)iterator,
		.known = regs || here->chains.depth > 1 ? NULL : here->chains.known,
	};
	if (session->chain_parts & KBARMAN_CONFIGURE_CHAIN_KERNEL && !(regs && user_mode(regs)))
		kbarman_frames_kernel(&frames, regs);
	chain->head.nr_kernel = frames.nr;
	chain_add_user(here, chain, &frames, task_user_regs(regs), regs);
	if (frames.nr)
		return chain;
	kbarman_callchain_put(here, chain);
	return NULL;
}

struct kbarman_callchain *kbarman_callchain_sample(struct kbarman_cpu *here, struct pt_regs *regs)
{
	return chain_gather(here, regs, NULL);
}

struct kbarman_callchain *kbarman_callchain_here(struct kbarman_cpu *here, const void *iterator)
{
	return chain_gather(here, NULL, iterator);
}
