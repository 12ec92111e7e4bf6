// SPDX-License-Identifier: MIT
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/out_thread.h"
#include "base/thread.h"

struct kb_out_thread {
	kb_out_write write;
	void *context;
	pthread_t thread;
	pthread_mutex_t lock;		/* protects all members below */
	pthread_cond_t changed;
	uint8_t *buffer;		/* the thread's while there is something to write */
	size_t room, size;		/* bytes; size: to be written */
	int error;			/* the first one, negative errno */
	bool stop;
};

static void *write_buffers(void *context)
{
	struct kb_out_thread *t = context;
	int error;

	pthread_mutex_lock(&t->lock);
	for (;;) {
		while (!t->size && !t->stop)
			pthread_cond_wait(&t->changed, &t->lock);
		if (!t->size)
			break;
		pthread_mutex_unlock(&t->lock);
		error = t->write(t->context, t->buffer, t->size);
		pthread_mutex_lock(&t->lock);
		t->error = error;
		t->size = 0;
		pthread_cond_signal(&t->changed);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

int kb_out_thread_start(struct kb_out_thread **out, size_t room, kb_out_write write, void *context)
{
	struct kb_out_thread *t = calloc(1, sizeof(*t));
	int ret = -ENOMEM;

	if (!t)
		return ret;
	t->write = write;
	t->context = context;
	t->room = room;
	t->buffer = malloc(room);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
	if (t->buffer)
		ret = kb_thread_start(&t->thread, write_buffers, t);
	if (ret) {
		free(t->buffer);
		free(t);
		return ret;
	}
	*out = t;
	return 0;
}

void kb_out_thread_end(struct kb_out_thread *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t->buffer);
	free(t);
}

/* Context: t->lock. */
static int wait_idle(struct kb_out_thread *t)
{
	while (t->size)
		pthread_cond_wait(&t->changed, &t->lock);
	return t->error;
}

int kb_out_thread_give(struct kb_out_thread *t, uint8_t **buffer, size_t *room, size_t size)
{
	uint8_t *given = *buffer;
	size_t given_room = *room;
	int error;

	pthread_mutex_lock(&t->lock);
	error = wait_idle(t);
	if (!error) {
		*buffer = t->buffer;
		*room = t->room;
		t->buffer = given;
		t->room = given_room;
		t->size = size;
		pthread_cond_signal(&t->changed);
	}
	pthread_mutex_unlock(&t->lock);
	return error;
}

int kb_out_thread_wait(struct kb_out_thread *t)
{
	int error;

	pthread_mutex_lock(&t->lock);
	error = wait_idle(t);
	pthread_mutex_unlock(&t->lock);
	return error;
}
