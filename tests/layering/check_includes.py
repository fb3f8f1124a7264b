#!/usr/bin/env python3
"""Checks that includes and link lines follow Reckon's layering.

  runtime/base <- runtime/plan <- runtime/*
  dialect <- passes (-> runtime/base, runtime/plan, frontends/spec)
  frontends/spec <- frontends/import, export <- frontends/tools

What a folder may include is the table FOLDERS below; anything that it does not
list is refused, third-party headers too. Beside that: no source above 800
lines, no component archive of MLIR or LLVM on a link line (they would put a
second copy of MLIR's registries beside the one in libMLIR.so), and no library
on the link lines of a folder that it may not include.

Usage: check_includes.py [ROOT]. Prints file:line: reason for each violation;
exit code 1 if there are any.
"""

import pathlib
import re
import sys
from typing import NamedTuple

MAX_LINES = 800
TOP = ("cmake", "dialect", "docs", "examples", "frontends", "passes",
       "runtime", "tests")
CODE = {".h", ".hpp", ".inc", ".c", ".cc", ".cpp", ".cu", ".cuh", ".td"}
COUNTED = CODE | {".py", ".sh", ".cmake", ".mlir", ".fbs"}

# Header -> library, by the first match. Headers with a folder that match none
# of these and are not the system's are unknown and refused everywhere.
LIBRARIES = (
    ("mlir", re.compile(r"mlir(-c)?/")),
    ("llvm", re.compile(r"(llvm(-c)?|clang|lld)/")),
    ("yaml-cpp", re.compile(r"yaml-cpp/|yaml\.h$")),
    ("z3", re.compile(r"(z3/)?z3\w*(\+\+)?\.h$")),
    ("CLI11", re.compile(r"CLI/")),
    ("nlohmann", re.compile(r"nlohmann/")),
    ("flatbuffers", re.compile(r"flatbuffers/")),
    ("oneDNN", re.compile(r"(oneapi/)?(dnnl/)?dnnl\w*\.h(pp)?$")),
    ("xxhash", re.compile(r"xxh(ash|3)\.h$")),
    ("gtest", re.compile(r"g(test|mock)/")),
)
SYSTEM = re.compile(r"[^/]+$|(arpa|asm|bits|experimental|ext|linux|net|netinet|"
                    r"sys)/")


class Folder(NamedTuple):
    """What the files whose path matches `path` may include."""
    path: str          # regular expression, matched from the start
    own: tuple         # prefixes of Reckon's own headers
    libraries: tuple   # names from LIBRARIES


# The first match counts.
FOLDERS = (
    Folder(r"dialect/", ("dialect/", "runtime/base/"), ("mlir", "llvm")),
    Folder(r"passes/goodput/",
           ("passes/goodput/", "passes/model/", "frontends/spec/"),
           ("nlohmann",)),
    Folder(r"passes/search/",
           ("passes/goodput/", "passes/model/", "passes/search/",
            "runtime/base/",
            "runtime/plan/", "frontends/spec/"), ("nlohmann", "z3")),
    Folder(r"passes/report/", ("passes/report/", "runtime/base/"),
           ("nlohmann",)),
    Folder(r"passes/listing/",
           ("passes/listing/", "runtime/base/", "runtime/plan/"), ()),
    Folder(r"passes/timeline/",
           ("passes/listing/", "passes/model/", "passes/timeline/",
            "runtime/base/", "runtime/plan/"), ("nlohmann",)),
    Folder(r"passes/prove/",
           ("passes/model/", "passes/prove/", "runtime/base/",
            "runtime/plan/", "frontends/spec/"), ()),
    Folder(r"passes/model/",
           ("passes/model/", "passes/search/", "runtime/base/",
            "runtime/plan/", "frontends/spec/"), ("nlohmann",)),
    Folder(r"passes/",
           ("dialect/", "passes/", "runtime/base/", "runtime/plan/",
            "frontends/spec/"), ("mlir", "llvm", "nlohmann")),
    Folder(r"runtime/base/", ("runtime/base/",), ("nlohmann", "xxhash")),
    Folder(r"runtime/plan/", ("runtime/base/", "runtime/plan/"),
           ("nlohmann", "flatbuffers", "xxhash")),
    Folder(r"runtime/", ("runtime/",),
           ("nlohmann", "flatbuffers", "oneDNN", "xxhash")),
    Folder(r"frontends/spec/Yaml\w*\.cpp$",
           ("frontends/spec/", "runtime/base/"), ("nlohmann", "yaml-cpp")),
    Folder(r"frontends/spec/", ("frontends/spec/", "runtime/base/"),
           ("nlohmann",)),
    Folder(r"frontends/import/(?P<self>hf|megatron)/",
           ("frontends/import/{self}/", "frontends/spec/", "runtime/base/"),
           ()),
    # The export writes for the version whose flags the import knows.
    Folder(r"frontends/export/",
           ("frontends/export/", "frontends/import/megatron/",
            "frontends/spec/", "passes/model/", "runtime/base/"),
           ("nlohmann",)),
    Folder(r"frontends/(?P<self>import|export)/",
           ("frontends/{self}/", "frontends/spec/", "dialect/", "passes/",
            "runtime/base/", "runtime/plan/"), ("mlir", "llvm", "nlohmann")),
    # The program of a compute node. It may share a header with the other
    # tools only if that header obeys the same rule; see check_thin_tool.
    Folder(r"frontends/tools/reckon-run", ("runtime/", "frontends/tools/"),
           ("CLI11", "nlohmann")),
    Folder(r"frontends/tools/",
           ("dialect/", "passes/", "runtime/", "frontends/"),
           ("mlir", "llvm", "CLI11", "nlohmann", "z3")),
)
# Tests may include what they like.
UNCHECKED = re.compile(r"tests/")
# Only this may be handed a yaml-cpp type.
YAML_HEADER = re.compile(r"frontends/spec/Yaml\w*\.h$")

CPP_INCLUDE = re.compile(r"\s*#\s*(?:include(?:_next)?|import)\b\s*(.*)")
TD_INCLUDE = re.compile(r'\s*include\s+("[^"]*")')
QUOTED = re.compile(r'"([^"]*)"|<([^>]*)>')

COMPONENT = re.compile(r"(?:^|/|-l)(?:lib)?((?:MLIR|LLVM)[A-Z][A-Za-z0-9]*)"
                       r"(?:\.(?:a|so)[\d.]*)?$")
GENERATED = re.compile(r"(IncGen|DocGen)$")  # tablegen targets, not archives
COMPONENT_LIST = re.compile(r"MLIR_(DIALECT|CONVERSION|EXTENSION|TRANSLATION)"
                            r"_LIBS|LLVM_LINK_COMPONENTS|"
                            r"llvm_map_components_to_libnames")
CMAKE_COMMAND = re.compile(r"([A-Za-z_]\w*)\s*"
                           r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
# Commands whose arguments name targets to build first or files to load.
NOT_LINKING = {"add_dependencies", "find_package", "include", "message"}
LINK_NAMES = (("mlir", re.compile(r"(MLIR|LLVM|reckon_mlir)$")),
              ("yaml-cpp", re.compile(r"yaml-cpp(::yaml-cpp)?$")),
              ("z3", re.compile(r"(lib)?z3(::libz3)?$")))


class Violation(NamedTuple):
    path: str
    line: int
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text}"


class Include(NamedTuple):
    line: int
    operand: str   # as written
    header: str    # without its quotes; None where a macro stands
    quoted: bool   # "header" rather than <header>


def includes_of(path, text):
    """Yields an Include for each include line."""
    pattern = TD_INCLUDE if path.endswith(".td") else CPP_INCLUDE
    for number, line in enumerate(text.splitlines(), 1):
        match = pattern.match(line)
        if match:
            name = QUOTED.match(match[1])
            header = (name[1] or name[2] or "") if name else None
            yield Include(number, match[1], header, match[1][:1] == '"')


def library_of(header):
    for name, pattern in LIBRARIES:
        if pattern.match(header):
            return name
    return None


def rule_of(path):
    """Returns (prefixes, libraries) that the file may include, or None."""
    for folder in FOLDERS:
        match = re.match(folder.path, path)
        if match:
            return (tuple(p.format(**match.groupdict()) for p in folder.own),
                    folder.libraries)
    return None


def check_include(path, include, rule):
    """Returns why `path` may not have `include`, or None."""
    own, libraries = rule
    header = include.header
    if header is None:
        return f"include of the macro {include.operand}: it cannot be checked"
    if ".." in header.split("/"):
        return f'"{header}": write includes from the root of the tree'
    library = library_of(header)
    if library:
        if library in libraries:
            return None
        return (f'"{header}" is {library}; this folder may include '
                f"{', '.join(libraries) or 'no library'}")
    if header.split("/")[0] in TOP:
        if YAML_HEADER.match(header) and not path.startswith("frontends/spec/"):
            return f'"{header}": only frontends/spec works on YAML nodes'
        if header.startswith(own):
            return None
        return f'"{header}": this folder may include {", ".join(own)}'
    if include.quoted:
        return f'"{header}": write includes from the root of the tree'
    if SYSTEM.match(header):
        return None
    return f"<{header}>: a library that tests/layering does not know"


def check_thin_tool(root, path, seen):
    """Yields violations in headers of frontends/tools that `path` reaches."""
    rule = rule_of("frontends/tools/reckon-run")
    for include in includes_of(path, (root / path).read_text()):
        header = include.header
        if (not header or not header.startswith("frontends/tools/")
                or header in seen or not (root / header).is_file()):
            continue
        seen.add(header)
        text = (root / header).read_text()
        for inner in includes_of(header, text):
            reason = check_include(header, inner, rule)
            if reason:
                yield Violation(header, inner.line,
                                f"{reason} (reached from {path})")
        yield from check_thin_tool(root, header, seen)


def check_code(root, path, text):
    rule = rule_of(path)
    if rule is None:
        if not UNCHECKED.match(path):
            yield Violation(path, 1, "source in a folder without an include "
                            "rule; add it to FOLDERS in tests/layering")
        return
    for include in includes_of(path, text):
        reason = check_include(path, include, rule)
        if reason:
            yield Violation(path, include.line, reason)
    if path.startswith("frontends/tools/reckon-run"):
        yield from check_thin_tool(root, path, set())


def check_cmake(path, text):
    text = re.sub(r"#.*", "", text)  # keeps the lines' numbers
    folder = path.rpartition("/")[0] + "/"
    rule = rule_of(folder)
    # Yaml*.cpp gives its folder the right to link yaml-cpp.
    allowed = set(rule[1]) if rule else set()
    if folder == "frontends/spec/":
        allowed.add("yaml-cpp")
    free = rule is None or folder == "frontends/tools/"

    def at(offset):
        return text.count("\n", 0, offset) + 1

    for match in COMPONENT_LIST.finditer(text):
        yield Violation(path, at(match.start()), f"{match[0]} names component "
                        "archives; link reckon_mlir")
    for command in CMAKE_COMMAND.finditer(text):
        if command[1].lower() in NOT_LINKING:
            continue
        for token in re.finditer(r'[^\s;"]+', command[2]):
            line = at(command.start(2) + token.start())
            component = COMPONENT.search(token[0])
            if component and not GENERATED.search(component[1]):
                yield Violation(path, line, f"{token[0]} is a component "
                                "archive of MLIR or LLVM; link reckon_mlir")
            for library, pattern in LINK_NAMES:
                if not free and library not in allowed \
                        and pattern.match(token[0]):
                    yield Violation(path, line, f"{token[0]}: this folder may "
                                    f"not link {library}")


def sources(root):
    yield root / "CMakeLists.txt"
    for top in TOP:
        yield from (root / top).rglob("*")


def check(root):
    """Returns the violations in the tree at `root`, by file and line."""
    found = []
    for file in sources(pathlib.Path(root)):
        counted = file.suffix in COUNTED or file.name == "CMakeLists.txt"
        if not counted or not file.is_file():
            continue
        path = file.relative_to(root).as_posix()
        text = file.read_text(encoding="utf-8", errors="replace")
        lines = text.count("\n")
        if lines > MAX_LINES:
            found.append(Violation(path, lines, f"{lines} lines; a file has "
                                   f"at most {MAX_LINES}"))
        if file.suffix in CODE:
            found.extend(check_code(pathlib.Path(root), path, text))
        elif file.name == "CMakeLists.txt" or file.suffix == ".cmake":
            found.extend(check_cmake(path, text))
    return sorted(set(found))


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1
                        else pathlib.Path(__file__).resolve().parents[2])
    if not (root / "CMakeLists.txt").is_file():
        print(f"error: expected the root of the tree, got {root}",
              file=sys.stderr)
        return 2
    found = check(root)
    for violation in found:
        print(violation)
    if found:
        print(f"{len(found)} violations of the layering")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
