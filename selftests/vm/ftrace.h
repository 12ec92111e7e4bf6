/* SPDX-License-Identifier: MIT */
/*
 * Linux's own tracer, in an instance of its own: a buffer that keeps the first events, and a reader
 * of its pages. `format` files say where fields are; the pages are as
 * Documentation/trace/ring-buffer*.rst and linux/ring_buffer.h have them.
 */
#ifndef KBARMAN_VM_FTRACE_H
#define KBARMAN_VM_FTRACE_H

#include "lib.h"

#define FTRACE		"/sys/kernel/tracing"
#define FTRACE_INSTANCE	FTRACE "/instances/kbarman"

/* Where a field is in an event. */
struct ftrace_field {
	unsigned int offset, size;
};

static inline bool ftrace_has(const char *event)
{
	char path[256];

	snprintf(path, sizeof(path), FTRACE_INSTANCE "/events/%s", event);
	return !access(path, F_OK);
}

static inline void ftrace_set(const char *file, const char *value)
{
	char path[256];

	snprintf(path, sizeof(path), FTRACE_INSTANCE "/%s", file);
	write_file(path, value);
}

/* With @kib of memory for each CPU. False: this kernel has no such tracer. */
static inline bool ftrace_begin(unsigned int kib)
{
	char number[16];

	mount("nodev", FTRACE, "tracefs", 0, NULL);
	if (access(FTRACE "/instances", F_OK))
		return false;
	rmdir(FTRACE_INSTANCE);
	if (mkdir(FTRACE_INSTANCE, 0700))
		lost("no instance of ftrace");
	ftrace_set("tracing_on", "0");
	ftrace_set("options/overwrite", "0");
	snprintf(number, sizeof(number), "%u", kib);
	ftrace_set("buffer_size_kb", number);
	return true;
}

static inline void ftrace_end(void)
{
	rmdir(FTRACE_INSTANCE);
}

/* The text of a file of @event. */
static inline void ftrace_event_file(const char *event, const char *file, char *text, size_t size)
{
	char path[256];

	snprintf(path, sizeof(path), FTRACE_INSTANCE "/events/%s/%s", event, file);
	read_file(path, text, size);
}

static inline unsigned int ftrace_id(const char *event)
{
	char text[16];

	ftrace_event_file(event, "id", text, sizeof(text));
	return atoi(text);
}

/* A field of @event; of size 0 if there is none of that name. */
static inline struct ftrace_field ftrace_field(const char *event, const char *name)
{
	struct ftrace_field field = { 0 };
	char text[4096], *line, *next, wanted[64];

	ftrace_event_file(event, "format", text, sizeof(text));
	snprintf(wanted, sizeof(wanted), " %s;", name);
	for (line = text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		line = strstr(line, wanted);
		if (line && sscanf(line + strlen(wanted), " offset:%u; size:%u;", &field.offset,
				   &field.size) == 2)
			return field;
	}
	return field;
}

static inline uint64_t ftrace_value(const uint8_t *event, struct ftrace_field field)
{
	uint64_t wide = 0;
	uint32_t word = 0;
	uint16_t half;

	switch (field.size) {
	case 8:
		memcpy(&wide, event + field.offset, 8);
		return wide;
	case 4:
		memcpy(&word, event + field.offset, 4);
		return word;
	case 2:
		memcpy(&half, event + field.offset, 2);
		return half;
	case 1:
		return event[field.offset];
	default:
		return 0;
	}
}

/* The events that found no room on @cpu. */
static inline uint64_t ftrace_lost(uint32_t cpu)
{
	char path[256], text[1024];
	const char *at;
	uint64_t lost;

	snprintf(path, sizeof(path), FTRACE_INSTANCE "/per_cpu/cpu%u/stats", cpu);
	read_file(path, text, sizeof(text));
	at = strstr(text, "\noverrun: ");
	lost = at ? strtoull(at + 10, NULL, 10) : 0;
	at = strstr(text, "dropped events: ");
	return lost + (at ? strtoull(at + 16, NULL, 10) : 0);
}

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define FTRACE_TYPE(word)	((word) >> 27)
#define FTRACE_DELTA(word)	((word) & 0x7ffffff)
#else
#define FTRACE_TYPE(word)	((word) & 31)
#define FTRACE_DELTA(word)	((word) >> 5)
#endif

/* Call @take for each event of a page, with its bytes. */
static inline void ftrace_read_page(const uint8_t *page,
				    void (*take)(void *to, const uint8_t *event), void *to)
{
	const uint8_t *at = page + 8 + sizeof(long), *end;
	unsigned long commit;

	memcpy(&commit, page + 8, sizeof(commit));
	end = at + (commit & 0xfffff);
	while (at < end) {
		uint32_t word, length = 0;

		memcpy(&word, at, 4);
		if (FTRACE_TYPE(word) == 0 || FTRACE_TYPE(word) == 29)
			memcpy(&length, at + 4, 4);
		switch (FTRACE_TYPE(word)) {
		case 0:
			take(to, at + 8);
			at += 4 + ((length + 3) & ~3U);
			break;
		case 29:	/* padding: an event that was taken back, or the end */
			if (!FTRACE_DELTA(word))
				return;
			at += 4 + length;
			break;
		case 30:
		case 31:	/* times */
			at += 8;
			break;
		default:
			take(to, at + 4);
			at += 4 + 4 * FTRACE_TYPE(word);
		}
	}
}

/* Call @take for each event of @cpu, in order. Tracing is off. */
static inline void ftrace_read(uint32_t cpu, void (*take)(void *to, const uint8_t *event), void *to)
{
	uint8_t page[65536];
	char path[256];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), FTRACE_INSTANCE "/per_cpu/cpu%u/trace_pipe_raw", cpu);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		lost("%s does not open", path);
	while ((got = read(fd, page, getpagesize())) > 0)
		ftrace_read_page(page, take, to);
	close(fd);
}

#endif /* KBARMAN_VM_FTRACE_H */
