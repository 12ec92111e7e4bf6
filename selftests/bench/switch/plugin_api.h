/* SPDX-License-Identifier: MIT */
/*
 * What the plugins use of QEMU's interface for TCG plugins, version 1 (QEMU 6.0 to 8.x): Debian
 * packages the functions, inside of QEMU, but not the header. Names and order are QEMU's.
 */
#ifndef KBARMAN_PLUGIN_API_H
#define KBARMAN_PLUGIN_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QEMU_PLUGIN_VERSION	1

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

const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
/* The caller frees it. */
char *qemu_plugin_insn_disas(const struct qemu_plugin_insn *insn);

/* Whenever the instruction is about to be executed. */
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*callback)(unsigned int vcpu, void *context),
					    enum qemu_plugin_cb_flags flags, void *context);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn,
						enum qemu_plugin_op op, void *counter,
						uint64_t added);

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
