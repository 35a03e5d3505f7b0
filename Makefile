# The tasks of daily work, each a line or two over CMake's presets and tools/. `make` alone lists them.

.PHONY: help build demo test test-full plan-table parity onnx-models bench check format asan tsan mpich fuzz clean

help:
	@echo "make build      build the program, build/convoy, and install what that needs"
	@echo "make demo       build, then train LeNet-5 on MNIST for three epochs"
	@echo "make test       build everything and run a sample of every test"
	@echo "make test-full  the same with every count in full (long)"
	@echo "make plan-table  build, then check eight networks under ten plans each, in float64 and float32, on four processes"
	@echo "make parity     build, then compare gradients with PyTorch's, live, in double precision"
	@echo "make onnx-models  build, then compare models that go through ONNX with PyTorch and another runtime"
ifneq ($(wildcard bench/run),)
	@echo "make bench      build, then measure (bench/run)"
endif
	@echo "make check      formatting, clang-tidy, include arrows"
	@echo "make format     apply the formatting"
	@echo "make asan       unit tests under the address and undefined behaviour sanitizers"
	@echo "make tsan       unit tests under the thread sanitizer (clang)"
	@echo "make mpich      build with MPICH, and run the tests of several processes under it"
	@echo "make fuzz       parsers under libFuzzer and the address sanitizer (clang), 60 s each"
	@echo "make clean      remove build/"

build:
	@tools/install-deps build
	cmake --preset release
	cmake --build --preset release --target convoy

demo:
	@tools/demo

# What ctest keeps to itself when a test passes.
say_conformance = sed -n 's/^\([0-9]* of [0-9]* cases pass\).*/ONNX conformance: \1; `build\/tests\/onnx_conformance_test` lists the rest by name/p' build/Testing/Temporary/LastTest.log

test:
	@tools/install-deps build
	cmake --preset release
	cmake --build --preset release
	ctest --preset release
	@$(say_conformance)

test-full:
	@tools/install-deps build
	cmake --preset release
	cmake --build --preset release
	ctest --preset full
	@$(say_conformance)

plan-table: build
	CONVOY_TEST_FULL=1 tests/cli/plans_test.py build/convoy "$$(command -v mpirun)"

parity: build
	@tools/install-deps bench
	tests/parity/parity.py

onnx-models: build
	@tools/install-deps bench
	tests/onnx/models.py

ifneq ($(wildcard bench/run),)
bench: build
	@tools/install-deps bench
	bench/run
else
bench:
	@echo "there is no bench/run: nothing to measure yet" >&2; exit 1
endif

check:
	@tools/install-deps build check
	tools/format --check
	tools/check-includes
	tools/check_includes_test.py
	cmake --preset dev
	tools/tidy

format:
	@tools/install-deps check
	tools/format

asan:
	@tools/install-deps build
	cmake --preset asan
	cmake --build --preset asan
	ctest --preset asan

tsan:
	@tools/install-deps build tsan
	cmake --preset tsan
	cmake --build --preset tsan
	ctest --preset tsan

mpich:
	@tools/install-deps build mpich
	cmake --preset mpich
	cmake --build --preset mpich
	ctest --preset mpich

fuzz:
	@tools/install-deps build tsan
	cmake --preset fuzz
	cmake --build --preset fuzz
	tools/fuzz $(SECONDS_EACH)

clean:
	rm -rf build
