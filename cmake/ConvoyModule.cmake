# convoy_module(NAME DEPENDS other... LIBRARIES lib... PRIVATE lib... SOURCES file... TESTS file...)
#
# One folder under src/ is one static library, convoy_NAME, with its dependencies listed. Its tests, which sit beside the code, become one
# program, NAME_test. tools/check-includes reads the DEPENDS lists and fails on an include that goes against them.
function(convoy_module NAME)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES;PRIVATE;SOURCES;TESTS" ${ARGN})
  set(target convoy_${NAME})
  add_library(${target} STATIC ${ARG_SOURCES})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM ARG_DEPENDS PREPEND convoy_)
  target_link_libraries(${target} PUBLIC ${ARG_DEPENDS} ${ARG_LIBRARIES} PRIVATE ${ARG_PRIVATE})
  if(CONVOY_TESTS AND ARG_TESTS)
    convoy_test(${NAME}_test SOURCES ${ARG_TESTS} LIBRARIES ${target})
  endif()
endfunction()

# convoy_test(NAME SOURCES file... LIBRARIES lib...): a GoogleTest program, which is one test of ctest. How long it may take is said by the
# test presets, because a full run (CONVOY_TEST_FULL=1) is allowed more than a sample.
function(convoy_test NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${ARG_LIBRARIES} GTest::gtest_main)
  add_test(NAME ${NAME} COMMAND ${NAME})
endfunction()

# convoy_program(NAME SOURCES file... LIBRARIES lib...): a program that a user runs; it lies at the top of the build directory.
function(convoy_program NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${ARG_LIBRARIES})
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endfunction()
