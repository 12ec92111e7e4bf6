// SPDX-License-Identifier: MIT
/*
 * Errors as one sentence. struct kb_error has room for most sentences, so that a caller has
 * nothing to free. Longer ones, such as those with a long path, are kept for the thread that
 * made them: the newest ones, each with the number that the struct has. Without memory a
 * sentence is cut.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/error.h>

#define KEPT	64

struct kept {
	unsigned int next;
	struct {
		uint32_t number;
		char *text;
	} texts[KEPT];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int no_key;

static void forget(void *data)
{
	struct kept *kept = data;

	for (unsigned int i = 0; i < KEPT; i++)
		free(kept->texts[i].text);
	free(kept);
}

static void make_key(void)
{
	no_key = pthread_key_create(&key, forget);
}

/* A thread may live longer than the library, which a program may have loaded with dlopen(). */
__attribute__((destructor)) static void delete_key(void)
{
	pthread_once(&once, make_key);
	if (no_key)
		return;
	if (pthread_getspecific(key))
		forget(pthread_getspecific(key));
	pthread_setspecific(key, NULL);
	pthread_key_delete(key);
	no_key = -1;
}

static struct kept *kept_of_thread(void)
{
	pthread_once(&once, make_key);
	return no_key ? NULL : pthread_getspecific(key);
}

static struct kept *new_kept(void)
{
	struct kept *kept = no_key ? NULL : calloc(1, sizeof(*kept));

	if (kept && pthread_setspecific(key, kept)) {
		free(kept);
		kept = NULL;
	}
	return kept;
}

/* Keep @text, which belongs to the thread from now on. Returns its number; 0: no memory. */
static uint32_t keep(char *text)
{
	static uint32_t last;	/* of all threads: the numbers of no two of them are equal */
	struct kept *kept = kept_of_thread();
	uint32_t number;

	if (!kept)
		kept = new_kept();
	if (!kept) {
		free(text);
		return 0;
	}
	do {
		number = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	} while (!number);
	free(kept->texts[kept->next].text);
	kept->texts[kept->next].text = text;
	kept->texts[kept->next].number = number;
	kept->next = (kept->next + 1) % KEPT;
	return number;
}

int kb_error_set(struct kb_error *err, int code, uint64_t offset, const char *format, ...)
{
	va_list args, again;
	char *whole;
	int length;

	if (!err)
		return code;
	err->code = code;
	err->offset = offset;
	err->whole = 0;
	va_start(args, format);
	va_copy(again, args);
	length = vsnprintf(err->text, sizeof(err->text), format, args);
	if (length >= (int)sizeof(err->text) && vasprintf(&whole, format, again) >= 0)
		err->whole = keep(whole);
	va_end(again);
	va_end(args);
	return code;
}

const char *kb_error_text(const struct kb_error *err)
{
	const struct kept *kept = err->whole ? kept_of_thread() : NULL;

	for (unsigned int i = 0; kept && i < KEPT; i++) {
		const char *text = kept->texts[i].text;

		/* A struct that was not filled by kb_error_set() may have any number. */
		if (text && kept->texts[i].number == err->whole &&
		    !strncmp(text, err->text, sizeof(err->text) - 1))
			return text;
	}
	return err->text;
}
