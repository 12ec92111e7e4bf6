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
#include "stacks/plain_address.h"
#include "stacks/sparse_stack.h"
#include "stacks/task_ranges.h"
#include "stacks/user_words.h"

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

unsigned long kbarman_callchain_memory(const struct kbarman_session *session)
{
	return session->config.flags & KBARMAN_CONFIGURE_CHAIN ? chain_piece_at(session, LEVELS) :
								 0;
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
	if (memory->bytes)
		return 0;
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
	known = kbarman_task_ranges(session, &ranges, regs);
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
