/* SPDX-License-Identifier: MIT */
/*
 * The neutral event: one record of a capture, decoded, in host byte order, the
 * same whatever the capture's word size and byte order. It is what every analysis
 * and export reads.
 */
#ifndef KBARMAN_EVENT_H
#define KBARMAN_EVENT_H

#include <stdbool.h>
#include <stdint.h>

enum kb_event_type {
	KB_EVENT_UNKNOWN = 0,		/* a record type that the library does not know */
	KB_EVENT_SAMPLE,		/* counters, with or without a PC */
	KB_EVENT_TASK_SWITCH,
	KB_EVENT_CUSTOM_COUNTER,
	KB_EVENT_ANNOTATION,
	KB_EVENT_HALT,
};

#define KB_COUNTER_INVALID	UINT64_MAX	/* a counter value that was not valid */
#define KB_STATE_UNKNOWN	(-1)

/*
 * Some records of protocol version 3 belong to no core. Only annotations, custom
 * counters and unknown records may have it; the core of every other event is below
 * the header's max_cores, and so are theirs unless it is this. An unknown record's
 * core is whatever stands there.
 */
#define KB_CORE_NONE		UINT32_MAX

struct kb_custom_value {
	uint32_t id;			/* index into the custom series, in range */
	uint64_t value;
};

/* Pointers are the decoder's; they hold until its next call. */
struct kb_event {
	enum kb_event_type type;
	uint32_t core;			/* < max_cores; see KB_CORE_NONE */
	uint64_t timestamp;		/* ticks; kb_barman_ns() makes it nanoseconds */
	uint32_t task_id;		/* 0 where the capture has no tasks; a task
					 * switch: the task that is switched to */
	uint64_t offset;		/* of the record (behind its length word), bytes
					 * from the start of the capture */
	union {
		struct {
			bool has_pc;
			uint64_t pc;
			uint32_t nr_counters;
			uint32_t nr_custom;
			uint32_t nr_chain;		/* 0 = no call chain */
			uint32_t nr_chain_kernel;	/* the first ones of chain[] */
			const uint64_t *counters;	/* deltas, KB_COUNTER_INVALID */
			const struct kb_custom_value *custom;
			const uint64_t *chain;		/* innermost first */
		} sample;
		struct {
			uint8_t reason;		/* 0 preempted, 1 blocked */
			int prev_state;		/* of the previous task, as its kernel has it:
						 * 16 bits, or 8 of an older capture, or
						 * KB_STATE_UNKNOWN; kb_state_letter() says
						 * what it means */
			uint32_t nr_chain;	/* as of a sample: of the previous task, */
			uint32_t nr_chain_kernel; /* where it went off the CPU; all are */
			const uint64_t *chain;	/* return addresses, but the first user one */
		} task_switch;
		struct {
			uint32_t counter;	/* index into the custom series, in range */
			uint64_t value;
		} custom_counter;
		struct {
			uint8_t type;		/* 0 string 1 bookmark 2 channel 3 group */
			uint32_t channel;
			uint32_t group;
			uint32_t colour;	/* 0xTTRRGGBB */
			uint64_t data_length;	/* as the record says, its NUL included */
			const char *text;	/* not NUL-terminated, maybe not UTF-8 */
			uint32_t text_length;	/* bytes, one trailing NUL removed */
		} annotation;
		struct {
			bool entered;
			int idle_state;		/* cpuidle index, or KB_STATE_UNKNOWN */
		} halt;
		struct {
			uint32_t record_type;
			uint64_t length;	/* of the record, in bytes */
			const void *record;	/* all of it, in the capture's layout */
		} unknown;
	};
};

#endif
