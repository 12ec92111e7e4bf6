// SPDX-License-Identifier: MIT
/* What is noted of /proc/PID/cgroup and cmdline, and what a path says of unit and container. */
#include "../../user/lib/record/recorder/notes.c"
#include "../lib/tap.h"
#include "analysis/facts/process_notes.h"

static void is_cgroup(const char *text, const char *path, const char *name)
{
	char copy[512];

	snprintf(copy, sizeof(copy), "%s", text);
	tap_is_string(cgroup_of(copy), path, name);
}

static void is_text(struct kb_text text, const char *wanted, const char *name)
{
	char copy[128];

	snprintf(copy, sizeof(copy), "%.*s", (int)text.length, text.data);
	tap_is_string(copy, wanted, name);
}

/* The @length bytes of @text, and up to 257 of the last one. */
static void is_command(const char *text, size_t length, bool longer, const char *wanted, const char *name)
{
	char copy[COMMAND_BYTES + 2];

	memcpy(copy, text, length);
	if (longer)
		memset(copy + length, copy[length - 1], COMMAND_BYTES + 1 - length);
	make_command(copy, longer ? COMMAND_BYTES + 1 : length);
	tap_is_string(copy, wanted, name);
}

static void commands(void)
{
	static char cut[COMMAND_BYTES + 1], odd[COMMAND_BYTES + 1];

	memset(cut, 'y', COMMAND_BYTES - 3);
	memcpy(cut + COMMAND_BYTES - 3, "...", 3);
	is_command("a\0b c\0", 6, false, "a b c", "blanks_are_between_arguments");
	is_command("a\0\0b\0\0\0", 7, false, "a  b", "nothing_is_behind_the_last_one");
	is_command("title", 5, false, "title", "a_title_may_have_no_end");
	is_command("\0\0", 2, false, "", "empty_arguments_are_no_text");
	is_command("a\033[1m\n\xff\xe2\x80\xae", 10, false, "a?[1m???", "nothing_controls_a_terminal");
	is_command("y", 1, true, cut, "a_long_one_is_cut");
	memset(odd, 'y', COMMAND_BYTES - 4);
	memcpy(odd + COMMAND_BYTES - 4, "...", 4);
	memset(cut, 'y', COMMAND_BYTES);
	memcpy(cut + COMMAND_BYTES - 4, "\xc3\xa4", 2);
	is_command(cut, COMMAND_BYTES, true, odd, "no_half_of_a_character_stays");
}

#define ID	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

int main(void)
{
	is_cgroup("0::/system.slice/a.service\n", "/system.slice/a.service", "version_2_has_one_line");
	commands();
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
