# SPDX-License-Identifier: MIT
"""The queries of docs/fleet.md, and what DuckDB answers to them."""
import json
import os
import re

import npm

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../../docs/fleet.md")


def blocks():
    """What the page says in SQL: the heading above it, and its text."""
    found, heading, inside = [], None, False
    with open(PAGE, encoding="utf-8") as file:
        for line in file:
            if line.startswith("```"):
                inside = line == "```sql\n"
                if inside:
                    found.append((heading, ""))
            elif inside:
                found[-1] = heading, found[-1][1] + line
            elif line.startswith("#"):
                heading = line.strip("# \n")
    return found


def views(folder):
    text = blocks()[0][1]
    assert "create" in text and "/srv/fleet" in text
    return text.replace("/srv/fleet", folder)


def queries():
    """The ten queries: (heading, SQL)."""
    return [(title, text.strip().rstrip(";")) for title, text in blocks() if re.match(r"\d+\. ", title)]


def answers(folder, asked):
    """For each query the time in ms and its rows."""
    said = npm.run(os.path.join(HERE, "parquet_duckdb.mjs"), ("@duckdb/node-api",), views(folder), *asked)
    return [(line["ms"], line["rows"]) for line in map(json.loads, said.split("\n")[1:-1])]
