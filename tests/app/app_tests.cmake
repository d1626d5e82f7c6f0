# Tests of the program as a user runs it: the built binary is started, and what it prints, writes
# and returns is judged.

file(GLOB app_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
onset_test(app ${app_tests})
add_dependencies(test_app onset_program)
target_compile_definitions(test_app PRIVATE ONSET_PROGRAM="$<TARGET_FILE:onset_program>"
  ONSET_MPIRUN="$<$<BOOL:${MPI_C_FOUND}>:${ONSET_MPIRUN}>")
