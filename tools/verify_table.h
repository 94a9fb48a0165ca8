// What was compared, and how far apart it was.
#ifndef POZOR_TOOLS_VERIFY_TABLE_H_
#define POZOR_TOOLS_VERIFY_TABLE_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace pozor::tools {

// |got - expected| <= absolute + relative * |expected|
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

enum class Outcome : uint8_t { kOk, kDifferent, kNotComputable };

struct VerifyRow {
  std::string name;
  std::vector<size_t> shape;
  double largest = 0;  // difference of an element
  Tolerance tolerance;
  Outcome outcome = Outcome::kOk;
  std::string note;  // why it is different or not computable
};

class VerifyTable {
 public:
  // Compares element by element; a number that is not finite is never within tolerance unless both
  // are the same.
  void Compare(const std::string& name, const std::vector<size_t>& shape,
               std::span<const float> got, std::span<const float> expected,
               const Tolerance& tolerance);
  void AddDifferent(const std::string& name, const std::vector<size_t>& shape,
                    const std::string& note);
  void AddNotComputable(const std::string& name, const std::vector<size_t>& shape,
                        const std::string& why);
  void Add(VerifyRow row) { rows_.push_back(std::move(row)); }
  void AddNote(const std::string& note) { notes_.push_back(note); }

  const std::vector<VerifyRow>& rows() const { return rows_; }
  size_t Count(Outcome outcome) const;

  // Name, shape, largest difference, tolerance, outcome; then notes and a last line that sums up.
  std::string Text() const;
  std::string Json() const;

  // 0, 1 or 3 as pozor verify has them.
  int ExitCode() const;

 private:
  std::vector<VerifyRow> rows_;
  std::vector<std::string> notes_;
};

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_VERIFY_TABLE_H_
