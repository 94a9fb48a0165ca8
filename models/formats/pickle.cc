#include "models/formats/pickle.h"

#include <bit>
#include <utility>

#include "models/formats/byte_cursor.h"

namespace pozor {

using Kind = PickleValue::Kind;

namespace {

// Far above what a checkpoint holds, and small enough for memory to stay small.
constexpr size_t kMostValues = size_t{1} << 18;
constexpr size_t kMostStack = size_t{1} << 19;
constexpr size_t kMostMemo = size_t{1} << 19;

// What a name may be used for.
enum class Use : uint8_t { kDict, kTensor, kParameter, kStorage, kSize, kOther };

struct KnownName {
  std::string_view module, name;
  Use use;
  DType type = DType::kF32;  // of a storage
};
constexpr KnownName kNames[] = {
    {"collections", "OrderedDict", Use::kDict},
    {"torch._utils", "_rebuild_tensor_v2", Use::kTensor},
    {"torch._utils", "_rebuild_tensor", Use::kTensor},
    {"torch._utils", "_rebuild_parameter", Use::kParameter},
    {"torch._utils", "_rebuild_parameter_with_state", Use::kParameter},
    {"torch", "FloatStorage", Use::kStorage, DType::kF32},
    {"torch", "HalfStorage", Use::kStorage, DType::kF16},
    {"torch", "BFloat16Storage", Use::kStorage, DType::kBF16},
    {"torch", "DoubleStorage", Use::kStorage, DType::kF64},
    {"torch", "LongStorage", Use::kStorage, DType::kI64},
    {"torch", "IntStorage", Use::kStorage, DType::kI32},
    {"torch", "ShortStorage", Use::kStorage, DType::kI16},
    {"torch", "CharStorage", Use::kStorage, DType::kI8},
    {"torch", "ByteStorage", Use::kStorage, DType::kU8},
    {"torch", "BoolStorage", Use::kStorage, DType::kBool},
    {"torch", "Size", Use::kSize},
    {"torch", "device", Use::kOther},
    {"torch", "float32", Use::kOther},
    {"torch", "float16", Use::kOther},
    {"torch", "bfloat16", Use::kOther},
    {"torch", "float64", Use::kOther},
    {"torch", "int64", Use::kOther},
    {"collections", "Counter", Use::kOther},
    {"_codecs", "encode", Use::kOther},
    {"builtins", "set", Use::kOther},
    {"__builtin__", "set", Use::kOther},
};

// Opcodes of the protocols up to 4 that data needs.
enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kNone = 'N',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kBinFloat = 'G',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kShortBinUnicode = 0x8C,
  kString = 'S',
  kAppend = 'a',
  kAppends = 'e',
  kBuild = 'b',
  kGlobal = 'c',
  kStackGlobal = 0x93,
  kEmptyDict = '}',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kEmptySet = 0x8F,
  kList = 'l',
  kDict = 'd',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kMemoize = 0x94,
  kSetItem = 's',
  kSetItems = 'u',
  kProto = 0x80,
  kFrame = 0x95,
  kNewObj = 0x81,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8A,
};

struct OpcodeName {
  uint8_t code;
  std::string_view name;
};
// Those that run code or look elsewhere, for the message.
constexpr OpcodeName kRefused[] = {
    {'i', "INST"},   {'o', "OBJ"},        {0x82, "EXT1"},       {0x83, "EXT2"}, {0x84, "EXT4"},
    {'P', "PERSID"}, {'I', "INT"},        {'L', "LONG"},        {'F', "FLOAT"}, {'V', "UNICODE"},
    {'2', "DUP"},    {0x92, "NEWOBJ_EX"}, {0x96, "BYTEARRAY8"}, {'g', "GET"},   {'p', "PUT"},
};

std::string OpcodeText(uint8_t code) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "opcode ";
  for (const OpcodeName& refused : kRefused) {
    if (refused.code == code) text += std::string(refused.name) + " ";
  }
  return text + "0x" + kDigits[code >> 4] + kDigits[code & 15];
}

}  // namespace

// The machine: a stack of objects, marks in it, and a memo of objects met before.
class Unpickler {
 public:
  Unpickler(std::span<const uint8_t> bytes, std::string name)
      : cursor_(bytes), name_(std::move(name)) {}

  Result<Pickle> Run() {
    while (error_.empty()) {
      const uint8_t code = cursor_.Take<uint8_t>();
      if (cursor_.failed()) {
        Fail("the end of the data came before the end of the pickle");
      } else if (code == kStop) {
        out_.root_ = Pop();
        out_.bytes_ = cursor_.position();
        if (error_.empty()) return std::move(out_);
      } else {
        Step(code);
        if (cursor_.failed()) Fail("a value is longer than the data that follows");
      }
    }
    return Corrupt(name_ + ": " + error_ + "; do not trust this file, get the weights elsewhere");
  }

 private:
  void Fail(std::string why) {
    if (error_.empty()) error_ = std::move(why);
  }

  // Stack.
  void Push(uint32_t index) {
    if (stack_.size() >= kMostStack) return Fail("has too many values");
    stack_.push_back(index);
  }
  uint32_t New(PickleValue value) {
    if (out_.values_.size() >= kMostValues) {
      Fail("has too many values");
      return 0;
    }
    out_.values_.push_back(std::move(value));
    return static_cast<uint32_t>(out_.values_.size() - 1);
  }
  void PushNew(PickleValue value) { Push(New(std::move(value))); }
  void PushInt(int64_t integer) { PushNew({.kind = Kind::kInt, .integer = integer}); }
  void PushText(std::string_view text) { PushNew({.kind = Kind::kText, .text = text}); }
  uint32_t Pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
      Fail("takes a value from an empty stack");
      return New({});
    }
    const uint32_t top = stack_.back();
    stack_.pop_back();
    return top;
  }
  std::vector<uint32_t> PopToMark() {
    if (marks_.empty()) {
      Fail("has a list without a start (an empty stack)");
      return {};
    }
    std::vector<uint32_t> items(stack_.begin() + static_cast<ptrdiff_t>(marks_.back()),
                                stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  std::vector<uint32_t> PopMany(size_t count) {
    std::vector<uint32_t> items(count);
    for (size_t i = count; i-- > 0;) items[i] = Pop();
    return items;
  }
  PickleValue& At(uint32_t index) { return out_.values_[index]; }
  PickleValue& Top() {
    const uint32_t top = Pop();
    Push(top);
    return At(top);
  }

  void Put(uint64_t key) {
    const uint32_t top = Pop();
    Push(top);
    if (key >= kMostMemo) return Fail("remembers too many values");
    if (memo_.size() <= key) memo_.resize(static_cast<size_t>(key) + 1, kNothing);
    memo_[static_cast<size_t>(key)] = top;
  }
  void Get(uint64_t key) {
    if (key >= memo_.size() || memo_[static_cast<size_t>(key)] == kNothing) {
      return Fail("refers to a value that it did not remember");
    }
    Push(memo_[static_cast<size_t>(key)]);
  }

  void Step(uint8_t code);
  bool StepScalar(uint8_t code);
  bool StepMemo(uint8_t code);
  bool StepContainer(uint8_t code);
  void Name(std::string_view module, std::string_view name);
  void Storage();
  void Append(std::vector<uint32_t> items, Kind kind);
  void Call(bool is_new);
  void Rebuild(const std::vector<uint32_t>& arguments);
  void MakeDict(const std::vector<uint32_t>& arguments);

  static constexpr uint32_t kNothing = 0xFFFFFFFF;
  ByteCursor cursor_;
  std::string name_;
  std::string error_;
  Pickle out_;
  std::vector<uint32_t> stack_, memo_;
  std::vector<size_t> marks_;
  size_t copied_ = 0;  // items that stand in more than one place
};

void Unpickler::Step(uint8_t code) {
  if (StepScalar(code) || StepMemo(code) || StepContainer(code)) return;
  switch (code) {
    case kProto:
      cursor_.TakeBytes(1);
      return;
    case kFrame:
      cursor_.TakeBytes(8);
      return;
    case kPop:
      Pop();
      return;
    case kGlobal: {
      const std::string_view module = cursor_.TakeLine();
      return Name(module, cursor_.TakeLine());
    }
    case kStackGlobal: {
      const std::string_view name = At(Pop()).text;
      return Name(At(Pop()).text, name);
    }
    case kBinPersId:
      return Storage();
    case kReduce:
      return Call(false);
    case kNewObj:
      return Call(true);
    case kBuild: {
      Pop();  // attributes, such as the _metadata of a state dict
      const Kind kind = Top().kind;
      if (kind != Kind::kDict && kind != Kind::kOther) {
        Fail("sets attributes of something that is no dictionary");
      }
      return;
    }
    default:
      Fail(OpcodeText(code) + " is not one that data needs");
  }
}

bool Unpickler::StepScalar(uint8_t code) {
  switch (code) {
    case kNone:
      PushNew({});
      return true;
    case kNewTrue:
    case kNewFalse:
      PushNew({.kind = Kind::kBool, .integer = code == kNewTrue});
      return true;
    case kBinInt:
      PushInt(cursor_.Take<int32_t>());
      return true;
    case kBinInt1:
      PushInt(cursor_.Take<uint8_t>());
      return true;
    case kBinInt2:
      PushInt(cursor_.Take<uint16_t>());
      return true;
    case kLong1: {  // two's complement, little-endian
      const std::span<const uint8_t> bytes = cursor_.TakeBytes(cursor_.Take<uint8_t>());
      if (bytes.size() > 8) Fail("has an integer of more than 64 bits");
      uint64_t bits = !bytes.empty() && bytes.back() >= 0x80 ? ~uint64_t{0} : 0;
      for (size_t i = bytes.size(); i-- > 0;) bits = (bits << 8) | bytes[i];
      PushInt(static_cast<int64_t>(bits));
      return true;
    }
    case kBinFloat: {  // big-endian
      uint64_t bits = 0;
      for (const uint8_t byte : cursor_.TakeBytes(8)) bits = (bits << 8) | byte;
      PushNew({.kind = Kind::kFloat, .number = std::bit_cast<double>(bits)});
      return true;
    }
    case kString:
      PushText(cursor_.TakeLine());
      return true;
    case kBinString:
    case kBinUnicode:
      PushText(cursor_.TakeText(cursor_.Take<uint32_t>()));
      return true;
    case kShortBinString:
    case kShortBinUnicode:
      PushText(cursor_.TakeText(cursor_.Take<uint8_t>()));
      return true;
    default:
      return false;
  }
}

bool Unpickler::StepMemo(uint8_t code) {
  switch (code) {
    case kBinPut:
      Put(cursor_.Take<uint8_t>());
      return true;
    case kLongBinPut:
      Put(cursor_.Take<uint32_t>());
      return true;
    case kMemoize:
      Put(memo_.size());
      return true;
    case kBinGet:
      Get(cursor_.Take<uint8_t>());
      return true;
    case kLongBinGet:
      Get(cursor_.Take<uint32_t>());
      return true;
    default:
      return false;
  }
}

bool Unpickler::StepContainer(uint8_t code) {
  switch (code) {
    case kMark:
      if (marks_.size() >= kMostStack) Fail("is nested too deeply");
      marks_.push_back(stack_.size());
      return true;
    case kEmptyTuple:
      PushNew({.kind = Kind::kTuple});
      return true;
    case kEmptyList:
      PushNew({.kind = Kind::kList});
      return true;
    case kEmptyDict:
      PushNew({.kind = Kind::kDict});
      return true;
    case kEmptySet:
      PushNew({.kind = Kind::kOther});
      return true;
    case kTuple:
      PushNew({.kind = Kind::kTuple, .items = PopToMark()});
      return true;
    case kTuple1:
    case kTuple2:
    case kTuple3:
      PushNew({.kind = Kind::kTuple, .items = PopMany(size_t{code} - kTuple1 + 1)});
      return true;
    case kList:
      PushNew({.kind = Kind::kList, .items = PopToMark()});
      return true;
    case kDict:
      PushNew({.kind = Kind::kDict});
      return true;
    case kAppend:
      Append(PopMany(1), Kind::kList);
      return true;
    case kAppends:
      Append(PopToMark(), Kind::kList);
      return true;
    case kSetItem:
      Append(PopMany(2), Kind::kDict);
      return true;
    case kSetItems:
      Append(PopToMark(), Kind::kDict);
      return true;
    default:
      return false;
  }
}

void Unpickler::Append(std::vector<uint32_t> items, Kind kind) {
  PickleValue& value = Top();
  if (value.kind == Kind::kOther) return;
  const bool odd = kind == Kind::kDict && items.size() % 2 != 0;
  if (value.kind != kind || odd) return Fail("adds items to something that takes none");
  value.items.insert(value.items.end(), items.begin(), items.end());
}

void Unpickler::Name(std::string_view module, std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i].module != module || kNames[i].name != name) continue;
    PushNew({.kind = Kind::kGlobal, .type = kNames[i].type, .integer = static_cast<int64_t>(i)});
    return;
  }
  const std::string full =
      std::string(module.substr(0, 80)) + "." + std::string(name.substr(0, 80));
  const bool storage = module == "torch" && name.ends_with("Storage");
  Fail((storage ? "storage type " : "the forbidden global ") + full +
       (storage ? " is not supported" : " occurs"));
}

// The persistent id ('storage', type, key, location, elements); older files have a sixth part.
void Unpickler::Storage() {
  const PickleValue& id = At(Pop());
  const bool whole = id.kind == Kind::kTuple && (id.items.size() == 5 || id.items.size() == 6);
  if (!whole || At(id.items[0]).text != "storage") return Fail("has an unknown kind of reference");
  const PickleValue& type = At(id.items[1]);
  const PickleValue& key = At(id.items[2]);
  const PickleValue& count = At(id.items[4]);
  const bool known =
      type.kind == Kind::kGlobal && kNames[static_cast<size_t>(type.integer)].use == Use::kStorage;
  if (!known || key.kind != Kind::kText || count.kind != Kind::kInt) {
    return Fail("has a storage without type, key or size");
  }
  if (id.items.size() == 6 && At(id.items[5]).kind != Kind::kNone) {
    return Fail("has a storage that is a view of another");
  }
  PickleValue storage{.kind = Kind::kStorage, .type = type.type};
  storage.integer = count.integer;
  storage.text = key.text;
  PushNew(std::move(storage));
}

// A call of a known name, compared with what it may be and never made.
void Unpickler::Call(bool is_new) {
  const uint32_t popped = Pop();
  const PickleValue& callee = At(Pop());
  const PickleValue& arguments = At(popped);
  if (!error_.empty()) return;
  if (callee.kind != Kind::kGlobal || arguments.kind != Kind::kTuple) {
    return Fail("calls something that is no known name");
  }
  const KnownName& known = kNames[static_cast<size_t>(callee.integer)];
  switch (known.use) {
    case Use::kDict:
      return MakeDict(arguments.items);
    case Use::kTensor:
      if (!is_new) return Rebuild(arguments.items);
      break;
    case Use::kParameter:
      if (!is_new && !arguments.items.empty()) return Push(arguments.items[0]);
      break;
    case Use::kSize:
      if (arguments.items.size() == 1) return Push(arguments.items[0]);
      break;
    case Use::kOther:
      return PushNew({.kind = Kind::kOther});
    case Use::kStorage:
      break;
  }
  Fail("calls " + std::string(known.module) + "." + std::string(known.name) +
       " in a way that is not known");
}

// (storage, offset, size, stride, requires gradient, hooks, metadata), the last four not always.
// The metadata of a view that negates or conjugates its storage would change its values.
void Unpickler::Rebuild(const std::vector<uint32_t>& arguments) {
  if (arguments.size() < 4 || At(arguments[0]).kind != Kind::kStorage) {
    return Fail("rebuilds a tensor without storage, offset, size and stride");
  }
  for (size_t i = 6; i < arguments.size(); ++i) {
    const PickleValue& metadata = At(arguments[i]);
    if (metadata.kind == Kind::kNone) continue;
    if (metadata.kind == Kind::kDict && metadata.items.empty()) continue;
    return Fail("rebuilds a tensor with metadata, as of a negated view");
  }
  PickleValue tensor{.kind = Kind::kTensor, .type = At(arguments[0]).type};
  tensor.items.assign(arguments.begin(), arguments.begin() + 4);
  PushNew(std::move(tensor));
}

// OrderedDict(), or OrderedDict([(key, value), ...])
void Unpickler::MakeDict(const std::vector<uint32_t>& arguments) {
  PickleValue dict{.kind = Kind::kDict};
  if (!arguments.empty()) {
    for (const uint32_t pair : At(arguments[0]).items) {
      const std::vector<uint32_t>& items = At(pair).items;
      if (items.size() != 2) return Fail("makes a dictionary of something else than pairs");
      if (++copied_ > kMostValues) return Fail("has too many values");
      dict.items.insert(dict.items.end(), items.begin(), items.end());
    }
  }
  PushNew(std::move(dict));
}

Result<Pickle> Pickle::Read(std::span<const uint8_t> bytes, const std::string& name) {
  return Unpickler(bytes, name).Run();
}

}  // namespace pozor
