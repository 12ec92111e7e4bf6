/* SPDX-License-Identifier: MIT */
/*
 * kb_event_checksum() multiplies the fields of a record by these numbers and adds them up. So the
 * checksum of many records is that of the sums of their fields.
 */
#ifndef KB_LIB_FORMAT_BARMAN_CHECKSUM_H
#define KB_LIB_FORMAT_BARMAN_CHECKSUM_H

#include <stdint.h>

/* Odd numbers without a pattern (digits of the golden ratio, e and pi). */
#define MIX_HEAD	UINT64_C(0x9e3779b97f4a7c15)
#define MIX_TIME	UINT64_C(0xb7e151628aed2a6b)
#define MIX_BODY	UINT64_C(0x243f6a8885a308d3)
#define MIX_MORE	UINT64_C(0x13198a2e03707345)

#endif
