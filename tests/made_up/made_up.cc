// The first of three edits that add an architecture: its file. This one is made up: ELECTRA's names
// under a type of its own.
#include "models/architectures/bert_family.h"

namespace pozor {
namespace {

EncoderSpec MakeSpec(Config& config, const WeightReader&) { return BertSpec(config); }

}  // namespace

extern const Architecture kMadeUp;
const Architecture kMadeUp = {
    .model_type = "made_up",
    .class_name = "MadeUp",
    .description = "an architecture of this test",
    .make_spec = MakeSpec,
    .anchor = "embeddings.word_embeddings.weight",
    .passengers = kBertPassengers,
};

}  // namespace pozor
