// SPDX-License-Identifier: MIT
/*
 * A plugin for QEMU that counts how many instructions the module executes at once where nothing
 * may come in between:
 *
 *	-plugin sections.so,out=FILE,symbols=SYMBOLS
 *
 * that is, for each function of the module,
 *
 *	lock	from where it takes a spinlock to where one is given back
 *	off	from where it disables interrupts to where they are enabled again
 *	entry	from its first instruction to its return, if it is one of those which Linux calls
 *		with interrupts off (entries[])
 *
 * At the begin mark (mark.h) SYMBOLS, a copy of the guest's /proc/kallsyms, says where the module
 * is. At every end mark FILE is written anew: a line "KIND FUNCTION TIMES MOST" for each of them.
 * An interrupt that comes in (entries with interrupts on, spinlocks that don't disable them) is
 * not counted.
 *
 * An instruction with a repeat prefix counts once for every 64 bytes that it moves.
 */
#include <inttypes.h>
#include <stdio.h>

#include "insn.h"

#define LINE		64	/* bytes */
#define MAX_OPEN	16	/* sections in one another */

static const char *const entries[] = {
	/* tracepoints */
	"on_sched_switch", "on_sched_switch_chosen", "on_sched_switch_chain", "on_cpu_idle",
	"on_waking", "on_waking_new", "on_waking_chosen", "on_waking_new_chosen", "on_migrate",
	"on_irq_entry", "on_irq_exit", "on_ipi_entry", "on_ipi_exit", "on_softirq_raise",
	"on_cpu_idle_miss",
	/* perf, irq_work, calls from other CPUs */
	"on_sched_switch_count", "on_counts_tick", "counters_take_last",
	"kbarman_pmu_overflow", "kbarman_pmu_overflow_chain", "collector_kick", "maps_kick",
	"wake_pollers", "cpu_begin_here", "ring_close_here", "ring_drop_records", "turn_take_last",
	"turn_take_first", "counters_tell_if_lost", "cpu_identify", "freq_record_first",
	/* kprobes: with interrupts off where ftrace does not call them */
	"on_mmap", "on_move",
};

struct function {
	uint64_t address;
	char name[256];
	bool is_entry;
};

static struct function *functions;	/* the module's, by address */
static size_t nr_functions;
static uint64_t module_end;
static uint64_t lock[2], unlock[2];	/* the kernel's functions */
static uint64_t *interrupts;		/* where those come in, sorted */
static size_t nr_interrupts;

/* What was counted of a function. */
enum kind { LOCK, OFF, ENTRY, KINDS };

static const char *const kind_names[] = { "lock", "off", "entry" };

struct figure {
	uint64_t times, most;
} *figures[KINDS];	/* [nr_functions] */

/* Where execution is, as translated code keeps it. */
enum { TOTAL, DEPTH, COUNTERS };

static struct counters counters;
static uint64_t *total, *depth;		/* where its numbers are; depth of calls in the kernel */

struct open {
	enum kind kind;
	size_t function;
	uint64_t begun, depth;
	uint64_t inside;	/* of interrupts */
};

static struct open open_sections[MAX_OPEN];
static unsigned int nr_open;
static unsigned int interrupted;	/* how many of them, one in the other */
static uint64_t interrupted_at;

static qemu_plugin_id_t plugin;
static const char *out_path, *symbols_path;

static void die(const char *what)
{
	fprintf(stderr, "sections: %s\n", what);
	exit(1);
}

/* ---- symbols ---- */

static int by_address(const void *a, const void *b)
{
	const struct function *one = a, *other = b;

	return one->address < other->address ? -1 : one->address > other->address;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *one = a, *other = b;

	return *one < *other ? -1 : *one > *other;
}

static void *grown(void *array, size_t count, size_t size)
{
	if (count & (count - 1))
		return array;
	array = realloc(array, (count ? 2 * count : 1) * size);
	if (!array)
		die("no memory");
	return array;
}

static void add_function(uint64_t address, const char *name)
{
	struct function *function;
	size_t i;

	functions = grown(functions, nr_functions, sizeof(*functions));
	function = &functions[nr_functions++];
	memset(function, 0, sizeof(*function));
	function->address = address;
	strcpy(function->name, name);
	for (i = 0; i < sizeof(entries) / sizeof(*entries); i++)
		function->is_entry = function->is_entry || !strcmp(name, entries[i]);
}

static void add_interrupt(uint64_t address)
{
	interrupts = grown(interrupts, nr_interrupts, sizeof(*interrupts));
	interrupts[nr_interrupts++] = address;
}

static void note_symbol(uint64_t address, char type, const char *name, const char *module)
{
	if (!strchr("tTwW", type))
		return;
	if (!strcmp(module, "[kbarman]"))
		add_function(address, name);
	else if (*module)
		return;
	else if (!strcmp(name, "_raw_spin_lock_irqsave"))
		lock[0] = address;
	else if (!strcmp(name, "_raw_spin_lock"))
		lock[1] = address;
	else if (!strcmp(name, "_raw_spin_unlock_irqrestore"))
		unlock[0] = address;
	else if (!strcmp(name, "_raw_spin_unlock"))
		unlock[1] = address;
	else if (!strncmp(name, "asm_exc_", 8) || !strncmp(name, "asm_sysvec_", 11) ||
		 !strcmp(name, "asm_common_interrupt"))
		add_interrupt(address);
}

static void read_symbols(void)
{
	FILE *file = fopen(symbols_path, "r");
	char line[512], name[256], module[128], type;
	uint64_t address;
	int i;

	if (!file)
		die("the guest has left no symbols");
	while (fgets(line, sizeof(line), file)) {
		*module = 0;
		if (sscanf(line, "%" SCNx64 " %c %255s %127s", &address, &type, name, module) >= 3)
			note_symbol(address, type, name, module);
	}
	fclose(file);
	if (!nr_functions || !lock[0] || !lock[1] || !unlock[0] || !unlock[1] || !nr_interrupts)
		die("the symbols lack some that are needed");
	qsort(functions, nr_functions, sizeof(*functions), by_address);
	qsort(interrupts, nr_interrupts, sizeof(*interrupts), by_number);
	module_end = (functions[nr_functions - 1].address | 4095) + 1;
	for (i = 0; i < KINDS; i++)
		figures[i] = calloc(nr_functions, sizeof(*figures[i]));
}

static size_t function_at(uint64_t address)
{
	size_t low = 0, high = nr_functions;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (functions[middle].address <= address)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static bool in_module(uint64_t address)
{
	return nr_functions && address >= functions[0].address && address < module_end;
}

/* ---- sections ---- */

static void begin(enum kind kind, size_t function)
{
	if (nr_open == MAX_OPEN)
		die("too many sections at once");
	open_sections[nr_open++] = (struct open) {
		.kind = kind, .function = function, .begun = *total, .depth = *depth,
	};
}

static void end(unsigned int index)
{
	const struct open *it = &open_sections[index];
	struct figure *figure = &figures[it->kind][it->function];
	uint64_t took = *total - it->begun - it->inside;

	figure->times++;
	if (took > figure->most)
		figure->most = took;
	/* What was begun in it ends with it. */
	nr_open = index;
}

static void end_last(enum kind kind)
{
	unsigned int i;

	for (i = nr_open; i--;)
		if (open_sections[i].kind == kind) {
			end(i);
			return;
		}
}

#define CALLBACK(name)	static void name(unsigned int vcpu, void *context)

CALLBACK(on_lock)
{
	(void)vcpu;
	begin(LOCK, (uintptr_t)context);
}

CALLBACK(on_unlock)
{
	(void)vcpu;
	(void)context;
	end_last(LOCK);
}

CALLBACK(on_disable)
{
	(void)vcpu;
	begin(OFF, (uintptr_t)context);
}

CALLBACK(on_enable)
{
	(void)vcpu;
	(void)context;
	end_last(OFF);
}

CALLBACK(on_entry)
{
	(void)vcpu;
	begin(ENTRY, (uintptr_t)context);
}

/* The return from an entry, whatever function it jumped to. */
CALLBACK(on_return)
{
	unsigned int i;

	(void)vcpu;
	(void)context;
	for (i = nr_open; i--;)
		if (open_sections[i].kind == ENTRY) {
			if (*depth == open_sections[i].depth)
				end(i);
			return;
		}
}

CALLBACK(on_interrupt)
{
	(void)vcpu;
	(void)context;
	if (nr_open && !interrupted++)
		interrupted_at = *total;
}

CALLBACK(on_interrupt_return)
{
	unsigned int i;

	(void)vcpu;
	(void)context;
	if (!interrupted || --interrupted)
		return;
	for (i = 0; i < nr_open; i++)
		open_sections[i].inside += *total - interrupted_at;
}

CALLBACK(on_repeating)
{
	(void)vcpu;
	*total += lines_filled((uintptr_t)context, LINE);
}

/* ---- translation ---- */

static void call_back(struct qemu_plugin_insn *insn, void (*callback)(unsigned int, void *),
		      uintptr_t context)
{
	qemu_plugin_register_vcpu_insn_exec_cb(insn, callback, QEMU_PLUGIN_CB_NO_REGS,
					       (void *)context);
}

/* An instruction as it is translated. */
struct insn {
	struct qemu_plugin_insn *insn;
	uint64_t address;
	uint8_t bytes[INSN_MOST];
	unsigned int size, opcode;	/* where it is: behind the prefixes */
};

/* Prefixes of segments and registers may stand in front of calls and returns, too. */
static struct insn read_insn(struct qemu_plugin_insn *of)
{
	struct insn insn = { .insn = of, .address = qemu_plugin_insn_vaddr(of) };
	uint8_t byte;

	for (insn.size = insn_bytes(of, insn.bytes); insn.opcode < insn.size; insn.opcode++) {
		byte = insn.bytes[insn.opcode];
		if ((byte & 0xf0) != 0x40 && byte != 0x2e && byte != 0x3e && byte != 0xf2 &&
		    byte != 0xf3 && byte != 0x66)
			break;
	}
	return insn;
}

static bool is_one_of(uint64_t address, const uint64_t those[2])
{
	return address == those[0] || address == those[1];
}

/* In the module; a function may end with a jump to one that would return to its caller. */
static void translate_direct(const struct insn *insn)
{
	uint64_t target;
	int32_t offset;

	memcpy(&offset, insn->bytes + insn->opcode + 1, sizeof(offset));
	target = insn->address + insn->size + offset;
	if (is_one_of(target, lock))
		call_back(insn->insn, on_lock, function_at(insn->address));
	else if (is_one_of(target, unlock))
		call_back(insn->insn, on_unlock, 0);
}

static void translate_module(const struct insn *insn, uint8_t opcode)
{
	size_t function = function_at(insn->address);

	if (functions[function].is_entry && functions[function].address == insn->address)
		call_back(insn->insn, on_entry, function);
	if (opcode == 0xfa)
		call_back(insn->insn, on_disable, function);
	else if (opcode == 0xfb)
		call_back(insn->insn, on_enable, 0);
	else if (opcode == 0xe8 || opcode == 0xe9)
		translate_direct(insn);
}

static bool is_call(const struct insn *insn)
{
	const uint8_t *opcode = insn->bytes + insn->opcode;

	return *opcode == 0xe8 || (*opcode == 0xff && insn->opcode + 1 < insn->size &&
				   (opcode[1] >> 3 & 7) == 2);
}

static void translate_insn(struct qemu_plugin_insn *of)
{
	const struct insn insn = read_insn(of);
	unsigned int bytes = repeated_bytes(of);
	uint8_t opcode;
	int calls = 0;

	if (insn.address < KERNEL)
		return;
	if (bytes) {
		call_back(of, on_repeating, bytes);
		return;
	}
	if (insn.opcode < insn.size) {
		opcode = insn.bytes[insn.opcode];
		if (in_module(insn.address))
			translate_module(&insn, opcode);
		else if (bsearch(&insn.address, interrupts, nr_interrupts, sizeof(*interrupts),
				 by_number))
			call_back(of, on_interrupt, 0);
		if (is_call(&insn)) {
			calls = 1;
		} else if (opcode == 0xc3 || opcode == 0xc2) {
			call_back(of, on_return, 0);
			calls = -1;
		} else if (opcode == 0xcf) {
			call_back(of, on_interrupt_return, 0);
		}
	}
	count_insn(of, &counters, TOTAL, 1);
	if (calls)
		count_insn(of, &counters, DEPTH, calls);
}

static void write_out(void)
{
	FILE *file = fopen(out_path, "w");
	int kind;
	size_t i;

	if (!file)
		die("no file for the figures");
	for (kind = 0; kind < KINDS; kind++)
		for (i = 0; i < nr_functions; i++)
			if (figures[kind][i].times)
				fprintf(file, "%s %s %" PRIu64 " %" PRIu64 "\n", kind_names[kind],
					functions[i].name, figures[kind][i].times,
					figures[kind][i].most);
	fclose(file);
}

static void translate_counting(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);

static void count_from_now(qemu_plugin_id_t id)
{
	counters = counters_new(COUNTERS);
	total = &counters.values[TOTAL];
	depth = &counters.values[DEPTH];
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate_counting);
}

CALLBACK(on_mark)
{
	(void)vcpu;
	if ((uintptr_t)context == MARK_END) {
		write_out();
	} else if (!nr_functions) {
		read_symbols();
		qemu_plugin_reset(plugin, count_from_now);
	}
}

/* Until the begin mark: nothing else is looked at. */
static void translate_marks(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t i, n = qemu_plugin_tb_n_insns(tb);

	(void)id;
	for (i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint32_t mark = mark_of(insn);

		if (mark)
			call_back(insn, on_mark, mark);
	}
}

static void translate_counting(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t i, n = qemu_plugin_tb_n_insns(tb);

	for (i = 0; i < n; i++)
		translate_insn(qemu_plugin_tb_get_insn(tb, i));
	translate_marks(id, tb);
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv)
{
	int i;

	for (i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			out_path = strdup(argv[i] + 4);
		else if (!strncmp(argv[i], "symbols=", 8))
			symbols_path = strdup(argv[i] + 8);
	}
	if (!out_path || !symbols_path || strcmp(info->target_name, "x86_64") ||
	    info->system.max_vcpus != 1) {
		fprintf(stderr, "sections: wants out=FILE,symbols=FILE, on one x86_64 vCPU\n");
		return -1;
	}
	plugin = id;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate_marks);
	return 0;
}
