# Compiler settings for our own code, gathered in one interface target, and the compiler cache.

add_library(onset_options INTERFACE)
target_compile_options(onset_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Werror
  # g++ 12 takes string + literal for an overlapping copy (GCC bug 105651).
  -Wno-restrict
  # No fused multiply-add behind our back: dequantised values are compared bit by bit.
  -ffp-contract=off
  $<$<CONFIG:Debug>:-D_GLIBCXX_ASSERTIONS>)
if(ONSET_SANITIZE)
  target_compile_options(onset_options INTERFACE
    -fsanitize=${ONSET_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1)
  target_link_options(onset_options INTERFACE -fsanitize=${ONSET_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE AND PROJECT_IS_TOP_LEVEL)
  # A precompiled header is cached only when its time stamps and defines may be ignored.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${CCACHE})
  target_compile_options(onset_options INTERFACE -fpch-preprocess)
endif()
