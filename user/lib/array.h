/* SPDX-License-Identifier: MIT */
/* Arrays of fixed length. */
#ifndef KB_LIB_ARRAY_H
#define KB_LIB_ARRAY_H

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#endif
