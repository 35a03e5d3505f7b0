# Compiler settings that hold for every target, and the libraries that every part may need. Instruction sets are not chosen here: the default
# build runs on any machine of its architecture, and a module that has faster code for some of them gives its own files their flags.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

option(CONVOY_WERROR "Treat warnings as errors" OFF)
option(CONVOY_TESTS "Build the tests" ON)
option(CONVOY_FUZZ "Build the fuzz targets; needs clang" OFF)
option(CONVOY_CUDA "Build the CUDA backend; needs nvcc" OFF)
set(CONVOY_SANITIZE "" CACHE STRING "Sanitizers, as given to -fsanitize=")

set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast
    -Wno-missing-field-initializers)  # designated initialisers leave out what keeps its default
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  list(APPEND warnings -Wno-restrict)  # gcc 12 reports it falsely for std::string operator+ (its bug 105651)
endif()
if(CONVOY_WERROR)
  list(APPEND warnings -Werror)
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${warnings}>")
if(CONVOY_SANITIZE)
  add_compile_options(-fsanitize=${CONVOY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${CONVOY_SANITIZE})
endif()

find_program(CONVOY_CCACHE ccache)
if(CONVOY_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CONVOY_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CONVOY_CCACHE})
endif()
find_program(CONVOY_MOLD mold)
if(CONVOY_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(CONVOY_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90)
  endif()
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc 12 and later speak C++20: it must not insist, and the flag is given by hand.
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED OFF)
  add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
  # nvcc says of generic lambdas that choose a type: "never referenced".
  add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:--diag-suppress=177>")
  # fmt takes nvcc for a compiler without constexpr. Its checks of format strings at compile time are left to all other files.
  add_compile_definitions("$<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1;FMT_CONSTEVAL=>")
  find_package(CUDAToolkit REQUIRED)
endif()

find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(PkgConfig QUIET)
if(CONVOY_TESTS)
  find_package(GTest REQUIRED)
endif()
