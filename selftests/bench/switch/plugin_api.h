/* SPDX-License-Identifier: MIT */
/*
 * What the plugins use of QEMU's interface for TCG plugins, versions 1 (QEMU 6.0 to 8.x) and 3 (from
 * 9.1 on): Debian packages the functions, inside of QEMU, but not the header. Names and order are
 * QEMU's. What one of the versions lacks is weak here; plugin.h tells which one it is.
 */
#ifndef KBARMAN_PLUGIN_API_H
#define KBARMAN_PLUGIN_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEAK		__attribute__((weak))

typedef uint64_t qemu_plugin_id_t;

struct qemu_info_t {
	const char *target_name;
	struct {
		int min, cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus, max_vcpus;
	} system;
};

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;

/* Since version 3: the number at an offset in the element of each vCPU. */
typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} qemu_plugin_u64;

enum qemu_plugin_cb_flags {
	QEMU_PLUGIN_CB_NO_REGS,
};

enum qemu_plugin_mem_rw {
	QEMU_PLUGIN_MEM_RW = 3,		/* QEMU 7.2 takes reads for writes */
};

enum qemu_plugin_op {
	QEMU_PLUGIN_INLINE_ADD_U64,
};

/* Called for every block of code that is translated. */
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*callback)(qemu_plugin_id_t id,
							    struct qemu_plugin_tb *tb));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);

/* Version 3 copies; version 1 takes @insn alone, and returns where the bytes are. */
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *dest, size_t size);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
/* The caller frees it. */
char *qemu_plugin_insn_disas(const struct qemu_plugin_insn *insn);

/* Whenever the instruction is about to be executed. */
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*callback)(unsigned int vcpu, void *context),
					    enum qemu_plugin_cb_flags flags, void *context);
/* Version 1. */
WEAK void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn,
						     enum qemu_plugin_op op, void *counter,
						     uint64_t added);
/* Version 3. */
WEAK void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *insn,
							      enum qemu_plugin_op op,
							      qemu_plugin_u64 counter,
							      uint64_t added);
/* Version 3: zeros for each vCPU; where those of one are, until one more comes. */
WEAK struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t size);
WEAK void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int vcpu);

/* Whenever the instruction has read or written memory. */
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      void (*callback)(unsigned int vcpu, uint32_t info,
						       uint64_t vaddr, void *context),
				      enum qemu_plugin_cb_flags flags, enum qemu_plugin_mem_rw rw,
				      void *context);

/* When QEMU ends. */
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id,
				    void (*callback)(qemu_plugin_id_t id, void *context),
				    void *context);

/* All callbacks go, and all code is translated again; then @callback registers anew. */
void qemu_plugin_reset(qemu_plugin_id_t id, void (*callback)(qemu_plugin_id_t id));

/* The plugin's own: what QEMU looks for. */
#define PLUGIN_EXPORT	__attribute__((visibility("default")))

extern PLUGIN_EXPORT int qemu_plugin_version;
PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc,
				      char **argv);

#endif /* KBARMAN_PLUGIN_API_H */
