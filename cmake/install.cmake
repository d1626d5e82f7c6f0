# `cmake --install` and find_package(onset).

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/onset)
set(installed onset_core)
if(ONSET_WITH_TORCH)
  list(APPEND installed onset)
  if(ONSET_PROGRAM)
    install(TARGETS onset_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endif()
install(TARGETS ${installed} EXPORT onset-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY src/onset DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT onset-targets NAMESPACE onset:: DESTINATION ${package_dir})
configure_package_config_file(cmake/onset-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/onset-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/onset-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/onset-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/onset-config-version.cmake cmake/torch.cmake
  DESTINATION ${package_dir})
