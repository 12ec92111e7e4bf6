// SPDX-License-Identifier: GPL-2.0-only
/* Has this architecture sections in which user memory is open? arm64 got them between 6.1 and 6.12. */
#include <linux/types.h>
#include <asm/uaccess.h>

#ifndef user_access_begin
#error "there are none: <linux/uaccess.h> makes up for them"
#endif
