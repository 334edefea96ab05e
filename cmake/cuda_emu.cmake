# The CUDA emulator: .cu files compiled by the C++ compiler, run on the CPU.  docs/cuda_emulator.md says what it does.
#
#   cuda_emu_runtime([CHECK])                      makes the target cuda_emu, or cuda_emu_check: the runtime, a shared library
#   cuda_emu_add_module(NAME SOURCE... [CHECK] [LIBRARIES target...] [INCLUDES dir...] [DEFINITIONS name...])
#                                                  makes a Python module of .cu files and, beside them, .cc files
#   cuda_emu_add_library(NAME SOURCE... [CHECK] …) the same as a static library: bindings, compiled once
#   cuda_emu_sources(OUT [CHECK] SOURCE...)        for targets of another kind: the rewritten sources
#
# The runtime lies beside the modules, which find it there ($ORIGIN): one runtime for all modules of a process, so that
# they share device memory.  Both go to NEEDLE_OUTPUT_DIR.  .cc files are compiled as they are, even for CHECK: they are
# host code, which may include <cuda_runtime.h> but launches nothing.

set(CUDA_EMU_DIR "${CMAKE_CURRENT_LIST_DIR}/../src/cuda_emu")
get_filename_component(CUDA_EMU_DIR "${CUDA_EMU_DIR}" ABSOLUTE)
if(APPLE)
  set(CUDA_EMU_ORIGIN "@loader_path")
else()
  set(CUDA_EMU_ORIGIN "$ORIGIN")
endif()

function(cuda_emu_runtime)
  cmake_parse_arguments(PARSE_ARGV 0 A "CHECK" "" "")
  set(target cuda_emu)
  if(A_CHECK)
    set(target cuda_emu_check)
  endif()
  if(TARGET ${target})
    return()
  endif()
  find_package(Threads REQUIRED)
  file(GLOB sources CONFIGURE_DEPENDS "${CUDA_EMU_DIR}/runtime/*.cc")
  list(FILTER sources EXCLUDE REGEX "/check[^/]*\\.cc$")
  add_library(${target} SHARED ${sources})
  target_include_directories(${target} PUBLIC "${CUDA_EMU_DIR}/include")
  target_compile_features(${target} PUBLIC cxx_std_17)
  target_compile_options(${target} PRIVATE -O2 -g1 -Wall -Wextra)
  target_link_libraries(${target} PUBLIC Threads::Threads PRIVATE ${CMAKE_DL_LIBS})
  if(A_CHECK)
    file(GLOB checks CONFIGURE_DEPENDS "${CUDA_EMU_DIR}/runtime/check*.cc")
    target_sources(${target} PRIVATE ${checks})
    target_compile_definitions(${target} PUBLIC CUDA_EMU_CHECK)
  endif()
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET default)
  cuda_emu_place(${target})
endfunction()

# Where a target goes, and where it looks for the runtime.
function(cuda_emu_place target)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${CUDA_EMU_ORIGIN}")
  if(NEEDLE_OUTPUT_DIR)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${NEEDLE_OUTPUT_DIR}")
    install(TARGETS ${target} LIBRARY DESTINATION needle/backend_ndarray)
  endif()
endfunction()

# Python_EXECUTABLE turns each .cu file into a .cc file of the same lines, and the headers that need it with it.
function(cuda_emu_sources out)
  cmake_parse_arguments(PARSE_ARGV 1 A "CHECK" "" "INCLUDES")
  set(kind fast)
  if(A_CHECK)
    set(kind check)
  endif()
  set(flags "")
  foreach(include IN LISTS A_INCLUDES)
    list(APPEND flags "-I${include}")
  endforeach()
  set(rewritten "")
  foreach(source IN LISTS A_UNPARSED_ARGUMENTS)
    get_filename_component(absolute "${source}" ABSOLUTE)
    if(NOT source MATCHES "\\.cu$")
      list(APPEND rewritten "${absolute}")
      continue()
    endif()
    file(RELATIVE_PATH relative "${PROJECT_SOURCE_DIR}" "${absolute}")
    string(MAKE_C_IDENTIFIER "${relative}" name)
    set(made "${CMAKE_CURRENT_BINARY_DIR}/cuda_emu/${name}.${kind}.cc")
    add_custom_command(OUTPUT "${made}" DEPFILE "${made}.d" VERBATIM
      DEPENDS "${absolute}" "${CUDA_EMU_DIR}/rewrite.py"
      COMMAND "${Python_EXECUTABLE}" "${CUDA_EMU_DIR}/rewrite.py" "${absolute}" "${made}" ${flags}
      COMMENT "cuda_emu: ${relative}")
    if(A_CHECK)
      # compiled with, but not linked with, ThreadSanitizer: the runtime brings its own hooks
      set(options -O1 -g1 -UNDEBUG -fsanitize=thread,bounds,alignment -fno-sanitize-recover=bounds,alignment)
    else()
      set(options -O3 -g1 -UNDEBUG)
    endif()
    set_source_files_properties("${made}" PROPERTIES COMPILE_OPTIONS "${options}")
    list(APPEND rewritten "${made}")
  endforeach()
  set(${out} "${rewritten}" PARENT_SCOPE)
endfunction()

# What modules and libraries have in common.
macro(cuda_emu_target_of name kind)
  cmake_parse_arguments(PARSE_ARGV 1 A "CHECK" "" "LIBRARIES;INCLUDES;DEFINITIONS")
  set(check "")
  set(runtime cuda_emu)
  if(A_CHECK)
    set(check CHECK)
    set(runtime cuda_emu_check)
  endif()
  cuda_emu_runtime(${check})
  cuda_emu_sources(sources ${check} ${A_UNPARSED_ARGUMENTS} INCLUDES ${A_INCLUDES})
  if("${kind}" STREQUAL "MODULE")
    pybind11_add_module(${name} MODULE NO_EXTRAS ${sources})
    cuda_emu_place(${name})
  else()
    add_library(${name} STATIC ${sources})
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
  endif()
  target_include_directories(${name} PRIVATE ${A_INCLUDES})
  target_compile_definitions(${name} PRIVATE ${A_DEFINITIONS})
  target_link_libraries(${name} PRIVATE ${A_LIBRARIES} ${runtime})
endmacro()

function(cuda_emu_add_module name)
  cuda_emu_target_of(${name} MODULE)
endfunction()

function(cuda_emu_add_library name)
  cuda_emu_target_of(${name} STATIC)
endfunction()
