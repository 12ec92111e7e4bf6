// SPDX-License-Identifier: MIT
/*
 * Definitions of the TPTP export. Readers of TPTP split names at blanks, so names of classes
 * and methods have none.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "export/label.h"
#include "export/traces/tptp_methods.h"

#define NAME_BYTES	16384

struct tptp_methods {
	struct kb_tptp_writer *writer;
	struct kb_symbolizer *symbolizer;
	uint32_t *class_of;		/* by method, 0 = not defined */
	uint32_t nr_methods;		/* of class_of[] */
	uint32_t *slots;		/* hash of image -> class, 0 = free */
	uint32_t nr_slots;		/* a power of two, at most half in use */
	uint64_t seed;			/* of the hash, so that no capture can force collisions */
	const char **images;		/* by class - 1; the symbolizer's */
	uint32_t nr_classes;
	char name[NAME_BYTES];
};

struct tptp_methods *tptp_methods_create(struct kb_tptp_writer *writer,
					 struct kb_symbolizer *symbolizer)
{
	struct tptp_methods *methods = calloc(1, sizeof(*methods));

	if (!methods)
		return NULL;
	methods->writer = writer;
	methods->symbolizer = symbolizer;
	methods->seed = kb_hash_seed(methods);
	return methods;
}

void tptp_methods_destroy(struct tptp_methods *methods)
{
	if (!methods)
		return;
	free(methods->class_of);
	free(methods->slots);
	free(methods->images);
	free(methods);
}

uint32_t tptp_methods_class(const struct tptp_methods *methods, uint32_t method)
{
	return methods->class_of[method];
}

/* Valid until the next call. */
static struct kb_text name_without_blanks(struct tptp_methods *methods, const char *name)
{
	size_t length = kb_label(methods->name, sizeof(methods->name), name, strlen(name), false);

	for (size_t i = 0; i < length; i++)
		if ((uint8_t)methods->name[i] <= ' ' || methods->name[i] == 0x7f)
			methods->name[i] = '_';
	return (struct kb_text){ methods->name, length };
}

/* The slot of @image: it has its class, or 0 if the image is new. */
static uint32_t *find_slot(const struct tptp_methods *methods, const char *image)
{
	uint32_t at = (uint32_t)kb_hash_bytes(methods->seed, image, strlen(image));

	for (;; at++) {
		uint32_t *slot = &methods->slots[at & (methods->nr_slots - 1)];

		if (!*slot || strcmp(methods->images[*slot - 1], image) == 0)
			return slot;
	}
}

/* Make room for one more class. */
static bool grow_classes(struct tptp_methods *methods)
{
	uint32_t nr_slots = methods->nr_slots ? methods->nr_slots * 2 : 64;
	const char **images;

	if (methods->nr_classes < methods->nr_slots / 2)
		return true;
	images = realloc(methods->images, nr_slots / 2 * sizeof(*images));
	if (!images)
		return false;
	methods->images = images;
	free(methods->slots);
	methods->slots = calloc(nr_slots, sizeof(*methods->slots));
	methods->nr_slots = methods->slots ? nr_slots : 0;
	for (uint32_t i = 0; methods->slots && i < methods->nr_classes; i++)
		*find_slot(methods, images[i]) = i + 1;
	if (!methods->slots)
		methods->nr_classes = 0;
	return methods->slots;
}

static uint32_t class_of_image(struct tptp_methods *methods, const char *image,
			       const char *image_base, int64_t time)
{
	struct kb_tptp_message message;
	uint32_t *slot;

	if (!grow_classes(methods))
		return 0;
	slot = find_slot(methods, image);
	if (*slot)
		/* cppcheck-suppress identicalInnerCondition ; the slot differs, not its pointer */
		return *slot;
	methods->images[methods->nr_classes++] = image;
	*slot = methods->nr_classes;
	kb_tptp_message_init(&message, KB_TPTP_CLASS_DEF);
	message.values[KB_TPTP_CLASS_DEF_TIMESTAMP].number = time;
	message.values[KB_TPTP_CLASS_DEF_CLASS_ID].number = *slot;
	message.values[KB_TPTP_CLASS_DEF_NAME].string = name_without_blanks(methods, image_base);
	message.values[KB_TPTP_CLASS_DEF_SOURCE_NAME].string = kb_text(image);
	kb_tptp_writer_message(methods->writer, &message);
	return *slot;
}

static bool grow_methods(struct tptp_methods *methods, uint32_t method)
{
	uint32_t old = methods->nr_methods;

	if (!KB_ARRAY_ROOM(methods->class_of, methods->nr_methods, (size_t)method + 1))
		return false;
	memset(methods->class_of + old, 0,
	       (methods->nr_methods - old) * sizeof(*methods->class_of));
	return true;
}

uint32_t tptp_methods_resolve(struct tptp_methods *methods, uint32_t task_id, uint64_t timestamp,
			      uint64_t pc, int64_t time)
{
	static const struct kb_symbol unknown = {
		.name = "", .raw_name = "", .image = "[unknown]", .image_base = "[unknown]",
	};
	const struct kb_symbol *symbol = &unknown;
	struct kb_tptp_message message;
	uint32_t method;

	if (methods->symbolizer)
		symbol = kb_symbolizer_resolve(methods->symbolizer, task_id, timestamp, pc);
	if (symbol->id > INT32_MAX / 2)
		return 0;
	method = symbol->id + 1;
	if (method < methods->nr_methods && methods->class_of[method])
		return method;
	if (!grow_methods(methods, method))
		return 0;
	methods->class_of[method] = class_of_image(methods, symbol->image, symbol->image_base, time);
	if (!methods->class_of[method])
		return 0;
	kb_tptp_message_init(&message, KB_TPTP_METHOD_DEF);
	message.values[KB_TPTP_METHOD_DEF_NAME].string =
		name_without_blanks(methods, *symbol->name ? symbol->name : "[unknown]");
	message.values[KB_TPTP_METHOD_DEF_CLASS_ID].number = methods->class_of[method];
	message.values[KB_TPTP_METHOD_DEF_METHOD_ID].number = method;
	kb_tptp_writer_message(methods->writer, &message);
	return method;
}
