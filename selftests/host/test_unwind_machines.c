// SPDX-License-Identifier: MIT
/*
 * Chains of other machines' programs are those of a shadow stack, at every instruction: as
 * test_unwind_walker does here. QEMU runs selftests/truth/stacks.c, a static program, one
 * instruction at a time, and tells the registers by the protocol of gdb. Of its stack there is what
 * the module would keep. Signals are left out: QEMU's own return from a handler has no table, which
 * that of Linux has; the VM tests try it.
 *
 * On some machines most functions of the C library have no tables. Where such a function is on the
 * shadow stack, chains are not compared; these instructions are counted.
 *
 *	test_unwind_machines [--all]
 *
 * --all: all machines whose compilers are here, and more instructions; otherwise some of arm64's.
 */
#include "../lib/gather.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/shadow.h"
#include "../lib/tap.h"
#include "base/array.h"
#include "sym/elf/elf.h"
#include "sym/elf/unwind.h"

#ifndef EM_RISCV	/* older <elf.h> */
#define EM_RISCV	243
#endif

#define GUEST_BASE	(UINT64_C(1) << 40)	/* where QEMU puts address 0 of the program */
#define SOME		20000			/* instructions that are compared */
#define MANY		100000
#define AT_MOST		5			/* times as many are executed */
#define ARM_CPSR	(16 * 4 + 8 * 12 + 4)	/* behind the registers of old coprocessors */

struct machine {
	const char *name, *qemu, *compiler;
	uint16_t elf;
	unsigned int word;
	bool big;			/* its byte order */
	unsigned int nr;		/* general registers that the protocol tells first */
	unsigned int pc;		/* bytes in front of the program counter */
	uint64_t kept;			/* the registers that the module keeps (user_registers.c) */
	double percent;			/* of the chains that have to be right */
};

static const struct machine machines[] = {
	{ "arm64", "qemu-aarch64-static", "aarch64-linux-gnu-gcc", EM_AARCH64, 8, false, 32,
	  32 * 8, 0xfff80000, 99.5 },
	{ "armhf", "qemu-arm-static", "arm-linux-gnueabihf-gcc", EM_ARM, 4, false, 15, 15 * 4,
	  0x6ff0, 98 },
	{ "i386", "qemu-i386-static", "i686-linux-gnu-gcc", EM_386, 4, false, 8, 8 * 4, 0xfa, 98 },
	{ "s390x", "qemu-s390x-static", "s390x-linux-gnu-gcc", EM_S390, 8, true, 16, 8, 0xffc0, 98 },
	{ "riscv64", "qemu-riscv64-static", "riscv64-linux-gnu-gcc", EM_RISCV, 8, false, 32, 32 * 8,
	  0x0ffc0306, 98 },
};

struct tracee {
	const struct machine *machine;
	const struct kb_unwind_machine *unwind;
	pid_t pid;
	int gdb;			/* a socket */
	struct kb_unwind_rows rows;
	struct kb_elf elf;
	struct shadow shadow;
	unsigned long without;		/* instructions that were not compared */
	struct gather_task task;	/* with the registers, all of them */
	bool thumb;			/* the program executes armhf's short instructions */
};

static bool read_memory(const struct tracee *tracee, uint64_t address, void *to, size_t size)
{
	struct iovec here = { to, size }, there = { (void *)(address + GUEST_BASE), size };

	return process_vm_readv(tracee->pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static uint64_t number_at(const struct machine *machine, const uint8_t *at, unsigned int size)
{
	uint64_t number = 0;

	for (unsigned int i = 0; i < size; i++)
		number |= (uint64_t)at[machine->big ? size - 1 - i : i] << (8 * i);
	return number;
}

/* ---- the protocol of gdb ---- */

/* Sends @command. Returns the length of the answer, which is in @answer; -1: there is none. */
static int ask(const struct tracee *tracee, const char *command, char *answer, size_t size)
{
	unsigned int sum = 0;
	char packet[64], got;
	size_t length = 0;
	bool begun = false;

	for (const char *at = command; *at; at++)
		sum += (unsigned char)*at;
	/* The first character says that the answer before was received. */
	snprintf(packet, sizeof(packet), "+$%s#%02x", command, sum & 0xff);
	if (write(tracee->gdb, packet, strlen(packet)) != (ssize_t)strlen(packet))
		return -1;
	for (;;) {
		char piece[2048];
		ssize_t nr = read(tracee->gdb, piece, sizeof(piece));

		if (nr <= 0)
			return -1;
		for (ssize_t i = 0; i < nr; i++) {
			got = piece[i];
			if (got == '$')
				begun = true;
			else if (got == '#' && begun) {
				answer[length] = '\0';
				return (int)length;
			} else if (begun && length < size - 1)
				answer[length++] = got;
		}
	}
}

static unsigned int digit(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

static bool read_registers(struct tracee *tracee)
{
	const struct machine *machine = tracee->machine;
	uint64_t *value = tracee->task.registers.value;
	unsigned int first = machine->elf == EM_S390 ? 16 : 0;
	char text[8192];
	uint8_t bytes[4096];
	int length = ask(tracee, "g", text, sizeof(text)) / 2;

	if (length < (int)(machine->pc + machine->word))
		return false;
	for (int i = 0; i < length; i++)
		bytes[i] = digit(text[2 * i]) << 4 | digit(text[2 * i + 1]);
	for (unsigned int i = 0; i < machine->nr; i++)
		value[i] = number_at(machine, bytes + first + i * machine->word, machine->word);
	value[KB_UNWIND_PC] = number_at(machine, bytes + machine->pc, machine->word);
	tracee->thumb = machine->elf == EM_ARM && length >= ARM_CPSR + 4 &&
			bytes[ARM_CPSR] & 0x20;
	return true;
}

/* ---- the calls ---- */

/* The length of the instruction at PC; 0: it isn't known. */
static unsigned int instruction_length(const struct tracee *tracee)
{
	uint64_t pc = tracee->task.registers.value[KB_UNWIND_PC];
	uint8_t code[2] = { 0 };

	switch (tracee->machine->elf) {
	case EM_AARCH64:
		return 4;
	case EM_RISCV:
		return read_memory(tracee, pc, code, 2) && (code[0] & 3) != 3 ? 2 : 4;
	case EM_S390:
		if (!read_memory(tracee, pc, code, 2))
			return 0;
		return code[0] < 0x40 ? 2 : code[0] < 0xc0 ? 4 : 6;
	case EM_ARM:
		return tracee->thumb && read_memory(tracee, pc, code, 2) && code[1] < 0xe8 ? 2 : 4;
	default:
		return 0;
	}
}

static bool is_start_of_function(const struct tracee *tracee, uint64_t pc)
{
	struct kb_unwind_bounds bounds = { 0 };

	return kb_unwind_function_at(&tracee->rows, pc, &bounds) && bounds.start == pc;
}

static bool are_of_one_function(const struct tracee *tracee, uint64_t a, uint64_t b)
{
	struct kb_unwind_bounds bounds = { 0 };

	return kb_unwind_function_at(&tracee->rows, a, &bounds) && b >= bounds.start &&
	       b < bounds.end;
}

/*
 * A call of a machine with a link register leaves SP as it is. So a function has returned if the
 * program is at the caller's next instruction; or, by longjmp() or an exception, elsewhere in the
 * calling function.
 */
static void end_calls_by_place(struct tracee *tracee, uint64_t pc, uint64_t sp)
{
	const struct shadow_call *top;

	while ((top = shadow_top(&tracee->shadow)) && top->slot == sp &&
	       (top->pc == pc || (are_of_one_function(tracee, top->pc, pc) &&
				  !is_start_of_function(tracee, pc))))
		tracee->shadow.depth--;
}

/* Execute one instruction. False: the program has ended. */
static bool step(struct tracee *tracee)
{
	const struct kb_unwind_machine *unwind = tracee->unwind;
	const uint64_t *value = tracee->task.registers.value;
	uint64_t before = value[KB_UNWIND_PC], sp_before = value[unwind->sp], sp, pc, link;
	unsigned int length = instruction_length(tracee);
	uint8_t word[8];
	char answer[4096];

	if (ask(tracee, "s", answer, sizeof(answer)) < 0 || answer[0] != 'T' ||
	    !read_registers(tracee))
		return false;
	pc = value[KB_UNWIND_PC];
	sp = value[unwind->sp];
	shadow_end_calls(&tracee->shadow, sp);
	if (!unwind->link) {
		if (sp == sp_before - tracee->machine->word &&
		    read_memory(tracee, sp, word, tracee->machine->word)) {
			link = number_at(tracee->machine, word, tracee->machine->word);
			if (link - before >= 2 && link - before <= 7)
				shadow_push(&tracee->shadow, sp, link);
		}
		return true;
	}
	if (pc == before + length)
		return true;
	link = value[unwind->link];
	if ((link & ~(uint64_t)unwind->pc_flags) == before + length)
		shadow_push(&tracee->shadow, sp, before + length);
	else
		end_calls_by_place(tracee, pc, sp);
	return true;
}

/* ---- our chain ---- */

static const struct kb_unwind_rows *find_rows(void *closure, uint64_t address, uint64_t *bias)
{
	struct tracee *tracee = closure;

	(void)address;
	*bias = 0;
	return &tracee->rows;
}

static bool read_stack(const struct gather_task *task, u64 from, void *to, size_t size)
{
	const struct tracee *tracee = (const void *)((const char *)task -
						     offsetof(struct tracee, task));

	return read_memory(tracee, from, to, size);
}

/* "FUNCTION", by the symbols of the program. */
static void name_of(void *closure, const struct kb_unwind_frame *frame, char *text, size_t size)
{
	const struct tracee *tracee = closure;
	struct kb_symtab_hit hit = { 0 };

	kb_symtab_find(&tracee->elf.symbols, kb_unwind_lookup(frame), &hit);
	snprintf(text, size, "%#" PRIx64 " %s", frame->pc,
		 hit.symbol ? kb_symtab_name(&tracee->elf.symbols, hit.symbol) : "");
}

static bool has_table(const struct tracee *tracee, uint64_t address)
{
	return kb_unwind_rule_at(&tracee->rows, address)->what == KB_UNWIND_RULE;
}

/* All functions of the shadow stack, but _start, which has no caller. */
static bool have_tables(const struct tracee *tracee)
{
	const struct shadow *shadow = &tracee->shadow;

	if (shadow->depth && !has_table(tracee, tracee->task.registers.value[KB_UNWIND_PC]))
		return false;
	for (unsigned int i = 1; i < shadow->depth; i++)
		if (!has_table(tracee, shadow->calls[i].pc - 1))
			return false;
	return true;
}

static void check_chain(struct tracee *tracee)
{
	struct kb_unwind_sparse sparse;

	if (!have_tables(tracee)) {
		tracee->without++;
		return;
	}
	sparse = gather(&tracee->task);
	shadow_check(&tracee->shadow, &sparse.registers, &sparse.stack, find_rows, name_of, tracee);
}

/* ---- the tests ---- */

static char directory[] = "/tmp/kbarman-machines-XXXXXX";

/* Connect to the QEMU that listens at @path, or will soon. Returns a socket, or -1. */
static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	for (int i = 0; i < 1000; i++) {
		if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
			return fd;
		usleep(10000);
	}
	close(fd);
	return -1;
}

static bool start(struct tracee *tracee, const char *program)
{
	char path[64], base[32];

	snprintf(path, sizeof(path), "%s/gdb", directory);
	snprintf(base, sizeof(base), "%#" PRIx64, GUEST_BASE);
	tracee->pid = fork();
	if (tracee->pid == 0) {
		int null = open("/dev/null", O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(null, 0);
		dup2(null, 1);
		/* An argument: without signals */
		execlp(tracee->machine->qemu, tracee->machine->qemu, "-B", base, "-g", path,
		       program, "quiet", NULL);
		_exit(127);
	}
	tracee->gdb = tracee->pid > 0 ? connect_to(path) : -1;
	unlink(path);
	return tracee->gdb >= 0 && read_registers(tracee);
}

/* The end of the mapping that has the stack. */
static void find_stack(struct tracee *tracee)
{
	uint64_t sp = tracee->task.registers.value[tracee->unwind->sp] + GUEST_BASE;
	unsigned long low, high;
	char path[64], line[512];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", tracee->pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &low, &high) == 2 && sp >= low && sp < high)
			tracee->task.stack_high = high - GUEST_BASE;
	if (maps)
		fclose(maps);
}

static bool take_program(struct tracee *tracee, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool good = fd >= 0 && !kb_elf_load(&tracee->elf, path, NULL);
	struct kbarman_range code;

	for (uint32_t i = 0; i < tracee->elf.nr_segments; i++) {
		const struct kb_elf_segment *segment = &tracee->elf.segments[i];

		code = (struct kbarman_range) { segment->vaddr, segment->size };
		if (segment->executable)
			kbarman_range_include(&tracee->task.code[0], &code);
	}
	if (fd >= 0)
		kb_elf_unwind_fd(&tracee->rows, fd, -1, path, NULL);
	if (fd >= 0)
		close(fd);
	return good && tracee->rows.header;
}

static void trace(const struct machine *machine, const char *program, unsigned long limit,
		  const char *promise)
{
	struct tracee *tracee = calloc(1, sizeof(*tracee));
	struct shadow *shadow = &tracee->shadow;

	tracee->machine = machine;
	tracee->unwind = kb_unwind_machine(machine->elf, machine->word);
	tracee->task.machine = tracee->unwind;
	tracee->task.kept = machine->kept;
	tracee->task.swap = machine->big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	tracee->task.read = read_stack;
	if (take_program(tracee, program) && start(tracee, program)) {
		shadow->entry = tracee->task.registers.value[KB_UNWIND_PC];
		find_stack(tracee);
		do
			check_chain(tracee);
		while (shadow->steps < limit && tracee->without < AT_MOST * limit && step(tracee));
	}
	if (tracee->pid > 0) {
		kill(tracee->pid, SIGKILL);
		waitpid(tracee->pid, NULL, 0);
	}
	tap_ok(shadow_suffices(shadow, machine->percent), promise);
	shadow_tell(shadow, machine->word);
	tap_note("%lu instructions below functions without a table were not compared",
		 tracee->without);
	kb_unwind_rows_release(&tracee->rows);
	kb_elf_release(&tracee->elf);
	if (tracee->gdb >= 0)
		close(tracee->gdb);
	free(tracee);
}

static bool is_there(const char *program)
{
	char command[128];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", program);
	return !system(command);
}

static void try_machine(const struct machine *machine, unsigned long limit)
{
	char promise[128], command[512], program[64];

	snprintf(promise, sizeof(promise), "chains_of_%s_are_those_of_the_shadow_stack",
		 machine->name);
	snprintf(program, sizeof(program), "%s/a.out", directory);
	snprintf(command, sizeof(command), "%s -O2 -fomit-frame-pointer -static -no-pie -w "
		 "-funwind-tables -fasynchronous-unwind-tables selftests/truth/stacks.c -lm -o %s "
		 "2>/dev/null", machine->compiler, program);
	if (!is_there(machine->qemu) || !is_there(machine->compiler))
		tap_skip(promise, "its compiler or QEMU is not installed");
	else if (tap_ok(!system(command), "its_program_can_be_built"))
		trace(machine, program, limit, promise);
	unlink(program);
}

int main(int argc, char **argv)
{
	bool all = argc == 2 && !strcmp(argv[1], "--all");

	if (!mkdtemp(directory))
		return 1;
	for (unsigned int i = 0; i < (all ? ARRAY_SIZE(machines) : 1); i++)
		try_machine(&machines[i], all ? MANY : SOME);
	rmdir(directory);
	tap_is(shadow_misled, 0, "registers_that_no_walk_used_do_not_matter");
	return tap_done();
}
