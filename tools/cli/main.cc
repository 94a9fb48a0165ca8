#include "tools/cli/command.h"

int main(int argc, char** argv) { return pozor::tools::RunCommand(argc, argv); }
