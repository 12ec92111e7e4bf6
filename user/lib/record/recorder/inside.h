/* SPDX-License-Identifier: MIT */
/*
 * record/recorder/: from rings to a capture: records in order, stacks unwound, rows of tables,
 * facts of the machine, and files that are parts of one session.
 *
 * Internals of the recorder, shared by its files:
 *
 *	recorder.c		rings -> merge -> writer, from create to finish
 *	tables.c		the header's tables, and the facts
 *	recorder_insert.c	records that do not come from the kernel
 *	notes.c			what /proc says of processes
 *	objects.c		... and of what tasks wait for
 *	waits.c			switches of which only those of long waits have call chains
 *	stacks.c		records whose stacks are unwound
 *	tail.c			records that wait for that, behind the end of the file
 *	part.c			what is different if the file is one part of a session
 */
#ifndef KB_LIB_RECORD_RECORDER_INSIDE_H
#define KB_LIB_RECORD_RECORDER_INSIDE_H

#include <kbarman/barman.h>
#include <kbarman/merge.h>
#include <kbarman/recorder.h>

#include "record/merge/frozen.h"
#include "record/recorder/insert.h"

struct ring {
	struct kb_mapped mapped;
	unsigned int cpu;
	int source;			/* number in the merge; -1 = not read yet */
	uint64_t consumed;
	uint64_t from;			/* the first byte that is read */
	uint64_t records;		/* records of the ring in the file */
	uint64_t first;			/* ticks: of the first one of them */
	uint64_t skipped;		/* that are older than what is wanted */
	bool has_pmu;			/* its PMU entry was written */
};

struct recorder_notes {
	uint32_t what;			/* KB_NOTE_* */
	uint64_t room;			/* bytes of strings that are left for notes */
	char **cgroups;			/* by number */
	uint32_t nr_cgroups, max_cgroups;
};

struct kb_mounts;
struct kb_short_waits;
struct kb_waiting;
struct recorder_objects;
struct recorder_part;
struct recorder_stacks;

struct kb_recorder {
	struct kb_device *device;
	struct kb_barman_writer *writer;
	struct kb_merge *merge;
	struct ring *rings;		/* nr_rings of room for nr_cpus */
	unsigned int *ring_of_cpu;	/* index + 1; 0 = none yet */
	uint64_t *positions;		/* by CPU: for consume() alone */
	unsigned int *ring_of_source;	/* the same; 0 = the source of inserted records */
	unsigned int nr_rings, nr_cpus;
	bool stream;
	bool interrupts, disks;		/* the session records them, or requests to them */
	bool idle_states;		/* ... which did not pay */
	bool maps;			/* ... mappings */
	bool has_objects;		/* the module can tell what tasks wait for */
	bool synced;			/* synced at least once: the file is a capture */
	uint64_t watermark;
	uint64_t hold_back;		/* ticks */
	struct kb_insert insert;
	int insert_source;		/* number in the merge; -1 = none yet */
	struct kbarman_clock clock;	/* readings that convert times of inserted records */
	int64_t clock_read;		/* when, in CLOCK_BOOTTIME, which goes on in suspend */
	uint64_t clock_hz;
	uint64_t unsynced;		/* bytes of records */
	uint64_t tail_records;		/* behind the end of the file */
	uint32_t strings_done, tasks_done, maps_done, charts_done, series_done;
	uint32_t task_facts_done;
	uint64_t unix_base;		/* of the header, ns since 1970; 0: that of the session */
	uint64_t first_timestamp;	/* ticks, of the first record in the file; 0: none yet */
	bool is_frozen;
	uint64_t since;			/* ticks: records from before that are left out */
	struct kb_mounts *mounts;
	struct recorder_notes notes;
	struct recorder_objects *objects;	/* NULL: they get no names */
	struct kb_short_waits *short_waits;	/* NULL: every wait keeps its call chain */
	bool asked_for_stacks;
	struct recorder_stacks *stacks;	/* NULL: the session has no sparse stacks */
	struct recorder_part *part;	/* NULL: the file has all of the session */
	struct kb_frozen frozen;	/* the copies that the rings' views show after a freeze */
	struct kb_recorder_totals totals;
};

/* The first ring's map. All maps share the header. */
static inline const struct kb_mapped *recorder_header(const struct kb_recorder *r)
{
	return &r->rings[0].mapped;
}

/* The error text for an error of the file. Returns @ret. */
int recorder_write_failed(struct kb_error *err, int ret);

int recorder_set_header(struct kb_recorder *recorder);

/* Copy the rows added and changed since the last call; @last: copy everything. */
int recorder_copy_tables(struct kb_recorder *recorder, bool last, struct kb_error *err);

/* Note what was asked for of @process, which has the row @row in the file. Returns 0 or -errno. */
int recorder_note(struct kb_recorder *recorder, uint32_t row, uint32_t process);
void recorder_notes_release(struct kb_recorder *recorder);

#define OBJECT_STRING_BYTES	(256U << 10)	/* of names of what tasks wait for */

/* From now on, look for names of what tasks wait for. Returns 0 or -ENOMEM. */
int recorder_objects_begin(struct kb_recorder *recorder);

/* Records that pass, in order; recorder->objects is there. */
void recorder_objects_see(struct kb_recorder *recorder, const void *data, size_t length);
void recorder_objects_see_run(struct kb_recorder *recorder, const struct kb_raw_run *run);

/* Look for names of what was seen, and write them; @last: there will be no further records. */
int recorder_objects_look(struct kb_recorder *recorder, bool last, struct kb_error *err);
void recorder_objects_destroy(struct kb_recorder *recorder);

/* Write the thread groups of rows added since the last call, and notes of their processes. */
int recorder_write_threads(struct kb_recorder *recorder, struct kb_error *err);
/* What the map says of that row beside its name; a process of its own, if the map has nothing. */
struct bm_kbarman_task recorder_task_fact(const struct kb_recorder *recorder, uint32_t row);

/* Add the string "kbarman.KEY=VALUE" with a number. */
int recorder_number_fact(struct kb_recorder *recorder, uint64_t value, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same with a text. */
int recorder_text_fact(struct kb_recorder *recorder, const char *key, const char *text);

/* Add what Linux knows now of the error of its clock: see analysis/facts/wall.h. */
int recorder_wall_error(struct kb_recorder *recorder, const char *key);

/* Add the readings of the wall clock at the end of the recording, or of the copy. 0 or @err. */
int recorder_wall_facts(struct kb_recorder *recorder, struct kb_error *err);

/* Add the string "kbarman.KEY=RAW,MONOTONIC": a pair of readings of these clocks now, in ns. */
int recorder_clock_fact(struct kb_recorder *recorder, const char *key);

/* Add the names that interrupts and disks have now, if the session records these. Returns 0 or -errno. */
int recorder_hardware_facts(struct kb_recorder *recorder);

/* Add the idle states, if the session records which did not pay. Returns 0 or -errno. */
int recorder_idle_facts(struct kb_recorder *recorder);

/* Add how many slots a cycle has, by PMU, as far as PMUs say it. Returns 0 or -errno. */
int recorder_slot_facts(struct kb_recorder *recorder);

/* Write @record, now or when it is known whether its wait is short. Returns 0 or -errno. */
int recorder_waits_write(struct kb_recorder *recorder, const struct kb_raw_record *record);

/* Write records that need not wait any more. All records before @now have come. */
int recorder_waits_go_on(struct kb_recorder *recorder, uint64_t now, struct kb_error *err);

/* Write how many call chains were left out. */
int recorder_waits_facts(struct kb_recorder *recorder, struct kb_error *err);
void recorder_waits_destroy(struct kb_recorder *recorder);

/*
 * Find out whether the session, which has been started, has sparse stacks, and look for new
 * mappings. Call it in each round before the others.
 */
int recorder_stacks_begin(struct kb_recorder *recorder, struct kb_error *err);

/* Write @record, now or later. Returns 0 or a negative errno. */
int recorder_stacks_write(struct kb_recorder *recorder, const struct kb_raw_record *record);

/* Write records that had to wait and need not any more. It is @now. */
int recorder_stacks_go_on(struct kb_recorder *recorder, uint64_t now, struct kb_error *err);

/* Write all of them. */
int recorder_stacks_end(struct kb_recorder *recorder, struct kb_error *err);

/* The records that wait, in their order; NULL: none ever do. */
const struct kb_waiting *recorder_waits_waiting(const struct kb_recorder *recorder);
const struct kb_waiting *recorder_stacks_waiting(const struct kb_recorder *recorder);

/* Put all of these behind the end of the file, unless it is a part. Returns 0 or -errno. */
int recorder_tail_write(struct kb_recorder *recorder);

/* Write how the chains of stacks ended. */
int recorder_stacks_facts(struct kb_recorder *recorder, struct kb_error *err);
void recorder_stacks_destroy(struct kb_recorder *recorder);

/*
 * Begin a part: what the parts of the session so far have is in @parts, which is the caller's.
 * Returns 0 or a negative errno and @err.
 */
int recorder_part_create(struct kb_recorder *recorder, struct kb_parts *parts,
			 struct kb_error *err);
void recorder_part_destroy(struct kb_recorder *recorder);

/* Room for the rows that there are, and some more: rows, and bytes of strings that they have. */
void recorder_part_room(struct kb_recorder *recorder, uint32_t *tasks, uint32_t *maps,
			uint64_t *strings);

/* Write the facts that a part has from its begin on. Returns 0 or -errno. */
int recorder_part_begin(struct kb_recorder *recorder);

/* The position in @ring behind the records that earlier parts have; @position at first. */
uint64_t recorder_part_skip(const struct kb_recorder *recorder, const struct ring *ring,
			    uint64_t position);

/*
 * Copy the rows that the file does not have yet. *@stable: false if rows were used again
 * meanwhile, and some of them are not copied. Returns 0 or -errno.
 */
int recorder_part_rows(struct kb_recorder *recorder, bool *stable);

/* Write the facts that are known at the end of a part. */
int recorder_part_facts(struct kb_recorder *recorder, struct kb_error *err);

/* The file has records of this part: the next one has the next number. */
void recorder_part_synced(struct kb_recorder *recorder);

/* The facts are in the file: the next part begins with them. */
void recorder_part_told(struct kb_recorder *recorder);

/* Write the facts that are known only at the end. */
int recorder_write_facts(struct kb_recorder *recorder, struct kb_error *err);

#endif
