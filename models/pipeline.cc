#include "models/pipeline.h"

#include <algorithm>
#include <optional>

#include "models/formats/file.h"

namespace pozor {
namespace {

constexpr size_t kMostModules = 64;
constexpr size_t kMostTokens = size_t{1} << 24;

// The first of these files holds the Transformer module's settings.
constexpr std::string_view kTransformerConfigs[] = {
    "sentence_bert_config.json",       "sentence_roberta_config.json",
    "sentence_distilbert_config.json", "sentence_camembert_config.json",
    "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
};

constexpr std::string_view kKnownModules[] = {"Transformer", "Pooling",   "Dense",
                                              "LayerNorm",   "Normalize", "Dropout"};

// How folders name a Transformer module of their own code; the architecture says whether it is
// known.
constexpr std::string_view kOwnTransformer = "custom_st.Transformer";

// "sentence_transformers.models.Pooling" and the longer paths of later versions: the last part
// counts, as long as it is sentence-transformers' own.
Result<std::string> ModuleClass(const std::string& type, const std::string& where) {
  const std::string name = type.substr(type.rfind('.') + 1);
  if (type == kOwnTransformer) return name;
  const bool own = type.starts_with("sentence_transformers.") || type.find('.') == type.npos;
  const bool known = std::find(std::begin(kKnownModules), std::end(kKnownModules), name) !=
                     std::end(kKnownModules);
  if (own && known) return name;
  return Unsupported(where + ": module type " + type.substr(0, 200) +
                     " is not supported; use a model of Transformer, Pooling, Dense, LayerNorm " +
                     "and Normalize modules");
}

Result<ModuleEntry> ReadModule(const JsonValue& entry, const std::string& where) {
  const JsonValue* type = entry.Find("type");
  const JsonValue* path = entry.Find("path");
  if (type == nullptr || !type->is_string()) {
    return Corrupt(where + ": a module without a type; download the file again");
  }
  ModuleEntry module;
  POZOR_TRY(module.type, ModuleClass(std::string(type->as_string()), where));
  if (path != nullptr && path->is_string()) module.path = std::string(path->as_string());
  while (module.path.size() > 1 && module.path.back() == '/') module.path.pop_back();
  if (module.path == ".") module.path.clear();
  const std::string bad = module.path.empty() ? "" : BadRelativePath(module.path);
  if (bad.empty()) return module;
  return InvalidArgument(where + ": the module path \"" + module.path + "\" " + bad +
                         "; only files inside the model folder are read");
}

Status ReadModules(const ModelFolder& folder, Pipeline* pipeline) {
  const std::string where = JoinPath(folder.path(), "modules.json");
  POZOR_TRY(const JsonDocument document, folder.ReadJson("modules.json"));
  if (!document->is_array() || document->size() > kMostModules) {
    return Corrupt(where + ": an array of modules is needed, this is " + document->Describe() +
                   "; download the file again");
  }
  for (const JsonValue& entry : document->items()) {
    POZOR_TRY(ModuleEntry module, ReadModule(entry, where));
    const bool first = pipeline->modules.empty();
    if ((module.type == "Transformer") != first) {
      return Unsupported(where + ": module " + std::to_string(pipeline->modules.size()) + " is a " +
                         module.type + ", a Transformer must come first and only there; " +
                         "use another model");
    }
    if (first) {
      pipeline->transformer_path = module.path;
      pipeline->own_transformer = entry.Find("type")->as_string() == kOwnTransformer;
    }
    pipeline->modules.push_back(std::move(module));
  }
  if (!pipeline->modules.empty()) return Status();
  return Corrupt(where + ": has no modules; download the file again");
}

// Keys of the Transformer module that change what goes through it.
Status ReadTransformer(const ModelFolder& folder, Pipeline* pipeline) {
  for (std::string_view name : kTransformerConfigs) {
    const std::string file(name);
    if (!folder.Has(file)) continue;
    const std::string where = JoinPath(folder.path(), file);
    POZOR_TRY(const JsonDocument document, folder.ReadJsonObject(file));
    const JsonValue* length = document->Find("max_seq_length");
    if (length != nullptr && !length->is_null()) {
      if (!length->is_int() || length->as_int() < 1) {
        return Corrupt(where + ": max_seq_length is " + length->Describe() +
                       ", a positive number is needed; check the file");
      }
      pipeline->max_seq_length = std::min(static_cast<size_t>(length->as_int()), kMostTokens);
    }
    const JsonValue* lower = document->Find("do_lower_case");
    pipeline->lowercase = lower != nullptr && lower->as_bool();
    for (const char* key : {"module_output_name", "transformer_task"}) {
      const JsonValue* value = document->Find(key);
      if (value == nullptr || value->is_null()) continue;
      const std::string_view text = value->as_string();
      if (text == "token_embeddings" || text == "feature-extraction") continue;
      return Unsupported(where + ": " + key + " " + value->Describe() +
                         " is not supported; use a model that gives token_embeddings");
    }
    return Status();
  }
  return Status();
}

Status ReadPrompts(const JsonDocument& document, const std::string& where, Pipeline* pipeline) {
  const JsonValue* prompts = document->Find("prompts");
  if (prompts != nullptr && !prompts->is_null()) {
    if (!prompts->is_object()) {
      return Corrupt(where + ": prompts is " + prompts->Describe() +
                     ", an object is needed; check the file");
    }
    for (const JsonMember& member : prompts->members()) {
      if (!member.value.is_string() && !member.value.is_null()) {
        return Corrupt(where + ": prompt " + std::string(member.key) + " is " +
                       member.value.Describe() + ", a text is needed; check the file");
      }
      pipeline->prompts.emplace_back(member.key, member.value.as_string());
    }
  }
  const JsonValue* chosen = document->Find("default_prompt_name");
  if (chosen == nullptr || !chosen->is_string()) return Status();
  pipeline->default_prompt = std::string(chosen->as_string());
  return FindPrompt(*pipeline, pipeline->default_prompt).status().WithContext(where);
}

Status ReadSettings(const ModelFolder& folder, Pipeline* pipeline) {
  const std::string file = "config_sentence_transformers.json";
  if (!folder.Has(file)) return Status();
  const std::string where = JoinPath(folder.path(), file);
  POZOR_TRY(const JsonDocument document, folder.ReadJsonObject(file));
  POZOR_RETURN_IF_ERROR(ReadPrompts(document, where, pipeline));
  const JsonValue* truncate = document->Find("truncate_dim");
  if (truncate != nullptr && !truncate->is_null()) {
    if (!truncate->is_int() || truncate->as_int() < 1) {
      return Corrupt(where + ": truncate_dim is " + truncate->Describe() +
                     ", a positive number is needed; check the file");
    }
    pipeline->truncate_dim = static_cast<size_t>(truncate->as_int());
  }
  const JsonValue* similarity = document->Find("similarity_fn_name");
  if (similarity != nullptr && similarity->is_string()) {
    pipeline->similarity = std::string(similarity->as_string());
  }
  const JsonValue* type = document->Find("model_type");
  if (type == nullptr || !type->is_string() || type->as_string() == "SentenceTransformer") {
    return Status();
  }
  return Unsupported(where + ": model_type " + std::string(type->as_string()) +
                     " is not supported; use a SentenceTransformer model");
}

}  // namespace

Result<Pipeline> ReadPipeline(const ModelFolder& folder, std::vector<std::string>* warnings) {
  Pipeline pipeline;
  if (folder.Has("modules.json")) POZOR_RETURN_IF_ERROR(ReadModules(folder, &pipeline));
  const ModelFolder transformer = folder.Sub(pipeline.transformer_path);
  POZOR_RETURN_IF_ERROR(ReadTransformer(transformer, &pipeline));
  POZOR_RETURN_IF_ERROR(ReadSettings(folder, &pipeline));
  if (pipeline.modules.empty() && !folder.Has("config_sentence_transformers.json")) {
    warnings->push_back(folder.path() + ": no modules.json; vectors are the mean of all tokens, " +
                        "unless a GGUF file names another pooling");
  }
  return pipeline;
}

Result<std::string> FindPrompt(const Pipeline& pipeline, std::string_view name) {
  std::string names;
  for (const auto& [key, text] : pipeline.prompts) {
    if (key == name) return text;
    names += (names.empty() ? "" : ", ") + key;
  }
  return InvalidArgument("prompt name " + std::string(name) + ": the model has no such prompt; " +
                         (names.empty() ? "it has none at all" : "use one of " + names));
}

}  // namespace pozor
