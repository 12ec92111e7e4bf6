// SPDX-License-Identifier: MIT
/*
 * A locked-down kernel. There is no way back from that but a reboot, so this runs last,
 * and only where KBARMAN_TEST_VM says that the machine is there to be spoilt.
 */
#include <sys/mount.h>

#include "kselftest_harness.h"
#include "lib.h"

#define LOCKDOWN	"/sys/kernel/security/lockdown"

TEST(lockdown_keeps_everybody_out)
{
	int fd;

	if (!getenv("KBARMAN_TEST_VM"))
		SKIP(return, "only in a VM: it would lock this machine down until it reboots");
	mount("security", "/sys/kernel/security", "securityfs", 0, NULL);
	if (access(LOCKDOWN, W_OK))
		SKIP(return, "this kernel has no lockdown");
	fd = device_open();
	close(fd);
	write_file(LOCKDOWN, "confidentiality");
	EXPECT_EQ(-1, open(KBARMAN_DEVICE, O_RDONLY | O_CLOEXEC));
	EXPECT_EQ(EPERM, errno);
}

TEST_HARNESS_MAIN
