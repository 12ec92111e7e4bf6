#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One word for each thing, and one answer to each question: in SQL, Python, Parquet and JSON.

user/lib/schema/list.h declares tables and columns. Here they are compared with what each interface
really gives of a capture. A question is one text of SQL, which `kbarman query` answers from the
capture, and SQLite from the rows of Python, of the Parquet files and of the lines of JSON."""
import collections
import json
import os
import re
import sqlite3
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(TREE, "user", "python"))
import npm
import parquet
import tap
import test_parquet
from test_query import random_capture

os.environ["KBARMAN_LIBRARY"] = os.path.join(os.path.dirname(tap.KBARMAN), "libkbarman.so")
import kbarman  # noqa: E402  pylint: disable=wrong-import-position

LIST = os.path.join(TREE, "user", "lib", "schema", "list.h")
PAGE = os.path.join(TREE, "user", "man", "kbarman-query.1")
PYTHON_PAGE = os.path.join(TREE, "user", "man", "kbarman-python.7")
NOT_VALID, NO_CPU = 2**64 - 1, 2**32 - 1

# A thing, its word, and what other things were called that stand beside it: no interface has one.
# Words that another thing has in some table are looked for in the tables of the last column.
THINGS = [
    ("moment", "at_ns", "ns time_ns timestamp_ns when_ns begin_ns", ""),
    ("its end", "end_ns", "until_at_ns stop_ns", ""),
    ("duration", "duration_ns", "ns length_ns took_ns", ""),
    ("moment since 1970", "unix_ns", "ns wall_ns epoch_ns", ""),
    ("CPU", "cpu", "core cpu_id processor", ""),
    ("task number", "tid", "task_id thread thread_id", ""),
    ("process", "pid", "tgid process process_id", ""),
    ("task name", "task", "comm task_name", ""),
    ("idle state", "idle_state", "state", "idle slices halts"),
    ("call chain", "stack", "chain callchain backtrace", ""),
    ("PMU counter", "event", "counter", "counters samples events sample"),
    ("weight", "weight", "period", ""),
    ("source file", "source", "file", "functions sample symbol"),
    ("handler's name", "handler", "name", "interrupts handlers irq softirq interrupt"),
    ("voluntary", "blocked", "preempted voluntary", "switches switch"),
    ("late", "next_delay_ns", "next_wait_ns late_ns", ""),
    ("mapping's file", "image", "path dso mapping", "images image samples sample"),
    ("group of a mark", "group_id", "group", ""),
    ("name of a series", "series", "name", "series_names counter"),
]

ANSWERS = {}
VIEWS = ("runs", "idle", "gaps")    # tables of other interfaces, which SQL makes of slices


# ---- the rows of each interface, by table and column ----

def lines_of(*arguments):
    return list(map(json.loads, tap.run(*arguments).stdout.splitlines()))


def tables_of_sql(path):
    """Tables and views with their columns, without the hidden ones."""
    names = [name for name in tap.run("query", path, ".tables").stdout.split()
             if not name.startswith("report")]
    return {name: [row["name"] for row in json.loads(
        tap.run("query", "--json", path, f"PRAGMA table_info({name})").stdout)] for name in names}


def plain(name, value):
    """A value as SQL has it: none is NULL, an address is a text, a list has a length."""
    if value in (None, NOT_VALID, NO_CPU):
        return None
    if name in ("pc", "address"):
        return f"{value:#x}"
    if name in ("stack", "counters") or isinstance(value, (list, dict, memoryview)):
        return len(value)
    return int(value) if isinstance(value, bool) else value


def rows_of_python(path):
    """Tables of the package. What has a number for a name gets the name, from the table of names."""
    capture = kbarman.open(path)
    names = {"event": {row[2]: row[3] for row in capture.events},
             "series": dict(enumerate(capture.series_names["series"])),
             "handler": dict(enumerate(capture.read("interrupts", "handlers")["handlers"]["handler"]))}
    found = {}
    for table in kbarman.tables():
        whole = capture.table(table)
        found[table] = rows = [dict(zip(whole.columns, row)) for row in whole]
        for row in rows:
            for name, numbers in names.items():
                if table in ("counters", "series", "interrupts") and name in row:
                    row[name] = numbers[row[name]]
            if not row.get("known", True):
                row.update({"duration_ns" if table in ("syscalls", "faults", "block") else "tid": None})
            at = row.get("end_ns", row.get("at_ns"))
            if at is not None:
                row.update({front + word: None if row[front + "tid"] is None else find(row[front + "tid"], at)
                            for front in ("", "next_", "woken_") if front + "tid" in row
                            for word, find in (("task", capture.task_name), ("pid", capture.pid))})
            if table == "samples":
                row["weight"] = row["counters"][0] if len(row["counters"]) else None
                row["depth"] = len(row["stack"])
                row["pc"] = row["pc"] if row["has_pc"] else None
            elif table == "switches":
                row["depth"] = len(row["stack"])
    return found


def folder_of(path):
    """The folder with the files of Parquet."""
    out = path + ".parquet"
    done = tap.run("convert", path, "--to", "parquet", "-o", out)
    assert done.returncode == 0, done
    return out


def rows_of_parquet(path):
    """Tables of the files. A moment since 1970 is one of the capture behind its base."""
    out = folder_of(path)
    base = lines_of("info", "--json", path)[0]["unix_base_ns"]
    found = {}
    for table in os.listdir(out):
        found[table] = rows = parquet.rows(out, table)
        for row in rows:
            row["at_ns"] = row["unix_ns"] - base
            if "duration_ns" in row:
                row["end_ns"] = row["at_ns"] + (row["duration_ns"] or 0)
            if "stack" in row:
                row["depth"] = len(row["stack"])
    return found


# Kinds of lines that are rows of a table of the schema; others keep their kind.
KINDS = {"switch": "switches", "sample": "samples", "wake": "wakeups", "migrate": "migrations",
         "annotation": "marks", "counter": "series", "syscalls": "syscalls", "faults": "faults", "block": "block"}


LINES = (("script",), ("report", "--percent-limit", "0"), ("report", "--latency", "--irq"), ("dump",))


def rows_of_json(path):
    """Lines of script, and those of report and dump of which script has none."""
    found = collections.defaultdict(list)
    for verb, *options in LINES:
        for line in lines_of(verb, "--json", *options, path):
            table = KINDS.get(line["kind"]) if verb == "script" else None
            found[table or f"{verb}_{line['kind']}"].append(line)
    return found


def load(tables):
    """A database of SQLite with these rows."""
    base = sqlite3.connect(":memory:")
    for table, rows in tables.items():
        columns = list(dict.fromkeys(name for row in rows for name in row))
        if not columns:
            continue
        quoted = ", ".join(f'"{name}"' for name in columns)
        base.execute(f"CREATE TABLE {table} ({quoted})")
        base.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})",
                         [[plain(name, row.get(name)) for name in columns] for row in rows])
    return base


# ---- names ----

def names_of(path):
    """{interface: {table: columns}}, of everything that a user can name."""
    said = {"SQL": tables_of_sql(path),
            "Python": {name: [column.name for column in table.columns]
                       for name, table in kbarman.tables().items()}}
    said["Parquet"] = {table: list(parquet.rows(folder_of(path), table)[0])
                       for table in os.listdir(folder_of(path))}
    said["JSON"] = collections.defaultdict(list)
    for verb, *options in LINES:
        for line in lines_of(verb, "--json", *options, path):
            said["JSON"][line["kind"]] += line
    return said


def old_names():
    """Those that list.h lets live until 1.0."""
    with open(LIST, encoding="utf-8") as file:
        return set(re.findall(r"\bOLD_QUERY\((\w+), (\w+),", file.read()))


def each_thing_has_one_word(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"))
    said, wrong = names_of(path), []
    said["SQL"]["idle"] = [column for column in said["SQL"]["idle"] if ("slices", column) not in old_names()]
    print(f"# {'thing':20}", *(f"{interface:14}" for interface in said))
    for thing, word, others, only in THINGS:
        row = []
        for interface, tables in said.items():
            used = {column for table, columns in tables.items() for column in columns
                    if column == word or (column in others.split() and (not only or table in only.split()))}
            row.append(" ".join(sorted(used)) or "-")
            if used - {word}:
                wrong.append((thing, word, interface, used - {word}))
        print(f"# {thing:20}", *(f"{words:14}" for words in row))
    assert not wrong, wrong


def no_table_has_a_bare_ns(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 200)
    for interface, tables in names_of(path).items():
        for table, columns in tables.items():
            assert "ns" not in columns, (interface, table)
    for table in tables_of_sql(path):
        done = tap.run("query", path, f"SELECT max(ns) FROM {table}")
        assert done.returncode == 2 and "ns" in done.stderr, (table, done)


# ---- the manual ----

def sentences_of_sql():
    """{table: [(column, sentence)]} of the columns that list.h has for SQL, without the common ones."""
    macros = {"COLUMN": "t, c, s, a, d", "LOCAL": "t, c, s, a, d", "MADE": "t, c, s, a, h, f, d",
              "WORDS": "t, c, s, w, d", "LOCAL_WORDS": "t, c, s, w, d", "QUERY": "t, c, s, d"}
    source = "".join(f"#define {name}({names}) ROW t c s d\n" for name, names in macros.items())
    done = subprocess.run(["cc", "-E", "-P", "-I", os.path.dirname(LIST), "-"], input=source + '#include "list.h"\n',
                          capture_output=True, text=True, check=True)
    found = collections.defaultdict(list)
    for table, column, kind, text in re.findall(r'ROW (\w+) (\w+) (\w+)((?:\s+"[^"]*")+)', done.stdout):
        if kind not in ("NONE", "COMMON"):
            found[table].append((column, "".join(re.findall('"([^"]*)"', text))))
    return found


def the_manual_of_query_has_the_sentences_of_the_schema(tmp):
    with open(PAGE, encoding="utf-8") as file:
        page = file.read().replace("\\-", "-")
    told = dict(re.findall(r"^\.TP\n\.B (\w+)\n.*\nColumns: .*\n\.br\n(.*)$", page, re.M))
    want = {table: "; ".join(f"{column}: {text.replace(';', ',')}" for column, text in columns) + "."
            for table, columns in sentences_of_sql().items() if table not in VIEWS}
    assert told == want, [(table, told.get(table), want[table]) for table in want if told.get(table) != want[table]]


def the_manual_of_python_has_the_sentences_of_the_schema(tmp):
    with open(PYTHON_PAGE, encoding="utf-8") as file:
        page = file.read().split(".SH TABLES\n", 1)[1].split("\n.SH ", 1)[0].replace("\\-", "-")
    for block in re.split(r"^\.SS ", page, flags=re.M)[1:]:
        for column in kbarman.tables()[block.split()[0]].columns:
            text, = re.findall(rf"^\.TP\n\.B {column.name}\n((?:[^.].*\n?)+)", block, re.M)
            said = re.sub(r"\s+", " ", text).strip()
            if column.words:
                assert said.startswith(f"word ({', '.join(column.words)}). "), (block.split()[0], column, said)
            about = column.about[0].upper() + column.about[1:]
            assert said.endswith(f". {about}."), (block.split()[0], column, said)


# ---- questions ----

SAMPLED = "FROM samples WHERE pc IS NOT NULL"
# The interfaces that answer: s(QL), p(ython), f(iles of Parquet), j(SON); then the question. Where the
# rows of JSON are sums already, it has the same question of those.
QUESTIONS = [
    ("spfj", "SELECT next_tid, count(*) FROM switches GROUP BY next_tid"),
    ("spfj", "SELECT next_task, next_pid, count(*) FROM switches GROUP BY 1, 2"),
    ("spfj", "SELECT cpu, min(at_ns), max(at_ns), sum(at_ns) FROM switches GROUP BY cpu"),
    ("spfj", "SELECT tid, task, sum(blocked) FROM switches WHERE tid IS NOT NULL GROUP BY tid, task"),
    ("spfj", "SELECT state, count(*) FROM switches WHERE tid IS NOT NULL GROUP BY state"),
    ("spf", "SELECT tid, sum(depth), max(depth) FROM switches GROUP BY tid"),
    ("spfj", f"SELECT task, pid, tid, cpu, count(*) {SAMPLED} GROUP BY 1, 2, 3, 4"),
    ("spfj", f"SELECT pc, sum(weight), count(weight) {SAMPLED} GROUP BY pc"),
    ("spf", f"SELECT tid, sum(depth) {SAMPLED} GROUP BY tid"),
    ("spf", "SELECT event, cpu, sum(value), count(value), count(*) FROM counters GROUP BY event, cpu"),
    ("spf", "SELECT task, event, max(value), sum(sampled) FROM counters GROUP BY task, event"),
    ("spfj", "SELECT tid, task, sum(duration_ns) FROM runs GROUP BY tid, task HAVING sum(duration_ns) > 0",
     "SELECT tid, task, run_ns FROM report_task_time WHERE run_ns"),
    ("spf", "SELECT cpu, ended, max(duration_ns), sum(end_ns - at_ns) FROM runs GROUP BY cpu, ended"),
    ("spfj", "SELECT cpu, ifnull(idle_state, -1), count(*), sum(duration_ns), max(duration_ns) FROM idle GROUP BY 1, 2",
     "SELECT cpu, idle_state, count, duration_ns, longest_ns FROM report_idle"),
    ("spf", "SELECT cpu, ended, count(*) FROM idle GROUP BY cpu, ended"),
    ("spfj", "SELECT cpu, sum(duration_ns) FROM gaps GROUP BY cpu",
     "SELECT cpu, lost_ns FROM report_cpu WHERE lost_ns"),
    ("spf", "SELECT cpu, reason, sum(records) FROM gaps GROUP BY cpu, reason"),
    ("spf", "SELECT woken_tid, woken_task, count(*), sum(new) FROM wakeups GROUP BY 1, 2"),
    ("spfj", "SELECT woken_tid, woken_task, woken_cpu, count(*) FROM wakeups GROUP BY 1, 2, 3"),
    ("sj", "SELECT moved_tid, moved_pid, moved_task, to_cpu, count(*) FROM migrations GROUP BY 1, 2, 3, 4"),
    ("spfj", "SELECT task, count(*) FROM wakeups GROUP BY task"),
    ("spf", "SELECT context, woken_cpu, count(*) FROM wakeups GROUP BY 1, 2"),
    ("spfj", "SELECT kind, id, handler, count(*), sum(own_ns), max(own_ns) FROM interrupts GROUP BY 1, 2, 3",
     "SELECT what, id, handler, count, own_ns, longest_ns FROM report_interrupt"),
    ("spf", "SELECT tid, task, sum(duration_ns), max(duration_ns) FROM interrupts GROUP BY tid, task"),
    ("spf", "SELECT nullif(call, ''), number, result, count(*), sum(duration_ns), min(arg0), max(arg1) FROM syscalls GROUP BY 1, 2, 3"),
    ("spf", "SELECT kind, kernel, tid, task, cpu, count(*), sum(duration_ns), sum(end_ns - at_ns) FROM faults GROUP BY 1, 2, 3, 4, 5"),
    ("spf", "SELECT nullif(disk, ''), device, nullif(operation, ''), flags, result, count(*), sum(duration_ns), sum(bytes), "
     "max(sector) FROM block GROUP BY 1, 2, 3, 4, 5"),
    ("spf", "SELECT tid, task, cpu, compat, max(end_ns - at_ns), sum(end_ns) FROM syscalls GROUP BY 1, 2, 3, 4"),
    ("spfj", "SELECT nullif(call, ''), number, compat, tid, cpu, result, sum(duration_ns), count(*) FROM syscalls "
     "WHERE duration_ns IS NOT NULL GROUP BY 1, 2, 3, 4, 5, 6"),
    ("spfj", "SELECT cpu, at_ns, task, channel, group_id, nullif(colour, 0), text FROM marks"),
    ("spf", "SELECT cpu, type, count(*) FROM marks GROUP BY cpu, type"),
    ("spfj", "SELECT series, cpu, count(*), sum(value) FROM series GROUP BY series, cpu"),
    ("spfj", "SELECT tid, task FROM tasks", "SELECT tid, task FROM dump_task"),
    ("spf", "SELECT tid, pid, task, cgroup, command FROM tasks"),
    ("spfj", "SELECT tid, address, length, \"offset\", image FROM images",
     "SELECT tid, address, length, \"offset\", image FROM dump_image"),
    ("spf", "SELECT kind, cpu, what, count FROM losses WHERE kind IN ('lost', 'missed', 'stopped')"),
    ("spf", "SELECT \"key\", value FROM facts"),
]
DELAYS = [
    ("sfj", "SELECT count(*), sum(duration_ns), max(duration_ns) FROM delays",
     "SELECT sum(waits), sum(sum_ns), max(max_ns) FROM report_latency_sum",
     "SELECT count(next_delay_ns), sum(next_delay_ns), max(next_delay_ns) FROM switches"),
    ("sfj", "SELECT tid, sum(duration_ns) FROM delays GROUP BY tid",
     "SELECT tid, sum(sum_ns) FROM report_latency_task GROUP BY tid",
     "SELECT next_tid, sum(next_delay_ns) FROM switches GROUP BY 1 HAVING count(next_delay_ns)"),
]


def sorted_rows(rows):
    """Rows to compare. Whole numbers of SQLite may be sums of fractions elsewhere."""
    return sorted(([float(value) if isinstance(value, (int, float)) else value for value in row] for row in rows),
                  key=lambda row: [(value is not None, str(value)) for value in row])


def ask_sql(path, question):
    """The rows that `kbarman query` answers. A capture of one name is the same in each test."""
    key = os.path.basename(path), question
    if key not in ANSWERS:
        done = tap.run("query", "--json", path, question)
        assert done.returncode == 0, done
        ANSWERS[key] = [list(row.values()) for row in json.loads(done.stdout or "[]")]
    return ANSWERS[key]


def interfaces_agree(path, letter, place, tables, among):
    """Each question that the interface can answer has the answer of `kbarman query`, and one at all."""
    base, wrong = load(tables), []
    asked = [row for row in among if letter in row[0]]
    for row in asked:
        mine = row[place] if len(row) > place else row[1]
        answer, told = sorted_rows(ask_sql(path, row[1])), sorted_rows(base.execute(mine).fetchall())
        if answer != told or not answer:
            wrong.append((mine, answer[:3], told[:3]))
    assert not wrong, (path, len(wrong), wrong)
    return len(asked)


def capture_of_all(folder):
    return random_capture(os.path.join(folder, "a.cap"), 6000, seed=46)


def python_answers_as_sql_does(tmp):
    path = capture_of_all(tmp)
    assert interfaces_agree(path, "p", 1, rows_of_python(path), QUESTIONS) >= 20


def parquet_answers_as_sql_does(tmp):
    path, woken = capture_of_all(tmp), test_parquet.late(tmp)
    assert interfaces_agree(path, "f", 3, rows_of_parquet(path), QUESTIONS) >= 20
    for some in woken, path, random_capture(os.path.join(tmp, "whole.cap"), losses=False):
        interfaces_agree(some, "f", 3, rows_of_parquet(some), DELAYS)


def json_answers_as_sql_does(tmp):
    path, woken = capture_of_all(tmp), test_parquet.late(tmp)
    assert interfaces_agree(path, "j", 2, rows_of_json(path), QUESTIONS) >= 12
    interfaces_agree(woken, "j", 2, rows_of_json(woken), DELAYS)


def numbers(rows):
    """Rows to compare where node has whole numbers as texts."""
    return sorted_rows([[float(value) if re.fullmatch(r"-?[0-9.]+", str(value)) else value for value in row]
                        for row in rows])


def duckdb_answers_as_sql_does(tmp):
    """The same texts of questions, in another engine, over the files."""
    path = capture_of_all(tmp)
    out = folder_of(path)
    base = lines_of("info", "--json", path)[0]["unix_base_ns"]
    asked = [row[1] for row in QUESTIONS if "f" in row[0] and not re.search("depth|end_ns|address|pc", row[1])]
    views = [f"CREATE VIEW {table} AS SELECT *, unix_ns - {base} AS at_ns FROM '{out}/{table}/*/*/*.parquet'"
             for table in os.listdir(out)]
    script = os.path.join(os.path.dirname(parquet.__file__), "parquet_duckdb.mjs")
    said = npm.run(script, ("@duckdb/node-api",), *views, *asked).split("\n")[:-1]
    for question, line in zip(asked, said[len(views):]):
        told = [list(row.values()) for row in json.loads(line)["rows"]]
        answer = ask_sql(path, question)
        assert numbers(told) == numbers(answer) != [], (question, answer[:3], told[:3])
    assert len(asked) >= 15, len(asked)


if __name__ == "__main__":
    tap.main(globals())
