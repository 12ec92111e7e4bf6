// SPDX-License-Identifier: MIT
/*
 * The thread takes the file that was asked for first. Only it touches a file that waits, and nobody
 * changes a file that was read: so files are given out without the lock.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/thread.h"
#include "sym/unwind/files.h"

#define TRIES	4U	/* places at which a file is looked for */

enum state {
	KNOWN,		/* nobody asked for it */
	WAITS,
	READ,
	ABSENT,
};

struct file {
	enum state state;		/* the thread makes WAITS to READ or ABSENT, callers the others */
	unsigned int tries;
	struct kb_unwind_place place;	/* owns its texts */
	struct kb_unwind_file file;	/* if READ */
	struct file *next;		/* that waits */
};

struct number {
	uint64_t key;
	struct file *file;
} __attribute__((aligned(8)));

struct kb_unwind_files {
	struct kb_table numbers;	/* only of the caller */
	pthread_t thread;
	pthread_mutex_t lock;		/* of all below */
	pthread_cond_t work, done;
	struct file *first, **last;	/* that wait; the first one is being read */
	bool stop;
};

/* ---- the thread ---- */

static void read_first(struct kb_unwind_files *files)
{
	struct file *file = files->first;
	struct kb_error err;
	int ret;

	pthread_mutex_unlock(&files->lock);
	ret = kb_unwind_file_load(&file->file, &file->place, &err);
	pthread_mutex_lock(&files->lock);
	__atomic_store_n(&file->state, ret ? ABSENT : READ, __ATOMIC_RELEASE);
	files->first = file->next;
	if (!files->first)
		files->last = &files->first;
	pthread_cond_broadcast(&files->done);
}

static void *read_files(void *context)
{
	struct kb_unwind_files *files = context;

	pthread_mutex_lock(&files->lock);
	while (!files->stop) {
		if (files->first)
			read_first(files);
		else
			pthread_cond_wait(&files->work, &files->lock);
	}
	pthread_mutex_unlock(&files->lock);
	return NULL;
}

/* ---- callers ---- */

int kb_unwind_files_create(struct kb_unwind_files **out)
{
	struct kb_unwind_files *files = calloc(1, sizeof(*files));
	int ret;

	*out = NULL;
	if (!files)
		return -ENOMEM;
	kb_table_init(&files->numbers, sizeof(struct number), 1);
	files->last = &files->first;
	pthread_mutex_init(&files->lock, NULL);
	pthread_cond_init(&files->work, NULL);
	pthread_cond_init(&files->done, NULL);
	ret = kb_thread_start(&files->thread, read_files, files);
	if (ret) {
		free(files);
		return ret;
	}
	*out = files;
	return 0;
}

static void free_place(struct kb_unwind_place *place)
{
	free((char *)place->image);
	free((char *)place->file.data);
}

void kb_unwind_files_destroy(struct kb_unwind_files *files)
{
	if (!files)
		return;
	pthread_mutex_lock(&files->lock);
	files->stop = true;
	pthread_cond_signal(&files->work);
	pthread_mutex_unlock(&files->lock);
	pthread_join(files->thread, NULL);
	for (uint32_t i = 0; i < files->numbers.nr; i++) {
		struct file *file = ((struct number *)kb_table_row(&files->numbers, i))->file;

		if (!file)
			continue;
		if (file->state == READ)
			kb_unwind_file_release(&file->file);
		free_place(&file->place);
		free(file);
	}
	kb_table_release(&files->numbers);
	pthread_cond_destroy(&files->work);
	pthread_cond_destroy(&files->done);
	pthread_mutex_destroy(&files->lock);
	free(files);
}

static int copy_place(struct kb_unwind_place *to, const struct kb_unwind_place *from)
{
	struct kb_unwind_place copy = *from;

	copy.image = strdup(from->image);
	copy.file.data = strndup(from->file.data ?: "", from->file.length);
	if (!copy.image || !copy.file.data) {
		free_place(&copy);
		return -ENOMEM;
	}
	free_place(to);
	*to = copy;
	return 0;
}

static int add_file(struct number *number, const struct kb_unwind_place *place)
{
	struct file *file = calloc(1, sizeof(*file));

	if (!file || copy_place(&file->place, place)) {
		free(file);
		return -ENOMEM;
	}
	number->file = file;
	return 0;
}

int kb_unwind_files_number(struct kb_unwind_files *files, uint64_t key,
			   const struct kb_unwind_place *place, uint32_t *number)
{
	struct number *known = kb_table_get(&files->numbers, &key);
	struct file *file;
	int ret = 0;

	if (!known || (!known->file && add_file(known, place)))
		return -ENOMEM;
	*number = (uint32_t)(known - (struct number *)kb_table_row(&files->numbers, 0));
	file = known->file;
	/* The thread has done with what is absent. */
	if (__atomic_load_n(&file->state, __ATOMIC_ACQUIRE) == ABSENT && file->tries < TRIES &&
	    file->place.pid != place->pid) {
		ret = copy_place(&file->place, place);
		file->state = KNOWN;
	}
	return ret;
}

static void ask_for(struct kb_unwind_files *files, struct file *file)
{
	pthread_mutex_lock(&files->lock);
	file->state = WAITS;
	file->tries++;
	file->next = NULL;
	*files->last = file;
	files->last = &file->next;
	pthread_cond_signal(&files->work);
	pthread_mutex_unlock(&files->lock);
}

int kb_unwind_files_get(struct kb_unwind_files *files, uint32_t number,
			const struct kb_unwind_file **out)
{
	struct file *file = ((struct number *)kb_table_row(&files->numbers, number))->file;
	enum state state = __atomic_load_n(&file->state, __ATOMIC_ACQUIRE);

	if (state == KNOWN)
		ask_for(files, file);
	*out = state == READ ? &file->file : NULL;
	return state == KNOWN || state == WAITS ? -EAGAIN : 0;
}

void kb_unwind_files_wait(struct kb_unwind_files *files)
{
	pthread_mutex_lock(&files->lock);
	while (files->first)
		pthread_cond_wait(&files->done, &files->lock);
	pthread_mutex_unlock(&files->lock);
}
