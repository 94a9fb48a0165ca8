# Run at every build: writes OUTPUT, a header with what the build is made of, if that changed.
execute_process(COMMAND git -C "${SOURCE}" rev-parse --short=12 HEAD
                OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
if(commit)
  execute_process(COMMAND git -C "${SOURCE}" status --porcelain --untracked-files=no
                  OUTPUT_VARIABLE changes ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(changes)
    string(APPEND commit "-dirty")
  endif()
endif()
set(text "#define POZOR_BUILD_COMMIT \"${commit}\"\n#define POZOR_BUILD_FLAGS \"${FLAGS}\"\n#define POZOR_BUILD_TYPE \"${TYPE}\"\n")
string(APPEND text "#define POZOR_BUILD_ALLOCATOR \"${ALLOCATOR}\"\n#define POZOR_BUILD_TBB \"${TBB}\"\n#define POZOR_BUILD_HIGHWAY \"${HIGHWAY}\"\n")
set(old "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" old)
endif()
if(NOT text STREQUAL old)
  file(WRITE "${OUTPUT}" "${text}")
endif()
