# cmake -DPROBE=.. -DMPIRUN=.. -P ranks.cmake: one process, two and three give the same answers to
# the last bit, and a rank that fails ends all of them with its message.

set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
set(ENV{OMP_NUM_THREADS} 1)

execute_process(COMMAND ${PROBE} RESULT_VARIABLE code OUTPUT_VARIABLE alone)
if(NOT code EQUAL 0 OR NOT alone MATCHES "-[0-9]+[.][0-9]+")
  message(FATAL_ERROR "one process failed (${code}): ${alone}")
endif()
foreach(ranks 2 3)
  execute_process(COMMAND ${MPIRUN} --oversubscribe -n ${ranks} ${PROBE} RESULT_VARIABLE code
    OUTPUT_VARIABLE shared ERROR_VARIABLE errors TIMEOUT 120)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ranks} ranks failed (${code}): ${errors}")
  endif()
  if(NOT shared STREQUAL alone)
    message(FATAL_ERROR "${ranks} ranks answer\n${shared}\none process answers\n${alone}")
  endif()
endforeach()
execute_process(COMMAND ${MPIRUN} --oversubscribe -n 2 ${PROBE} fail RESULT_VARIABLE code
  OUTPUT_VARIABLE output ERROR_VARIABLE errors TIMEOUT 120)
if(code EQUAL 0 OR NOT errors MATCHES "the second rank fails as it was told")
  message(FATAL_ERROR "a failing rank: exit code ${code}, ${errors}")
endif()
