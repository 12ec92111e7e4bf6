/* SPDX-License-Identifier: MIT */
/* What stands around the events of a capture in its TPTP trace. */
#ifndef KB_LIB_EXPORT_TPTP_FRAME_H
#define KB_LIB_EXPORT_TPTP_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/tptp.h>

/* The next fact of the header behind *@at: "KEY=VALUE", NULL at the end. */
const char *tptp_next_fact(const struct kb_header *header, uint32_t *at);

/* From the node to the options; @time: of the capture's base. */
void tptp_write_beginning(struct kb_tptp_writer *writer, const struct kb_barman *barman,
			  bool aggregate, int64_t time);
void tptp_write_ending(struct kb_tptp_writer *writer, const struct kb_header *header,
		       int64_t time);

#endif
