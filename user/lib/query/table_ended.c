// SPDX-License-Identifier: MIT
/*
 * System calls, page faults and block requests. Each may have begun long ago: a part of the capture does not say
 * which ones began in it.
 */
#include "analysis/time/ended.h"
#include "query/query_put.h"
#include "query/walks.h"

static bool is_of(const struct query_walk *walk, enum kb_what what)
{
	return walk->event->custom_counter.what == what;
}

static void ended_place(struct query_walk *walk)
{
	const struct kb_event *event = walk->event;
	uint32_t task_id = kb_ended_task(event);

	walk->row = (struct query_row){
		.ticks = event->timestamp,
		.at = (int64_t)((uint64_t)query_walk_ns(walk) - kb_ended_ns(walk->trace->barman, event)),
		.core = event->core,
		.task_id = task_id,
		.has_task = task_id || event->custom_counter.what != KB_WHAT_BLOCK,
	};
}

static void put_duration(const struct query_walk *walk, struct sqlite3_context *context)
{
	if (kb_ended_is_timed(walk->event))
		query_put_u64(context, kb_ended_ns(walk->trace->barman, walk->event));
}

/* ---- system calls ---- */

static int syscalls_rows(struct query_walk *walk)
{
	return is_of(walk, KB_WHAT_SYSCALL) && kb_syscall_is_own(walk->file->names, walk->event);
}

static void syscalls_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const struct kb_event *event = walk->event;

	switch (i) {
	case QUERY_syscalls_end_ns:
		query_put_i64(context, query_walk_ns(walk));
		break;
	case QUERY_syscalls_duration_ns:
		put_duration(walk, context);
		break;
	case QUERY_syscalls_call:
		query_put_text(context, kb_names_call(walk->file->names, event));
		break;
	case QUERY_syscalls_number:
		query_put_u64(context, event->custom_counter.id);
		break;
	case QUERY_syscalls_compat:
		query_put_i64(context, event->custom_counter.cpu & KB_SYSCALL_COMPAT);
		break;
	case QUERY_syscalls_result:
		query_put_i64(context, event->custom_counter.result);
		break;
	default:
		query_put_i64(context,
			      (int64_t)event->custom_counter.arguments[i - QUERY_syscalls_arg0]);
	}
}

const struct query_table query_syscalls = {
	.is = &query_columns_syscalls,
	.types = 1U << KB_EVENT_CUSTOM_COUNTER,
	.rows = syscalls_rows,
	.place = ended_place,
	.column = syscalls_column,
};

/* ---- page faults ---- */

static int faults_rows(struct query_walk *walk)
{
	return is_of(walk, KB_WHAT_FAULT);
}

static void faults_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const uint64_t *arguments = walk->event->custom_counter.arguments;
	const struct kb_frame *frame;

	switch (i) {
	case QUERY_faults_end_ns:
		query_put_i64(context, query_walk_ns(walk));
		break;
	case QUERY_faults_duration_ns:
		put_duration(walk, context);
		break;
	case QUERY_faults_kind:
		query_put_text(context, kb_fault_kind_name(kb_fault_kind(walk->event)));
		break;
	case QUERY_faults_kernel:
		query_put_i64(context, walk->event->custom_counter.cpu & KB_FAULT_KERNEL);
		break;
	case QUERY_faults_address:
		query_put_address(context, arguments[KB_FAULT_ADDRESS]);
		break;
	case QUERY_faults_pc:
		query_put_address(context, arguments[KB_FAULT_PC]);
		break;
	default:
		frame = query_look_up(walk, walk->event->task_id, arguments[KB_FAULT_PC]);
		if (frame && i == QUERY_faults_image)
			query_put_text(context, frame->symbol.image);
		else if (frame && *frame->symbol.name)
			query_put_text(context, frame->symbol.name);
	}
}

const struct query_table query_faults = {
	.is = &query_columns_faults,
	.types = 1U << KB_EVENT_CUSTOM_COUNTER,
	.rows = faults_rows,
	.place = ended_place,
	.column = faults_column,
};

/* ---- block requests ---- */

static int block_rows(struct query_walk *walk)
{
	return is_of(walk, KB_WHAT_BLOCK);
}

static void block_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const struct kb_event *event = walk->event;
	const uint64_t *arguments = event->custom_counter.arguments;
	char text[KB_DISK_TEXT], flags[KB_BLOCK_FLAGS_TEXT];

	switch (i) {
	case QUERY_block_end_ns:
		query_put_i64(context, query_walk_ns(walk));
		break;
	case QUERY_block_duration_ns:
		put_duration(walk, context);
		break;
	case QUERY_block_disk:
		query_put_string(context, kb_disk_name(walk->file->names, (uint32_t)arguments[KB_BLOCK_DEVICE], text));
		break;
	case QUERY_block_device:
		query_put_u64(context, arguments[KB_BLOCK_DEVICE]);
		break;
	case QUERY_block_sector:
		query_put_u64(context, arguments[KB_BLOCK_SECTOR]);
		break;
	case QUERY_block_bytes:
		query_put_u64(context, arguments[KB_BLOCK_BYTES]);
		break;
	case QUERY_block_operation:
		query_put_text(context, kb_block_operation_name((uint8_t)event->custom_counter.cpu));
		break;
	case QUERY_block_flags:
		query_put_string(context, kb_block_flags_text(event->custom_counter.cpu, flags));
		break;
	default:
		query_put_i64(context, event->custom_counter.result);
	}
}

const struct query_table query_block = {
	.is = &query_columns_block,
	.types = 1U << KB_EVENT_CUSTOM_COUNTER,
	.rows = block_rows,
	.place = ended_place,
	.column = block_column,
};
