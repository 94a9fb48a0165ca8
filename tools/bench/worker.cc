#include "tools/bench/worker.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <thread>

#include "engine/machine.h"
#include "kernels/cpu.h"
#include "models/model_impl.h"
#include "tools/bench/clock.h"
#include "tools/bench/json_writer.h"
#include "tools/bench/model_record.h"
#include "tools/bench/text.h"
#include "tools/bench/workload.h"

namespace pozor::tools {
namespace {

std::vector<std::string_view> Split(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

Result<size_t> ParseCount(std::string_view text) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidArgument(Cat({"\"", text, "\": not a count; give a whole number"}));
  }
  return value;
}

}  // namespace

Worker::Worker(WorkerOptions options, Model model)
    : options_(std::move(options)), model_(std::move(model)) {}

Result<std::unique_ptr<Worker>> Worker::Start(const WorkerOptions& options) {
  const double start = Now();
  POZOR_TRY(Model model, Model::Load(options.model, options.load));
  const double loaded = Now();
  std::unique_ptr<Worker> worker(new Worker(options, std::move(model)));
  POZOR_TRY(const Vectors first, worker->model_.Encode({"A dog runs."}, options.encode));
  worker->load_seconds_ = loaded - start;
  worker->first_vector_seconds_ = Now() - loaded;
  return worker;
}

std::string Worker::Ready() const {
  JsonWriter json;
  json.BeginObject().Field("ready", true).Field("load_seconds", load_seconds_);
  json.Field("first_vector_seconds", first_vector_seconds_).EndObject();
  return json.text();
}

std::string Worker::Handle(std::string_view line, bool* quit) {
  const std::vector<std::string_view> fields = Split(line);
  *quit = fields[0] == "quit";
  const Result<std::string> answer = Dispatch(fields);
  return answer.ok() ? *answer : Cat({"{\"error\": ", JsonQuote(answer.status().message()), "}"});
}

Result<std::string> Worker::Dispatch(std::span<const std::string_view> fields) {
  const std::string_view what = fields[0];
  const auto needs = [&](size_t count) -> Status {
    if (fields.size() == count + 1) return {};
    return InvalidArgument(std::string(what) + ": takes " + std::to_string(count) +
                           " fields; separate them by tabs");
  };
  if (what == "quit") return std::string("{}");
  if (what == "info") return Info();
  if (what == "rss") {
    JsonWriter json;
    json.BeginObject().Field("peak_rss_mib", static_cast<double>(PeakResidentBytes()) / 1048576);
    json.Field("rss_mib", static_cast<double>(ResidentBytes()) / 1048576).EndObject();
    return json.text();
  }
  if (what == "round") return Round();
  if (what == "texts") {
    POZOR_RETURN_IF_ERROR(needs(2));
    POZOR_TRY(const size_t stride, ParseCount(fields[2]));
    return ReadTexts(fields[1], stride);
  }
  if (what == "latency") {
    if (fields.size() != 4) POZOR_RETURN_IF_ERROR(needs(2));
    POZOR_TRY(const size_t calls, ParseCount(fields[1]));
    size_t pause = 0;
    if (fields.size() == 4) {
      POZOR_TRY(pause, ParseCount(fields[3]));
    }
    return Latency(calls, fields[2], std::chrono::milliseconds(pause));
  }
  if (what == "save") {
    POZOR_RETURN_IF_ERROR(needs(2));
    return Save(fields[1]);
  }
  if (what == "make") {
    POZOR_RETURN_IF_ERROR(needs(5));
    return Make(fields);
  }
  if (what == "batch") {
    POZOR_RETURN_IF_ERROR(needs(1));
    POZOR_TRY(options_.encode.batch_tokens, ParseCount(fields[1]));
    return std::string("{}");
  }
  return InvalidArgument(Cat({"\"", what, "\": not a command of the worker protocol"}));
}

Result<std::string> Worker::Describe(const std::vector<std::string>& texts) const {
  std::vector<size_t> lengths;
  for (const std::string& text : texts) {
    POZOR_TRY(const TokenizeResult tokens, model_.Tokenize(text, options_.encode));
    lengths.push_back(tokens.ids.size());
  }
  size_t sum = 0, squares = 0, longest = 0;
  for (const size_t length : lengths) {
    sum += length;
    squares += length * length;
    longest = std::max(longest, length);
  }
  JsonWriter json;
  json.BeginObject().Field("texts", texts.size()).Field("tokens", sum).Field("squares", squares);
  json.Field("longest", longest)
      .Field("flops", EncoderFlops(model_.impl().encoder->spec(), lengths));
  json.Field("hash", HashTexts(texts)).EndObject();
  return json.text();
}

Result<std::string> Worker::ReadTexts(std::string_view path, size_t stride) {
  POZOR_TRY(texts_, ReadLines(std::string(path), stride));
  views_.assign(texts_.begin(), texts_.end());
  vectors_.assign(texts_.size() * model_.Dimensions(options_.encode), 0.0f);
  return Describe(texts_);
}

Result<std::string> Worker::Round() {
  if (texts_.empty()) return InvalidArgument("round: no texts yet; send \"texts\" first");
  const double waited = WaitSeconds("self"), cpu = OwnCpuSeconds(), start = Now();
  POZOR_TRY(
      const EncodeStats stats,
      model_.EncodeInto(views_, vectors_.data(), vectors_.size() / texts_.size(), options_.encode));
  const double seconds = Now() - start;
  JsonWriter json;
  json.BeginObject().Field("seconds", seconds).Field("cpu_seconds", OwnCpuSeconds() - cpu);
  json.Field("waited_seconds", WaitSeconds("self") - waited)
      .Field("tokens", stats.tokens)
      .EndObject();
  return json.text();
}

Result<std::string> Worker::Latency(size_t calls, std::string_view text,
                                    std::chrono::milliseconds pause) {
  std::vector<float> vector(model_.Dimensions(options_.encode));
  std::vector<double> seconds, cpu_seconds, waited_seconds;
  // Other threads' CPU time is known once they sleep: it is read from call to call, so that none is
  // lost in between, while this thread's own is that of the call alone.
  const auto others_now = [] { return OwnCpuSeconds() - ThreadCpuSeconds(); };
  double others = others_now();
  for (size_t i = 0; i < calls; ++i) {
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    const double waited = WaitSeconds("self"), own = ThreadCpuSeconds(), start = Now();
    const auto stats = model_.EncodeInto({&text, 1}, vector.data(), vector.size(), options_.encode);
    if (!stats.ok()) return stats.status();
    seconds.push_back(Now() - start);
    const double used = ThreadCpuSeconds() - own, others_before = others;
    waited_seconds.push_back(WaitSeconds("self") - waited);
    others = others_now();
    cpu_seconds.push_back(used + others - others_before);
  }
  JsonWriter json;
  json.BeginObject().Key("seconds").Array(seconds).Key("cpu_seconds").Array(cpu_seconds);
  json.Key("waited_seconds").Array(waited_seconds);
  return json.EndObject().text();
}

Result<std::string> Worker::Save(std::string_view path) {
  POZOR_RETURN_IF_ERROR(Round().status());
  std::ofstream file(std::string(path), std::ios::binary);
  file.write(reinterpret_cast<const char*>(vectors_.data()),
             static_cast<std::streamsize>(vectors_.size() * sizeof(float)));
  file.close();
  if (!file) return IoError(std::string(path) + ": cannot be written; check the free space");
  return Cat({"{\"saved\": ", std::to_string(vectors_.size()), "}"});
}

Result<std::string> Worker::Make(std::span<const std::string_view> fields) {
  const std::string_view kind = fields[1];
  POZOR_TRY(const size_t size, ParseCount(fields[2]));
  POZOR_TRY(const size_t count, ParseCount(fields[3]));
  POZOR_TRY(const size_t seed, ParseCount(fields[4]));
  const TokenCounter tokens = [this](std::string_view text) -> Result<size_t> {
    POZOR_TRY(const TokenizeResult result, model_.Tokenize(text, options_.encode));
    return result.ids.size() + (result.truncated ? 1 : 0);  // a cut text is longer than it looks
  };
  const std::vector<size_t> lengths =
      kind == "mix" ? MixLengths(count, size, seed) : std::vector<size_t>(count, size);
  std::vector<std::string> texts;
  for (size_t i = 0; i < lengths.size(); ++i) {
    POZOR_TRY(std::string text, MakeText(lengths[i], seed * 1000003 + i, tokens));
    texts.push_back(std::move(text));
  }
  POZOR_RETURN_IF_ERROR(WriteLines(std::string(fields[5]), texts));
  return Describe(texts);
}

std::string Worker::Info() const {
  JsonWriter json;
  json.BeginObject().Field("version", Version()).Field("tier", CpuTierName(ActiveCpuTier()));
  WriteModelInfo(model_, &json);
  return json.EndObject().text();
}

int RunWorker(const WorkerOptions& options) {
  const Result<std::unique_ptr<Worker>> worker = Worker::Start(options);
  if (!worker.ok()) {
    std::printf("{\"ready\": false, \"error\": %s}\n",
                JsonQuote(worker.status().message()).c_str());
    std::fflush(stdout);
    return 1;
  }
  std::printf("%s\n", (*worker)->Ready().c_str());
  std::fflush(stdout);
  std::string line;
  for (bool quit = false; !quit && std::getline(std::cin, line);) {
    std::printf("%s\n", (*worker)->Handle(line, &quit).c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace pozor::tools
