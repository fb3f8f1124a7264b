"""Textual IR tests: every .mlir file under dialect/ and passes/ is one test."""

import os

import lit.formats

config.name = "reckon"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["unit", "e2e", "layering", "Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.reckon_test_exec_root

# Our own tools come first, then FileCheck, not, count and split-file.
config.environment["PATH"] = os.pathsep.join(
    [config.reckon_tools_dir, config.llvm_tools_dir, config.environment["PATH"]]
)
config.substitutions.append(("%examples", config.reckon_source_root + "/examples"))

# A missing tool must fail here, with its name, and not test by test.
for tool, folder in (
    ("reckon-opt", config.reckon_tools_dir),
    ("FileCheck", config.llvm_tools_dir),
    ("not", config.llvm_tools_dir),
    ("split-file", config.llvm_tools_dir),
):
    if not os.access(os.path.join(folder, tool), os.X_OK):
        lit_config.fatal("expected %s in %s; build it first" % (tool, folder))
