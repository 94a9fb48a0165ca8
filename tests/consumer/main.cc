// consumer MODEL: one vector, so that every layer of the installed library is linked and runs.
#include <cstdio>
#include <pozor/pozor.hpp>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto model = pozor::Model::Load(argv[1]);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().message().c_str());
    return 1;
  }
  const auto vectors = model->Encode({"a", "a"}).value();
  std::printf("Pozor %s: %zu numbers\n", std::string(pozor::Version()).c_str(),
              vectors.dimensions());
  return pozor::Cosine(vectors[0], vectors[1]) > 0.999f ? 0 : 1;
}
