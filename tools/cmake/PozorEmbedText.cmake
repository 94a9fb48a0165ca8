# Run when INPUT changes: writes OUTPUT, a C++ source that defines `NAME` with the bytes of INPUT.
file(READ "${INPUT}" bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
file(WRITE "${OUTPUT}"
  "#include <string_view>\n\n"
  "namespace pozor {\n\n"
  "namespace {\nconstexpr unsigned char kBytes[] = {\n${bytes}};\n}  // namespace\n\n"
  "extern const std::string_view ${NAME};\n"
  "const std::string_view ${NAME}(reinterpret_cast<const char*>(kBytes), sizeof kBytes);\n\n"
  "}  // namespace pozor\n")
