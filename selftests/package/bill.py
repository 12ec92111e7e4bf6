#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Usage: bill.py SOURCE PACKAGE.deb...

Is the bill of materials of each package, built from SOURCE, a document of SPDX 2.3, and true? The
fields and values that must be there are those of the specification, clauses 6 to 8 and 11. Checksums,
licences and dependencies are compared with the package itself."""
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import uuid

SUPPLIER = r"(Person|Organization): .+|NOASSERTION"
ONE_LICENCE = r"(MIT|GPL-2\.0-only)( WITH Linux-syscall-note)?"
LICENCE = rf"{ONE_LICENCE}( AND {ONE_LICENCE})*|NONE|NOASSERTION"
RELATIONS = {"DESCRIBES", "CONTAINS", "GENERATED_FROM", "DEPENDS_ON", "OPTIONAL_DEPENDENCY_OF"}
TAG = re.compile(rb"SPDX-License-Identifier: (.*?)(?: \*/| -->)?\r?\n")


def matches(pattern, text):
    assert isinstance(text, str) and re.fullmatch(pattern, text), (pattern, text)


def control_and_files(package):
    """The fields of a package, and the content of its regular files by name."""
    fields = subprocess.run(["dpkg-deb", "-f", package], capture_output=True, text=True, check=True)
    fields = dict(re.findall(r"^(\S+): (.*)$", fields.stdout, re.M))
    archive = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        return fields, {member.name: tar.extractfile(member).read() for member in tar
                        if member.isfile()}


def is_a_document(bill):
    """Clause 6, and that all references lead somewhere."""
    assert bill["spdxVersion"] == "SPDX-2.3" and bill["dataLicense"] == "CC0-1.0"
    assert bill["SPDXID"] == "SPDXRef-DOCUMENT" and bill["name"]
    matches(r"urn:uuid:[0-9a-f-]{36}", bill["documentNamespace"])
    matches(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", bill["creationInfo"]["created"])
    assert bill["creationInfo"]["creators"]
    for creator in bill["creationInfo"]["creators"]:
        matches(r"(Person|Organization|Tool): .+", creator)
    elements = [bill, *bill["packages"], *bill["files"]]
    identities = {element["SPDXID"] for element in elements}
    assert len(identities) == len(elements), "an SPDXID is there twice"
    for identity in identities:
        matches(r"SPDXRef-[A-Za-z0-9.-]+", identity)
    for relation in bill["relationships"]:
        assert relation["relationshipType"] in RELATIONS, relation
        assert relation["spdxElementId"] in identities, relation
        assert relation["relatedSpdxElement"] in identities, relation
    described = related(bill, "SPDXRef-DOCUMENT", "DESCRIBES")
    assert described == ["SPDXRef-Package"], described


def are_packages(bill):
    """Clause 7."""
    for package in bill["packages"]:
        assert package["name"]
        matches(r"NOASSERTION|NONE|[a-z+]+:.+", package["downloadLocation"])
        for field in ("licenseConcluded", "licenseDeclared"):
            matches(LICENCE, package[field])
        assert package["copyrightText"]
        for reference in package.get("externalRefs", []):
            assert reference["referenceCategory"] == "PACKAGE-MANAGER", reference
            matches(r"pkg:deb/\w+/[a-z0-9A-F%.+-]+", reference["referenceLocator"])
        if not package["filesAnalyzed"]:
            assert "packageVerificationCode" not in package, package["name"]
            continue
        matches(SUPPLIER, package["supplier"])
        inside = [file for file in bill["files"]
                  if file["SPDXID"] in related(bill, package["SPDXID"], "CONTAINS")]
        sums = "".join(sorted(checksum(file, "SHA1") for file in inside))
        assert package["packageVerificationCode"]["packageVerificationCodeValue"] == \
            hashlib.sha1(sums.encode("ascii")).hexdigest(), package["name"]
        assert set(package["licenseInfoFromFiles"]) == \
            {one for file in inside for one in file["licenseInfoInFiles"]} - {"NONE"}


def are_files(bill):
    """Clause 8."""
    for file in bill["files"]:
        matches(r"\./[^/].*", file["fileName"])
        matches("[0-9a-f]{40}", checksum(file, "SHA1"))
        matches("[0-9a-f]{64}", checksum(file, "SHA256"))
        matches(LICENCE, file["licenseConcluded"])
        for licence in file["licenseInfoInFiles"]:
            matches(LICENCE, licence)
        assert set(file["fileTypes"]) <= {"SOURCE", "BINARY", "DOCUMENTATION", "OTHER"}


def related(bill, one, kind):
    return [relation["relatedSpdxElement"] for relation in bill["relationships"]
            if (relation["spdxElementId"], relation["relationshipType"]) == (one, kind)]


def checksum(file, algorithm):
    found = [one["checksumValue"] for one in file["checksums"] if one["algorithm"] == algorithm]
    assert len(found) == 1, file
    return found[0]


def tagged(data):
    """What the file itself says of its licence."""
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    if data.startswith((b"\x7fELF", b"!<arch>")):
        return None
    found = TAG.search(b"".join(data.splitlines(keepends=True)[:4]))
    return found.group(1).decode("ascii") if found else None


def contains(bill, identity, contents):
    """Of this package are these files, and what is said of each is true."""
    inside = {file["fileName"]: file for file in bill["files"]
              if file["SPDXID"] in related(bill, identity, "CONTAINS")}
    assert set(inside) == set(contents), set(inside) ^ set(contents)
    for name, data in contents.items():
        for algorithm in ("SHA1", "SHA256"):
            assert checksum(inside[name], algorithm) == \
                hashlib.new(algorithm, data).hexdigest(), name
        says = tagged(data)
        assert inside[name]["licenseInfoInFiles"] == [says or "NONE"], (name, says)
        assert not says or inside[name]["licenseConcluded"] == says, (name, says)
    return inside


def compiled_from(source):
    """Sources that the compiler read for the library and the programs; it says so itself."""
    found = {"kbarman": set(), "kbarman-push": set(), "library": set()}
    for directory, _, names in os.walk(os.path.join(source, "build", "obj")):
        for name in names:
            if not name.endswith(".d"):
                continue
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                read = {os.path.normpath(one) for one in
                        re.findall(r"(?:user|kmod)/[^ :\\\n]+\.[ch]\b", file.read())}
            program = re.search("/user/(cli|agent|push)", directory)
            if program and program[1] != "agent":
                found["kbarman-push"] |= read
            if program and program[1] != "push":
                found["kbarman"] |= read
            if not program:
                for sources in found.values():
                    sources |= read
    assert all(len(sources) > 100 for sources in found.values()), "where are the .d files?"
    return found


def check(source, package):
    fields, files = control_and_files(package)
    name = fields["Package"]
    place = f"./usr/share/doc/{name}/{name}.spdx.json"
    assert place in files, f"{name} has no bill"
    bill = json.loads(files.pop(place))
    is_a_document(bill)
    are_packages(bill)
    are_files(bill)

    # no other document has this name: it is one of its content
    content = {key: value for key, value in bill.items() if key != "documentNamespace"}
    assert bill["documentNamespace"] == uuid.uuid5(
        uuid.NAMESPACE_OID, json.dumps(content, sort_keys=True)).urn

    packages = {one["SPDXID"]: one for one in bill["packages"]}
    mine = packages["SPDXRef-Package"]
    assert (mine["name"], mine["versionInfo"]) == (name, fields["Version"])
    assert mine["packageVerificationCode"]["packageVerificationCodeExcludedFiles"] == [place]
    inside = contains(bill, "SPDXRef-Package", files)
    binaries = [file for file, data in files.items() if data.startswith((b"\x7fELF", b"!<arch>"))]
    assert binaries or name in ("kbarman-dkms", "python3-kbarman"), "nothing is compiled?"

    for field in ("Depends", "Recommends", "Suggests"):
        for text in filter(None, fields.get(field, "").split(", ")):
            one = packages["SPDXRef-Dependency-" + re.split("[ :]", text)[0].replace("+", "plus")]
            ends = ("SPDXRef-Package", one["SPDXID"])
            assert ends[1] in related(bill, ends[0], "DEPENDS_ON") or \
                ends[0] in related(bill, ends[1], "OPTIONAL_DEPENDENCY_OF"), text

    generated = related(bill, "SPDXRef-Package", "GENERATED_FROM")
    assert generated == (["SPDXRef-Source"] if binaries else [])
    if not binaries:
        return
    named = {file["fileName"] for file in bill["files"]
             if file["SPDXID"] in related(bill, "SPDXRef-Source", "CONTAINS")}
    contents = {}
    for file in named:
        with open(os.path.join(source, file), "rb") as opened:
            contents[file] = opened.read()
    sources = contains(bill, "SPDXRef-Source", contents)
    compiled = compiled_from(source)
    read = {"./" + file for file in compiled.get(name, compiled["library"])}
    assert read <= named, f"compiled, but not in the bill: {sorted(read - named)}"
    licences = {sources[file]["licenseConcluded"] for file in named}
    for file in binaries:
        assert set(inside[file]["licenseConcluded"].split(" AND ")) == licences, file


def main():
    source, *packages = sys.argv[1:]
    assert packages
    for package in packages:
        try:
            check(source, package)
        except (AssertionError, KeyError) as error:
            sys.exit(f"{os.path.basename(package)}: {type(error).__name__} {error}")


if __name__ == "__main__":
    main()
