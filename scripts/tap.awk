# SPDX-License-Identifier: MIT
#
# Reads the TAP of one suite while it runs, prints one line per program and the reasons of
# failures, and appends "PASSED FAILED SKIPPED" to the file `totals`.
#
#   suite=NAME   the name of the suite
#   nested=1     the TAP is from run_kselftest.sh: the TAP of each program is indented by "# "
#   totals=FILE
#   times=FILE   gets a line for each test: seconds, tab, program and test
#   failures=FILE   gets what failed, with its reasons
#
# The line "exit STATUS" after the TAP is the program's exit status. A program counts as one
# failure if it exits with an error but reports none, or if some of its results are missing.

function begin(name) {
	program = name
	since = systime()
	passed = failed = skipped = results = 0
	plan = -1
	test = ""
	forget()
}

# lines that say why: those in front of a result, and those behind one that failed
function forget() {
	diagnostics = behind = failing = 0
}

# Suites run beside each other: mawk would write the end of a line by itself.
function say(line) {
	printf "%s", line "\n"
}

# both here and at the end of the run
function tell_failure(line) {
	say(line)
	print line >> failures
	fflush(failures)		# others append to it
}

# what a failing test said behind its result; the reason may stand last
function tell_behind(i) {
	for (i = 0; i < behind; i++) {
		if (behind > 24 && i == 8) {
			tell_failure("      […]")
			i = behind - 16
		}
		tell_failure("      " said_behind[i])
	}
	behind = failing = 0
}

function problem(what) {
	failed++
	tell_failure("FAIL  " program ": " what)
}

function end(status, left) {
	tell_behind()
	if (plan >= 0 && plan != results)
		problem("only " results " of " plan " tests ran")
	else if (!results && (status || !nested))
		problem("no test ran" (status ? " (" status ")" : ""))
	else if (status && !failed)
		problem(status)
	if (passed || failed || skipped) {
		left = sprintf("%s  %-40s %4d passed", failed ? "FAIL" : "ok  ", program, passed)
		if (failed)
			left = left sprintf(", %d failed", failed)
		if (skipped)
			left = left sprintf(", %d skipped", skipped)
		say(left)
	}
	fflush()
	all_passed += passed; all_failed += failed; all_skipped += skipped
	took("its end")
	begin(suite)
}

# what took the time since the test before
function took(what, now) {
	now = systime()
	sub(/ *# *[Ss][Kk][Ii][Pp].*/, "", what)
	if (now > since) {
		printf "%d\t%s: %s\n", now - since, program, what >> times
		fflush(times)		# others append to it
	}
	since = now
}

function result(line, good, reason, name, i) {
	tell_behind()
	results++
	name = line
	sub(/^(not )?ok *[0-9]* *(- )?/, "", name)
	took(name)
	reason = ""
	if (match(name, /# *[Ss][Kk][Ii][Pp]/)) {
		reason = substr(name, RSTART + RLENGTH)
		name = substr(name, 1, RSTART - 1)
		sub(/^[: ]+/, "", reason)
		sub(/ +$/, "", name)
		if (name == "")
			name = test		# the harness of the kernel names no skipped test
		if (good) {
			skipped++
			say("skip  " program ": " name ": " (reason == "" ? "no reason given" : reason))
			forget()
			return
		}
	}
	if (good) {
		passed++
		forget()
		return
	}
	failed++
	tell_failure("FAIL  " program ": " name)
	for (i = diagnostics > 20 ? diagnostics - 20 : 0; i < diagnostics; i++)
		tell_failure("      " diagnostic[i])
	forget()
	failing = 1
}

function note(line) {
	if (line ~ /^# +RUN /) {
		tell_behind()
		test = line
		sub(/^# +RUN +/, "", test)
		sub(/ \.\.\.$/, "", test)
		forget()
	} else if (line ~ /^# +(OK|FAIL|SKIP) |^# (PASSED|FAILED|Starting|Totals)|^TAP version/)
		return
	else if (line == "")
		return
	else if (failing)
		said_behind[behind++] = line
	else
		diagnostic[diagnostics++] = line
}

function tap(line) {
	if (line ~ /^ok([^a-zA-Z]|$)/)
		result(line, 1)
	else if (line ~ /^not ok([^a-zA-Z]|$)/)
		result(line, 0)
	else if (line ~ /^1\.\.[0-9]+/) {
		plan = substr(line, 4) + 0
		if (line ~ /# *[Ss][Kk][Ii][Pp]/ && !plan) {
			plan = -1
			skipped++
			results++
			sub(/^[^#]*# *[Ss][Kk][Ii][Pp][: ]*/, "", line)
			say("skip  " program ": " line)
		}
	} else
		note(line)
	fflush()
}

BEGIN { begin(suite) }

{ sub(/\r$/, "") }

/^exit [0-9]+$/ { status = $2; next }

nested && /^# selftests: / {
	name = $0
	sub(/^# selftests: [^:]*: /, "", name)
	begin(suite "/" name)
	next
}
nested && /^(not )?ok [0-9]+ selftests: / {
	left = $0
	sub(/^[^#]*#? */, "", left)
	end(/^not ok/ ? (left == "" ? "it failed" : left) : "")
	next
}
nested && /^# / { tap(substr($0, 3)); next }
nested && (/^1\.\.[0-9]+$/ || /^TAP version/) { next }
nested { note($0); next }
{ tap($0) }

END {
	if (!nested)
		end(status ? "exit status " status (status == 124 ? ", out of time" : "") : "")
	else if (status || !(all_passed + all_failed + all_skipped)) {
		program = suite
		for (i = diagnostics > 20 ? diagnostics - 20 : 0; i < diagnostics; i++)
			say("      " diagnostic[i])
		problem(status ? "exit status " status : "no test ran")
		all_failed++
	}
	print all_passed + 0, all_failed + 0, all_skipped + 0 >> totals
}
