// SPDX-License-Identifier: MIT
/*
 * A plugin for QEMU that counts the instructions of the known programs of selftests/vm/known.c:
 *
 *	-plugin tasks.so,out=FILE
 *
 * At the end FILE gets a line "PROGRAM USER ALL" for each of them, from where its `nop` is on. USER
 * are the instructions of the program itself, which its addresses tell. ALL are these and those of the
 * kernel in the program's task: all instructions from one switch of tasks to the next belong to one
 * task. Linux for arm64 switches tasks where it writes the next one, which is in x1, to sp_el0. Just
 * before this it reads the place where the next task goes on from this task's struct: the address
 * tells one task from another. The task in which addresses of a program came is that of the program,
 * up to the last time that they came: later the struct may be another task's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin.h"
#include "../../vm/known.h"

#define SWITCH		0xd5184101U	/* msr sp_el0, x1 */
#define READ		0xf940011eU	/* ldr lr, [x8] */
#define NOP		0xd503201fU

enum { TOTAL = KNOWN_PROGRAMS, COUNTERS };	/* before it those of the programs */

static struct counters counters;
static uint64_t *total, *user;			/* where its numbers are: user[KNOWN_PROGRAMS] */
/* At the last switch. */
static uint64_t total_then, user_then[KNOWN_PROGRAMS];
static uint64_t all[KNOWN_PROGRAMS];
static uint64_t later[KNOWN_PROGRAMS];		/* since the program's addresses came */
/* The task that runs, those of the programs; 0: unknown. */
static uint64_t task, tasks[KNOWN_PROGRAMS];
static uint64_t next;		/* what READ has read last */
static FILE *out;

static void on_read(unsigned int vcpu, uint32_t info, uint64_t vaddr, void *context)
{
	(void)vcpu;
	(void)info;
	(void)context;
	next = vaddr;
}

static void on_switch(unsigned int vcpu, void *context)
{
	(void)vcpu;
	(void)context;
	for (unsigned int i = 0; i < KNOWN_PROGRAMS; i++) {
		if (task && tasks[i] == task)
			later[i] += *total - total_then;
		if (user[i] == user_then[i])
			continue;
		all[i] += tasks[i] == task ? later[i] : *total - total_then;
		tasks[i] = task;
		later[i] = 0;
	}
	total_then = *total;
	memcpy(user_then, user, sizeof(user_then));
	task = next;
}

/* What @context, a counter of `user`, counts begins, in the task's present turn. */
static void on_begin(unsigned int vcpu, void *context)
{
	unsigned int program = (uint64_t *)context - user;

	(void)vcpu;
	user[program] = 0;
	all[program] = 0;
	later[program] = 0;
}

static void translate_insn(struct qemu_plugin_insn *insn)
{
	uint64_t program = (qemu_plugin_insn_vaddr(insn) >> KNOWN_SHIFT) - KNOWN_FIRST;
	uint8_t bytes[INSN_MOST] = { 0 };
	uint32_t word;

	insn_bytes(insn, bytes);
	memcpy(&word, bytes, sizeof(word));
	if (word == NOP && program < KNOWN_PROGRAMS)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_begin, QEMU_PLUGIN_CB_NO_REGS,
						       &user[program]);
	else if (word == READ)
		qemu_plugin_register_vcpu_mem_cb(insn, on_read, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, NULL);
	else if (word == SWITCH)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_switch, QEMU_PLUGIN_CB_NO_REGS,
						       NULL);
	count_insn(insn, &counters, TOTAL, 1);
	if (program < KNOWN_PROGRAMS)
		count_insn(insn, &counters, program, 1);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);

	(void)id;
	if (!total) {
		counters = counters_new(COUNTERS);
		total = &counters.values[TOTAL];
		user = counters.values;
	}
	for (size_t i = 0; i < n; i++)
		translate_insn(qemu_plugin_tb_get_insn(tb, i));
}

static void at_exit(qemu_plugin_id_t id, void *context)
{
	(void)id;
	(void)context;
	for (unsigned int i = 0; i < KNOWN_PROGRAMS; i++)
		fprintf(out, "%u %" PRIu64 " %" PRIu64 "\n", i, user[i], all[i]);
	fclose(out);
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv)
{
	if (argc != 1 || strncmp(argv[0], "out=", 4) || strcmp(info->target_name, "aarch64") ||
	    info->system.max_vcpus != 1) {
		fprintf(stderr, "tasks: wants out=FILE, on one aarch64 vCPU\n");
		return -1;
	}
	out = fopen(argv[0] + 4, "w");
	if (!out) {
		perror(argv[0] + 4);
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
	return 0;
}
