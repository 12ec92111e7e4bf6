// SPDX-License-Identifier: MIT
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/helper.h"
#include "base/thread.h"

struct kb_helper {
	pthread_t thread;
	pthread_mutex_t lock;		/* protects all members below */
	pthread_cond_t changed;
	void (*work)(void *context);	/* NULL: nothing to do */
	void *context;
	bool stop;
};

static void *help(void *context)
{
	struct kb_helper *helper = context;

	pthread_mutex_lock(&helper->lock);
	for (;;) {
		while (!helper->work && !helper->stop)
			pthread_cond_wait(&helper->changed, &helper->lock);
		if (!helper->work)
			break;
		pthread_mutex_unlock(&helper->lock);
		helper->work(helper->context);
		pthread_mutex_lock(&helper->lock);
		helper->work = NULL;
		pthread_cond_signal(&helper->changed);
	}
	pthread_mutex_unlock(&helper->lock);
	return NULL;
}

int kb_helper_start(struct kb_helper **out)
{
	struct kb_helper *helper = calloc(1, sizeof(*helper));
	int ret;

	if (!helper)
		return -ENOMEM;
	pthread_mutex_init(&helper->lock, NULL);
	pthread_cond_init(&helper->changed, NULL);
	ret = kb_thread_start(&helper->thread, help, helper);
	if (ret) {
		free(helper);
		return ret;
	}
	*out = helper;
	return 0;
}

void kb_helper_end(struct kb_helper *helper)
{
	if (!helper)
		return;
	pthread_mutex_lock(&helper->lock);
	helper->stop = true;
	pthread_cond_signal(&helper->changed);
	pthread_mutex_unlock(&helper->lock);
	pthread_join(helper->thread, NULL);
	pthread_cond_destroy(&helper->changed);
	pthread_mutex_destroy(&helper->lock);
	free(helper);
}

void kb_helper_give(struct kb_helper *helper, void (*work)(void *context), void *context)
{
	pthread_mutex_lock(&helper->lock);
	helper->work = work;
	helper->context = context;
	pthread_cond_signal(&helper->changed);
	pthread_mutex_unlock(&helper->lock);
}

void kb_helper_wait(struct kb_helper *helper)
{
	pthread_mutex_lock(&helper->lock);
	while (helper->work)
		pthread_cond_wait(&helper->changed, &helper->lock);
	pthread_mutex_unlock(&helper->lock);
}
