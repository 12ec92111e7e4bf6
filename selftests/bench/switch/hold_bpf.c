// SPDX-License-Identifier: MIT
/*
 * Keeps a BPF program on the switch of tasks, or on their wakeup, that writes a record into a BPF
 * ring buffer; or two on system calls, the second of which does so:
 *
 *	hold_bpf [waking | syscalls]
 *		until standard input ends; then prints the records and the bytes in the ring
 *	hold_bpf record FILE COMMAND...
 *		of switches, until the command ends, and writes the records to a file meanwhile;
 *		prints how many records were lost
 *
 * The program is the cheapest of its kind: it gets the tasks as arguments that it may read without
 * a helper (BPF_TRACE_RAW_TP), and reserves its record in place. When a call began is in a map by
 * thread, whose element stays for the next call. It is given here as instructions, so that no
 * compiler for BPF is needed; what they depend on of this kernel is looked up in its type
 * information.
 */
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stddef.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "hold.h"

#define TYPES		"/sys/kernel/btf/vmlinux"
#define RING_BYTES	(64U << 20)	/* nobody reads: room for all that is measured */
#define READ_RING_BYTES	(4U << 20)	/* somebody does */

extern char **environ;

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

/* Of a system call: what one of a Barman capture says. */
struct call {
	uint64_t time;
	uint32_t cpu, task;
	uint64_t number, begin, result, arguments[3];
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
#define OF_CALL(name)		((short)offsetof(struct call, name))
#define MAP(to, map) \
	INSN(BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_FD, 0, map), INSN(0, 0, 0, 0, 0)
#define ADD(to, number)		INSN(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, number)
#define STACK(to, offset)	MOVE(to, BPF_REG_10), ADD(to, offset)
#define IF_ZERO(of, jump)	INSN(BPF_JMP | BPF_JEQ | BPF_K, of, 0, jump, 0)
#define LEAVE			SET(BPF_REG_0, 0), INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/*
 * of the tracepoint, in order: preempt, prev, next, prev_state; or the task that is woken; or registers and
 * number or result of a call
 */
#define ARGUMENT(n)		((n) * 8)

/*
 * The beginning and the end of programs, which reserve a record of @bytes and submit it; without room
 * they count it as lost.
 */
#define RESERVE(map, bytes, jump)						\
	MAP(BPF_REG_1, map),							\
	SET(BPF_REG_2, bytes),							\
	SET(BPF_REG_3, 0),							\
	CALL(BPF_FUNC_ringbuf_reserve),						\
	IF_ZERO(BPF_REG_0, jump),						\
	MOVE(BPF_REG_7, BPF_REG_0),						\
	CALL(BPF_FUNC_ktime_get_ns),						\
	STORE(BPF_DW, BPF_REG_7, FIELD(time), BPF_REG_0),			\
	CALL(BPF_FUNC_get_smp_processor_id),					\
	STORE(BPF_W, BPF_REG_7, FIELD(cpu), BPF_REG_0)
#define SUBMIT									\
	MOVE(BPF_REG_1, BPF_REG_7),						\
	SET(BPF_REG_2, 0),							\
	CALL(BPF_FUNC_ringbuf_submit),						\
	LEAVE
#define LOSE(lost)								\
	INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_VALUE, 0, lost), \
	INSN(0, 0, 0, 0, 0),							\
	SET(BPF_REG_2, 1),							\
	INSN(BPF_STX | BPF_DW | BPF_ATOMIC, BPF_REG_1, BPF_REG_2, 0, BPF_ADD),	\
	LEAVE
/* The element of this thread, whose number is at the end of the stack then. */
#define FIND_THREAD(map)							\
	CALL(BPF_FUNC_get_current_pid_tgid),					\
	MOVE(BPF_REG_8, BPF_REG_0),						\
	STORE(BPF_W, BPF_REG_10, -4, BPF_REG_8),				\
	MAP(BPF_REG_1, map),							\
	STACK(BPF_REG_2, -4),							\
	CALL(BPF_FUNC_map_lookup_elem)

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

static int load_switch(int map, int lost)
{
	short pid = offset_of("task_struct", "pid");
	const struct bpf_insn program[] = {
		MOVE(BPF_REG_6, BPF_REG_1),
		RESERVE(map, sizeof(struct record), 18),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_6, ARGUMENT(1)),
		LOAD(BPF_W, BPF_REG_1, BPF_REG_1, pid),
		STORE(BPF_W, BPF_REG_7, FIELD(previous), BPF_REG_1),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_6, ARGUMENT(2)),
		LOAD(BPF_W, BPF_REG_1, BPF_REG_1, pid),
		STORE(BPF_W, BPF_REG_7, FIELD(next), BPF_REG_1),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_6, ARGUMENT(3)),
		STORE(BPF_W, BPF_REG_7, FIELD(previous_state), BPF_REG_1),
		SUBMIT,
		LOSE(lost),
	};

	return load("btf_trace_sched_switch", program, sizeof(program) / sizeof(program[0]));
}

static int load_waking(int map, int lost)
{
	short pid = offset_of("task_struct", "pid");
	short info = offset_of("task_struct", "thread_info"), cpu = offset_of("thread_info", "cpu");
	const struct bpf_insn program[] = {
		MOVE(BPF_REG_6, BPF_REG_1),
		RESERVE(map, sizeof(struct wakeup), 17),
		CALL(BPF_FUNC_get_current_pid_tgid),
		STORE(BPF_W, BPF_REG_7, WAKEUP(waker), BPF_REG_0),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_6, ARGUMENT(0)),
		LOAD(BPF_W, BPF_REG_2, BPF_REG_1, pid),
		STORE(BPF_W, BPF_REG_7, WAKEUP(woken), BPF_REG_2),
		LOAD(BPF_W, BPF_REG_2, BPF_REG_1, info + cpu),
		STORE(BPF_W, BPF_REG_7, WAKEUP(woken_cpu), BPF_REG_2),
		SUBMIT,
		LOSE(lost),
	};

	return load("btf_trace_sched_waking", program, sizeof(program) / sizeof(program[0]));
}

static int load_enter(int begins)
{
	const struct bpf_insn program[] = {
		FIND_THREAD(begins),
		IF_ZERO(BPF_REG_0, 5),
		MOVE(BPF_REG_7, BPF_REG_0),
		CALL(BPF_FUNC_ktime_get_ns),
		STORE(BPF_DW, BPF_REG_7, 0, BPF_REG_0),
		LEAVE,
		CALL(BPF_FUNC_ktime_get_ns),
		STORE(BPF_DW, BPF_REG_10, -16, BPF_REG_0),
		MAP(BPF_REG_1, begins),
		STACK(BPF_REG_2, -4),
		STACK(BPF_REG_3, -16),
		SET(BPF_REG_4, BPF_ANY),
		CALL(BPF_FUNC_map_update_elem),
		LEAVE,
	};

	return load("btf_trace_sys_enter", program, sizeof(program) / sizeof(program[0]));
}

static int load_exit(int begins, int map, int lost)
{
#if defined(__aarch64__)
	short number = offset_of("pt_regs", "syscallno"), first = offset_of("pt_regs", "orig_x0");
	short second = 8, third = 16;	/* regs[1], regs[2] */
#else
	short number = offset_of("pt_regs", "orig_ax"), first = offset_of("pt_regs", "di");
	short second = offset_of("pt_regs", "si"), third = offset_of("pt_regs", "dx");
#endif
	const struct bpf_insn program[] = {
		MOVE(BPF_REG_6, BPF_REG_1),
		FIND_THREAD(begins),
		SET(BPF_REG_9, 0),
		IF_ZERO(BPF_REG_0, 2),
		LOAD(BPF_DW, BPF_REG_9, BPF_REG_0, 0),
		INSN(BPF_ST | BPF_MEM | BPF_DW, BPF_REG_0, 0, 0, 0),
		RESERVE(map, sizeof(struct call), 23),
		STORE(BPF_W, BPF_REG_7, OF_CALL(task), BPF_REG_8),
		STORE(BPF_DW, BPF_REG_7, OF_CALL(begin), BPF_REG_9),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_6, ARGUMENT(1)),
		STORE(BPF_DW, BPF_REG_7, OF_CALL(result), BPF_REG_1),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_6, ARGUMENT(0)),
		LOAD(BPF_W, BPF_REG_2, BPF_REG_1, number),
		STORE(BPF_DW, BPF_REG_7, OF_CALL(number), BPF_REG_2),
		LOAD(BPF_DW, BPF_REG_2, BPF_REG_1, first),
		STORE(BPF_DW, BPF_REG_7, OF_CALL(arguments[0]), BPF_REG_2),
		LOAD(BPF_DW, BPF_REG_2, BPF_REG_1, second),
		STORE(BPF_DW, BPF_REG_7, OF_CALL(arguments[1]), BPF_REG_2),
		LOAD(BPF_DW, BPF_REG_2, BPF_REG_1, third),
		STORE(BPF_DW, BPF_REG_7, OF_CALL(arguments[2]), BPF_REG_2),
		SUBMIT,
		LOSE(lost),
	};

	return load("btf_trace_sys_exit", program, sizeof(program) / sizeof(program[0]));
}

/* ---- the ring ---- */

struct ring {
	int map;
	uint64_t *consumer;	/* a page that the reader writes */
	const uint64_t *producer;
	const char *data;	/* twice, one behind the other */
	uint32_t bytes;
	const uint64_t *lost;
};

static void attach(int program)
{
	union bpf_attr attr = { .raw_tracepoint.prog_fd = program };

	if (bpf(BPF_RAW_TRACEPOINT_OPEN, &attr) < 0)
		die("hold_bpf: the program does not attach");
}

static void attach_switch(int map, int lost)
{
	attach(load_switch(map, lost));
}

static void attach_waking(int map, int lost)
{
	attach(load_waking(map, lost));
}

static void attach_syscalls(int map, int lost)
{
	union bpf_attr threads = {
		.map_type = BPF_MAP_TYPE_HASH, .key_size = 4, .value_size = 8, .max_entries = 1 << 16,
	};
	int begins = bpf(BPF_MAP_CREATE, &threads);

	if (begins < 0)
		die("hold_bpf: no map");
	attach(load_exit(begins, map, lost));
	attach(load_enter(begins));
}

static void *map_pages(int fd, size_t offset, size_t length, int how)
{
	void *at = mmap(NULL, length, how, MAP_SHARED, fd, offset);

	if (at == MAP_FAILED)
		die("hold_bpf: mmap");
	return at;
}

/* Makes a ring of @bytes, and has programs write into it from now on. */
static struct ring open_ring(uint32_t bytes, void (*attach_to)(int map, int lost))
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_RINGBUF, .max_entries = bytes };
	union bpf_attr count = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1,
		.map_flags = BPF_F_MMAPABLE,
	};
	size_t page = sysconf(_SC_PAGESIZE);
	struct ring ring = { .map = bpf(BPF_MAP_CREATE, &attr), .bytes = bytes };
	int lost = bpf(BPF_MAP_CREATE, &count);

	if (ring.map < 0 || lost < 0)
		die("hold_bpf: no ring buffer");
	attach_to(ring.map, lost);
	ring.lost = map_pages(lost, 0, page, PROT_READ);
	ring.consumer = map_pages(ring.map, 0, page, PROT_READ | PROT_WRITE);
	ring.producer = map_pages(ring.map, page, page + 2 * (size_t)bytes, PROT_READ);
	ring.data = (const char *)ring.producer + page;
	return ring;
}

static uint64_t produced(const struct ring *ring)
{
	return __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
}

/* The next record's bytes in the ring, its header included; 0: it is not finished. */
static uint32_t next_record(const struct ring *ring, uint64_t at)
{
	uint32_t length = __atomic_load_n((const uint32_t *)(ring->data + at % ring->bytes),
					  __ATOMIC_ACQUIRE);

	if (length & BPF_RINGBUF_BUSY_BIT)
		return 0;
	return ((length & ~BPF_RINGBUF_DISCARD_BIT) + BPF_RINGBUF_HDR_SZ + 7) & ~7U;
}

static uint64_t count_records(const struct ring *ring, uint64_t end)
{
	uint64_t at, records = 0;

	for (at = 0; at < end; at += next_record(ring, at))
		records++;
	return records;
}

static int hold_ring(void (*attach_to)(int map, int lost))
{
	struct ring ring = open_ring(RING_BYTES, attach_to);
	uint64_t bytes;

	hold();
	bytes = produced(&ring);
	if (*ring.lost) {
		fprintf(stderr, "hold_bpf: the ring was full: later records were not written\n");
		return 1;
	}
	printf("%llu %llu\n", (unsigned long long)count_records(&ring, bytes),
	       (unsigned long long)bytes);
	return 0;
}

/* ---- a reader ---- */

/* Writes all finished records, without their headers, and gives back their room. */
static void read_ring(const struct ring *ring, FILE *file)
{
	uint64_t at = *ring->consumer, end;
	uint32_t length;

	while (at < (end = produced(ring))) {
		for (; at < end && (length = next_record(ring, at)); at += length)
			if (fwrite(ring->data + at % ring->bytes + BPF_RINGBUF_HDR_SZ,
				   length - BPF_RINGBUF_HDR_SZ, 1, file) != 1)
				die("hold_bpf: write");
		__atomic_store_n(ring->consumer, at, __ATOMIC_RELEASE);
		if (at < end)
			return;
	}
}

static void watch(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		die("hold_bpf: epoll");
}

/* As libbpf's reader does: it waits for the kernel to say that there is something. */
static int record_command(const char *path, char **command)
{
	struct ring ring = open_ring(READ_RING_BYTES, attach_switch);
	FILE *file = fopen(path, "we");
	struct epoll_event event;
	int epoll = epoll_create1(EPOLL_CLOEXEC), ended;
	pid_t pid;

	if (!file || epoll < 0)
		die(path);
	watch(epoll, ring.map);
	if (posix_spawnp(&pid, command[0], NULL, NULL, command, environ))
		die(command[0]);
	ended = syscall(SYS_pidfd_open, pid, 0);
	if (ended < 0)
		die("hold_bpf: pidfd_open");
	watch(epoll, ended);
	do {
		if (epoll_wait(epoll, &event, 1, -1) < 0)
			die("hold_bpf: epoll");
		read_ring(&ring, file);
	} while (event.data.fd != ended);
	if (fclose(file))
		die(path);
	printf("%llu\n", (unsigned long long)*ring.lost);
	return 0;
}

int main(int argc, char **argv)
{
	load_types();
	if (argc > 3 && !strcmp(argv[1], "record"))
		return record_command(argv[2], argv + 3);
	if (argc > 1 && !strcmp(argv[1], "syscalls"))
		return hold_ring(attach_syscalls);
	return hold_ring(argc > 1 && !strcmp(argv[1], "waking") ? attach_waking : attach_switch);
}
