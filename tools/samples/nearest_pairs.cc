// nearest_pairs MODEL FILE: the three nearest pairs among the lines of a text file.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <pozor/pozor.hpp>
#include <string>
#include <vector>

namespace {

struct Pair {
  float cosine;
  size_t first, second;
};

// Every pair of rows, nearest first.
std::vector<Pair> PairsByCosine(const pozor::Vectors& vectors) {
  std::vector<Pair> pairs;
  for (size_t i = 0; i < vectors.rows(); ++i) {
    for (size_t j = i + 1; j < vectors.rows(); ++j) {
      pairs.push_back({pozor::Cosine(vectors[i], vectors[j]), i, j});
    }
  }
  std::ranges::sort(pairs, [](const Pair& a, const Pair& b) { return a.cosine > b.cosine; });
  return pairs;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: nearest_pairs MODEL FILE\n");
    return 2;
  }
  std::ifstream file(argv[2]);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);

  const pozor::Model model = pozor::Model::Load(argv[1]).value();
  const std::vector<Pair> pairs = PairsByCosine(model.Encode(lines).value());
  for (size_t i = 0; i < std::min<size_t>(3, pairs.size()); ++i) {
    std::printf("%.4f  %s\n        %s\n", pairs[i].cosine, lines[pairs[i].first].c_str(),
                lines[pairs[i].second].c_str());
  }
}
