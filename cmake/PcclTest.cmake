# pccl_test(NAME SOURCES... LIBS libs...): one program, one ctest, 77 = skipped.
# A TIMEOUT is for a test that needs longer than ctest's (CMakeLists.txt), which
# ends one that hangs; tests/patience.h says what a test itself waits.
function(pccl_test name)
    cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LIBS;ARGS" ${ARGN})
    add_executable(${name} ${arg_SOURCES})
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_include_directories(${name} SYSTEM PRIVATE ${CMOCKA_INCLUDE_DIR})
    target_link_libraries(${name} PRIVATE pccl_flags ${arg_LIBS}
                          ${CMOCKA_LIBRARY})
    add_test(NAME ${name} COMMAND ${name} ${arg_ARGS})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
    if(arg_TIMEOUT)
        set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT})
    endif()
endfunction()

# pccl_label(LABEL REGEX): of the tests of this folder that are there by now.
function(pccl_label label regex)
    get_property(tests DIRECTORY PROPERTY TESTS)
    list(FILTER tests INCLUDE REGEX "${regex}")
    if(tests)
        set_property(TEST ${tests} APPEND PROPERTY LABELS ${label})
    endif()
endfunction()
