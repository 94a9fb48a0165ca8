#include "tools/info.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <vector>

#include "engine/machine.h"
#include "kernels/cpu.h"
#include "kernels/gemm.h"
#include "models/model_impl.h"
#include "models/quantize.h"
#include "tools/bench/json_writer.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"

namespace pozor::tools {
namespace {

struct KernelChoice {
  size_t first_rows;  // chosen from this many rows on
  std::string name;
};

// What FindGemmKernel gives for 1 row, 2 rows, ...: a line where it changes; f32, then bf16,
// whose kernels round in ways of their own but for those of f32 activations, then int8, and bf16x3
// where it runs.
std::vector<KernelChoice> KernelChoices() {
  constexpr size_t kMostRows = 1024;
  std::vector<KernelChoice> choices;
  for (const PackedLayout layout : {PackedLayout::kF32x16, PackedLayout::kBf16x16x2,
                                    PackedLayout::kS8x16x4, PackedLayout::kSplitBf16x16x2}) {
    if (!HasGemmKernel(layout)) continue;
    for (size_t rows = 1; rows <= kMostRows; ++rows) {
      const std::string name(FindGemmKernel(layout, rows).name);
      if (choices.empty() || choices.back().name != name) choices.push_back({rows, name});
    }
  }
  return choices;
}

std::vector<std::string> TierNames() {
  std::vector<std::string> names;
  for (const CpuTier tier : SupportedCpuTiers()) names.emplace_back(CpuTierName(tier));
  return names;
}

void WriteMachine(JsonWriter* json) {
  const ThreadPlan plan = PlanThreads();
  const CacheSizes caches = DetectCaches();
  json->Field("version", Version())
      .Field("cpu", CpuModelName())
      .Field("tier", CpuTierName(ActiveCpuTier()))
      .Field("tier_reason", ActiveCpuTierReason())
      .Field("fused_multiply_add", ActiveTierIsFused());
  json->Key("tiers").Array(TierNames());
  json->Field("threads", plan.threads).Field("threads_reason", plan.reason);
  json->Key("warnings").Array(plan.warnings);
  json->Key("caches").BeginObject();
  json->Field("l1d", caches.l1d).Field("l2", caches.l2).Field("l3", caches.l3).EndObject();
  json->Key("kernels").BeginArray();
  for (const KernelChoice& choice : KernelChoices()) {
    json->BeginObject().Field("from_rows", choice.first_rows).Field("kernel", choice.name);
    json->EndObject();
  }
  json->EndArray();
}

void WritePairs(const char* key, const std::vector<std::pair<std::string, std::string>>& pairs,
                JsonWriter* json) {
  json->Key(key).BeginObject();
  for (const auto& [name, value] : pairs) json->Field(name, value);
  json->EndObject();
}

void WriteModel(const Model& model, JsonWriter* json) {
  const ModelInfo& info = model.Info();
  json->Field("name", info.name)
      .Field("path", info.path)
      .Field("architecture", info.architecture)
      .Field("tokenizer", info.tokenizer)
      .Field("pooling", info.pooling)
      .Field("layers", info.layers)
      .Field("heads", info.heads)
      .Field("hidden", info.hidden)
      .Field("intermediate", info.intermediate)
      .Field("vocabulary", info.vocabulary)
      .Field("dimensions", info.dimensions)
      .Field("max_length", info.max_length)
      .Field("parameters", info.parameters)
      .Field("normalizes", info.normalizes)
      .Field("similarity", info.similarity)
      .Field("default_prompt", info.default_prompt)
      .Field("task", info.task);
  json->Key("tasks").Array(info.tasks);
  const Model::Impl& impl = model.impl();
  json->Field("precision", PrecisionName(*impl.encoder))
      .Field("calibration", impl.facts.calibration)
      .Field("quality", impl.facts.quality);
  json->Key("products").BeginArray();
  for (const ProductLine& product : DescribeProducts(*impl.encoder)) {
    json->BeginObject().Field("layer", product.at.layer).Field("part", product.at.part);
    json->Field("product", product.name);
    json->Field("precision", product.precision).Field("kernel", product.kernel);
    json->Field("reason", product.reason).EndObject();
  }
  json->EndArray();
  WritePairs("prompts", info.prompts, json);
  WritePairs("config", info.config, json);
  json->Key("ignored_tensors").Array(info.ignored_tensors);
  json->Key("warnings").Array(info.warnings);
}

void PrintField(const char* label, const std::string& value) {
  std::printf("%-14s%s\n", label, OneLine(value).c_str());
}

std::string Kibibytes(size_t bytes) {
  return bytes == 0 ? "unknown" : Grouped(bytes / 1024) + " KiB";
}

void PrintMachine() {
  const ThreadPlan plan = PlanThreads();
  const CacheSizes caches = DetectCaches();
  PrintField("pozor", std::string(Version()));
  PrintField("cpu", CpuModelName());
  PrintField("tier",
             std::string(CpuTierName(ActiveCpuTier())) + "  (" + ActiveCpuTierReason() + ")");
  std::string tiers;
  for (const std::string& name : TierNames()) tiers += (tiers.empty() ? "" : " ") + name;
  PrintField("tiers", tiers);
  PrintField("bits", ActiveTierIsFused()
                         ? "in f32 and int8 the same as on every tier with fused multiply-add"
                         : "within 2e-5 of those of the tiers with fused multiply-add");
  PrintField("threads", std::to_string(plan.threads) + "  (" + plan.reason + ")");
  PrintField("caches", "L1d " + Kibibytes(caches.l1d) + ", L2 " + Kibibytes(caches.l2) + ", L3 " +
                           Kibibytes(caches.l3));
  const char* label = "kernels";
  for (const KernelChoice& choice : KernelChoices()) {
    PrintField(label, choice.name + "  from " + std::to_string(choice.first_rows) +
                          (choice.first_rows == 1 ? " row" : " rows"));
    label = "";
  }
}

void PrintList(const char* label, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    PrintField(label, line);
    label = "";
  }
}

// Lines of one product, precision and reason: a line of what is printed.
struct ProductGroup {
  std::vector<ProductLine> products;

  bool Takes(const ProductLine& product) const {
    const ProductLine& first = products.front();
    return first.name == product.name && first.precision == product.precision &&
           first.reason == product.reason;
  }
  size_t CountOf(size_t layer) const {
    return static_cast<size_t>(
        std::count_if(products.begin(), products.end(),
                      [layer](const ProductLine& product) { return product.at.layer == layer; }));
  }
};

// "0-2, 5"; "0.1" for a part of a layer whose other parts are in other groups.
std::string LayerList(const ProductGroup& group, const std::vector<ProductGroup>& all) {
  const std::string& name = group.products.front().name;
  const auto is_whole = [&](size_t layer) {
    size_t count = 0;
    for (const ProductGroup& other : all) {
      if (other.products.front().name == name) count += other.CountOf(layer);
    }
    return count == group.CountOf(layer);
  };
  std::string text;
  for (auto at = group.products.begin(); at != group.products.end();) {
    const size_t first = at->at.layer;
    std::string piece = at->label;
    if (is_whole(first)) {
      size_t last = first;
      for (; at != group.products.end() && at->at.layer <= last + 1 && is_whole(at->at.layer);
           ++at) {
        last = at->at.layer;
      }
      piece = std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
    } else {
      ++at;
    }
    text += (text.empty() ? "" : ", ") + piece;
  }
  return text;
}

// A line for each product and choice, with the layers that have it.
void PrintProducts(const std::vector<ProductLine>& products) {
  std::vector<ProductGroup> groups;
  for (const ProductLine& product : products) {
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const ProductGroup& group) {
      return group.Takes(product);
    });
    if (found == groups.end()) {
      groups.push_back({{product}});
    } else {
      found->products.push_back(product);
    }
  }
  const char* label = "products";
  for (const ProductGroup& group : groups) {
    const ProductLine& first = group.products.front();
    PrintField(label, first.name + " " + first.precision + ", layers " + LayerList(group, groups) +
                          ", " + first.kernel + ": " + first.reason);
    label = "";
  }
}

void PrintModel(const Model& model) {
  const ModelInfo& info = model.Info();
  const Model::Impl& impl = model.impl();
  std::printf("\n");
  PrintField("model", info.name);
  PrintField("path", info.path);
  PrintField("architecture", info.architecture + ": " + std::to_string(info.layers) + " layers, " +
                                 std::to_string(info.heads) + " heads, hidden " +
                                 std::to_string(info.hidden) + ", intermediate " +
                                 std::to_string(info.intermediate));
  PrintField("parameters", Grouped(info.parameters));
  PrintField("tokenizer", info.tokenizer + ", vocabulary " + Grouped(info.vocabulary));
  PrintField("max length", std::to_string(info.max_length) + " tokens");
  PrintField("pooling", info.pooling);
  PrintField("vector", std::to_string(info.dimensions) + " numbers, " +
                           (info.normalizes ? "unit length" : "not normalised") +
                           (info.similarity.empty() ? "" : ", similarity " + info.similarity));
  PrintField("precision", PrecisionText(*impl.encoder));
  PrintProducts(DescribeProducts(*impl.encoder));
  if (!impl.facts.calibration.empty()) PrintField("calibration", impl.facts.calibration);
  if (!impl.facts.quality.empty()) PrintField("quality", impl.facts.quality);
  std::string tasks;
  for (const std::string& task : info.tasks) {
    tasks += (tasks.empty() ? "" : ", ") + task + (task == info.task ? " (in use)" : "");
  }
  if (!tasks.empty()) PrintField("tasks", tasks);
  const char* label = "prompts";
  for (const auto& [name, text] : info.prompts) {
    PrintField(label, JsonQuote(name) + ": " + JsonQuote(text) +
                          (name == info.default_prompt ? "  (default)" : ""));
    label = "";
  }
  label = "config";
  for (const auto& [key, what] : info.config) {
    PrintField(label, std::string(key).append(": ").append(what));
    label = "";
  }
  PrintList("ignored", info.ignored_tensors);
  PrintList("warnings", info.warnings);
}

}  // namespace

Status RunInfo(const InfoRequest& request) {
  for (const std::string& warning : PlanThreads().warnings) PrintWarning(warning);
  std::optional<Model> model;
  if (!request.model.empty()) {
    Result<Model> loaded = Model::Load(request.model, request.load);
    if (!loaded.ok()) return AsFailure(loaded.status());
    model.emplace(std::move(loaded).value());
  }
  if (!request.json) {
    PrintMachine();
    if (model.has_value()) PrintModel(*model);
    return Status();
  }
  JsonWriter json(2);
  json.BeginObject();
  WriteMachine(&json);
  if (model.has_value()) {
    json.Key("model").BeginObject();
    WriteModel(*model, &json);
    json.EndObject();
  }
  json.EndObject();
  std::printf("%s\n", json.text().c_str());
  return Status();
}

}  // namespace pozor::tools
