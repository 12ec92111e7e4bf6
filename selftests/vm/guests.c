// SPDX-License-Identifier: MIT
/*
 * A guest of KVM, alone and beside sessions: it runs the same way, with the same exits and the same
 * memory. The guest is a program for arm64. An emulated machine has /dev/kvm if its CPUs have EL2.
 */
#include <linux/kvm.h>
#include <stddef.h>
#include <sys/mman.h>

#include "neighbours.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	(300 * SLOWNESS)

#define DEVICE		0x10000000	/* no memory: what is written there goes to this program */
#define MEMORY		0x40000000
#define PAGES		0x40010000	/* a page is written in each round */
#define ROUNDS		200
#define MEMORY_BYTES	(PAGES - MEMORY + ROUNDS * 4096)

/*
 * In each round it computes for a moment, writes the round's number into a new page, and
 * to the device. Then it asks PSCI to switch it off.
 */
extern const uint8_t guest_code[], guest_code_end[];
__asm__("	.pushsection .rodata\n"
	"	.globl	guest_code, guest_code_end\n"
	"guest_code:\n"
	"	mov	x1, #0x10000000\n"
	"	movz	x3, #0x4001, lsl #16\n"
	"1:	movz	x2, #1, lsl #16\n"
	"2:	subs	x2, x2, #1\n"
	"	b.ne	2b\n"
	"	add	x0, x0, #1\n"
	"	str	x0, [x3]\n"
	"	add	x3, x3, #4096\n"
	"	str	x0, [x1]\n"
	"	cmp	x0, #200\n"
	"	b.ne	1b\n"
	"	movz	x0, #0x8400, lsl #16\n"
	"	movk	x0, #8\n"
	"	hvc	#0\n"
	"guest_code_end:\n"
	"	.popsection\n");

static uint64_t *memory_of_guest(int vm)
{
	uint8_t *memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kvm_userspace_memory_region region = {
		.guest_phys_addr = MEMORY, .memory_size = MEMORY_BYTES,
		.userspace_addr = (uintptr_t)memory };

	if (memory == MAP_FAILED)
		lost("no memory for a guest");
	memcpy(memory, guest_code, guest_code_end - guest_code);
	return ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) ? NULL : (uint64_t *)memory;
}

static int first_cpu_of_guest(int vm)
{
	const uint64_t pc = MEMORY;
	const struct kvm_one_reg set_pc = {
		.id = KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE |
		      KVM_REG_ARM_CORE_REG(regs.pc),
		.addr = (uintptr_t)&pc };
	int cpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	struct kvm_vcpu_init init = { 0 };

	if (cpu < 0 || ioctl(vm, KVM_ARM_PREFERRED_TARGET, &init))
		return -1;
	init.features[0] |= 1 << KVM_ARM_VCPU_PSCI_0_2;
	return ioctl(cpu, KVM_ARM_VCPU_INIT, &init) || ioctl(cpu, KVM_SET_ONE_REG, &set_pc) ?
	       -1 : cpu;
}

static void tell_exits(FILE *to, int cpu, const struct kvm_run *run)
{
	uint64_t value;

	do {
		if (ioctl(cpu, KVM_RUN, 0)) {
			fprintf(to, "run: errno %d\n", errno);
			return;
		}
		fprintf(to, "exit %u", run->exit_reason);
		if (run->exit_reason == KVM_EXIT_MMIO) {
			memcpy(&value, run->mmio.data, sizeof(value));
			fprintf(to, ": %u bytes, %llu, to %llx", run->mmio.len,
				(unsigned long long)value, run->mmio.phys_addr);
		}
		fputc('\n', to);
	} while (run->exit_reason == KVM_EXIT_MMIO);
}

static void a_guest_runs(FILE *to)
{
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC), vm = ioctl(kvm, KVM_CREATE_VM, 0), cpu;
	const uint64_t *memory = memory_of_guest(vm);
	struct kvm_run *run;

	cpu = first_cpu_of_guest(vm);
	run = mmap(NULL, ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), PROT_READ | PROT_WRITE, MAP_SHARED,
		   cpu, 0);
	if (!memory || run == MAP_FAILED)
		lost("no guest: %s", strerror(errno));
	tell_exits(to, cpu, run);
	for (unsigned int i = 0; i < ROUNDS; i++)
		fprintf(to, "page %u: %llu\n", i,
			(unsigned long long)memory[(PAGES - MEMORY + i * 4096) / 8]);
}

TEST_F(neighbours, a_guest_of_kvm_runs_as_without)
{
	char *said;

	if (access("/dev/kvm", R_OK | W_OK))
		SKIP(return, "there is no /dev/kvm");
	said = said_by(a_guest_runs);
	/* it came to its end, so there is something to compare */
	EXPECT_NE(NULL, strstr(said, "200, to 10000000\nexit 24\n"))
		TH_LOG("%.300s", said);
	EXPECT_NE(NULL, strstr(said, "page 199: 200\n"));
	free(said);
	sees_no_difference(_metadata, self, a_guest_runs);
}

TEST_HARNESS_MAIN
