/* SPDX-License-Identifier: MIT */
/*
 * Each file that is made under a name of its own is made here (cli_output and others, which choose a
 * random name, call mkostemp()). A link that somebody else has put there is not followed.
 */
#ifndef KB_LIB_BASE_IO_CREATE_H
#define KB_LIB_BASE_IO_CREATE_H

#include <fcntl.h>
#include <sys/types.h>

/* Of files that say where the kernel is: for the owner, and for the group where the umask lets it. */
#define KB_CREATE_PRIVATE	0640

enum kb_create {
	KB_CREATE_FIRST,	/* a new file; -EEXIST: there is one */
	KB_CREATE_NEW,		/* a new file instead of one that is there */
	/*
	 * The same file if it is there, as it is: it must be a regular file with no other name (else
	 * -EPERM; -ELOOP for a link), of this user or of the owner of the folder (else -EPERM). Others
	 * lose what @mode does not give them.
	 */
	KB_CREATE_SAME,
	KB_CREATE_APPEND,	/* to whatever is there: for a file that the user names */
};

/* Opens @path for reading and writing; @folder as for openat(). Its descriptor or a negative errno. */
int kb_create(int folder, const char *path, enum kb_create how, mode_t mode);

#endif
