"""Shows that check_includes.py notices a line that breaks each of its rules.

Every case adds one line to a copy of this very tree and expects exactly one
violation more, at that line. Lines that are allowed must add none.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
import check_includes  # noqa: E402
import check_links  # noqa: E402

# (file, line to add, part of the reason). A file that the tree does not have
# is created.
BROKEN = (
    ("dialect/Probe.h", '#include "passes/Pipelines.h"', "may include"),
    ("dialect/Probe.h", '#include "runtime/plan/PlanIO.h"', "may include"),
    ("dialect/Probe.h", '#include "frontends/spec/Spec.h"', "may include"),
    ("dialect/Probe.h", "#include <nlohmann/json.hpp>", "is nlohmann"),
    ("dialect/Train/Probe.td", 'include "passes/train/Passes.td"',
     "may include"),
    ("passes/train/Probe.cpp", '#include "runtime/exec/Arena.h"',
     "may include"),
    ("passes/dist/Probe.cpp", '#include "frontends/import/BuildTrain.h"',
     "may include"),
    ("passes/pipe/Probe.cpp", "#include <z3++.h>", "is z3"),
    ("passes/plan/Probe.cpp", "#include <CLI/CLI.hpp>", "is CLI11"),
    ("passes/plan/Probe.cpp", '#include "frontends/spec/Yaml.h"',
     "only frontends/spec"),
    ("passes/Probe.cpp", "#include <yaml-cpp/yaml.h>", "is yaml-cpp"),
    ("passes/model/Probe.cpp", '#include "mlir/IR/Builders.h"', "is mlir"),
    ("passes/model/Probe.cpp", '#include "llvm/ADT/SmallVector.h"', "is llvm"),
    ("passes/model/Probe.cpp", '#include "dialect/Train/Train.h"',
     "may include"),
    ("passes/model/Probe.cpp", '#include "passes/plan/Layout.h"',
     "may include"),
    ("passes/model/Probe.cpp", "#include <z3++.h>", "is z3"),
    ("passes/search/Probe.cpp", "#include <mlir/IR/Builders.h>", "is mlir"),
    ("passes/search/Probe.cpp", '#include "dialect/Dist/Dist.h"',
     "may include"),
    ("passes/search/Probe.cpp", '#include "runtime/comm/Communicator.h"',
     "may include"),
    ("runtime/base/Status.h", '#include "runtime/plan/PlanIO.h"',
     "may include"),
    ("runtime/base/Status.h", "#include <flatbuffers/flatbuffers.h>",
     "is flatbuffers"),
    ("runtime/plan/Probe.cpp", '#include "runtime/device/Device.h"',
     "may include"),
    ("runtime/exec/Probe.cpp", '#include "passes/model/StateBytes.h"',
     "may include"),
    ("runtime/exec/Probe.cpp", '#include "dialect/Plan/Plan.h"',
     "may include"),
    ("runtime/exec/Probe.cpp", '#include "frontends/spec/Spec.h"',
     "may include"),
    ("runtime/comm/Probe.cpp", '#include "mlir/IR/MLIRContext.h"', "is mlir"),
    ("runtime/comm/Probe.cpp", "#include <llvm/ADT/StringRef.h>", "is llvm"),
    ("runtime/data/Probe.cpp", "#include <yaml-cpp/yaml.h>", "is yaml-cpp"),
    ("runtime/data/Probe.cpp", "#  include  <z3.h>", "is z3"),
    ("runtime/data/Probe.cpp", "#include <CLI/CLI.hpp>", "is CLI11"),
    ("runtime/data/Probe.cpp", "#include <gtest/gtest.h>", "is gtest"),
    ("runtime/data/Probe.cpp", "#include <boost/any.hpp>", "does not know"),
    ("runtime/data/Probe.cpp", '#include "TokenDataset.h"', "from the root"),
    ("runtime/data/Probe.cpp", '#include "runtime/data/../../passes/x.h"',
     "from the root"),
    ("runtime/data/Probe.cpp", "#include HEADER", "cannot be checked"),
    ("runtime/data/Probe.cpp", '#include "tests/unit/Fake.h"', "may include"),
    ("frontends/spec/Probe.cpp", "#include <yaml-cpp/yaml.h>", "is yaml-cpp"),
    ("frontends/spec/Yaml.h", "#include <yaml-cpp/yaml.h>", "is yaml-cpp"),
    ("frontends/spec/Probe.cpp", '#include "runtime/plan/PlanIO.h"',
     "may include"),
    ("frontends/spec/Probe.cpp", '#include "mlir/IR/Location.h"', "is mlir"),
    ("frontends/spec/Probe.cpp", '#include "passes/model/Flops.h"',
     "may include"),
    ("frontends/import/Probe.cpp", '#include "frontends/tools/Show.h"',
     "may include"),
    ("frontends/import/Probe.cpp", '#include "runtime/exec/Arena.h"',
     "may include"),
    ("frontends/export/Probe.cpp", '#include "frontends/import/BuildTrain.h"',
     "may include"),
    ("frontends/tools/Probe.cpp", "#include <yaml-cpp/yaml.h>",
     "is yaml-cpp"),
    ("frontends/tools/reckon-run.cpp", '#include "passes/Pipelines.h"',
     "may include"),
    ("frontends/tools/reckon-run.cpp", '#include "frontends/spec/Spec.h"',
     "may include"),
    ("frontends/tools/reckon-run.cpp", '#include "mlir/IR/MLIRContext.h"',
     "is mlir"),
    ("frontends/tools/reckon-run.cpp", "#include <z3++.h>", "is z3"),
    ("docs/Probe.cpp", "#include <vector>", "without an include rule"),
    ("runtime/base/CMakeLists.txt",
     "target_link_libraries(reckon_base PUBLIC yaml-cpp)",
     "may not link yaml-cpp"),
    ("runtime/base/CMakeLists.txt",
     "reckon_library(x SOURCES x.cpp DEPS reckon_mlir)", "may not link mlir"),
    ("passes/model/CMakeLists.txt",
     "target_link_libraries(x PRIVATE MLIR)", "may not link mlir"),
    ("passes/model/CMakeLists.txt",
     "reckon_library(x SOURCES x.cpp DEPS z3)", "may not link z3"),
    ("passes/CMakeLists.txt",
     "target_link_libraries(x PUBLIC MLIRFuncDialect)", "component archive"),
    ("passes/CMakeLists.txt",
     "target_link_libraries(x PUBLIC /usr/lib/llvm-22/lib/libMLIRIR.a)",
     "component archive"),
    ("dialect/CMakeLists.txt", "add_mlir_dialect_library(x LINK_LIBS MLIRIR)",
     "component archive"),
    ("dialect/CMakeLists.txt", "set(LIBS LLVMSupport)", "component archive"),
    ("frontends/tools/CMakeLists.txt",
     "get_property(l GLOBAL PROPERTY MLIR_DIALECT_LIBS)",
     "names component archives"),
    ("cmake/Probe.cmake", "target_link_libraries(x PUBLIC -lMLIRIR)",
     "component archive"),
)

ALLOWED = (
    ("dialect/Probe.h", '#include "mlir/IR/Dialect.h"'),
    ("dialect/Probe.h", '#include "runtime/base/Status.h"'),
    ("dialect/Train/Probe.td", 'include "mlir/IR/OpBase.td"'),
    ("passes/train/Probe.cpp", '#include "passes/Pipelines.h"'),
    ("passes/plan/Probe.cpp", '#include "runtime/plan/PlanIO.h"'),
    ("passes/plan/Probe.cpp", '#include "passes/model/StateBytes.h"'),
    ("passes/search/Probe.cpp", "#include <z3++.h>"),
    ("passes/model/Probe.cpp", '#include "frontends/spec/Spec.h"'),
    ("runtime/base/Status.h", "#include <sys/socket.h>"),
    ("runtime/device/Probe.cpp", "#include <oneapi/dnnl/dnnl.hpp>"),
    ("runtime/plan/Probe.cpp", '#include "runtime/plan/plan_generated.h"'),
    ("runtime/exec/Probe.cpp", '// was: #include "mlir/IR/Builders.h"'),
    ("frontends/spec/YamlProbe.cpp", "#include <yaml-cpp/yaml.h>"),
    ("frontends/tools/Probe.cpp", '#include "passes/Pipelines.h"'),
    ("frontends/tools/reckon-run.cpp", "#include <CLI/CLI.hpp>"),
    ("tests/unit/Probe.cpp", '#include "mlir/IR/Builders.h"'),
    ("passes/CMakeLists.txt", "target_link_libraries(x PUBLIC reckon_mlir)"),
    ("passes/CMakeLists.txt", "add_dependencies(x MLIRTrainOpsIncGen)"),
    ("passes/CMakeLists.txt", "f(x)  # MLIRIR would be a second copy"),
    ("frontends/spec/CMakeLists.txt",
     "reckon_library(x SOURCES x.cpp DEPS yaml-cpp)"),
)


class IncludesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name)
        shutil.copy(ROOT / "CMakeLists.txt", cls.root)
        for top in check_includes.TOP:
            if (ROOT / top).is_dir():
                shutil.copytree(ROOT / top, cls.root / top,
                                ignore=shutil.ignore_patterns("__pycache__",
                                                              ".*"))
        cls.before = check_includes.check(cls.root)

    def added(self, path, line):
        """Returns the violations that appending `line` to `path` adds."""
        return self.added_text(path, line + "\n")

    def added_text(self, path, text):
        file = self.root / path
        old = file.read_bytes() if file.exists() else None
        file.parent.mkdir(parents=True, exist_ok=True)
        content = (old or b"") + text.encode()
        file.write_bytes(content)
        try:
            return [v for v in check_includes.check(self.root)
                    if v not in self.before], content.count(b"\n")
        finally:
            if old is None:
                file.unlink()
            else:
                file.write_bytes(old)

    def test_the_tree_keeps_the_layering(self):
        self.assertEqual([str(v) for v in self.before], [])

    def test_each_broken_line_is_found(self):
        for path, line, reason in BROKEN:
            with self.subTest(path=path, line=line):
                found, last = self.added(path, line)
                self.assertEqual(len(found), 1, found)
                self.assertEqual(found[0].path, path)
                if reason != "without an include rule":
                    self.assertEqual(found[0].line, last)
                self.assertIn(reason, found[0].text)

    def test_allowed_lines_pass(self):
        for path, line in ALLOWED:
            with self.subTest(path=path, line=line):
                self.assertEqual(self.added(path, line)[0], [])

    def test_thin_tool_may_not_reach_the_compiler_through_a_header(self):
        header = self.root / "frontends/tools/Shared.h"
        header.write_text('#include "passes/Pipelines.h"\n')
        self.addCleanup(header.unlink)
        found, _ = self.added("frontends/tools/reckon-run.cpp",
                              '#include "frontends/tools/Shared.h"')
        self.assertEqual([(v.path, v.line) for v in found],
                         [("frontends/tools/Shared.h", 1)])
        header.write_text('#include "runtime/base/Status.h"\n')
        self.assertEqual(
            self.added("frontends/tools/reckon-run.cpp",
                       '#include "frontends/tools/Shared.h"')[0], [])

    def test_long_files_are_found(self):
        for path in ("runtime/base/Probe.cpp", "tests/probe.py",
                     "tests/passes/probe.mlir"):
            self.assertEqual(self.added_text(path, "\n" * 800)[0], [], path)
            found, _ = self.added_text(path, "\n" * 801)
            self.assertEqual([v.path for v in found], [path])

    def test_the_program_prints_and_fails(self):
        script = str(HERE / "check_includes.py")
        probe = self.root / "runtime/base/Probe.h"
        probe.write_text('#include "dialect/Plan/Plan.h"\n')
        self.addCleanup(probe.unlink)
        result = subprocess.run([sys.executable, script, str(self.root)],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("runtime/base/Probe.h:1: ", result.stdout)
        result = subprocess.run([sys.executable, script, "/nonexistent"],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 2)


class LinksTest(unittest.TestCase):
    """check_links.py on small programs made for the purpose."""

    def build(self, source, *options):
        compiler = shutil.which("c++") or shutil.which("g++")
        if compiler is None:
            self.skipTest("no C++ compiler on PATH")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        program = str(pathlib.Path(folder.name) / "program")
        subprocess.run([compiler, "-x", "c++", "-", "-x", "none", "-o",
                        program, *options],
                       input=source, text=True, check=True)
        return program

    def test_plain_program_passes(self):
        self.assertEqual(check_links.check(self.build("int main() {}")), [])

    def test_shared_library_is_found(self):
        program = self.build("int main() {}", "-Wl,--no-as-needed", "-lz3")
        found = check_links.check(program)
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found[0], r"^needs libz3\.so.* that is Z3$")

    def test_library_behind_another_is_found(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        middle = str(pathlib.Path(folder.name) / "libmiddle.so")
        shutil.copy(self.build("int middle;", "-shared", "-fPIC",
                               "-Wl,--no-as-needed", "-lz3"), middle)
        program = self.build("int main() {}", "-Wl,--no-as-needed", middle,
                             f"-Wl,-rpath,{folder.name}")
        found = check_links.check(program)
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found[0], r"^needs, through another, libz3")

    def test_static_code_is_found(self):
        for space, library in (("mlir", "MLIR"), ("llvm", "LLVM"),
                               ("YAML", "yaml-cpp")):
            program = self.build(
                f"namespace {space} {{ void f() {{}} }} int main() {{}}")
            found = check_links.check(program)
            self.assertEqual(len(found), 1, found)
            self.assertIn(f"symbols of {library}", found[0])

    def test_cuda_is_found_and_others_are_not_asked_for(self):
        program = self.build('extern "C" void cublasLtCreate() {} '
                             "namespace mlir { void f() {} } int main() {}")
        self.assertEqual(len(check_links.check(program)), 2)
        found = check_links.check(program, ("CUDA",))
        self.assertEqual(found, ["has 1 symbols of CUDA, such as "
                                 "cublasLtCreate"])


if __name__ == "__main__":
    unittest.main()
