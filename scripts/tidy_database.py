"""Prepares a compile_commands.json for clang-tidy: drops what only g++ knows, and lists the sources.

Prints a line a source, "torch PATH" for those that include torch (by the precompiled header or
directly), "plain PATH" for the others, and rewrites the database in place.
"""

import json
import pathlib
import re
import sys

DROPPED = re.compile(r"\s-(fpch-preprocess|Winvalid-pch|Wno-maybe-uninitialized|Wno-restrict|fopenmp)\b")
HEADER = re.compile(r"\s-include \S*cmake_pch\.hxx")

path = pathlib.Path(sys.argv[1])
root = pathlib.Path.cwd()
entries = []
seen = set()
for entry in json.loads(path.read_text()):
    source = pathlib.Path(entry["file"])
    if source.name.startswith("cmake_pch") or source in seen:
        continue
    seen.add(source)
    command = entry["command"]
    text = source.read_text()
    torch = bool(HEADER.search(command)) or re.search(r"#include <(ATen|c10|torch)/", text)
    entry["command"] = HEADER.sub("", DROPPED.sub("", command))
    entries.append(entry)
    print("torch" if torch else "plain", source.relative_to(root))
path.write_text(json.dumps(entries, indent=1))
