# SPDX-License-Identifier: MIT
"""A page in a browser that others wrote: headless Chromium, without a network."""
import html
import html.parser
import os
import re
import shutil
import subprocess
import tempfile

import tap

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
         "--no-first-run", "--disable-extensions", "--disable-background-networking",
         "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND"]


def run(path, *options):
    """Chromium on the file @path: (its standard output, what the page's console said)."""
    program = shutil.which("chromium")
    if not program:
        raise tap.Skip("no chromium here: scripts/setup installs it")
    with tempfile.TemporaryDirectory(prefix="kbarman-chromium-") as profile:
        result = subprocess.run(
            [program, *FLAGS, f"--user-data-dir={profile}", *options, "file://" + os.path.abspath(path)],
            capture_output=True, timeout=300, check=False, text=True, errors="replace",
            env={**os.environ, "HOME": profile})
    said = [line for line in result.stderr.splitlines() if ":CONSOLE" in line]
    return result, said


def need(result, there):
    """Skip if a page of nothing doesn't work either."""
    if there:
        return
    with tempfile.NamedTemporaryFile("w", suffix=".html") as page:
        page.write("<p>nothing")
        page.flush()
        if "nothing" not in run(page.name, "--dump-dom")[0].stdout:
            raise tap.Skip(f"chromium does not start here: {result.stderr[-200:]!r}")


def dom(path, *options):
    """What the page has become when it has stood still; its console must have been silent."""
    result, said = run(path, "--dump-dom", "--virtual-time-budget=4000", *options)
    need(result, "<html" in result.stdout)
    assert not said, said
    return result.stdout


def screenshot(path, shot, *options):
    result, said = run(path, f"--screenshot={shot}", "--window-size=1000,700", *options)
    need(result, os.path.exists(shot))
    assert not said, said
    return shot


class Rows(html.parser.HTMLParser):
    """The cells of the rows of a table's body."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.inside, self.cell = [], False, False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "tbody":
            self.inside = True
        elif self.inside and tag == "tr":
            self.rows.append([])
        elif self.inside and tag == "td":
            self.rows[-1].append("")
            self.cell = True

    def handle_endtag(self, tag):
        if tag == "tbody":
            self.inside = False
        elif tag == "td":
            self.cell = False

    def handle_data(self, data):
        if self.inside and self.cell:
            self.rows[-1][-1] += data


def attribute(text, name):
    found = re.search(name + '="([^"]*)"', text)
    return found and html.unescape(found[1])
