# The tasks of tasks/*.toml become a part of the library: src/onset/eval/task_library.cpp includes a
# list of them, a line each, and the assembler copies the files into its object.

file(GLOB tasks CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tasks/*.toml)
set(embedded_tasks "")
foreach(task ${tasks})
  get_filename_component(name ${task} NAME_WE)
  string(APPEND embedded_tasks "ONSET_TASK(${name}, \"${task}\")\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/tasks/embedded_tasks.inc CONTENT "${embedded_tasks}"
  @ONLY)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/onset/eval/task_library.cpp
  TARGET_DIRECTORY onset PROPERTIES
  INCLUDE_DIRECTORIES ${PROJECT_BINARY_DIR}/tasks OBJECT_DEPENDS "${tasks}")
