// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/trigger_list.h"

int agent_triggers(struct kb_triggers **triggers, const char *list, struct kb_error *err)
{
	int ret = kb_triggers_create(triggers, err);
	char *words = strdup(list), *rest = words;

	if (!ret && !words)
		ret = kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	for (char *word; !ret && (word = strsep(&rest, " \t")); )
		if (*word)
			ret = kb_triggers_add(*triggers, word, err);
	if (!ret && !kb_triggers_nr(*triggers))
		ret = kb_error_set(err, -EINVAL, KB_NO_OFFSET, "give one or more, as in latency>5ms");
	free(words);
	return ret;
}

bool agent_triggers_have(const char *list, enum kb_trigger_kind kind)
{
	struct kb_triggers *triggers = NULL;
	struct kb_error err;
	bool have = false;

	if (list && !agent_triggers(&triggers, list, &err))
		for (uint32_t i = 0; i < kb_triggers_nr(triggers); i++)
			have |= kb_triggers_get(triggers, i)->kind == kind;
	kb_triggers_destroy(triggers);
	return have;
}
