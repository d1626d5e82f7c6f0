# onset_find_torch(dir): defines onset::torch, the wheel's torch_cpu and c10 as system headers; with
# ONSET_CUDA also its torch_cuda and c10_cuda.
# Shared by our build and by the package that `cmake --install` exports.

function(onset_find_torch dir)
  if(TARGET onset::torch)
    return()
  endif()
  if(NOT EXISTS "${dir}/lib/libtorch_cpu.so")
    message(FATAL_ERROR "no libtorch at ${dir}: run scripts/setup, or set ONSET_TORCH_DIR to the "
      "folder of an installed torch package")
  endif()
  file(REAL_PATH "${dir}" torch)
  # The wheel's torch_cpu needs libcudart and libcupti even where there is no GPU; their wheels lie
  # beside torch. The folder's name carries the CUDA version.
  file(GLOB cuda_libs LIST_DIRECTORIES true "${torch}/../nvidia/cu*/lib"
    "${torch}/../nvidia/cuda_runtime/lib" "${torch}/../nvidia/cuda_cupti/lib")
  if(ONSET_CUDA)
    file(GLOB cublas "${torch}/../nvidia/*/lib/libcublas.so.*")
    if(NOT EXISTS "${torch}/lib/libtorch_cuda.so" OR NOT cublas)
      message(FATAL_ERROR "ONSET_CUDA is on, and libtorch's CUDA libraries are not at ${torch}: run "
        "ONSET_CUDA=1 scripts/setup, or set ONSET_TORCH_DIR to a torch package that has them")
    endif()
    file(GLOB cuda_libs LIST_DIRECTORIES true "${torch}/../nvidia/*/lib")
  endif()
  add_library(onset::torch INTERFACE IMPORTED GLOBAL)
  set_target_properties(onset::torch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${torch}/include;${torch}/include/torch/csrc/api/include"
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES
      "${torch}/include;${torch}/include/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS "_GLIBCXX_USE_CXX11_ABI=1")
  set(libs "${torch}/lib/libtorch_cpu.so" "${torch}/lib/libc10.so")
  if(ONSET_CUDA)
    list(APPEND libs -Wl,--no-as-needed "${torch}/lib/libtorch_cuda.so" "${torch}/lib/libc10_cuda.so"
      -Wl,--as-needed)
  endif()
  set(link_options -Wl,--allow-shlib-undefined "-Wl,-rpath,${torch}/lib")
  foreach(lib IN LISTS cuda_libs)
    list(APPEND link_options "-Wl,-rpath,${lib}" "-Wl,-rpath-link,${lib}")
  endforeach()
  # DT_RPATH, which the libraries behind torch_cpu inherit too (DT_RUNPATH is not inherited).
  list(APPEND link_options -Wl,--disable-new-dtags)
  set_target_properties(onset::torch PROPERTIES
    INTERFACE_LINK_LIBRARIES "${libs}" INTERFACE_LINK_OPTIONS "${link_options}")
endfunction()
