// SPDX-License-Identifier: MIT
/*
 * Keeps a BPF program on the switch of tasks, or with the argument "waking" on their wakeup, that
 * writes a record into a BPF ring buffer, until standard input ends; then prints the records and
 * the bytes in the ring.
 *
 * The program is the cheapest of its kind: it gets the tasks as arguments that it may read without
 * a helper (BPF_TRACE_RAW_TP), and reserves its record in place. It is given here as instructions,
 * so that no compiler for BPF is needed; what they depend on of this kernel is looked up in its
 * type information.
 */
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "hold.h"

#define TYPES		"/sys/kernel/btf/vmlinux"
#define RING_BYTES	(64U << 20)	/* nobody reads: room for all that is measured */

/* The record: as many bytes as one of a switch in a Barman capture. */
struct record {
	uint64_t time;
	uint32_t cpu, previous, next, previous_state;
};

/* Of a wakeup: what it takes to say who woke whom, and who was where. */
struct wakeup {
	uint64_t time;
	uint32_t cpu, waker, woken, woken_cpu;
};

static int bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* ---- the kernel's types ---- */

static const char *types, *strings;
static size_t types_size;

static void load_types(void)
{
	static char data[32 << 20];
	const struct btf_header *header = (const void *)data;
	size_t size = 0;
	ssize_t got;
	int fd = open(TYPES, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die(TYPES);
	while ((got = read(fd, data + size, sizeof(data) - size)) > 0)
		size += got;
	close(fd);
	if (got < 0 || size < sizeof(*header) || header->magic != BTF_MAGIC)
		die(TYPES);
	types = data + header->hdr_len + header->type_off;
	types_size = header->type_len;
	strings = data + header->hdr_len + header->str_off;
}

/* The bytes that follow a type. */
static size_t tail(const struct btf_type *type)
{
	unsigned int n = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return n * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return n * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return n * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return n * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return n * sizeof(struct btf_var_secinfo);
	}
	return 0;
}

static const struct btf_type *find_type(unsigned int kind, const char *name, uint32_t *id)
{
	const char *at = types;

	for (*id = 1; at < types + types_size; ++*id) {
		const struct btf_type *type = (const void *)at;

		if (BTF_INFO_KIND(type->info) == kind && !strcmp(strings + type->name_off, name))
			return type;
		at += sizeof(*type) + tail(type);
	}
	fprintf(stderr, "hold_bpf: the kernel's types have no %s\n", name);
	exit(1);
}

static unsigned int offset_of(const char *structure, const char *name)
{
	uint32_t id;
	const struct btf_type *type = find_type(BTF_KIND_STRUCT, structure, &id);
	const struct btf_member *member = (const void *)(type + 1);

	for (unsigned int i = 0; i < BTF_INFO_VLEN(type->info); i++, member++)
		if (!strcmp(strings + member->name_off, name))
			return (BTF_INFO_KFLAG(type->info) ? BTF_MEMBER_BIT_OFFSET(member->offset) :
							     member->offset) / 8;
	fprintf(stderr, "hold_bpf: %s has no %s\n", structure, name);
	exit(1);
}

/* ---- the program ---- */

#define INSN(c, d, s, o, i) \
	((struct bpf_insn) { .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define MOVE(to, from)		INSN(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0)
#define SET(to, number)		INSN(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, number)
#define CALL(function)		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, function)
#define LOAD(size, to, from, offset) \
	INSN(BPF_LDX | BPF_MEM | (size), to, from, offset, 0)
#define STORE(size, to, offset, from) \
	INSN(BPF_STX | BPF_MEM | (size), to, from, offset, 0)
#define FIELD(name)		((short)offsetof(struct record, name))
#define WAKEUP(name)		((short)offsetof(struct wakeup, name))
/* of the tracepoint, in order: preempt, prev, next, prev_state; or the task that is woken */
#define ARGUMENT(n)		((n) * 8)

/* The beginning and the end of both programs, which reserve a record and submit it. */
#define RESERVE(map, jump)							\
	MOVE(BPF_REG_6, BPF_REG_1),						\
	INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map),	\
	INSN(0, 0, 0, 0, 0),							\
	SET(BPF_REG_2, sizeof(struct record)),					\
	SET(BPF_REG_3, 0),							\
	CALL(BPF_FUNC_ringbuf_reserve),						\
	INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, jump, 0),			\
	MOVE(BPF_REG_7, BPF_REG_0),						\
	CALL(BPF_FUNC_ktime_get_ns),						\
	STORE(BPF_DW, BPF_REG_7, FIELD(time), BPF_REG_0),			\
	CALL(BPF_FUNC_get_smp_processor_id),					\
	STORE(BPF_W, BPF_REG_7, FIELD(cpu), BPF_REG_0)
#define SUBMIT									\
	MOVE(BPF_REG_1, BPF_REG_7),						\
	SET(BPF_REG_2, 0),							\
	CALL(BPF_FUNC_ringbuf_submit),						\
	SET(BPF_REG_0, 0),							\
	INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static int load(const char *tracepoint, const struct bpf_insn *program, size_t length)
{
	static char log[1 << 16];
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_TRACING,
		.expected_attach_type = BPF_TRACE_RAW_TP,
		.insns = (uintptr_t)program,
		.insn_cnt = length,
		.license = (uintptr_t)"Dual MIT/GPL",
		.log_buf = (uintptr_t)log,
		.log_size = sizeof(log),
		.log_level = 1,
	};
	int fd;

	find_type(BTF_KIND_TYPEDEF, tracepoint, &attr.attach_btf_id);
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0) {
		fputs(log, stderr);
		die("hold_bpf: the program does not load");
	}
	return fd;
}

static int load_switch(int map)
{
	short pid = offset_of("task_struct", "pid");
	const struct bpf_insn program[] = {
		RESERVE(map, 16),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_6, ARGUMENT(1)),
		LOAD(BPF_W, BPF_REG_1, BPF_REG_1, pid),
		STORE(BPF_W, BPF_REG_7, FIELD(previous), BPF_REG_1),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_6, ARGUMENT(2)),
		LOAD(BPF_W, BPF_REG_1, BPF_REG_1, pid),
		STORE(BPF_W, BPF_REG_7, FIELD(next), BPF_REG_1),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_6, ARGUMENT(3)),
		STORE(BPF_W, BPF_REG_7, FIELD(previous_state), BPF_REG_1),
		SUBMIT,
	};

	return load("btf_trace_sched_switch", program, sizeof(program) / sizeof(program[0]));
}

static int load_waking(int map)
{
	short pid = offset_of("task_struct", "pid");
	short info = offset_of("task_struct", "thread_info"), cpu = offset_of("thread_info", "cpu");
	const struct bpf_insn program[] = {
		RESERVE(map, 15),
		CALL(BPF_FUNC_get_current_pid_tgid),
		STORE(BPF_W, BPF_REG_7, WAKEUP(waker), BPF_REG_0),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_6, ARGUMENT(0)),
		LOAD(BPF_W, BPF_REG_2, BPF_REG_1, pid),
		STORE(BPF_W, BPF_REG_7, WAKEUP(woken), BPF_REG_2),
		LOAD(BPF_W, BPF_REG_2, BPF_REG_1, info + cpu),
		STORE(BPF_W, BPF_REG_7, WAKEUP(woken_cpu), BPF_REG_2),
		SUBMIT,
	};

	return load("btf_trace_sched_waking", program, sizeof(program) / sizeof(program[0]));
}

/* ---- the ring ---- */

static uint64_t count_records(const char *data, uint64_t end)
{
	uint64_t at = 0, records = 0;
	uint32_t length;

	while (at < end) {
		memcpy(&length, data + at, sizeof(length));
		length &= ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		at += (length + BPF_RINGBUF_HDR_SZ + 7) & ~7ULL;
		records++;
	}
	return records;
}

int main(int argc, char **argv)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_RINGBUF, .max_entries = RING_BYTES };
	size_t page = sysconf(_SC_PAGESIZE);
	const char *ring;
	uint64_t bytes;
	int map, program;

	load_types();
	map = bpf(BPF_MAP_CREATE, &attr);
	if (map < 0)
		die("hold_bpf: no ring buffer");
	program = argc > 1 && !strcmp(argv[1], "waking") ? load_waking(map) : load_switch(map);
	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.prog_fd = program;
	if (bpf(BPF_RAW_TRACEPOINT_OPEN, &attr) < 0)
		die("hold_bpf: the program does not attach");
	/* The producer's page, and the data behind it. */
	ring = mmap(NULL, page + RING_BYTES, PROT_READ, MAP_SHARED, map, page);
	if (ring == MAP_FAILED)
		die("hold_bpf: mmap");
	hold();
	bytes = __atomic_load_n((const uint64_t *)ring, __ATOMIC_ACQUIRE);
	if (bytes > RING_BYTES - page) {
		fprintf(stderr, "hold_bpf: the ring was full: later records were not written\n");
		return 1;
	}
	printf("%llu %llu\n", (unsigned long long)count_records(ring + page, bytes),
	       (unsigned long long)bytes);
	return 0;
}
