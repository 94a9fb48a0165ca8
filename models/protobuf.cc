#include "models/protobuf.h"

#include <bit>
#include <protozero/pbf_reader.hpp>
#include <protozero/varint.hpp>

namespace pozor {

bool ProtoFields::Next() {
  bytes_ = {};
  value_ = 0;
  if (bad_) return false;
  try {
    protozero::pbf_reader reader(rest_.data(), rest_.size());
    if (!reader.next()) return false;
    number_ = reader.tag();
    is_bytes_ = false;
    switch (reader.wire_type()) {
      case protozero::pbf_wire_type::varint:
        value_ = reader.get_uint64();
        break;
      case protozero::pbf_wire_type::fixed64:
        value_ = reader.get_fixed64();
        break;
      case protozero::pbf_wire_type::fixed32:
        value_ = reader.get_fixed32();
        break;
      case protozero::pbf_wire_type::length_delimited: {
        const protozero::data_view view = reader.get_view();
        bytes_ = {view.data(), view.size()};
        is_bytes_ = true;
        break;
      }
      default:
        bad_ = true;
        return false;
    }
    const protozero::data_view left = reader.data();
    rest_ = {left.data(), left.size()};
    return true;
  } catch (const protozero::exception&) {
    bad_ = true;
    return false;
  }
}

float ProtoFields::as_float() const { return std::bit_cast<float>(static_cast<uint32_t>(value_)); }

bool ProtoFields::AppendInts(std::vector<int64_t>* out) const {
  if (!is_bytes_) {
    out->push_back(as_int());
    return true;
  }
  try {
    const char* at = bytes_.data();
    const char* end = at + bytes_.size();
    while (at != end) out->push_back(static_cast<int64_t>(protozero::decode_varint(&at, end)));
    return true;
  } catch (const protozero::exception&) {
    return false;
  }
}

}  // namespace pozor
