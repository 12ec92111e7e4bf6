// SPDX-License-Identifier: MIT
/*
 * The thread touches a dump only while it is ASKED, callers otherwise. A dump that could not be
 * read once is not tried again.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/table.h"
#include "base/thread.h"
#include "sym/jit/jitdump.h"
#include "sym/jit/jitdump_file.h"
#include "sym/question/question.h"
#include "sym/unwind/dumps.h"
#include "sym/unwind/spaces.h"

#define LIKE_MAX	65536U	/* bytes: CPython gets memory for trampolines in such pieces */

enum state {
	IDLE,
	ASKED,
	READ,		/* what was added waits for the caller */
	FAILED,
};

struct code {
	uint64_t start, last, since;
	uint32_t rows;			/* + 1; 0: it has none */
};

struct dump {
	enum state state;		/* the thread makes ASKED to READ or FAILED */
	struct kb_map map;		/* owns its texts */
	uint32_t number;		/* of it in the spaces */
	int fd;				/* -1: not open yet */
	uint64_t seen;			/* bytes of the file, when it was read last */
	uint64_t until;			/* what was made up to this time is known */
	uint64_t end;			/* offset from which reading goes on */
	struct kb_elf added;
	struct code *codes;		/* in the order of the dump */
	uint32_t nr_codes, max_codes, in_force;
	struct kb_unwind_rows *rows;	/* equal ones that follow each other are one */
	uint32_t nr_rows, max_rows;
	struct dump *next;		/* that was asked for */
};

struct by_key {
	uint64_t key;
	struct dump *dump;
} __attribute__((aligned(8)));

struct kb_unwind_dumps {
	struct kb_table files, tasks;	/* both of by_key; only of the caller */
	struct kb_spaces *spaces;	/* by dump: its code in force */
	bool started;
	pthread_t thread;
	pthread_mutex_t lock;		/* of all below */
	pthread_cond_t work, done;
	struct dump *first, **last;	/* that were asked for; the first one is being read */
	bool stop;
};

/* ---- the thread ---- */

static int ask(struct dump *dump)
{
	const struct kb_question question = {
		.what = KB_QUESTION_JITDUMP_UNWIND, .from = dump->end,
	};

	dump->added = (struct kb_elf) { 0 };
	if (kb_decodes_elsewhere())
		return kb_decode_elsewhere(&question, dump->fd, dump->map.image, &dump->added,
					   NULL);
	return kb_jitdump_unwind_fd(&dump->added.jit, &dump->added.symbols, dump->fd, dump->end);
}

static enum state read_dump(struct dump *dump)
{
	int64_t now = kb_clock_ns(CLOCK_MONOTONIC);
	struct stat st;

	if (dump->fd < 0)
		dump->fd = kb_jitdump_open("", &dump->map);
	if (dump->fd < 0 || fstat(dump->fd, &st))
		return FAILED;
	if (ask(dump)) {
		kb_elf_release(&dump->added);
		return FAILED;
	}
	dump->seen = (uint64_t)st.st_size;
	dump->until = (uint64_t)now;
	return READ;
}

static void *read_dumps(void *context)
{
	struct kb_unwind_dumps *dumps = context;

	pthread_mutex_lock(&dumps->lock);
	while (!dumps->stop) {
		struct dump *dump = dumps->first;
		enum state state;

		if (!dump) {
			pthread_cond_wait(&dumps->work, &dumps->lock);
			continue;
		}
		pthread_mutex_unlock(&dumps->lock);
		state = read_dump(dump);
		pthread_mutex_lock(&dumps->lock);
		dumps->first = dump->next;
		if (!dumps->first)
			dumps->last = &dumps->first;
		__atomic_store_n(&dump->state, state, __ATOMIC_RELEASE);
		pthread_cond_broadcast(&dumps->done);
	}
	pthread_mutex_unlock(&dumps->lock);
	return NULL;
}

/* ---- callers ---- */

int kb_unwind_dumps_create(struct kb_unwind_dumps **out)
{
	struct kb_unwind_dumps *dumps = calloc(1, sizeof(*dumps));

	*out = NULL;
	if (!dumps || kb_spaces_create(&dumps->spaces)) {
		free(dumps);
		return -ENOMEM;
	}
	kb_table_init(&dumps->files, sizeof(struct by_key), 1);
	kb_table_init(&dumps->tasks, sizeof(struct by_key), 1);
	dumps->last = &dumps->first;
	pthread_mutex_init(&dumps->lock, NULL);
	pthread_cond_init(&dumps->work, NULL);
	pthread_cond_init(&dumps->done, NULL);
	*out = dumps;
	return 0;
}

static void destroy_dump(struct dump *dump)
{
	if (!dump)
		return;
	if (dump->fd >= 0)
		close(dump->fd);
	for (uint32_t i = 0; i < dump->nr_rows; i++)
		kb_unwind_rows_release(&dump->rows[i]);
	kb_elf_release(&dump->added);
	free(dump->rows);
	free(dump->codes);
	free((char *)dump->map.image);
	free((char *)dump->map.file.data);
	free(dump);
}

void kb_unwind_dumps_destroy(struct kb_unwind_dumps *dumps)
{
	if (!dumps)
		return;
	if (dumps->started) {
		pthread_mutex_lock(&dumps->lock);
		dumps->stop = true;
		pthread_cond_signal(&dumps->work);
		pthread_mutex_unlock(&dumps->lock);
		pthread_join(dumps->thread, NULL);
	}
	for (uint32_t i = 0; i < dumps->files.nr; i++)
		destroy_dump(((struct by_key *)kb_table_row(&dumps->files, i))->dump);
	kb_table_release(&dumps->files);
	kb_table_release(&dumps->tasks);
	kb_spaces_destroy(dumps->spaces);
	pthread_cond_destroy(&dumps->work);
	pthread_cond_destroy(&dumps->done);
	pthread_mutex_destroy(&dumps->lock);
	free(dumps);
}

static struct dump *make_dump(const struct kb_unwind_place *place, uint32_t number)
{
	struct dump *dump = calloc(1, sizeof(*dump));

	if (!dump)
		return NULL;
	dump->fd = -1;
	dump->number = number;
	dump->map.task_id = place->pid;
	dump->map.image = strdup(place->image);
	dump->map.file.data = strndup(place->file.data ?: "", place->file.length);
	dump->map.file.length = place->file.length;
	if (dump->map.image && dump->map.file.data)
		return dump;
	destroy_dump(dump);
	return NULL;
}

int kb_unwind_dumps_map(struct kb_unwind_dumps *dumps, uint32_t task, uint64_t key,
			const struct kb_unwind_place *place)
{
	struct by_key *file = kb_table_get(&dumps->files, &key), *row;
	uint64_t task_key = task;
	int ret;

	if (!dumps->started) {
		ret = kb_thread_start(&dumps->thread, read_dumps, dumps);
		if (ret)
			return ret;
		dumps->started = true;
	}
	if (file && !file->dump)
		file->dump = make_dump(place, dumps->files.nr);
	row = kb_table_get(&dumps->tasks, &task_key);
	if (!file || !file->dump || !row)
		return -ENOMEM;
	row->dump = file->dump;
	return 0;
}

static void ask_for(struct kb_unwind_dumps *dumps, struct dump *dump)
{
	pthread_mutex_lock(&dumps->lock);
	dump->state = ASKED;
	dump->next = NULL;
	*dumps->last = dump;
	dumps->last = &dump->next;
	pthread_cond_signal(&dumps->work);
	pthread_mutex_unlock(&dumps->lock);
}

/* The number of the rows of @code, + 1; 0: it has none. */
static uint32_t take_rows(struct dump *dump, const struct kb_jit *jit,
			  const struct kb_jit_code *code)
{
	const struct kb_unwind_rows *last = dump->nr_rows ? &dump->rows[dump->nr_rows - 1] : NULL;
	size_t size = code->unwind_size;
	const char *block;
	void *copy;

	if (!size)
		return 0;
	block = jit->unwind + code->unwind;
	if (last && last->header->size == size && !memcmp(last->header, block, size))
		return dump->nr_rows;
	copy = malloc(size);
	if (copy)
		memcpy(copy, block, size);
	if (!copy || !KB_ARRAY_ROOM(dump->rows, dump->max_rows, dump->nr_rows + 1) ||
	    kb_unwind_rows_take(&dump->rows[dump->nr_rows], copy, size, NULL)) {
		free(copy);
		return 0;
	}
	return ++dump->nr_rows;
}

/* Take what the thread has read. Code that finds no memory is missing. */
static void take_added(struct dump *dump)
{
	const struct kb_jit *jit = &dump->added.jit;
	uint32_t nr = jit->nr_codes;

	if (nr > KB_JIT_MAX_CODES - dump->nr_codes || nr != dump->added.symbols.nr_symbols ||
	    jit->end < dump->end ||
	    !KB_ARRAY_ROOM(dump->codes, dump->max_codes, dump->nr_codes + nr + 1)) {
		kb_elf_release(&dump->added);
		dump->state = FAILED;
		return;
	}
	for (uint32_t i = 0; i < nr; i++) {
		const struct kb_symtab_symbol *symbol = &dump->added.symbols.symbols[i];

		dump->codes[dump->nr_codes++] = (struct code) {
			.start = symbol->start,
			.last = symbol->start + symbol->size - 1,
			.since = jit->codes[i].since,
			.rows = take_rows(dump, jit, &jit->codes[i]),
		};
	}
	dump->end = jit->end;
	kb_elf_release(&dump->added);
	dump->state = IDLE;
}

static void put_in_force(struct kb_unwind_dumps *dumps, struct dump *dump, uint64_t time)
{
	for (; dump->in_force < dump->nr_codes; dump->in_force++) {
		const struct code *code = &dump->codes[dump->in_force];

		if (code->since > time)
			break;
		kb_spaces_map(dumps->spaces, dump->number, &(struct kb_space_range) {
			.first = code->start, .last = code->last, .file = dump->in_force });
	}
}

/* At the end of all times one reading is enough: a process may go on for ever. */
static bool is_late(const struct dump *dump, uint64_t time)
{
	return time == UINT64_MAX ? !dump->until : time > dump->until;
}

/* Whether the dump has grown since it was read. If it has not, what is known is all up to now. */
static bool has_grown(struct dump *dump)
{
	int64_t now = kb_clock_ns(CLOCK_MONOTONIC);
	struct stat st;

	if (dump->fd < 0 || fstat(dump->fd, &st) || (uint64_t)st.st_size != dump->seen)
		return true;
	dump->until = (uint64_t)now;
	return false;
}

/* From the code before it in the dump. */
static uint64_t distance_of(const struct code *code)
{
	return code->start - code[-1].start;
}

/* Whether @code follows the one before it as that followed another, and all three are alike. */
static bool is_regular(const struct code *code)
{
	uint64_t length = code->last - code->start;

	for (int i = 1; i <= 2; i++)
		if (code[-i].rows != code->rows || code[-i].last - code[-i].start != length)
			return false;
	return code->start > code[-1].start && distance_of(code) > length &&
	       distance_of(code) == distance_of(code - 1);
}

/*
 * CPython's trampolines are all alike and stand at equal distances. The dumps of the newest ones may
 * be in a buffer of the process for long. So what is after the last code is taken for more of them:
 * the code that @address is like, or NULL.
 */
static const struct code *find_like(const struct dump *dump, uint64_t address)
{
	const struct code *code;

	if (dump->in_force < 3)
		return NULL;
	code = &dump->codes[dump->in_force - 1];
	if (!code->rows || address < code->start || address - code->start > LIKE_MAX ||
	    !is_regular(code) ||
	    (address - code->start) % distance_of(code) > code->last - code->start)
		return NULL;
	return code;
}

const struct kb_unwind_rows *kb_unwind_dumps_find(struct kb_unwind_dumps *dumps, uint32_t task,
						  uint64_t address, uint64_t time, uint64_t *bias,
						  bool *waits)
{
	uint64_t key = task;
	const struct by_key *row = kb_table_find(&dumps->tasks, &key);
	const struct kb_space_range *range;
	const struct code *code;
	struct dump *dump = row ? row->dump : NULL;
	enum state state;

	if (!dump)
		return NULL;
	state = __atomic_load_n(&dump->state, __ATOMIC_ACQUIRE);
	if (state == READ)
		take_added(dump);
	if (state != ASKED && dump->state == IDLE && is_late(dump, time) && has_grown(dump)) {
		ask_for(dumps, dump);
		state = ASKED;
	}
	if (state == ASKED) {
		*waits = true;
		return NULL;
	}
	put_in_force(dumps, dump, time);
	range = kb_spaces_find(dumps->spaces, dump->number, address);
	code = range ? &dump->codes[range->file] : find_like(dump, address);
	if (!code || !code->rows)
		return NULL;
	*bias = range ? code->start : address - (address - code->start) % distance_of(code);
	return &dump->rows[code->rows - 1];
}

void kb_unwind_dumps_wait(struct kb_unwind_dumps *dumps)
{
	pthread_mutex_lock(&dumps->lock);
	while (dumps->first)
		pthread_cond_wait(&dumps->done, &dumps->lock);
	pthread_mutex_unlock(&dumps->lock);
}
