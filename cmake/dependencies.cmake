# Libraries from Debian, and libtorch from the wheel that scripts/setup unpacked.

find_package(PkgConfig QUIET)
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_library(UTF8PROC_LIBRARY utf8proc REQUIRED)
find_library(PCRE2_LIBRARY pcre2-8 REQUIRED)

# Its C interface alone, by path, so that installed targets need no find_package(MPI).
set(ONSET_MPI "AUTO" CACHE STRING "Share work among processes that mpirun starts: AUTO, ON, OFF")
if(NOT ONSET_MPI STREQUAL "OFF")
  enable_language(C)
  find_package(MPI QUIET COMPONENTS C)
  if(NOT MPI_C_FOUND AND NOT ONSET_MPI STREQUAL "AUTO")
    message(FATAL_ERROR "ONSET_MPI is on and there is no MPI: install libopenmpi-dev")
  endif()
endif()

if(ONSET_WITH_TORCH)
  set(ONSET_TORCH_DIR "${PROJECT_SOURCE_DIR}/.deps/torch" CACHE PATH
    "Folder of an installed torch package (include/ and lib/)")
  include(${CMAKE_CURRENT_LIST_DIR}/torch.cmake)
  onset_find_torch("${ONSET_TORCH_DIR}")
  find_package(CLI11 2.1 REQUIRED)

  # Debian compiled httplib's library with these, and they change the layout of its types.
  find_library(HTTPLIB_LIBRARY cpp-httplib REQUIRED)
  set(ONSET_HTTPLIB_DEFINITIONS
    CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT CPPHTTPLIB_BROTLI_SUPPORT)
endif()
