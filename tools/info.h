// pozor info: this machine as Pozor sees it, and a model as it is understood.
#ifndef POZOR_TOOLS_INFO_H_
#define POZOR_TOOLS_INFO_H_

#include <string>

#include "pozor/pozor.hpp"

namespace pozor::tools {

struct InfoRequest {
  std::string model;  // empty: the machine alone
  LoadOptions load;
  bool json = false;
};

// On standard output; environment values that were ignored are also named on standard error.
Status RunInfo(const InfoRequest& request);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_INFO_H_
