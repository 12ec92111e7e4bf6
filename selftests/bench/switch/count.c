// SPDX-License-Identifier: MIT
/*
 * A plugin for QEMU that counts the instructions which the guest executes between two marks
 * (mark.h), in the kernel and in programs:
 *
 *	-plugin count.so,out=FILE[,addresses=PREFIX][,line=BYTES]
 *
 * FILE gets a line "SECTION INSTRUCTIONS" at every end mark; sections count from 0. On request
 * PREFIX.SECTION gets a line "ADDRESS COUNT DISASSEMBLY" for every kernel instruction that was
 * executed there.
 *
 * An instruction with a repeat prefix counts once, however often it repeats: a processor
 * copies many bytes a step, and who copies by `rep movsb` is not to look the dearer for it. With
 * "line" it counts once for every BYTES that it moves: who copies much does not look cheap either.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "insn.h"
#include "mark.h"

#define BUCKETS		(1U << 18)
#define BLOCK		4096U

/* How often the instruction at an address was executed. */
struct counter {
	struct counter *next;
	uint64_t address;
	struct counters block;		/* that the number is in */
	size_t index;
	char *text;
};

static struct counter *counters[BUCKETS];
static struct counters totals;		/* of one number */
static unsigned int section;
static FILE *out;
static const char *addresses;		/* NULL = not asked for */
static unsigned int line;		/* 0: an instruction that repeats counts once */

/* A new number, in the block that has room. */
static void place(struct counter *counter)
{
	static struct counters block;
	static size_t used = BLOCK;

	if (used == BLOCK) {
		block = counters_new(BLOCK);
		used = 0;
	}
	counter->block = block;
	counter->index = used++;
}

static uint64_t *count_of(const struct counter *counter)
{
	return &counter->block.values[counter->index];
}

static struct counter *counter_of(const struct qemu_plugin_insn *insn)
{
	uint64_t address = qemu_plugin_insn_vaddr(insn);
	struct counter **bucket = &counters[(address * 0x9e3779b97f4a7c15ULL) >> 46];
	struct counter *counter = *bucket;

	while (counter && counter->address != address)
		counter = counter->next;
	if (!counter) {
		counter = calloc(1, sizeof(*counter));
		if (!counter)
			abort();
		counter->address = address;
		place(counter);
		counter->next = *bucket;
		*bucket = counter;
	}
	/* Linux patches its code, and what is translated last is what is executed. */
	free(counter->text);
	counter->text = qemu_plugin_insn_disas(insn);
	return counter;
}

static void begin(unsigned int vcpu, void *context)
{
	(void)vcpu;
	(void)context;
	*totals.values = 0;
	for (struct counter **bucket = counters; bucket < counters + BUCKETS; bucket++)
		for (struct counter *counter = *bucket; counter; counter = counter->next)
			*count_of(counter) = 0;
}

static void write_addresses(void)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s.%u", addresses, section);
	file = fopen(path, "w");
	if (!file) {
		perror(path);
		return;
	}
	for (struct counter **bucket = counters; bucket < counters + BUCKETS; bucket++)
		for (struct counter *counter = *bucket; counter; counter = counter->next)
			if (*count_of(counter))
				fprintf(file, "%016" PRIx64 " %" PRIu64 " %s\n", counter->address,
					*count_of(counter), counter->text);
	if (fclose(file))
		perror(path);
}

static void end(unsigned int vcpu, void *context)
{
	(void)vcpu;
	(void)context;
	fprintf(out, "%u %" PRIu64 "\n", section, *totals.values);
	fflush(out);
	if (addresses)
		write_addresses();
	section++;
}

/* QEMU executes it anew for every repetition. If nothing else came since, it is one. */
static void count_repeating(unsigned int vcpu, void *context)
{
	static const struct counter *last;
	static uint64_t last_total;
	struct counter *counter = context;

	(void)vcpu;
	if (counter == last && *totals.values == last_total)
		return;
	++*count_of(counter);
	last = counter;
	last_total = ++*totals.values;
}

static void count_lines(unsigned int vcpu, void *context)
{
	(void)vcpu;
	*totals.values += lines_filled((uintptr_t)context, line);
}

static void translate_insn(struct qemu_plugin_insn *insn)
{
	unsigned int bytes = repeated_bytes(insn);
	const struct counter *counter;
	uint32_t mark = mark_of(insn);

	if (mark) {
		qemu_plugin_register_vcpu_insn_exec_cb(insn, mark == MARK_BEGIN ? begin : end,
						       QEMU_PLUGIN_CB_NO_REGS, NULL);
		return;
	}
	if (bytes && line) {
		qemu_plugin_register_vcpu_insn_exec_cb(insn, count_lines, QEMU_PLUGIN_CB_NO_REGS,
						       (void *)(uintptr_t)bytes);
		return;
	}
	if (bytes) {
		qemu_plugin_register_vcpu_insn_exec_cb(insn, count_repeating,
						       QEMU_PLUGIN_CB_NO_REGS, counter_of(insn));
		return;
	}
	count_insn(insn, &totals, 0, 1);
	if (!addresses || qemu_plugin_insn_vaddr(insn) < KERNEL)
		return;
	counter = counter_of(insn);
	count_insn(insn, &counter->block, counter->index, 1);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);

	(void)id;
	if (!totals.values)
		totals = counters_new(1);
	for (size_t i = 0; i < n; i++)
		translate_insn(qemu_plugin_tb_get_insn(tb, i));
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv)
{
	const char *path = NULL;

	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			path = argv[i] + 4;
		else if (!strncmp(argv[i], "addresses=", 10))
			addresses = strdup(argv[i] + 10);
		else if (!strncmp(argv[i], "line=", 5))
			line = atoi(argv[i] + 5);
		else
			path = NULL;
	}
	if (!path || !know_guest(info) || info->system.max_vcpus != 1) {
		fprintf(stderr, "count: wants out=FILE[,addresses=PREFIX][,line=BYTES], on one vCPU "
			"of x86_64 or aarch64\n");
		return -1;
	}
	out = fopen(path, "w");
	if (!out) {
		perror(path);
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return 0;
}
