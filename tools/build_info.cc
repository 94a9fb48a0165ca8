#include <string>

#include "pozor/pozor.hpp"
#include "pozor_build_info.h"
#include "tools/system_record.h"

namespace pozor::tools {

BuildInfo ReadBuildInfo() {
  BuildInfo build;
  build.version = Version();
  build.commit = POZOR_BUILD_COMMIT;
#if defined(__clang__)
  build.compiler = "clang " __clang_version__;
#else
  build.compiler = "g++ " __VERSION__;
#endif
  build.flags = POZOR_BUILD_FLAGS;
  build.type = POZOR_BUILD_TYPE;
  build.highway = POZOR_BUILD_HIGHWAY;
  build.tbb = POZOR_BUILD_TBB;
  build.allocator = POZOR_BUILD_ALLOCATOR;
  return build;
}

}  // namespace pozor::tools
