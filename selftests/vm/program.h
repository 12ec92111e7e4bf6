/* SPDX-License-Identifier: MIT */
/* A copy of the program that runs, to be run elsewhere: programs of these tests need no library. */
#ifndef KBARMAN_VM_PROGRAM_H
#define KBARMAN_VM_PROGRAM_H

#include <sys/sendfile.h>

#include "lib.h"

static inline void write_program(const char *path)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	struct stat st;

	if (from < 0 || to < 0 || fstat(from, &st))
		lost("no copy of the program");
	for (off_t left = st.st_size; left;) {
		ssize_t done = sendfile(to, from, NULL, left);

		if (done <= 0)
			lost("no copy of the program");
		left -= done;
	}
	close(from);
	close(to);
}

#endif /* KBARMAN_VM_PROGRAM_H */
