#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command table, and what all verbs promise about their output files."""
import json
import os
import re
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import tap  # noqa: E402
from barman_image import Image  # noqa: E402

MANUALS = os.path.join(HERE, "..", "..", "user", "man")


def verbs():
    text = tap.run("--help").stdout
    return re.findall(r"^  (\w+) +\S", text, re.M)


def capture(tmp, records=10):
    image = Image()
    for i in range(records):
        image.record(3, 0, 1000 + i, "IB", 1, 0)
    return image.save(os.path.join(tmp, "a.cap"))


def every_verb_has_help(tmp):
    found = verbs()
    assert {"dump", "check", "merge", "record", "report", "convert"} <= set(found), found
    for verb in found:
        done = tap.run(verb, "--help", cwd=tmp)
        assert done.returncode == 0 and done.stdout.startswith("usage: kbarman"), (verb, done)
        assert done.stderr == "", (verb, done)


def every_verb_has_a_manual_page_with_its_options(tmp):
    for verb in verbs():
        if verb == "help":
            continue
        with open(os.path.join(MANUALS, f"kbarman-{verb}.1"), encoding="utf-8") as file:
            manual = file.read().replace("\\-", "-")
        text = tap.run(verb, "--help", cwd=tmp).stdout
        for short, long in re.findall(r"^ +(?:(-\w), )?(?: *)(--[\w-]+)", text, re.M):
            assert long in manual and short in manual, (verb, short, long)


def the_first_manual_page_names_all_the_others(tmp):
    with open(os.path.join(MANUALS, "kbarman.1"), encoding="utf-8") as file:
        named = set(re.findall(r"kbarman-(\w+) \(1\)", file.read()))
    assert named == set(verbs()) - {"help"}, named ^ set(verbs())


def wrong_usage_is_2_and_one_sentence(tmp):
    for args in [("nothing",), ("dump", "--nothing"), ("merge", "--nothing"),
                 ("check", "--nothing")]:
        done = tap.run(*args, cwd=tmp)
        assert done.returncode == 2 and done.stdout == "", (args, done)
        assert done.stderr.startswith("kbarman") and done.stderr.count("\n") <= 2, done


def alone_it_lists_the_verbs(tmp):
    done = tap.run(cwd=tmp)
    assert done.returncode == 2 and done.stdout == "", done
    assert done.stderr == tap.run("help", cwd=tmp).stdout, done


def help_with_a_verb_is_that_verbs_help(tmp):
    for verb in verbs():
        want = tap.run(verb, "--help", cwd=tmp).stdout
        for args in ("help", verb), ("--help", verb), ("-h", verb):
            done = tap.run(*args, cwd=tmp)
            assert done.returncode == 0 and done.stdout == want and not done.stderr, (args, done)


def help_of_no_verb_is_2_and_one_sentence(tmp):
    for args, sentence in [(("help", "recrod"), "did you mean 'record'"), (("help", "xyzzy"), "xyzzy"),
                           (("help", "report", "script"), "one verb at a time")]:
        done = tap.run(*args, cwd=tmp)
        assert done.returncode == 2 and done.stdout == "" and sentence in done.stderr, done
        assert done.stderr.count("\n") == 1, done


def what_reads_a_capture_reads_kbarman_cap_unless_told_otherwise(tmp):
    os.rename(capture(tmp), os.path.join(tmp, "kbarman.cap"))
    for args in [("report",), ("script",), ("info",), ("dump",), ("check",), ("bundle",),
                 ("convert", "--to", "heph"), ("convert", "--to", "heph", "-o", "app.heph")]:
        done, named = tap.run(*args, cwd=tmp), tap.run(*args, "kbarman.cap", cwd=tmp)
        assert done.returncode == 0 and done.stdout == named.stdout, (args, done)
    assert {"kbarman.heph", "app.heph"} <= set(os.listdir(tmp)), os.listdir(tmp)


def recover_reads_what_record_left_unless_told_otherwise(tmp):
    os.rename(capture(tmp), os.path.join(tmp, "kbarman.cap.partial"))
    done = tap.run("recover", cwd=tmp)
    assert done.returncode == 0 and "kbarman.cap" in os.listdir(tmp), done


def a_capture_that_is_not_there_is_told_by_its_name(tmp):
    for args in [("report",), ("script",), ("info",), ("dump",), ("check",), ("bundle",),
                 ("convert", "--to", "heph")]:
        done = tap.run(*args, cwd=tmp)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, (args, done)
        assert "there is no kbarman.cap here: give the name of a capture" in done.stderr, done
    done = tap.run("recover", cwd=tmp)
    assert done.returncode == 2 and "there is no kbarman.cap.partial here" in done.stderr, done
    assert not os.listdir(tmp)


def an_output_in_the_place_of_the_capture_is_told(tmp):
    """The argument is what is read, so -o is what was forgotten."""
    os.rename(capture(tmp), os.path.join(tmp, "kbarman.cap"))
    for args in [("app.heph",), ("kbarman.cap", "app.heph")]:
        done = tap.run("convert", "--to", "heph", *args, cwd=tmp)
        assert done.returncode == 2 and "-o app.heph" in done.stderr, done
    assert os.listdir(tmp) == ["kbarman.cap"]


def version_is_told(tmp):
    for args in [("--version",), ("-V",), ("version",), ("dump", "-V"), ("dump", "--version")]:
        assert re.match(r"kbarman \d+\.\d+\.\d+\n$", tap.run(*args, cwd=tmp).stdout), args


def version_lists_what_was_built_in(tmp):
    lines = [json.loads(line) for line in tap.run("version", "-j", cwd=tmp).stdout.splitlines()]
    kinds = {line["kind"]: line for line in lines}
    assert kinds["verbs"]["names"] == verbs()
    assert "Barman capture" in kinds["reads"]["formats"]
    exports = {line["name"] for line in lines if line["kind"] == "export"}
    told = tap.run("convert", "--help", cwd=tmp).stdout
    assert {"annotate", "heph", "tptp"} <= exports
    assert all(name in told for name in exports), exports


def a_slip_of_the_finger_gets_the_nearest_name(tmp):
    for args, meant in [(("recrod",), "'record'"), (("chek",), "'check'"),
                        (("record", "--cuont"), "--count"), (("dump", "--jsn"), "--json"),
                        (("record", "--al-cpus"), "--all-cpus")]:
        done = tap.run(*args, cwd=tmp)
        assert done.returncode == 2 and f"did you mean {meant}?" in done.stderr, done
    for args in [("xyzzy",), ("dump", "--xyzzy")]:
        done = tap.run(*args, cwd=tmp)
        assert done.returncode == 2 and "did you mean" not in done.stderr, done


def what_is_wrong_with_an_option_is_said(tmp):
    for args, sentence in [(("report", "--c"), "--cpu and --children"), (("dump", "--json=1"), "no value"),
                           (("report", "--sort"), "needs a value"), (("dump", "-Z"), "-Z"),
                           (("report", "-s"), "needs a value"),
                           (("report", "--color=pink"), "always")]:
        done = tap.run(*args, cwd=tmp)
        assert done.returncode == 2 and sentence in done.stderr, done


def completion_knows_the_options_of_the_help(tmp):
    for verb in verbs():
        told = set(re.findall(r"^ +(?:-\w, )?(?: *)(--[\w-]+)", tap.run(verb, "--help", cwd=tmp).stdout,
                              re.M))
        listed = tap.run(verb, "--list-options", cwd=tmp).stdout.split()
        names = {name.rstrip("=") for name in listed if name.startswith("--")}
        common = {"--version", "--verbose", "--quiet", "--no-sandbox"}
        assert common <= names and names - common <= told | {"--help"}, (verb, names ^ told)
        assert told <= names, (verb, told - names)


def output_replaces_a_file_and_keeps_its_mode(tmp):
    source, out = capture(tmp), os.path.join(tmp, "out.cap")
    with open(out, "w", encoding="utf-8") as file:
        file.write("old")
    os.chmod(out, 0o640)
    assert tap.run("merge", "-o", out, source).returncode == 0
    assert os.stat(out).st_mode & 0o777 == 0o640
    assert tap.run("check", out).returncode == 0


def output_follows_a_link(tmp):
    source, out = capture(tmp), os.path.join(tmp, "out.cap")
    link = os.path.join(tmp, "link")
    with open(out, "w", encoding="utf-8"):
        pass
    os.symlink("out.cap", link)
    assert tap.run("merge", "-o", link, source).returncode == 0
    assert os.path.islink(link) and tap.run("check", out).returncode == 0


def new_output_has_the_usual_mode_and_captures_are_not_for_everybody(tmp):
    """A capture says where the kernel is."""
    source, out = capture(tmp), os.path.join(tmp, "out.cap")
    for suffix in ".kallsyms", ".symbols":
        with open(source + suffix, "wb"):
            pass
    for args, usual in (("merge",), 0o640), (("recover",), 0o640), (("convert", "--to", "folded"), 0o664):
        for mask in 0o002, 0o027, 0o077:
            old = os.umask(mask)
            try:
                assert tap.run(*args, "-o", out, source).returncode == 0, args
            finally:
                os.umask(old)
            for name in os.listdir(tmp):
                if name.startswith("out.cap"):
                    assert os.stat(os.path.join(tmp, name)).st_mode & 0o777 == usual & ~mask, (args, name)
                    os.remove(os.path.join(tmp, name))


def what_is_said_cannot_steer_a_terminal(tmp):
    done = tap.run("check", "no\x1b[2Jsuch\nfile", cwd=tmp)
    assert done.returncode == 2 and "\x1b" not in done.stderr, done
    assert "no?[2Jsuch?file" in done.stderr and done.stderr.count("\n") == 1, done


def failure_leaves_the_old_file(tmp):
    out = os.path.join(tmp, "out.cap")
    with open(out, "w", encoding="utf-8") as file:
        file.write("old")
    assert tap.run("merge", "-o", out, capture(tmp), os.path.join(tmp, "no")).returncode == 2
    with open(out, encoding="utf-8") as file:
        assert file.read() == "old"
    assert sorted(os.listdir(tmp)) == ["a.cap", "out.cap"]


def bad_places_are_told(tmp):
    source = capture(tmp)
    for out in [os.path.join(tmp, "no", "such"), tmp, "/dev/full"]:
        done = tap.run("merge", "-o", out, source)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, (out, done)
    assert os.listdir(tmp) == ["a.cap"]


def a_signal_leaves_nothing_behind(tmp):
    """merge waits for a pipe that says nothing, and is stopped."""
    read_end, write_end = os.pipe()
    with open(capture(tmp), "rb") as file:
        start = file.read()
    out = os.path.join(tmp, "out.cap")
    with subprocess.Popen([tap.KBARMAN, "merge", "-o", out, "-"], stdin=read_end) as merge:
        os.write(write_end, start[:-8])
        tap.until(lambda: len(os.listdir(tmp)) == 2, "a temporary file")
        merge.send_signal(signal.SIGTERM)
        assert merge.wait(tap.HANG) == -signal.SIGTERM
    os.close(read_end)
    os.close(write_end)
    assert os.listdir(tmp) == ["a.cap"]


def colours_are_offered_by_verbs_that_have_some(tmp):
    offering = {verb for verb in verbs()
                if "--color=" in tap.run(verb, "--list-options", cwd=tmp).stdout.split()}
    assert offering == {"diff", "doctor", "report", "top"}, offering
    done = tap.run("dump", "--color=always", cwd=tmp)
    assert done.returncode == 2 and "no option --color" in done.stderr, done


def verbs_that_resolve_symbols_take_the_same_options(tmp):
    names = {"--kallsyms=", "--vmlinux=", "--symfs=", "--no-demangle"}
    for verb in "report", "script", "convert", "bundle", "top":
        offered = set(tap.run(verb, "--list-options").stdout.split())
        assert names <= offered, (verb, names - offered)
        said = tap.run(verb, "--help").stdout
        assert all(name.rstrip("=") in said for name in names), said


if __name__ == "__main__":
    tap.main(globals())
