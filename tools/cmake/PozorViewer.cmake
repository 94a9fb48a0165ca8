# cmake -D VIEWER=<folder> -D OUTPUT=<file.cc> -P PozorViewer.cmake
#
# Makes one page of the viewer's files and writes it as C++: tools/attention/README.md says how.
# Needs nothing but CMake.
file(READ "${VIEWER}/index.html" page)

# Stylesheets, each in its place.
string(REGEX MATCHALL "<link rel=\"stylesheet\" href=\"[^\"\n]+\">" links "${page}")
foreach(link IN LISTS links)
  string(REGEX REPLACE ".*href=\"([^\"]+)\".*" "\\1" name "${link}")
  file(READ "${VIEWER}/${name}" style)
  string(REGEX REPLACE "([{:;,]) +" "\\1" style "${style}")
  string(REGEX REPLACE " +{" "{" style "${style}")
  string(REGEX REPLACE "\n[ \t\n]+" "\n" style "${style}")
  string(REPLACE "${link}" "<style>\n${style}</style>" page "${page}")
endforeach()

# Modules, joined in the order of the page where the first one stands.
string(REGEX MATCHALL "<script type=\"module\" src=\"[^\"\n]+\"></script>\n" tags "${page}")
set(bundle "")
foreach(tag IN LISTS tags)
  string(REGEX REPLACE ".*src=\"([^\"]+)\".*" "\\1" name "${tag}")
  file(READ "${VIEWER}/${name}" module)
  set(module "\n${module}")
  string(REGEX REPLACE "\nimport [^\n]*" "" module "${module}")
  string(REPLACE "\nexport " "\n" module "${module}")
  if(module MATCHES "\nimport[ {\n*]|\nexport|</script")
    message(FATAL_ERROR "${name}: an import or export of more than one line, or </script; see tools/attention/README.md")
  endif()
  string(APPEND bundle "${module}")
endforeach()
# Comments, indentation and blank lines need not travel with every page.
string(REGEX REPLACE "\n[ \t]*//[^\n]*" "" bundle "${bundle}")
string(REGEX REPLACE "  +// [^\n]*" "" bundle "${bundle}")
string(REGEX REPLACE "\n[ \t\n]+" "\n" bundle "${bundle}")
list(GET tags 0 first)
foreach(tag IN LISTS tags)
  if(tag STREQUAL first)
    string(REPLACE "${tag}" "<script type=\"module\">${bundle}</script>\n" page "${page}")
  else()
    string(REPLACE "${tag}" "" page "${page}")
  endif()
endforeach()

# The place of the data divides the page.
set(marker "<!-- pozor:data -->\n")
string(FIND "${page}" "${marker}" at)
if(at EQUAL -1 OR page MATCHES "\\)POZOR\"")
  message(FATAL_ERROR "index.html lacks <!-- pozor:data -->, or the page holds )POZOR\"")
endif()
string(LENGTH "${marker}" length)
math(EXPR after "${at} + ${length}")
string(SUBSTRING "${page}" 0 ${at} head)
string(SUBSTRING "${page}" ${after} -1 tail)
file(WRITE "${OUTPUT}" "// Written by PozorViewer.cmake.
#include \"tools/attention/page.h\"

namespace pozor::tools {

const std::string_view kViewerHead = R\"POZOR(${head})POZOR\";
const std::string_view kViewerTail = R\"POZOR(${tail})POZOR\";

}  // namespace pozor::tools
")
