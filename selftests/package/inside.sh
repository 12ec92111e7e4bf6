#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs under systemd, where the packages are installed and the module is loaded. Prints TAP.

count=0
cd /tmp || exit
# shellcheck source-path=SCRIPTDIR source=../lib/device_record.sh
. /host/device_record.sh
# shellcheck source-path=SCRIPTDIR source=../lib/device_parts.sh
. /host/device_parts.sh
KBARMAN=kbarman folder=/var/lib/kbarmand

check() {
	count=$((count + 1))
	if "$1" >/tmp/said 2>&1; then
		echo "ok - $1"
	else
		tail -n 30 /tmp/said | sed 's/^/# /'
		echo "not ok - $1"
	fi
}

the_tool_and_its_manual_are_there() {
	kbarman version && [ -s /usr/share/man/man1/kbarman-flight.1.gz ] &&
		[ -s /usr/share/man/man7/kbarman-unknown.7.gz ] &&
		[ -s /usr/share/man/man3/kb_barman_open.3.gz ] &&
		[ -s /usr/share/bash-completion/completions/kbarman ]
}

a_program_that_takes_the_library_runs() {
	printf '%s\n' '#include <kbarman/device.h>' 'int main(void) { kb_device_close(0); return 0; }' >try.c
	flags=$(pkg-config --cflags --libs kbarman 2>/dev/null || echo -lkbarman)
	# shellcheck disable=SC2086 # words
	gcc-12 try.c $flags -o try && ldd try | grep 'libkbarman.so.0 => /' && ./try
}

python_reads_captures() {
	python3 -c 'import kbarman, os
path = "/nonexistent"
try:
    kbarman.open(path)
except kbarman.Error as error:
    print(error, kbarman.__version__, kbarman.tool())
    assert path in str(error) and "switches" in kbarman.tables()'
}

the_module_is_that_of_dkms() {
	modinfo -F filename kbarman | grep updates/dkms &&
		[ "$(cat /sys/module/kbarman/srcversion)" = "$(modinfo -F srcversion kbarman)" ]
}

udev_gives_the_device_to_its_group() {
	stat -c '%G %a' /dev/kbarman | grep 'kbarman 660'
}

the_flight_recorder_starts_in_its_sandbox() {
	systemctl start kbarman-flight || { journalctl --no-pager -n 20; return 1; }
	pid=$(systemctl show -P MainPID kbarman-flight)
	i=0
	until kbarman doctor | grep 'session.*other programs record'; do
		i=$((i + 1)); sleep 0.2
		[ $i -lt 100 ] || { kbarman doctor; return 1; }
	done
	systemctl status --no-pager kbarman-flight
	grep -E '^(Uid|CapEff|NoNewPrivs|Seccomp):' "/proc/$pid/status"
	# not root; three capabilities, no way to more; system calls filtered
	! grep -q '^Uid:.0' "/proc/$pid/status" && grep -q '^NoNewPrivs:.1' "/proc/$pid/status" &&
		grep -q '^Seccomp:.2' "/proc/$pid/status" &&
		grep -q '^CapBnd:.0000004400800000$' "/proc/$pid/status"
}

the_tool_finds_the_flight_recorder_of_the_service() {
	pid=$(systemctl show -P MainPID kbarman-flight)
	kbarman flight status | grep "(process $pid)" || return
	if kbarman flight start; then echo 'a second one'; return 1; fi
	# nobody may neither ask what it keeps nor stop it, and is told that it is there
	for verb in status stop; do
		setpriv --reuid=nobody --regid=nogroup --clear-groups \
			kbarman flight $verb 2>told && return 1
		cat told
		grep "flight recorder.*(process $pid)" told || return
	done
	systemctl is-active kbarman-flight
}

a_snapshot_under_load_has_the_last_moment_before_the_request() {
	for i in 1 2 3 4; do
		sh -c 'while :; do /bin/true; done' &
		load="$load $!"
	done
	sleep 2
	ok=0
	for i in 1 2 3; do
		kbarman annotate "the last word $i"
		kbarman snapshot -o snap$i.cap || ok=1
		kbarman check snap$i.cap || ok=1
		kbarman dump -j snap$i.cap | grep -q "the last word $i" || {
			echo "the mark in front of snapshot $i is not in it"; ok=1; }
	done
	# shellcheck disable=SC2086 # a list
	kill $load
	return $ok
}

a_reload_leaves_a_snapshot_in_its_folder() {
	systemctl reload kbarman-flight || return
	i=0
	until ls /var/lib/kbarman/flight-*.cap; do
		i=$((i + 1)); sleep 0.2
		[ $i -lt 100 ] || return 1
	done
	systemctl is-active kbarman-flight
}

stopping_it_leaves_the_last_seconds() {
	systemctl stop kbarman-flight && kbarman check /var/lib/kbarman/flight.cap
}

python_has_the_records_of_the_flight_recorder() {
	python3 -c 'import kbarman, subprocess
path = "/var/lib/kbarman/flight.cap"
said = subprocess.run(["kbarman", "dump", path], capture_output=True, check=True).stdout
records = len(kbarman.open(path).table("records"))
print(records)
assert records > 100 and sum(1 for _ in kbarman.open(path)) == records'
}

the_tool_stops_the_flight_recorder_of_the_service() {
	rm /var/lib/kbarman/flight.cap && systemctl start kbarman-flight || return
	until kbarman flight status; do sleep 0.2; done
	kbarman flight stop && kbarman check /var/lib/kbarman/flight.cap
}

# As docs/fleet.md says.
the_agent_records_in_its_sandbox() {
	kbarmand --check || return
	sed -i 's/^file_time = .*/file_time = 1s/; s/^folder_max.*/&\nkeep_free = 0/' /etc/kbarman/kbarmand.conf
	if ! { systemctl enable --now kbarmand && kbarmand --status && until_true nr_captures 3; }; then
		journalctl --no-pager -n 20 -u kbarmand
		return 1
	fi
	pid=$(systemctl show -P MainPID kbarmand)
	grep -E '^(Uid|CapEff|CapBnd|NoNewPrivs|Seccomp|VmHWM):' "/proc/$pid/status"
	! grep -q '^Uid:.0' "/proc/$pid/status" && grep -q '^NoNewPrivs:.1' "/proc/$pid/status" &&
		grep -q '^Seccomp:.2' "/proc/$pid/status" &&
		grep -q '^CapBnd:.0000004400800000$' "/proc/$pid/status"
}

the_service_manager_keeps_the_session_of_an_agent_that_ends() {
	sh -c 'while :; do echo; done | while read -r line; do :; done' &
	load=$!
	for how in restart 'kill --signal=KILL' reload restart; do
		before=$(captures | wc -l)
		# shellcheck disable=SC2086 # words
		if ! { systemctl $how kbarmand && until_true nr_captures $((before + 2)); }; then
			echo "after $how:"
			systemctl status --no-pager --full -n 40 kbarmand
			return 1
		fi
	done
	kill $load
	until_true kbarmand --status
	# a session that the configuration no longer has ends, with all that it has
	sed -i 's/^.session all/[session other/' /etc/kbarman/kbarmand.conf
	systemctl reload kbarmand && session=other && until_true nr_captures 1 && session=all &&
		have_all && parts_follow
}

the_captures_of_the_agent_go_into_the_folder_of_a_fleet() {
	session=all
	all=$(captures | head -n 8)
	for capture in $all; do
		kbarman convert "$capture" --to parquet -o fleet || return
	done
	find fleet/captures
	[ "$(find fleet/captures -path '*/host=*/hour=*.parquet' | wc -l)" -eq "$(echo "$all" | wc -l)" ]
}

spooled() {
	find /var/lib/kbarman-push/ -name '*.request'
}

# "at least one", or 0
nr_spooled() {
	if [ "$1" = 0 ]; then [ -z "$(spooled)" ]; else [ -n "$(spooled)" ]; fi
}

collector_answers() {
	systemctl restart kbarman-push && until_true nr_spooled 0
}

# As docs/fleet.md says: without a collector they are kept, and sent when it is there. Samples are what is sent.
the_captures_of_the_agent_are_sent_by_a_service_of_another_user() {
	{
		echo OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318
		echo 'KBARMAN_PUSH_OPTIONS=--retry 0'
	} >/etc/default/kbarman-push
	sed -i 's/^file_time = .*/&\nsample = 49/' /etc/kbarman/kbarmand.conf && systemctl reload kbarmand || return
	if ! { systemctl enable --now kbarman-push && until_true nr_spooled 1; }; then
		journalctl --no-pager -n 20 -u kbarman-push
		return 1
	fi
	pid=$(systemctl show -P MainPID kbarman-push)
	grep -E '^(Uid|CapBnd|NoNewPrivs|Seccomp):' "/proc/$pid/status"
	! grep -q '^Uid:.0' "/proc/$pid/status" && grep -q '^CapBnd:.0000000400000000$' "/proc/$pid/status" || return
	python3 /host/collector.py 4318 &
	collector=$!
	collector_answers
	sent=$?
	[ $sent = 0 ] || journalctl --no-pager -n 20 -u kbarman-push
	systemctl disable --now kbarman-push
	kill $collector
	return $sent
}

another_agent_than() {
	pid=$(systemctl show -P MainPID kbarmand)
	[ "$pid" != 0 ] && [ "$pid" != "$1" ] && systemctl is-active -q kbarmand
}

the_agent_records_again_however_often_it_is_killed() {
	session=other kills=0
	while [ $kills -lt 6 ]; do
		kills=$((kills + 1))
		killed=$(systemctl show -P MainPID kbarmand)
		kill -KILL "$killed" && until_true another_agent_than "$killed" || return
	done
	until_true nr_captures $(($(captures | wc -l) + 1)) && until_true kbarmand --status
}

the_agent_starts_when_the_module_comes() {
	session=other
	systemctl stop kbarmand && modprobe -r kbarman && systemctl start kbarmand || return
	if systemctl is-active -q kbarmand; then echo 'without the module'; return 1; fi
	before=$(captures | wc -l)
	modprobe kbarman && until_true systemctl is-active -q kbarmand &&
		until_true nr_captures $((before + 1)) && return
	systemctl status --no-pager --full kbarmand dev-kbarman.device
	return 1
}

an_agent_that_is_disabled_leaves_its_captures() {
	systemctl disable --now kbarmand && ! kbarmand --status &&
		session='' && [ -z "$(find $folder -name '*.part')" ] && nr_captures 10 && rm -r $folder
}

purging_leaves_nothing() {
	dpkg --purge python3-kbarman kbarman-push kbarman kbarman-dkms libkbarman-dev libkbarman0 || return
	! find /usr /lib/modules -name '*kbarman*' | grep .
}

# shellcheck disable=SC2013 # one word a line
for test in $(sed -n 's/^\([a-z_]*\)() {$/\1/p' "$0"); do
	case $test in check | until_true | another_agent_than | spooled | nr_spooled | collector_answers) ;; *) check "$test" ;; esac
done
echo "1..$count"
