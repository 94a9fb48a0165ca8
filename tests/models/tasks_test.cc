// Adapters of tasks: each one's numbers, the default, and what is refused.
#include "models/tasks.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "models/model_impl.h"
#include "models/prepared.h"
#include "pozor/pozor.h"
#include "tests/engine/tiny_model.h"
#include "tests/models/golden.h"
#include "tests/models/trace.h"
#include "tests/support/compare.h"
#include "tests/support/process.h"

namespace pozor {
namespace {

using test::Golden;
using test::MemorySource;

const char* const kTasks[] = {"retrieval.query", "retrieval.passage", "separation",
                              "classification", "text-matching"};

std::string Folder() { return test::DataPath("architectures/jina-embeddings-v3-tasks"); }

std::unique_ptr<Model::Impl> LoadFor(const std::string& task,
                                     Precision precision = Precision::kF32) {
  LoadOptions options;
  options.task = task;
  options.precision = precision;
  auto model = LoadModelParts(Folder(), options, {.requires_tokenizer = false});
  if (!model.ok()) FAIL(model.status().message());
  return std::move(*model);
}

TEST_CASE("every task has its golden's numbers, no task those without adapters") {
  const Golden golden(Folder());
  const auto place = static_cast<size_t>(golden.json().Find("task_text")->as_int());
  const TokenBatch batch = test::TokensOf(golden.json().Find("texts")->items()[place]);
  std::vector<std::string> tasks = {""};
  tasks.insert(tasks.end(), std::begin(kTasks), std::end(kTasks));
  for (const std::string& task : tasks) {
    CAPTURE(task);
    const auto model = LoadFor(task);
    const test::Trace trace = test::TraceText(*model, batch);
    CHECK(golden.Excess(trace.hidden, golden.Read("task." + task + ".hidden")) <= 1);
    CHECK(model->info.task == task);
    CHECK(model->info.tasks == std::vector<std::string>(std::begin(kTasks), std::end(kTasks)));
    // What is merged is no longer there, what is not used is ignored.
    CHECK(model->info.ignored_tensors.empty() == !task.empty());
  }
}

TEST_CASE("a task's instruction is the default prompt") {
  const auto model = LoadFor("retrieval.query");
  CHECK(ResolvePrompt(*model, {}).value() == "Query: ");
  EncodeOptions options;
  options.prompt = "";
  CHECK(ResolvePrompt(*model, options).value().empty());
  CHECK(ResolvePrompt(*LoadFor(""), {}).value().empty());

  // A folder's own default and texts come first.
  const TaskAdapters adapters = {.tasks = {"a"}, .instructions = {{"a", "A: "}}, .scale = 1};
  Pipeline pipeline;
  pipeline.prompts = {{"a", "mine: "}};
  UseInstruction(adapters, "a", &pipeline);
  CHECK(pipeline.default_prompt == "a");
  CHECK(FindPrompt(pipeline, "a").value() == "mine: ");
  pipeline.default_prompt = "b";
  UseInstruction(adapters, "a", &pipeline);
  CHECK(pipeline.default_prompt == "b");
}

TEST_CASE("tasks that are not there are refused by name") {
  LoadOptions options;
  options.task = "summary";
  const auto unknown = LoadModelParts(Folder(), options, {.requires_tokenizer = false});
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.status().code() == StatusCode::kInvalidArgument);
  CHECK(unknown.status().message().find("summary") != std::string::npos);
  CHECK(unknown.status().message().find("retrieval.passage") != std::string::npos);

  const auto none = Model::Load(test::DataPath("bert"), options);
  REQUIRE_FALSE(none.ok());
  CHECK(none.status().message().find("summary") != std::string::npos);

  // The same through the C interface.
  const std::string folder = test::DataPath("bert"), task = "summary";
  pozor_load_options c;
  pozor_load_options_init(&c);
  c.task = {task.data(), task.size()};
  pozor_model* model = nullptr;
  CHECK(pozor_model_load(folder.data(), folder.size(), &c, &model) == POZOR_INVALID_ARGUMENT);
  CHECK(none.status().message() == pozor_error_message());
}

TEST_CASE("a Transformer module of the folder's own code is known for this architecture only") {
  for (const std::string name : {"architectures/jina-embeddings-v3-tasks", "bert"}) {
    CAPTURE(name);
    const testing::TemporaryFolder folder;
    std::filesystem::copy(test::DataPath(name), folder.path());
    folder.Write("modules.json",
                 R"([{"path": "", "type": "custom_st.Transformer", "kwargs": ["task"]},)"
                 R"({"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])");
    std::filesystem::create_directory(folder.File("1_Pooling"));
    folder.Write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})");
    const auto model = LoadModelParts(folder.path(), {}, {.requires_tokenizer = false});
    const std::string message = model.ok() ? "" : model.status().message();
    CAPTURE(message);
    CHECK(model.ok() == (name != "bert"));
    if (model.ok()) continue;
    CHECK(model.status().code() == StatusCode::kUnsupported);
    CHECK(model.status().message().find("own code") != std::string::npos);
  }
}

constexpr const char* kStem = "roberta.encoder.layers.0.mlp.fc1.parametrizations.weight.";

std::shared_ptr<MemorySource> Source(
    const std::vector<std::pair<std::string, std::vector<size_t>>>& tensors) {
  auto source = std::make_shared<MemorySource>();
  for (const auto& [name, shape] : tensors) {
    size_t count = 1;
    for (const size_t dimension : shape) count *= dimension;
    source->Add(name, shape, std::vector<float>(count));
  }
  return source;
}

TEST_CASE("adapters of which something is missing or wrong are refused by name") {
  const TaskAdapters adapters = {.tasks = {"a", "b"}, .instructions = {}, .rank = 3, .scale = 1};
  const std::string stem = kStem;
  const auto message = [&](const std::shared_ptr<MemorySource>& source) {
    const auto merged = MergeTask(source, adapters, 1);
    return merged.ok() ? "" : merged.status().message();
  };
  const std::pair<std::string, std::vector<size_t>> original = {stem + "original", {6, 4}},
                                                    a = {stem + "0.lora_A", {2, 3, 4}},
                                                    b = {stem + "0.lora_B", {2, 6, 3}};
  CHECK(message(Source({original, a, b})).empty());
  CHECK(message(Source({original, a})).find(stem + "0.lora_B") != std::string::npos);
  CHECK(message(Source({original, b})).find(stem + "0.lora_A") != std::string::npos);
  CHECK(message(Source({original, a, {b.first, {3, 6, 3}}})).find("2 adapters") !=
        std::string::npos);
  CHECK(message(Source({original, a, {b.first, {2, 6, 2}}})).find(a.first) != std::string::npos);
  const std::string other_rank =
      message(Source({original, {a.first, {2, 4, 4}}, {b.first, {2, 6, 4}}}));
  CHECK(other_rank.find(a.first) != std::string::npos);
  CHECK(other_rank.find("lora_rank") != std::string::npos);
  CHECK(message(Source({{"emb_ln.weight", {4}}})).find("no adapters") != std::string::npos);
  const std::string plain = "roberta.encoder.layers.0.mlp.fc2.weight";
  CHECK(message(Source({original, a, b, {plain, {4, 6}}})).find(plain) != std::string::npos);
}

TEST_CASE("what the configuration says of adapters is checked") {
  const auto read = [](const std::string& json) {
    const JsonDocument document = ParseJson(json, "config.json").value();
    return ReadTaskAdapters(*document, "config.json");
  };
  CHECK(read("{}").value().tasks.empty());
  CHECK(read(R"({"lora_adaptations": null})").value().tasks.empty());
  CHECK(read(R"({"lora_adaptations": ["a"]})").value().scale == 0.25);
  CHECK(read(R"({"lora_adaptations": ["a"], "lora_rank": 8, "lora_alpha": 16})").value().scale ==
        2);
  for (const char* wrong :
       {R"({"lora_adaptations": "a"})", R"({"lora_adaptations": ["a"], "lora_rank": 0})",
        R"({"lora_adaptations": ["a"], "lora_rank": "x"})",
        R"({"lora_adaptations": ["a"], "lora_alpha": -1})",
        R"({"lora_adaptations": ["a"], "task_instructions": ["Query: "]})",
        R"({"lora_adaptations": ["a"], "task_instructions": {"a": 1}})"}) {
    CAPTURE(wrong);
    CHECK(read(wrong).status().code() == StatusCode::kCorrupt);
  }
}

TEST_CASE("prepared weights are for the task they were prepared for") {
  const auto model = LoadFor("separation", Precision::kInt8);
  PreparedFacts facts = model->facts;
  facts.precision = model->encoder->precision();
  std::string bytes;
  const Status written = WritePrepared(*model->encoder, facts, [&](std::string_view part) {
    bytes += part;
    return Status();
  });
  REQUIRE_MESSAGE(written.ok(), written.message());
  const testing::TemporaryFolder folder;
  std::filesystem::copy(Folder() + "/config.json", folder.path());
  folder.Write(kPreparedName, bytes);

  LoadOptions options;
  options.task = "separation";
  const auto prepared = LoadModelParts(folder.path(), options, {.requires_tokenizer = false});
  REQUIRE_MESSAGE(prepared.ok(), prepared.status().message());
  const Golden golden(Folder());
  const TokenBatch batch = test::TokensOf(golden.json().Find("texts")->items()[1]);
  CHECK(test::SameBits(test::TraceText(**prepared, batch).hidden,
                       test::TraceText(*model, batch).hidden));
  for (const char* other : {"", "classification"}) {
    options.task = other;
    const auto refused = LoadModelParts(folder.path(), options, {.requires_tokenizer = false});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.status().message().find("task separation") != std::string::npos);
  }
}

TEST_CASE("int8 and bf16 quantise the merged weights") {
  const Golden golden(Folder());
  const TokenBatch batch = test::TokensOf(golden.json().Find("texts")->items()[2]);
  for (const Precision precision : {Precision::kBF16, Precision::kInt8}) {
    const test::Trace merged = test::TraceText(*LoadFor("separation", precision), batch);
    const test::Trace plain = test::TraceText(*LoadFor("separation"), batch);
    const test::Trace other = test::TraceText(*LoadFor("classification"), batch);
    const std::vector<double> exact(plain.hidden.begin(), plain.hidden.end());
    CHECK(test::MaxAbsDifference(merged.hidden, exact) <
          test::MaxAbsDifference(other.hidden, exact) / 4);
  }
}

}  // namespace
}  // namespace pozor
