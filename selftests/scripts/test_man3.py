#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Section 3 of the manual: scripts/man3 makes a page for each function that a program can call."""
import importlib.machinery
import importlib.util
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "selftests", "lib"))
import tap

SCRIPT = os.path.join(ROOT, "scripts", "man3")
PUBLIC = os.path.join(ROOT, "user", "include", "kbarman")


def load():
    """The script, whose name has no .py, as a module."""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("man3", SCRIPT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("man3", loader))
    loader.exec_module(module)
    return module


man3 = load()


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def exported():
    """The functions of the library: of its map and, if it is built, of its own table."""
    names = set(re.findall(r"^\t(kb_\w+);", read(os.path.join(ROOT, "user", "libkbarman.map")), re.M))
    library = os.path.join(ROOT, "build", "libkbarman.so")
    if os.path.exists(library) and shutil.which("nm"):
        table = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True,
                               text=True, timeout=300, check=True).stdout
        assert names == set(re.findall(r" T (kb_\w+)", table)), "make user"
    assert len(names) > 100
    return names


def silent(headers):
    """Functions without a comment that says something."""
    for header in headers:
        for item in header.functions():
            words = man3.sentence(item.comment).replace(item.name, "") if item.comment else ""
            if len(re.findall(r"[A-Za-z]{2,}", words)) < 3:
                yield item.name


def strangers(headers, functions):
    """Functions that a page declares or calls, and that neither library nor header has."""
    known = functions | {item.name for header in headers for item in header.items()}
    for name, text in man3.pages(headers).items():
        shown = re.sub(r"\\f.|\\&", "", text)
        for found in re.findall(r"\b(kb_\w+) ?\(\)|\b(kb_\w+)\(", shown):
            if not set(found) & known:
                yield f"{name}: {''.join(found)}()"
    for header in headers:
        for item in header.functions():
            if item.kind == "function" and item.name not in functions:
                yield f"{header.file}: {item.name}()"


def plant(tmp, text, name="planted.h"):
    path = os.path.join(tmp, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("/* SPDX-License-Identifier: MIT */\n/* What is planted. */\n" + text)
    return man3.Header(path)


def written(tmp, *variables):
    """The pages as make writes them."""
    place = os.path.join(tmp, "man3")
    done = subprocess.run([SCRIPT, place], capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, **dict(variables)})
    assert done.returncode == 0 and not done.stderr, done
    return place


def every_exported_function_has_a_page(tmp):
    place = written(tmp)
    for name in exported():
        target = re.fullmatch(r"\.so man3/(libkbarman-\w+\.3)\n", read(f"{place}/{name}.3")).group(1)
        page = read(os.path.join(place, target))
        # it names the function in its first line and declares it
        assert re.search(rf"^libk.*\b{name}[, ].*\\- ", page, re.M), (name, target)
        assert f"{name}(" in re.sub(r"\\f.", "", page.split(".SH DESCRIPTION")[0]), (name, target)


def functions_of_the_headers_alone_have_a_page(tmp):
    place = written(tmp)
    text = read(os.path.join(PUBLIC, "mark.h"))
    names = re.findall(r"^static inline \w+ (kb_mark_\w*[a-z])\(", text, re.M)
    assert len(names) > 8, names
    for name in names:
        assert read(f"{place}/{name}.3") == ".so man3/libkbarman-mark.3\n", name
    assert not [name for name in os.listdir(place) if name.endswith("_.3")]


def every_function_has_a_comment(tmp):  # pylint: disable=unused-argument
    found = list(silent(man3.headers()))
    assert not found, found


def no_page_names_a_function_that_is_not_there(tmp):  # pylint: disable=unused-argument
    found = list(strangers(man3.headers(), exported()))
    assert not found, found


def every_comment_of_a_header_is_in_its_page(tmp):  # pylint: disable=unused-argument
    for header in man3.headers():
        text = header.text.split("---- internal")[0]
        page = words(header.roff("0"))
        for comment in man3.COMMENT.findall(text):
            said = words(man3.sentence(comment))
            assert said in page or "SPDX" in comment or comment.startswith("/* --"), \
                (header.file, comment)


def words(text):
    """What a comment and its page have in common: letters and numbers."""
    text = re.sub(r'^\.(?:\\".*|RS 4|[A-Z]+\b)', "", text, flags=re.M)
    text = re.sub(r"\\f.|\\e|\\\(..|\\\[u(\w+)\]", " ", text)
    return " ".join(re.findall(r"[A-Za-z0-9]+", text))


def rendered_by():
    """The command that shows warnings, which takes the names of pages."""
    if shutil.which("man"):
        said = subprocess.run(["man", "--version"], capture_output=True, text=True, check=False)
        # a stub of containers, and other implementations
        if re.match(r"man \d", said.stdout):
            return ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"]
    if shutil.which("groff"):
        return ["groff", "-t", "-man", "-Tutf8", "-ww", "-rLL=78n", "-Z"]
    raise tap.Skip("there is neither man-db nor groff here")


def pages_have_no_warnings(tmp):
    command, place = rendered_by(), written(tmp)
    pages = sorted(name for name in os.listdir(place) if name.startswith("libkbarman"))
    assert len(pages) > 20, pages
    for page in pages:
        done = subprocess.run([*command, os.path.join(place, page)], capture_output=True, text=True,
                              timeout=300, check=False, env={**os.environ, "LC_ALL": "C.UTF-8"})
        assert done.returncode == 0 and not done.stderr, (page, done.stderr)


def references_lead_to_pages_that_are_there(tmp):
    place = written(tmp)
    there = set(os.listdir(place)) | set(os.listdir(os.path.join(ROOT, "user", "man")))
    pages = [os.path.join(place, name) for name in os.listdir(place)]
    for page in [*pages, os.path.join(ROOT, "docs/README.md"), os.path.join(ROOT, "docs/programs.md"),
                 os.path.join(ROOT, "user/man/kbarman.1")]:
        text = re.sub(r"\\f.", "", read(page)).replace("\\-", "-")
        named = {f"{name}.{section}" for name, section in
                 re.findall(r"\b((?:lib)?kbarman(?:-\w+)?)[ \"]*\((\d)\)", text)}
        assert named <= there, (page, named - there)


def the_example_of_the_overview_compiles(tmp):
    if not shutil.which("cc"):
        raise tap.Skip("there is no compiler here")
    page = read(os.path.join(written(tmp), "libkbarman.3"))
    source = page.split("\n.EX\n")[1].split("\n.EE\n")[0].replace("\\e", "\\")
    done = subprocess.run(["cc", "-xc", "-", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                           "-I" + os.path.dirname(PUBLIC)], input=source, capture_output=True,
                          text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def the_same_headers_make_the_same_pages(tmp):
    places = [written(os.path.join(tmp, str(number)), ("LC_ALL", locale), ("TZ", zone),
                      ("SOURCE_DATE_EPOCH", when), ("PYTHONHASHSEED", when))
              for number, (locale, zone, when) in
              enumerate([("C", "UTC", "1"), ("C.UTF-8", "Asia/Tokyo", "4000000000")])]
    names = subprocess.run([SCRIPT, "--list"], capture_output=True, text=True, timeout=300,
                           check=True).stdout.split()
    for place in places:
        assert sorted(os.listdir(place)) == sorted(names)
    for name in names:
        assert read(os.path.join(places[0], name)) == read(os.path.join(places[1], name)), name


# ---- whether it would find what it looks for ----

def a_comment_that_vanishes_is_found(tmp):
    checked = 0
    for header in man3.headers():
        for item in header.functions():
            if not item.comment:
                continue        # another test says so
            without = header.text.replace(item.comment, "", 1)
            assert without != header.text, item.name
            with open(os.path.join(tmp, header.file), "w", encoding="utf-8") as file:
                file.write(without)
            found = list(silent([man3.Header(file.name)]))
            assert item.name in found, (item.name, found)
            checked += 1
    assert checked > 150, checked


def a_comment_that_says_nothing_is_found(tmp):
    header = plant(tmp, "/* kb_one(). */\nint kb_one(void);\n\n/* The one. */\nint kb_two(void);\n\n"
                        "/* Returns 0 or -EINVAL. */\nint kb_three(void);\n")
    assert list(silent([header])) == ["kb_one", "kb_two"]


def a_function_that_is_not_exported_is_found(tmp):
    header = plant(tmp, "/* As kb_other() does. */\nint kb_one(void);\n")
    found = [line for line in strangers([header], {"kb_one"}) if "planted" in line]
    assert found == ["libkbarman-planted.3: kb_other()"], found
    assert "planted.h: kb_one()" in list(strangers([header], set()))


def text_that_groff_would_obey_is_text(tmp):
    if not shutil.which("groff"):
        raise tap.Skip("there is no groff here")
    lines = [".so /etc/passwd is no request", "'br is none either", r"a path is C:\n\fB\*(xx",
             '"quoted" and `code` and -EINVAL and --option^~']
    header = plant(tmp, "/*\n" + "".join(f" * {line}\n *\n" for line in lines) + " *\n" +
                   "".join(f" *\t{line}\n" for line in lines) + " */\nint kb_one(void);\n")
    page = header.roff("0")
    assert page.isascii()
    assert not [line for line in page.split("\n") if line.startswith("'") or line.startswith(".so")]
    done = subprocess.run(["groff", "-man", "-Tascii", "-P-cbou", "-ww", "-rLL=78n"], input=page,
                          capture_output=True, text=True, timeout=300, check=True)
    assert not done.stderr, done.stderr
    for line in lines:
        # the first time as prose, where `` stand for another font
        assert done.stdout.count(line) == (1 if "`" in line else 2), (line, done.stdout)
        assert line.replace("`", "") in done.stdout


def declarations_are_read_as_a_compiler_does(tmp):
    header = plant(tmp, """\
#define KB_TABLE(name)	int name##_one;
#define KB_WORD		"a; { b"	/* a word */

/* A callback and what takes it. */
typedef int (*kb_call)(void *context, int (*inner)(int a, int b));
int kb_take(kb_call call, void (*say)(void *context, const char *sentence),
	    const char words[KB_MAX]) __attribute__((format(printf, 4, 5)));

/* One of the header. */
__attribute__((cold, unused))
static inline struct kb_pair kb_make(int a)
{
	struct kb_pair pair = { a, '}' };	/* not the end } */

	return pair;
}

static inline void kb_hidden_(void)
{
}

/* The last one. */
enum kb_end { KB_END_A, KB_END_B = ';' };
""")
    found = [(item.kind, item.name) for item in header.items()]
    assert found == [("macro", "KB_TABLE"), ("macro", "KB_WORD"), ("typedef", "kb_call"),
                     ("function", "kb_take"), ("inline", "kb_make"), ("enum", "kb_end")], found
    page = re.sub(r"\\f.", "", header.roff("0"))
    assert "void (*say)(void *context, const char *sentence)," in page, page
    assert "__attribute__" not in page and "pair" not in page.replace("struct kb_pair", "")


if __name__ == "__main__":
    tap.main(globals())
