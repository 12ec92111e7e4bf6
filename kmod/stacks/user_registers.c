// SPDX-License-Identifier: GPL-2.0-only
#include <linux/kernel.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/stddef.h>

#include "stacks/user_registers.h"

#define REGISTER(number, member)	{ number, false, false, offsetof(struct pt_regs, member) }
#define SCRATCH(number, member)		{ number, true, false, offsetof(struct pt_regs, member) }
#define LINK(number, member)		{ number, false, true, offsetof(struct pt_regs, member) }

#if defined(CONFIG_X86_64)
#include <asm/segment.h>

/*
 * r10 holds the caller's stack pointer while a function aligns its stack, and rdi the caller's
 * address while vfork() of glibc waits. Assembly code of OpenSSL has it in rax, rsi or r11.
 */
static const struct kbarman_user_register registers[] = {
	SCRATCH(0, ax), REGISTER(3, bx), SCRATCH(4, si), REGISTER(5, di), REGISTER(6, bp),
	REGISTER(7, sp), SCRATCH(10, r10), SCRATCH(11, r11), REGISTER(12, r12),
	REGISTER(13, r13), REGISTER(14, r14), REGISTER(15, r15),
	REGISTER(BM_KBARMAN_REGISTER_PC, ip),
};

static const struct kbarman_user_register narrow[] = {
	REGISTER(3, bx), REGISTER(4, sp), REGISTER(5, bp), REGISTER(6, si), REGISTER(7, di),
	REGISTER(BM_KBARMAN_REGISTER_PC, ip),
};

static bool is_narrow(const struct pt_regs *regs)
{
	return regs->cs == __USER32_CS;
}
#elif defined(CONFIG_X86_32)
/* ecx holds the caller's stack pointer while main() aligns its stack. */
static const struct kbarman_user_register registers[] = {
	REGISTER(1, cx), REGISTER(3, bx), REGISTER(4, sp), REGISTER(5, bp), REGISTER(6, si),
	REGISTER(7, di), REGISTER(BM_KBARMAN_REGISTER_PC, ip),
};
#elif defined(CONFIG_ARM64)
#include <asm/sysreg.h>

static const struct kbarman_user_register registers[] = {
	REGISTER(19, regs[19]), REGISTER(20, regs[20]), REGISTER(21, regs[21]),
	REGISTER(22, regs[22]), REGISTER(23, regs[23]), REGISTER(24, regs[24]),
	REGISTER(25, regs[25]), REGISTER(26, regs[26]), REGISTER(27, regs[27]),
	REGISTER(28, regs[28]), REGISTER(29, regs[29]), LINK(30, regs[30]),
	REGISTER(31, sp), REGISTER(BM_KBARMAN_REGISTER_PC, pc),
};

/* r4 to r11, sp and lr. r7 is the frame pointer of Thumb code. */
static const struct kbarman_user_register narrow[] = {
	REGISTER(4, regs[4]), REGISTER(5, regs[5]), REGISTER(6, regs[6]), REGISTER(7, regs[7]),
	REGISTER(8, regs[8]), REGISTER(9, regs[9]), REGISTER(10, regs[10]),
	REGISTER(11, regs[11]), REGISTER(13, regs[13]), REGISTER(14, regs[14]),
	REGISTER(BM_KBARMAN_REGISTER_PC, pc),
};

static bool is_narrow(const struct pt_regs *regs)
{
	return compat_user_mode(regs);
}
#elif defined(CONFIG_ARM)
static const struct kbarman_user_register registers[] = {
	REGISTER(4, uregs[4]), REGISTER(5, uregs[5]), REGISTER(6, uregs[6]), REGISTER(7, uregs[7]),
	REGISTER(8, uregs[8]), REGISTER(9, uregs[9]), REGISTER(10, uregs[10]),
	REGISTER(11, uregs[11]), REGISTER(13, uregs[13]), REGISTER(14, uregs[14]),
	REGISTER(BM_KBARMAN_REGISTER_PC, uregs[15]),
};
#elif defined(CONFIG_RISCV)
#include <linux/compat.h>

static const struct kbarman_user_register registers[] = {
	REGISTER(1, ra), REGISTER(2, sp), REGISTER(8, s0), REGISTER(9, s1), REGISTER(18, s2),
	REGISTER(19, s3), REGISTER(20, s4), REGISTER(21, s5), REGISTER(22, s6), REGISTER(23, s7),
	REGISTER(24, s8), REGISTER(25, s9), REGISTER(26, s10), REGISTER(27, s11),
	REGISTER(BM_KBARMAN_REGISTER_PC, epc),
};

static bool is_narrow(const struct pt_regs *regs)
{
	return IS_ENABLED(CONFIG_COMPAT) && is_compat_task();
}
#elif defined(CONFIG_S390)
static const struct kbarman_user_register registers[] = {
	REGISTER(6, gprs[6]), REGISTER(7, gprs[7]), REGISTER(8, gprs[8]), REGISTER(9, gprs[9]),
	REGISTER(10, gprs[10]), REGISTER(11, gprs[11]), REGISTER(12, gprs[12]),
	REGISTER(13, gprs[13]), REGISTER(14, gprs[14]), REGISTER(15, gprs[15]),
	REGISTER(BM_KBARMAN_REGISTER_PC, psw.addr),
};

static bool is_narrow(const struct pt_regs *regs)
{
	return !(regs->psw.mask & PSW_MASK_EA);
}
#else
static const struct kbarman_user_register registers[0];
#endif

struct kbarman_user_registers kbarman_user_registers(const struct pt_regs *regs)
{
#if defined(CONFIG_X86_64) || defined(CONFIG_ARM64)
	if (is_narrow(regs))
		return (struct kbarman_user_registers) { narrow, ARRAY_SIZE(narrow), sizeof(u32) };
#elif defined(CONFIG_RISCV) || defined(CONFIG_S390)
	if (is_narrow(regs))
		return (struct kbarman_user_registers) { .word = sizeof(u32) };
#endif
	return (struct kbarman_user_registers) {
		registers, ARRAY_SIZE(registers), sizeof(long),
		.records = IS_ENABLED(CONFIG_X86_64) || IS_ENABLED(CONFIG_ARM64),
	};
}
