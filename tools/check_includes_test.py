#!/usr/bin/env python3
"""Plants each kind of violation in a small tree and sees that tools/check-includes finds it, and nothing in the tree without it."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "check-includes"

# base <- tensor <- kernels <- kernels/cpu <- app, all as they should be.
GOOD = {
    "CMakeLists.txt": "add_subdirectory(src/base)\nadd_subdirectory(src/tensor)\n# add_subdirectory(src/gone)\n"
                      "add_subdirectory(src/kernels)\nadd_subdirectory(src/app)\n",
    "src/base/CMakeLists.txt": "convoy_module(base LIBRARIES fmt::fmt SOURCES error.cpp)\n",
    "src/base/error.h": "// Errors.\n#pragma once\n#include <string>\n",
    "src/base/error.cpp": '#include "base/error.h"\n',
    "src/tensor/CMakeLists.txt": "convoy_module(tensor\n  DEPENDS base  # not app\n  SOURCES dims.cpp)\n",
    "src/tensor/dims.h": '#pragma once\n#include "base/error.h"\n/*\n#include "app/app.h"\n*/\n// #include "app/app.h"\n',
    "src/kernels/CMakeLists.txt": "convoy_module(kernels DEPENDS tensor SOURCES)\nadd_subdirectory(cpu)\n",
    "src/kernels/target.h": '#pragma once\n#include "base/error.h"\n#include "tensor/dims.h"\n',
    "src/kernels/reference/gemm.cpp": '#include "kernels/target.h"\n#include <cblas.h>\n',
    "src/kernels/cpu/CMakeLists.txt": "convoy_module(kernels_cpu DEPENDS kernels SOURCES conv.cpp)\n",
    "src/kernels/cpu/conv.h": "#pragma once\n#include <dnnl.hpp>\n",
    "src/kernels/cpu/conv.cpp": '#include "kernels/cpu/conv.h"\n#include "kernels/target.h"\n',
    "src/app/CMakeLists.txt": "convoy_module(app DEPENDS kernels_cpu SOURCES app.cpp)\n",
    "src/app/app.h": '#pragma once\n#include "kernels/cpu/conv.h"\n',
}


class CheckIncludes(unittest.TestCase):
    def run_on(self, changes):
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**GOOD, **changes}.items():
                path = Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def finds(self, expected, changes):
        code, output = self.run_on(changes)
        self.assertIn(expected, output)
        self.assertEqual(code, 1)

    def test_good_tree_passes(self):
        self.assertEqual(self.run_on({}), (0, ""))

    def test_tree_without_modules_fails(self):
        with tempfile.TemporaryDirectory() as root:
            Path(root, "src").mkdir()
            self.assertEqual(subprocess.run([sys.executable, SCRIPT, root], capture_output=True).returncode, 1)

    def test_upward_include(self):
        self.finds('src/base/error.cpp:2: upward include: "tensor/dims.h" is of module tensor, which base does not depend on',
                   {"src/base/error.cpp": '#include "base/error.h"\n#include "tensor/dims.h"\n'})

    def test_upward_include_out_of_a_parent_folder(self):
        self.finds("src/kernels/target.h:2: upward include", {"src/kernels/target.h": '#pragma once\n  #  include "kernels/cpu/conv.h"\n'})

    def test_include_of_unlisted_module(self):
        self.finds('src/data/mnist.cpp:1: include against the arrows: "kernels/target.h"',
                   {"CMakeLists.txt": GOOD["CMakeLists.txt"] + "add_subdirectory(src/data)\n",
                    "src/data/CMakeLists.txt": "convoy_module(data DEPENDS tensor SOURCES mnist.cpp)\n",
                    "src/data/mnist.cpp": '#include "kernels/target.h"\n'})

    def test_folder_without_its_own_module_obeys_its_parent(self):
        self.finds('src/kernels/reference/gemm.cpp:1: upward include: "app/app.h"',
                   {"src/kernels/reference/gemm.cpp": '#include "app/app.h"\n'})

    def test_upward_dependency(self):
        self.finds("upward dependency: tensor depends on app, which the build adds after it",
                   {"src/tensor/CMakeLists.txt": "convoy_module(tensor DEPENDS base app)\n"})

    def test_upward_dependency_in_a_build_that_loops(self):
        loop = "foreach(folder base {})\n  add_subdirectory(src/${{folder}})\nendforeach()\nadd_subdirectory(src/app)\n"
        self.assertEqual(self.run_on({"CMakeLists.txt": loop.format("tensor kernels")}), (0, ""))
        self.finds("upward dependency: kernels depends on tensor", {"CMakeLists.txt": loop.format("kernels tensor")})
        listed = 'set(FOLDERS {} CACHE STRING "")\n' + loop.format("${{FOLDERS}}").replace("${folder}", "${{folder}}")
        self.assertEqual(self.run_on({"CMakeLists.txt": listed.format("tensor kernels")}), (0, ""))
        self.finds("upward dependency: kernels depends on tensor", {"CMakeLists.txt": listed.format("kernels tensor")})

    def test_module_that_the_build_never_enters(self):
        self.finds("src/gone/CMakeLists.txt:1: the build never enters module gone", {"src/gone/CMakeLists.txt": "convoy_module(gone)\n"})

    def test_unknown_dependency(self):
        self.finds("tensor depends on bass, which is no module", {"src/tensor/CMakeLists.txt": "convoy_module(tensor DEPENDS bass base)\n"})

    def test_cycle_of_lists(self):
        self.finds("src/base/CMakeLists.txt:1: cycle between modules: base, tensor",
                   {"src/base/CMakeLists.txt": "convoy_module(base DEPENDS tensor)\n"})

    def test_cycle_of_includes(self):
        self.finds("cycle between modules: base, kernels, tensor", {"src/base/error.cpp": '#include "kernels/target.h"\n'})

    def test_missing_file(self):
        self.finds('src/base/error.cpp:1: "base/eror.h" does not exist', {"src/base/error.cpp": '#include "base/eror.h"\n'})

    def test_path_relative_to_the_file(self):
        self.finds('"error.h" does not exist in src/', {"src/base/error.cpp": '#include "error.h"\n'})

    def test_path_with_dots_and_angles(self):
        self.finds("is ours: write its path from src/", {"src/tensor/dims.h": '#pragma once\n#include "tensor/../base/error.h"\n'})
        self.finds("is ours: write its path from src/", {"src/tensor/dims.h": "#pragma once\n#include <base/error.h>\n"})

    def test_header_without_pragma_once(self):
        self.finds("src/base/error.h:1: header without #pragma once", {"src/base/error.h": "// #pragma once\n"})

    def test_file_outside_every_module(self):
        self.finds("src/stray/x.cpp:1: belongs to no module", {"src/stray/x.cpp": "int x;\n"})
        self.finds('src/base/error.cpp:1: "stray/x.h" belongs to no module',
                   {"src/stray/x.h": "#pragma once\n", "src/base/error.cpp": '#include "stray/x.h"\n'})

    def test_a_name_and_a_folder_hold_one_module(self):
        self.finds("src/tensor/CMakeLists.txt:1: module base is also defined in src/base",
                   {"src/tensor/CMakeLists.txt": "convoy_module(base)\n"})
        self.finds("two modules in one folder", {"src/base/CMakeLists.txt": "convoy_module(base)\nconvoy_module(more)\n"})

    def test_vendor_headers_outside_their_folder(self):
        for folder, header in [("kernels", "dnnl.hpp"), ("kernels/reference", "oneapi/dnnl/dnnl.h"), ("kernels/cpu", "mpi.h"),
                               ("kernels/cpu", "cuda_runtime.h"), ("app", "cudnn.h"), ("app", "nccl.h"), ("app", "hdf5.h"),
                               ("app", "onnx/onnx_pb.h"), ("tensor", "cblas.h")]:
            with self.subTest(header=header, folder=folder):
                self.finds(f"src/{folder}/x.cpp:1: <{header}> belongs only in", {f"src/{folder}/x.cpp": f"#include <{header}>\n"})
        self.finds("belongs only in", {"src/tensor/x.cpp": '#include "dnnl.hpp"\n'})

    def test_vendor_headers_in_their_folder(self):
        self.assertEqual(self.run_on({"src/kernels/cuda/x.cu": "#include <cuda_runtime.h>\n#include <cudnn.h>\n",
                                      "src/app/onnx/x.cpp": "#include <onnx/onnx_pb.h>\n"}), (0, ""))


if __name__ == "__main__":
    unittest.main()
