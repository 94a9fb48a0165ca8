// What a benchmark run found: the rows, every sample of them, and the record of where they were
// taken. bench/schema/pozor-bench.schema.json describes the file it is written to.
#ifndef POZOR_TOOLS_BENCH_RESULT_H_
#define POZOR_TOOLS_BENCH_RESULT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/stats.h"
#include "tools/system_record.h"

namespace pozor::tools {

// Raised only when a reader of the older version would misread the file.
inline constexpr int kBenchSchemaVersion = 1;

// Texts that a row encodes. The hash is of the texts themselves.
struct Workload {
  std::string name;  // "fixed-128", "mix", "query-8", "query-8@20", "file:stsb"
  std::string kind;  // "fixed", "mix", "query", "file"
  std::string path;  // where the texts lie while the run lasts; not kept
  std::string hash;
  size_t texts = 0;
  size_t tokens = 0;   // of all texts, specials included, padding never counted
  size_t squares = 0;  // sum of squared lengths: what attention costs
  double flops = 0;    // of the encoder, true work only
  size_t longest = 0;
  size_t pause_ms = 0;  // before every call of a query
};

// What a row measured. Rows of two files are the same row when all of this is equal.
struct RowKey {
  std::string engine;  // "pozor", or the name of a peer
  std::string model;
  std::string workload;
  std::string precision;  // "f32", "bf16", "int8", "bf16x3"
  std::string tier;       // as asked for: "auto", "avx2", ...
  size_t threads = 1;
  size_t batch = 0;  // Pozor: tokens of a micro-batch, 0 the default; peers: texts of a batch
  size_t max_length = 0;

  bool operator==(const RowKey&) const = default;
};

// One entry a sample, in the order of the run.
struct RowSamples {
  std::vector<double> process;      // which start of the engine: 0, 1, ...
  std::vector<double> round;        // place in the interleaved run
  std::vector<double> at;           // seconds since the run began
  std::vector<double> seconds;      // a round of all texts, or one call of a query row
  std::vector<double> cpu_seconds;  // of the engine's process, all its threads; a call's: the mean
                                    // of the calls around it
  std::vector<double> roof;         // GFLOP/s a thread of the probe around this sample
  std::vector<double> waited;       // of all its threads together, ready to run, for a CPU
  std::vector<double> stolen;       // CPU seconds that other programs took meanwhile

  size_t size() const { return seconds.size(); }
};

// `values` of the samples, by process.
Samples ByProcess(const RowSamples& samples, const std::vector<double>& values);

// What each sample would have taken had its threads never waited for a CPU: seconds - waited /
// threads, never below the CPU time of a thread. With threads that share the work among them, wall
// time is the sum of running, waiting and idling over the threads, so the rest is what the engine
// itself is responsible for.
std::vector<double> QuietSeconds(const RowSamples& samples, size_t threads);

struct RowSummary {
  double seconds = 0;  // lower quartile of the quiet seconds
  double texts_per_second = 0;
  double tokens_per_second = 0;
  double p50 = 0, p90 = 0, p99 = 0, p999 = 0;  // seconds
  double cpu_seconds_per_1000_texts = 0;
  double gflops = 0;        // true work: products of the layers and attention, no padding
  double roof_share = 0;    // of the roof of its arithmetic and threads; 0: no such roof
  double waited_share = 0;  // of its time that the engine waited for a CPU
  double stolen_share = 0;  // of the machine's time
};

struct Row {
  RowKey key;
  bool latency = false;     // a sample is one call of one text
  std::string active_tier;  // what `tier` came to
  std::string roof_name;    // the compute roof that it is divided by
  std::string model_hash;
  std::string workload_hash;
  size_t texts = 0;   // of a sample
  size_t tokens = 0;  // of a sample
  double flops = 0;   // of a sample; 0: unknown
  double peak_memory_bytes = 0;
  RowSamples samples;
  RowSummary summary;
};

// An engine process from its start: one entry a start.
struct StartRecord {
  std::string engine;
  std::string precision;
  std::string tier;
  size_t threads = 1;
  std::string version;
  std::vector<std::string> kernels;
  std::vector<double> ready_seconds;         // from the start of the process
  std::vector<double> load_seconds;          // reading and packing the model
  std::vector<double> first_vector_seconds;  // the first call after that
  std::vector<double> warm_up_seconds;       // rounds until they were flat, all workloads
  double mean_cosine = 0, min_cosine = 0;    // to the first f32 engine; 0: not compared
};

struct ModelRecord {
  std::string name, path, architecture, hash;
  size_t layers = 0, hidden = 0, heads = 0, intermediate = 0, parameters = 0, max_length = 0;
  double flops_per_token = 0;   // products of the layers
  double flops_per_square = 0;  // attention, a token and key
};

struct ComputeRoof {
  std::string name;  // <tier>-<types>
  size_t threads = 1;
  double gflops = 0;
};
struct BandwidthRoof {
  std::string level;  // "L1", "L2", "L3", "DRAM"
  size_t bytes = 0;   // read by each thread again and again
  size_t threads = 1;
  double gb_per_second = 0;
};

// A GEMM of the model's shapes, timed alone: the dots of the roofline.
struct KernelRecord {
  std::string name;
  size_t m = 0, n = 0, k = 0;
  double gflops = 0;
  double bytes = 0;  // weights, input and output, each once
};

struct BenchResult {
  std::string created;  // UTC, ISO 8601
  std::string command;
  SystemRecord system;
  ModelRecord model;
  std::vector<ComputeRoof> compute_roofs;
  std::vector<BandwidthRoof> bandwidth_roofs;
  std::vector<KernelRecord> kernels;
  std::vector<Workload> workloads;
  std::vector<StartRecord> starts;
  std::vector<Row> rows;
  std::vector<std::string> warnings;
};

// Fills in row.summary from its samples; `cpus` are those of the machine.
void Summarise(const std::vector<ComputeRoof>& roofs, size_t cpus, Row* row);

std::string ToJson(const BenchResult& result);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_BENCH_RESULT_H_
