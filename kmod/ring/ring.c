// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring: see ring.h for what it promises. Includes nothing but its own header,
 * so that the host tests compile this very file.
 *
 * Barriers, and where their partners are:
 *
 *	[A] reserve: read_offset before the overwriting data (smp_wmb)
 *	    reader:  the copied data before read_offset again (smp_rmb)
 *	[B] commit:  data before write_offset (smp_store_release)
 *	    reader:  write_offset before the data (smp_load_acquire)
 *	[C] consume: the reader's copy before read_offset (smp_store_release)
 *	    reserve: read_offset before new data, by control dependency
 *	[D] publish: a page's new `end` before its new `records` (smp_wmb)
 *	    reader:  `records` before `end` again (smp_rmb)
 *
 * kbarman_ring_drop() moves read_offset and needs no barrier of its own. It writes no data. The
 * data that it frees is overwritten by a later writer of the same CPU, and only behind `limit`,
 * which drop leaves alone: that writer renews `limit` first, so it passes [A]. A reader may see
 * the new read_offset with an older write_offset in front of it, as it may after an eviction.
 *
 * Order between a writer and those that interrupt it is program order of one CPU:
 * barrier() keeps the compiler from changing it.
 */
#include "ring/ring.h"

#define WORD		sizeof(bm_uintptr)
#define COUNT_TRIES	16

static __always_inline unsigned long *read_offset(const struct kbarman_ring *ring)
{
	return kbarman_ring_low_word(&ring->header->read_offset);
}

static __always_inline unsigned long *write_offset(const struct kbarman_ring *ring)
{
	return kbarman_ring_low_word(&ring->header->write_offset);
}

static __always_inline bm_uintptr *ring_word(const struct kbarman_ring *ring,
					     unsigned long position)
{
	return (bm_uintptr *)(ring->data + (position & ring->mask));
}

static __always_inline unsigned long page_of(const struct kbarman_ring *ring,
					     unsigned long position)
{
	return (position & ring->mask) >> KBARMAN_RING_PAGE_SHIFT;
}

void kbarman_ring_init(struct kbarman_ring *ring, void *memory, struct kbarman_ring_page *pages,
		       unsigned long size, u32 cpu, bool overwrite)
{
	*ring = (struct kbarman_ring) {
		.mask = size - 1,
		.cpu = cpu,
		.limit = size,
		.overwrite = overwrite,
		.header = memory,
		.pages = pages,
		.wake = ring->wake,
		.stamp = ring->stamp,
		.closed = ring->closed,
	};

	memset(ring->header, 0, sizeof(*ring->header));
	ring->header->buffer_length = size;
	memset(pages, 0, (size >> KBARMAN_RING_PAGE_SHIFT) * sizeof(*pages));
	/* Last: a ring with data is one that can be used (kbarman_ring_ready()). */
	smp_store_release(&ring->data, (u8 *)(ring->header + 1));
}

void kbarman_ring_forget_pages(struct kbarman_ring *ring)
{
	memset(ring->pages, 0,
	       (kbarman_ring_size(ring) >> KBARMAN_RING_PAGE_SHIFT) * sizeof(*ring->pages));
}

/*
 * An NMI in the middle of this finds the long way closed. Of the short ways it finds `commit` as it
 * was or 0: no block ends before a limit that is after neither of them.
 */
void kbarman_ring_empty(struct kbarman_ring *ring)
{
	unsigned long commit = READ_ONCE(ring->commit);
	unsigned long closed = kbarman_ring_after(0, commit) ? commit : 0;
	enum kbarman_loss reason;

	WRITE_ONCE(ring->short_limit, closed);
	WRITE_ONCE(ring->called_limit, closed);
	barrier();
	WRITE_ONCE(ring->commit, 0);
	WRITE_ONCE(ring->w, 0);
	ring->limit = kbarman_ring_size(ring);
	ring->high_words = 0;
	ring->written = 0;
	local_set(&ring->nested, 0);
	local_set(&ring->owing, 0);
	for (reason = 0; reason < KBARMAN_LOST_REASONS; reason++) {
		local_set(&ring->lost[reason], 0);
		local_set(&ring->owed[reason].records, 0);
	}
	ring->overwritten = 0;
	ring->oldest = 0;
	memset(ring->header, 0, sizeof(*ring->header));
	ring->header->buffer_length = kbarman_ring_size(ring);
}

/*
 * A block begins at @position, and the one behind it at @next. Note @next for every page that
 * starts in between.
 */
static void note_boundaries(struct kbarman_ring *ring, unsigned long position, unsigned long next)
{
	unsigned long boundary;

	for (boundary = ALIGN_DOWN(next, KBARMAN_RING_PAGE); kbarman_ring_after(boundary, position);
	     boundary -= KBARMAN_RING_PAGE)
		ring->pages[page_of(ring, boundary)].first = next;
}

/*
 * Where the oldest block may start once [.., end) is taken: at the first block behind the next
 * page boundary, so that eviction comes once a page. Blocks that are not published are never
 * evicted.
 */
static unsigned long evict_target(const struct kbarman_ring *ring, unsigned long end)
{
	unsigned long needed = end - kbarman_ring_size(ring);
	unsigned long commit = READ_ONCE(ring->commit);
	unsigned long target = ALIGN(needed, KBARMAN_RING_PAGE);

	if (kbarman_ring_after(target, commit))
		return commit;
	target = ring->pages[page_of(ring, target)].first;
	if (kbarman_ring_after(target, commit) || kbarman_ring_after(needed, target))
		return commit;
	return target;
}

/*
 * Move read_offset until [.., end) fits: a reader then takes no block for whole that is about to
 * be overwritten. False, with the @reason: it can't be moved as far.
 */
static bool make_room(struct kbarman_ring *ring, unsigned long end, enum kbarman_loss *reason)
{
	unsigned long size = kbarman_ring_size(ring);
	unsigned long oldest;

	for (;;) {
		oldest = READ_ONCE(*read_offset(ring));		/* [C] */
		if (!kbarman_ring_after(end - oldest, size))
			break;
		if (!ring->overwrite) {
			*reason = KBARMAN_LOST_FULL;
			return false;
		}
		if (kbarman_ring_after(end - READ_ONCE(ring->commit), size)) {
			*reason = KBARMAN_LOST_NESTED;
			return false;
		}
		/* Never a plain store: a writer that came in between may have moved
		 * read_offset further, and it must not go back. */
		cmpxchg_local(read_offset(ring), oldest, evict_target(ring, end));
	}
	/*
	 * [A] A writer that interrupts this one may find that `limit` suffices, and write
	 * without a look at read_offset. So the barrier comes before the store to `limit`.
	 * A limit that is older than read_offset is harmless.
	 */
	smp_wmb();
	WRITE_ONCE(ring->limit, oldest + size);
	return true;
}

void kbarman_ring_drop(struct kbarman_ring *ring, unsigned long position)
{
	unsigned long commit = READ_ONCE(ring->commit), oldest, target;

	if (!ring->overwrite)
		return;
	if (kbarman_ring_after(position, commit))
		position = commit;
	position = ALIGN_DOWN(position, KBARMAN_RING_PAGE);
	target = READ_ONCE(ring->pages[page_of(ring, position)].first);
	/* A later round has come to that page: what is to be dropped is gone. */
	if (target - position >= kbarman_ring_size(ring) || kbarman_ring_after(target, commit))
		return;
	/* As in make_room(): read_offset must not go back. */
	do {
		oldest = READ_ONCE(*read_offset(ring));
		if (!kbarman_ring_after(target, oldest))
			return;
	} while (cmpxchg_local(read_offset(ring), oldest, target) != oldest);
}

/* The next record goes the long way, which reports losses. */
void kbarman_ring_close_short(struct kbarman_ring *ring)
{
	unsigned long closed = READ_ONCE(ring->commit);

	WRITE_ONCE(ring->short_limit, closed);
	WRITE_ONCE(ring->called_limit, closed);
}

/*
 * Open the short way again, up to the end of the page that @position is in. If another writer
 * comes in between, this one's value is older and lower than it could be, never too high. If the
 * other writer lost a record and closed the way, this one closes it again.
 *
 * If blocks fill pages exactly, there is room up to @position: evict here, or the next record would
 * go the long way again only to do that.
 */
static void open_short(struct kbarman_ring *ring, unsigned long position)
{
	unsigned long last = position | (KBARMAN_RING_PAGE - 1);
	unsigned long limit = READ_ONCE(ring->limit), closed = READ_ONCE(ring->commit);
	bool called = ring_clock_is_called();
	enum kbarman_loss ignored;

	if (limit == position && ring->overwrite) {
		make_room(ring, position + 1, &ignored);
		limit = READ_ONCE(ring->limit);
	}
	if (kbarman_ring_after(limit, last))
		limit = last;
	WRITE_ONCE(ring->short_limit, called ? closed : limit);
	WRITE_ONCE(ring->called_limit, called ? limit : closed);
	barrier();
	if (unlikely(kbarman_ring_is_owing(ring) || READ_ONCE(ring->closed)))
		kbarman_ring_close_short(ring);
}

void kbarman_ring_owe(struct kbarman_ring *ring, enum kbarman_loss reason, long lost, u64 since)
{
	struct kbarman_owed *owed = &ring->owed[reason];

	local_add(lost, &ring->owing);
	/* Who comes in between may take them with the time of an earlier gap: never too late. */
	if (local_add_return(lost, &owed->records) == lost || since < READ_ONCE(owed->since))
		WRITE_ONCE(owed->since, since);
	kbarman_ring_close_short(ring);
}

enum kbarman_loss kbarman_ring_owes(const struct kbarman_ring *ring)
{
	enum kbarman_loss reason, first = KBARMAN_LOST_REASONS;

	for (reason = 0; reason < KBARMAN_LOST_REASONS; reason++)
		if (local_read(&ring->owed[reason].records) &&
		    (first == KBARMAN_LOST_REASONS ||
		     READ_ONCE(ring->owed[reason].since) < READ_ONCE(ring->owed[first].since)))
			first = reason;
	return first;
}

long kbarman_ring_take_owed(struct kbarman_ring *ring, enum kbarman_loss reason, u64 *since)
{
	long lost;

	/* In this order: what is lost in between is younger. A long of 32 bits loads halves. */
	do {
		*since = READ_ONCE(ring->owed[reason].since);
		barrier();
	} while (BITS_PER_LONG == 32 && *since != READ_ONCE(ring->owed[reason].since));
	lost = local_xchg(&ring->owed[reason].records, 0);
	local_add(-lost, &ring->owing);
	return lost;
}

/*
 * What the caller has reserved begins at @begin. True: everything in front of it was published when
 * the caller reserved it. It remains true or false until the caller commits.
 */
static __always_inline bool is_outermost(const struct kbarman_ring *ring, unsigned long begin)
{
	return READ_ONCE(ring->commit) == begin;
}

/* The long way to reserve. */
static noinline struct kbarman_slot ring_reserve(struct kbarman_ring *ring, unsigned long length,
						 bool counted)
{
	enum kbarman_loss reason = KBARMAN_LOST_FULL;
	unsigned long size = kbarman_ring_size(ring);
	unsigned long head, pad, next, begin;
	bm_uintptr *word;
	u64 now;

	/* Before `w` and the clock: who finds the ring open has what they are since the opening. */
	if (unlikely(READ_ONCE(ring->closed)))
		return (struct kbarman_slot) { .record = NULL };
	barrier();
	if (unlikely(WORD + length > size / 8)) {
		reason = KBARMAN_LOST_TOO_BIG;
		now = ring_clock();
		goto lost;
	}
	do {
		head = READ_ONCE(ring->w);
		now = ring_clock();
		/* Behind the clock: who is not closed out has a time in front of the close. */
		barrier();
		if (unlikely(READ_ONCE(ring->closed)))
			return (struct kbarman_slot) { .record = NULL };
		pad = 0;
		if (unlikely((head & ring->mask) + WORD + length > size))
			pad = size - (head & ring->mask);
		next = head + pad + WORD + length;
		if (kbarman_ring_after(next, READ_ONCE(ring->limit)) &&
		    !make_room(ring, next, &reason))
			goto lost;
	} while (unlikely(cmpxchg_local(&ring->w, head, next) != head));

	begin = head;
	if (unlikely(pad)) {
		*ring_word(ring, head) = BM_BLOCK_PADDING | (pad - WORD);
		note_boundaries(ring, head, head + pad);
		head += pad;
	}
	note_boundaries(ring, head, next);
	open_short(ring, next);
	if (likely(is_outermost(ring, begin)))
		data_race(ring->written++);
	else
		local_inc(&ring->nested);
	word = ring_word(ring, head);
	*word = length;
	return (struct kbarman_slot) { .record = word + 1, .timestamp = now, .begin = begin };

lost:
	if (counted && !READ_ONCE(ring->closed)) {
		local_inc(&ring->lost[reason]);
		kbarman_ring_owe(ring, reason, 1, now);
	}
	return (struct kbarman_slot) { .record = NULL };
}

struct kbarman_slot kbarman_ring_reserve(struct kbarman_ring *ring, unsigned long length)
{
	return ring_reserve(ring, length, true);
}

struct kbarman_slot kbarman_ring_try_reserve(struct kbarman_ring *ring, unsigned long length)
{
	return ring_reserve(ring, length, false);
}

bool kbarman_ring_lose(struct kbarman_ring *ring, enum kbarman_loss reason)
{
	if (READ_ONCE(ring->closed))
		return false;
	local_inc(&ring->lost[reason]);
	return true;
}

/*
 * Note how many records are in front of the position that is published next, and return that
 * position. The caller is the outermost writer. Every other writer has counted its record when
 * the caller runs again; if `w` is the same before and after, none came in between.
 */
static unsigned long note_records(struct kbarman_ring *ring)
{
	struct kbarman_ring_page *page;
	unsigned long end, records;

	do {
		end = READ_ONCE(ring->w);
		records = kbarman_ring_written(ring);
	} while (unlikely(end != READ_ONCE(ring->w)));
	/* Only the outermost writer writes here. */
	page = &ring->pages[page_of(ring, end - 1)];
	WRITE_ONCE(page->end, end);
	smp_wmb();							/* [D] */
	WRITE_ONCE(page->records, records);
	return end;
}

noinline void kbarman_ring_publish(struct kbarman_ring *ring, unsigned long before)
{
	unsigned long now = before, end;

	/*
	 * What is reserved and not published was reserved by nested writers, who leave it to this
	 * one. If somebody else has published since, he was outermost: everything is published, and
	 * this one must not publish. `w` first: the other way round, he could come in between.
	 */
	while ((end = READ_ONCE(ring->w)) != now && READ_ONCE(ring->commit) == now) {
		if (kbarman_ring_crosses(before, end)) {
			end = note_records(ring);
			WRITE_ONCE(*kbarman_ring_low_word(&ring->header->total_written), end);
		}
		kbarman_ring_store_end(ring, ring->data, end);
		now = end;
	}
	if (kbarman_ring_crosses(before, now))
		ring_pages_crossed(ring, (now >> KBARMAN_RING_PAGE_SHIFT) - (before >> KBARMAN_RING_PAGE_SHIFT));
}

void kbarman_ring_commit(struct kbarman_ring *ring, unsigned long begin)
{
	barrier();
	if (likely(is_outermost(ring, begin)))
		kbarman_ring_publish(ring, begin);
}

void kbarman_ring_open(struct kbarman_ring *ring)
{
	WRITE_ONCE(ring->closed, false);
}

void kbarman_ring_shut(struct kbarman_ring *ring)
{
	WRITE_ONCE(ring->closed, true);
	kbarman_ring_close_short(ring);
}

/*
 * A writer on the short way may be interrupted when it has found room and not read the clock yet.
 * It fails if `w` has moved meanwhile: so an empty padding block is made, unless somebody has
 * reserved already. If there is no room for that block, there is none for the writer's.
 */
void kbarman_ring_close(struct kbarman_ring *ring)
{
	unsigned long head, next;
	enum kbarman_loss ignored;

	kbarman_ring_shut(ring);
	barrier();
	head = READ_ONCE(ring->w);
	next = head + WORD;
	if (!is_outermost(ring, head) ||
	    (kbarman_ring_after(next, READ_ONCE(ring->limit)) && !make_room(ring, next, &ignored)) ||
	    cmpxchg_local(&ring->w, head, next) != head)
		return;
	*ring_word(ring, head) = BM_BLOCK_PADDING;
	note_boundaries(ring, head, next);
	kbarman_ring_commit(ring, head);
}

void kbarman_ring_settle(struct kbarman_ring *ring)
{
	u64 high = (u64)ring->high_words << 32;
	unsigned long start = *read_offset(ring), end = *write_offset(ring);

	ring->header->total_written = high | end;
	if (BITS_PER_LONG == 64)
		return;
	ring->header->write_offset = high | end;
	ring->header->read_offset = (start > end ? high - (1ULL << 32) : high) | start;
}

static void copy_out(const struct kbarman_ring *ring, u8 *to, unsigned long from,
		     unsigned long length)
{
	unsigned long start = from & ring->mask;
	unsigned long part = min(length, kbarman_ring_size(ring) - start);

	/* The caller throws away what is overwritten meanwhile. */
	data_race(memcpy(to, ring->data + start, part));
	/* As above. */
	data_race(memcpy(to + part, ring->data, length - part));
}

/*
 * Walk the blocks in [from, to), and count @records. Returns where the walk ended: at @to, if
 * both are block boundaries and nothing was overwritten meanwhile.
 */
static unsigned long ring_walk(const struct kbarman_ring *ring, unsigned long from,
			       unsigned long to, unsigned long *records)
{
	bm_uintptr word, length;

	for (*records = 0; kbarman_ring_after(to, from); from += WORD + length) {
		/* A writer may be at work here: the caller finds out. Until then the word may
		 * be anything, so it is checked. */
		word = data_race(READ_ONCE(*ring_word(ring, from)));
		length = word & ~BM_BLOCK_PADDING;
		if (length > kbarman_ring_size(ring) || word % WORD)
			return from;
		if (!(word & BM_BLOCK_PADDING))
			++*records;
	}
	return from;
}

/*
 * The last block boundary in front of @target that need not be looked for. @from is one, and nobody
 * overwrites what is behind it: the caller is who moves read_offset.
 */
static unsigned long known_boundary(const struct kbarman_ring *ring, unsigned long from,
				    unsigned long target)
{
	unsigned long page = ALIGN_DOWN(target, KBARMAN_RING_PAGE), first;

	if (!kbarman_ring_after(page, from))
		return from;
	first = READ_ONCE(ring->pages[page_of(ring, page)].first);
	return kbarman_ring_after(first, target) ? from : first;
}

int kbarman_ring_consume(struct kbarman_ring *ring, u64 position)
{
	unsigned long from = READ_ONCE(*read_offset(ring));
	unsigned long to = smp_load_acquire(write_offset(ring));	/* [B] */
	unsigned long target = (unsigned long)position;
	unsigned long records;

	/* With 32 bits readers know the low word; the high one is right or left out. */
	if (BITS_PER_LONG == 32 && position >> 32 &&
	    position >> 32 != (u32)(ring->high_words - (target > to)))
		return -EINVAL;
	if (ring->overwrite || kbarman_ring_after(target, to) || kbarman_ring_after(from, target))
		return -EINVAL;
	from = known_boundary(ring, from, target);
	if (ring_walk(ring, from, target, &records) != target)
		return -EINVAL;
	smp_store_release(read_offset(ring), target);			/* [C] */
	return 0;
}

/*
 * How many records are in front of @start. @start was read_offset, and @end was write_offset. The
 * first page that knows says it: less those that it has behind @start. False: no page knows, or
 * a writer came to that page meanwhile.
 */
static bool records_before(const struct kbarman_ring *ring, unsigned long start,
			   unsigned long end, unsigned long *records)
{
	unsigned long boundary = ALIGN_DOWN(start - 1, KBARMAN_RING_PAGE);
	unsigned long page_end, behind;

	for (; kbarman_ring_after(end, boundary); boundary += KBARMAN_RING_PAGE) {
		const struct kbarman_ring_page *page = &ring->pages[page_of(ring, boundary)];

		page_end = READ_ONCE(page->end);
		/* `end` is of this round, not in front of @start, and not behind @end: then it
		 * was stored before @end was. */
		if (page_end - boundary - 1 >= KBARMAN_RING_PAGE ||
		    kbarman_ring_after(start, page_end) || kbarman_ring_after(page_end, end))
			continue;
		*records = READ_ONCE(page->records);
		smp_rmb();						/* [D] */
		if (READ_ONCE(page->end) != page_end ||
		    ring_walk(ring, start, page_end, &behind) != page_end)
			return false;
		*records -= behind;
		return true;
	}
	return false;
}

unsigned long kbarman_ring_overwritten(struct kbarman_ring *ring)
{
	unsigned long start, end, records;
	int tries;

	for (tries = 0; tries < COUNT_TRIES; tries++) {
		end = smp_load_acquire(write_offset(ring));		/* [B] */
		start = smp_load_acquire(read_offset(ring));
		if (kbarman_ring_after(start, end) ||
		    !records_before(ring, start, end, &records))
			continue;
		smp_rmb();						/* [A] */
		if (READ_ONCE(*read_offset(ring)) != start)
			continue;
		ring->overwritten = records;
		ring->oldest = start;
		break;
	}
	return ring->overwritten;
}

unsigned long kbarman_ring_bounds(const struct kbarman_ring *ring, unsigned long *start)
{
	unsigned long end = smp_load_acquire(write_offset(ring));	/* [B] */

	*start = smp_load_acquire(read_offset(ring));			/* [A] */
	if (kbarman_ring_after(*start, end))
		*start = end;
	return end;
}

unsigned long kbarman_ring_peek(const struct kbarman_ring *ring, unsigned long *position,
				unsigned long end, void *to, unsigned long size)
{
	unsigned long length = min(end - *position, size), oldest;

	copy_out(ring, to, *position, length);
	smp_rmb();							/* [A] */
	oldest = READ_ONCE(*read_offset(ring));
	if (!kbarman_ring_after(oldest, *position))
		return length;
	*position = oldest;
	return 0;
}

unsigned long kbarman_ring_fill(struct bm_datastore_header_data *header)
{
	/* First: an eviction in between makes the result larger, and never negative. */
	unsigned long start = smp_load_acquire(kbarman_ring_low_word(&header->read_offset));

	return READ_ONCE(*kbarman_ring_low_word(&header->write_offset)) - start;
}
