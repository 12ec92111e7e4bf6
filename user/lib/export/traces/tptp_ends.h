/* SPDX-License-Identifier: MIT */
/* The beginning and the end of a TPTP trace, around the events of a capture. */
#ifndef KB_LIB_EXPORT_TRACES_TPTP_ENDS_H
#define KB_LIB_EXPORT_TRACES_TPTP_ENDS_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/tptp.h>

/* The next fact "KEY=VALUE" of the header behind *@at; NULL at the end. */
const char *tptp_next_fact(const struct kb_header *header, uint32_t *at);

/*
 * Write the messages from the node to the options. @time: time of the start of the capture's
 * clock.
 */
void tptp_write_beginning(struct kb_tptp_writer *writer, const struct kb_barman *barman,
			  bool aggregate, int64_t time);
void tptp_write_ending(struct kb_tptp_writer *writer, const struct kb_header *header,
		       int64_t time);

#endif
