// SPDX-License-Identifier: MIT
/*
 * Compares the chains that the library finds in sparse stacks with those of perf: see
 * scripts/compare-perf. Reads a file of perf, and on standard input what
 * `perf script --ns -F tid,time,ip,dso` says of it. The module's own code makes a sparse stack of
 * each stack that perf copied; the walk over it is the library's.
 *
 * Usage: compare NAME FILE [DIFFERENCES]	prints a row, and so many chains that differ
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "kernel.h"
#include "../../kmod/maps/code_bounds.h"
#include "../../kmod/stacks/sparse_stack.h"
#include "../../kmod/stacks/user_registers.h"
#include "perf_data.h"
#include "sym/files/file_id.h"
#include "sym/unwind/stacks.h"

#define FRAMES		4096U
#define LIMIT		65536U	/* bytes that the module looks at */
#define SPACES		4096U
#define LIBRARY_BYTES	(1UL << 30)

enum { PERF_BP = 6, PERF_SP = 7, PERF_IP = 8 };

/* The kernel's registers are those of perf. */
struct pt_regs {
	uint64_t value[PERF_REGISTERS];
};

/* An address space: a process from one exec on. */
struct space {
	uint32_t pid;
	struct mm_struct mm;
	const struct perf_event **maps;
	size_t nr_maps;
};

struct chain {
	uint64_t tid, time;
	uint32_t nr;
	struct frame {
		uint64_t address;	/* an offset in `image` until its mapping is looked up */
		char image[256];
	} frames[FRAMES];
};

struct figures {
	unsigned int samples, by_perf, same, ours_only, differ;
	uint64_t bytes, max_bytes;
};

static struct space spaces[SPACES];
static unsigned int nr_spaces;
static struct kbarman_code_bounds bounds;
static struct kb_stacks *stacks;
static const struct perf_event *current;	/* the sample whose stack is read */

/* ---- what the module asks of the kernel ---- */

/* Bytes around the copied stack are 0: a block may begin below it and end above it. */
unsigned long __copy_from_user_inatomic(void *to, const void *from, unsigned long size)
{
	uint64_t sp = current->value[PERF_SP], at = (uint64_t)from, end = sp + current->stack_bytes;
	uint64_t low = max(at, sp), high = min(at + size, end);

	memset(to, 0, size);
	if (low < high)
		memcpy((char *)to + (low - at), (const char *)current->stack + (low - sp),
		       high - low);
	return 0;
}

bool kbarman_read_old_page(void *to, unsigned long from, size_t size)
{
	(void)to, (void)from, (void)size;
	return false;
}

/* The numbers of DWARF, and where perf has them. Those of kmod/stacks/user_registers.c. */
struct kbarman_user_registers kbarman_user_registers(const struct pt_regs *regs)
{
	static const struct kbarman_user_register all[] = {
		{ 0, true, false, 8 * 0 }, { 3, false, false, 8 * 1 }, { 4, true, false, 8 * 4 }, { 5, false, false, 8 * 5 },
		{ 6, false, false, 8 * PERF_BP }, { 7, false, false, 8 * PERF_SP }, { 10, true, false, 8 * 18 },
		{ 11, true, false, 8 * 19 }, { 12, false, false, 8 * 20 }, { 13, false, false, 8 * 21 },
		{ 14, false, false, 8 * 22 }, { 15, false, false, 8 * 23 },
		{ BM_KBARMAN_REGISTER_PC, false, false, 8 * PERF_IP },
	};

	(void)regs;
	return (struct kbarman_user_registers) { all, ARRAY_SIZE(all), 8, true };
}

/* ---- where the stack ends ---- */

static uint64_t word_at(const struct perf_event *sample, uint64_t offset)
{
	uint64_t word;

	memcpy(&word, (const char *)sample->stack + offset, sizeof(word));
	return word;
}

/*
 * Linux puts the number of arguments, the arguments, the environment and the auxiliary vector above
 * the stack of a program, each but the first with a 0 behind it. The vector has the vdso's address.
 */
static uint64_t find_arguments(const struct perf_event *sample)
{
	uint64_t bytes = ALIGN_DOWN(sample->stack_bytes, 8), at, strings;
	unsigned int zeros = 0;

	for (at = bytes - 16; at && at < bytes; at -= 8)
		if (word_at(sample, at) == AT_SYSINFO_EHDR && !(word_at(sample, at + 8) & 4095) &&
		    word_at(sample, at + 8) >> 40 && !word_at(sample, at - 8))
			break;
	if (!at || at >= bytes)
		return 0;
	for (strings = at - 8; strings; strings -= 8) {
		zeros += !word_at(sample, strings);
		if (zeros == 2 && word_at(sample, strings) < 4096 && word_at(sample, strings) &&
		    strings + 8 * word_at(sample, strings) + 8 < at &&
		    !word_at(sample, strings + 8 * word_at(sample, strings) + 8))
			return sample->value[PERF_SP] + strings;
	}
	return 0;
}

/* glibc's block of a thread, above its stack, has its own address in two places. */
static uint64_t find_thread(const struct perf_event *sample)
{
	uint64_t sp = sample->value[PERF_SP], at;

	for (at = 0; at + 24 <= sample->stack_bytes; at += 8)
		if (word_at(sample, at) == sp + at && word_at(sample, at + 16) == sp + at)
			return sp + at;
	return 0;
}

static bool find_stack(const struct perf_event *sample, struct kbarman_range *stack)
{
	uint64_t sp = sample->value[PERF_SP], end = find_thread(sample);

	end = end ? end : find_arguments(sample);
	stack->low = sp;
	stack->span = (end ? end : sp + sample->stack_bytes) - sp;
	return end;
}

/* ---- address spaces ---- */

static struct space *find_space(uint32_t pid)
{
	unsigned int i = nr_spaces;

	while (i--)
		if (spaces[i].pid == pid)
			return &spaces[i];
	return NULL;
}

static struct space *add_space(uint32_t pid)
{
	struct space *space;

	if (nr_spaces == SPACES) {
		fprintf(stderr, "compare: there are more than %u processes\n", SPACES);
		exit(1);
	}
	space = &spaces[nr_spaces++];
	*space = (struct space) { .pid = pid };
	return space;
}

static void map(struct space *space, const struct perf_event *event)
{
	char id[KB_FILE_ID];
	int fd = open(event->image, O_RDONLY | O_CLOEXEC);
	struct kb_unwind_place place = {
		.start = event->start, .length = event->length, .offset = event->offset,
		.image = event->image,
	};
	uint64_t key = 5381;
	const char *at;

	for (at = event->image; *at; at++)
		key = key * 33 + (unsigned char)*at;
	if (fd >= 0 && kb_file_id_of(fd, id))
		place.file = kb_text(id);
	if (fd >= 0)
		close(fd);
	/* The first file that is mapped is the program. */
	if (!space->mm.end_code && event->image[0] == '/') {
		space->mm.start_code = event->start;
		space->mm.end_code = event->start + event->length;
	}
	kbarman_code_bounds_include(&bounds, &space->mm, event->start,
				    event->start + event->length);
	space->maps = reallocarray(space->maps, space->nr_maps + 1, sizeof(*space->maps));
	if (!space->maps || kb_stacks_map(stacks, space - spaces + 1, key, &place))
		exit(1);
	space->maps[space->nr_maps++] = event;
}

static void fork_space(const struct perf_event *event)
{
	const struct space *parent = find_space(event->parent);
	struct space *child;
	size_t i;

	if (event->pid == event->parent)
		return;		/* a thread */
	child = add_space(event->pid);
	for (i = 0; parent && i < parent->nr_maps; i++)
		map(child, parent->maps[i]);
}

/* ---- chains ---- */

/* Where @space has the byte at @offset of the file @image, which perf names in brackets. */
static uint64_t address_of(const struct space *space, uint64_t offset, const char *image)
{
	size_t i = space->nr_maps;

	while (i--) {
		const struct perf_event *map = space->maps[i];

		if (offset - map->offset < map->length && !strcmp(map->image, image))
			return map->start + (offset - map->offset);
	}
	return offset;
}

/* Make a sparse stack of @sample in @to, and return the number of its bytes. */
static size_t make_sparse(const struct perf_event *sample, const struct space *space, void *to)
{
	struct kbarman_sparse_ranges ranges = { 0 };
	struct pt_regs regs;
	bool known = find_stack(sample, &ranges.stack);
	uint32_t limit = min(LIMIT, ALIGN_DOWN(ranges.stack.span, 32));

	memcpy(regs.value, sample->value, sizeof(regs.value));
	current = sample;
	ranges.code[0] = (struct kbarman_range) {
		space->mm.start_code, space->mm.end_code - space->mm.start_code };
	if (!kbarman_code_bounds_find(&bounds, &space->mm, &ranges.code[1]))
		return 0;
	kbarman_sparse_ranges_close(&ranges);
	return kbarman_sparse_stack_gather(to, &regs, &ranges, known ? LIMIT : limit, known, 0);
}

static const struct kb_unwind_chain *unwind(const struct space *space, const void *data,
					    size_t size)
{
	const struct kb_unwind_chain *chain;

	while (kb_stacks_unwind(stacks, space - spaces + 1, data, size, &chain) == -EAGAIN)
		kb_stacks_wait(stacks);
	return chain;
}

/* Whether a function at @pc says by its table that it has no caller. */
static bool is_outermost(const struct space *space, uint64_t pc)
{
	struct {
		struct bm_kbarman_stack head;
		uint64_t values[2];
	} alone = {
		{ .registers = 1ULL << 7 | 1ULL << BM_KBARMAN_REGISTER_PC,
		  .end = BM_KBARMAN_STACK_LIMIT, .word = 8 },
		{ 4096, pc },
	};

	return unwind(space, &alone, sizeof(alone))->end == KB_UNWIND_WHOLE;
}

static bool is_same(const struct kb_unwind_chain *ours, const struct chain *perfs)
{
	bool same = ours->nr == perfs->nr;
	uint32_t i;

	for (i = 0; i < ours->nr && same; i++)
		same = kb_unwind_lookup(&ours->frames[i]) == perfs->frames[i].address;
	return same;
}

static void print_address(const struct space *space, uint64_t address)
{
	size_t i = space->nr_maps;

	while (i--)
		if (address - space->maps[i]->start < space->maps[i]->length) {
			const char *name = strrchr(space->maps[i]->image, '/');

			printf(" %s+%" PRIx64, name ? name + 1 : space->maps[i]->image,
			       address - space->maps[i]->start + space->maps[i]->offset);
			return;
		}
	printf(" %" PRIx64, address);
}

static void print_difference(const struct space *space, const struct kb_unwind_chain *ours,
			     const struct chain *perfs)
{
	uint32_t i;

	printf("#  perf %u, ours %u (%s, %u), time %" PRIu64 "\n#\t", perfs->nr, ours->nr,
	       kb_unwind_end_text(ours->end), ours->reason, perfs->time);
	for (i = 0; i < perfs->nr && i < 24; i++)
		print_address(space, perfs->frames[i].address);
	printf("\n#\t");
	for (i = 0; i < ours->nr && i < 24; i++)
		print_address(space, kb_unwind_lookup(&ours->frames[i]));
	printf("\n");
}

static void compare(struct figures *figures, const struct perf_event *sample,
		    struct chain *perfs, unsigned int differences)
{
	static char data[1 << 20];
	const struct space *space = find_space(sample->pid);
	size_t size = space && space->nr_maps ? make_sparse(sample, space, data) : 0;
	const struct kb_unwind_chain *ours;
	bool perfs_whole, ours_whole, same;
	uint32_t i;

	if (!size)
		return;
	for (i = 0; i < perfs->nr; i++)
		perfs->frames[i].address = address_of(space, perfs->frames[i].address,
						      perfs->frames[i].image);
	perfs_whole = perfs->nr && is_outermost(space, perfs->frames[perfs->nr - 1].address);
	ours = unwind(space, data, size);
	same = is_same(ours, perfs);
	ours_whole = ours->end == KB_UNWIND_WHOLE;
	perfs_whole |= ours_whole && same;
	figures->samples++;
	figures->by_perf += perfs_whole;
	figures->same += perfs_whole && same;
	figures->ours_only += ours_whole && !perfs_whole;
	figures->bytes += size;
	figures->max_bytes = max(figures->max_bytes, size);
	if (!same && !(ours_whole && !perfs_whole) && figures->differ++ < differences)
		print_difference(space, ours, perfs);
}

/* ---- what perf says ---- */

/* Add the frame of @line, which is an offset and the name of a file; an address if it has none. */
static void add_frame(struct chain *chain, const char *line)
{
	struct frame *frame = &chain->frames[chain->nr];
	const char *name = strchr(line, '(');

	if (chain->nr == FRAMES || sscanf(line, "%" SCNx64, &frame->address) != 1)
		return;
	snprintf(frame->image, sizeof(frame->image), "%s", name ? name + 1 : "");
	frame->image[strcspn(frame->image, ")\n")] = 0;
	chain->nr++;
}

/* The next chain of perf's output; false: there is none. */
static bool read_chain(struct chain *chain)
{
	uint64_t tid, seconds, ns;
	char line[4096];

	chain->nr = 0;
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%" SCNu64 " %" SCNu64 ".%" SCNu64 ":", &tid, &seconds, &ns) == 3) {
			chain->tid = tid;
			chain->time = seconds * 1000000000 + ns;
			chain->nr = 0;
		} else if (line[0] == '\n' && chain->nr) {
			return true;
		} else {
			add_frame(chain, line);
		}
	}
	return chain->nr;
}

/* Samples of both come in the order of time; a thread has one at a time. */
static void handle(struct figures *figures, const struct perf_data *data, unsigned int differences)
{
	static struct chain chain;
	bool has_chain = read_chain(&chain);
	struct space *space;
	size_t i;

	for (i = 0; i < data->nr; i++) {
		const struct perf_event *event = &data->events[i];

		while (event->what == PERF_SAMPLE && has_chain && chain.time < event->time)
			has_chain = read_chain(&chain);
		switch (event->what) {
		case PERF_EXEC:
			add_space(event->pid);
			break;
		case PERF_FORK:
			fork_space(event);
			break;
		case PERF_MAP:
			space = find_space(event->pid);
			map(space ? space : add_space(event->pid), event);
			break;
		default:
			if (has_chain && chain.time == event->time && chain.tid == event->tid)
				compare(figures, event, &chain, differences);
		}
	}
}

int main(int argc, char **argv)
{
	unsigned int differences = argc > 3 ? strtoul(argv[3], NULL, 0) : 0;
	struct figures figures = { 0 };
	struct perf_data data;
	const char *wrong;

	if (argc < 3)
		return 2;
	wrong = perf_data_read(&data, argv[2]);
	if (wrong || kb_stacks_create(&stacks, FRAMES)) {
		fprintf(stderr, "compare: '%s': %s\n", argv[2], wrong ? wrong : "no memory");
		return 1;
	}
	handle(&figures, &data, differences);
	printf("%-20s %8u %8u %8u %8u %8.0f %8" PRIu64 "\n", argv[1], figures.samples,
	       figures.by_perf, figures.same, figures.ours_only,
	       figures.samples ? (double)figures.bytes / figures.samples : 0, figures.max_bytes);
	kb_stacks_destroy(stacks);
	perf_data_release(&data);
	return figures.samples ? 0 : 1;
}
