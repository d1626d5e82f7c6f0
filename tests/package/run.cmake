# Installs the build into a fresh folder, moves that folder, and uses it as a stranger would: the
# program outside the build tree, and a project that finds the library by find_package.
# Wants BUILD, SOURCE, WORK, MODEL.

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGV}\nexit code ${code}\n${out}${err}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${WORK}/prefix)

run(${WORK}/prefix/bin/onset scan ${MODEL} --ids 1,5,9,4,7 --json)
string(JSON layer GET "${output}" me_layer)
if(NOT layer EQUAL 1)
  message(FATAL_ERROR "the installed program finds ME layer ${layer}, expected 1")
endif()

foreach(file LICENSE README.md docs/json.md)
  if(NOT EXISTS ${WORK}/prefix/share/doc/onset/${file})
    message(FATAL_ERROR "share/doc/onset/${file} is not installed")
  endif()
endforeach()

run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE} -B ${WORK}/consumer -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/consumer)
run(${WORK}/consumer/consumer ${MODEL})
if(NOT output STREQUAL "ME layer 1\n")
  message(FATAL_ERROR "the consumer printed: ${output}")
endif()
