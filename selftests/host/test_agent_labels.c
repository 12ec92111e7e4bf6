// SPDX-License-Identifier: MIT
/* Which of the lines of /proc/PID/cgroup is noted, and what a path says of unit and container. */
#include "../../user/agent/labels.c"
#include "../lib/tap.h"
#include "analysis/facts/cgroups.h"

static void is_cgroup(const char *text, const char *path, const char *name)
{
	char copy[512];

	snprintf(copy, sizeof(copy), "%s", text);
	tap_is_string(agent_cgroup_of(copy), path, name);
}

static void is_text(struct kb_text text, const char *wanted, const char *name)
{
	char copy[128];

	snprintf(copy, sizeof(copy), "%.*s", (int)text.length, text.data);
	tap_is_string(copy, wanted, name);
}

#define ID	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

int main(void)
{
	is_cgroup("0::/system.slice/a.service\n", "/system.slice/a.service", "version_2_has_one_line");
	is_cgroup("0::/\n", "/", "the_root_is_a_cgroup");
	is_cgroup("12:cpu,cpuacct:/x\n1:name=systemd:/system.slice/b.service\n0::/\n",
		  "/system.slice/b.service", "with_both_versions_systemd_knows_it");
	is_cgroup("4:memory:/docker/" ID "\n3:cpu:/docker/" ID "\n", "/docker/" ID,
		  "without_systemd_the_first_line_counts");
	is_cgroup("1:name=systemd:/a\n0::/b\n", "/a", "systemd_comes_before_version_2");
	is_cgroup("", NULL, "an_empty_file_has_none");
	is_cgroup("nonsense\n0::/c:d\n", "/c:d", "a_path_may_have_colons");

	is_text(kb_cgroup_service("/system.slice/shop.service/worker"), "shop", "a_service_is_a_unit");
	is_text(kb_cgroup_service("/user.slice/user@0.service/app.service"), "app",
		"the_innermost_service_counts");
	is_text(kb_cgroup_service("/user.slice/session-1.scope"), "", "a_session_is_no_service");
	is_text(kb_cgroup_service("/.service"), "", "a_name_is_needed");
	is_text(kb_cgroup_service(""), "", "nothing_is_no_service");
	is_text(kb_cgroup_container("/docker/" ID), ID, "docker_names_folders");
	is_text(kb_cgroup_container("/system.slice/docker-" ID ".scope"), ID, "and_scopes");
	is_text(kb_cgroup_container("/x/cri-containerd-" ID ".scope"), ID, "so_does_containerd");
	is_text(kb_cgroup_container("/machine.slice/libpod-" ID ".scope/container"), ID,
		"and_podman");
	is_text(kb_cgroup_container("/kubepods-pod0123.slice:cri-containerd:" ID), ID,
		"and_containerd_with_cgroupfs");
	is_text(kb_cgroup_container("/x/" ID "0"), "", "more_digits_are_no_id");
	is_text(kb_cgroup_container("/system.slice/cafe.service"), "", "fewer_are_none_either");
	return tap_done();
}
