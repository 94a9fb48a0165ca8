// What is one text of a file.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tools/io/text_files.h"

namespace pozor::tools {
namespace {

using testing::TemporaryFolder;
using Texts = std::vector<std::string>;

struct Outcome {
  Texts texts;
  std::string error;
};

Outcome ReadAll(const std::vector<std::string>& paths, const TextFilesOptions& options = {}) {
  Outcome outcome;
  Result<std::unique_ptr<TextFiles>> files = TextFiles::Open(paths, options);
  if (!files.ok()) return {{}, files.status().message()};
  while (true) {
    Result<std::optional<std::string>> text = (*files)->Next();
    if (!text.ok()) outcome.error = text.status().message();
    if (!text.ok() || !text->has_value()) return outcome;
    outcome.texts.push_back(**text);
  }
}

Outcome ReadText(const std::string& name, const std::string& content,
                 const TextFilesOptions& options = {}) {
  const TemporaryFolder folder;
  Outcome outcome = ReadAll({folder.Write(name, content)}, options);
  const size_t at = outcome.error.find(folder.path());
  if (at != std::string::npos) outcome.error.erase(at, folder.path().size() + 1);
  return outcome;
}

std::string Data(const std::string& name) { return std::string(POZOR_TEST_DATA) + "/cli/" + name; }

TEST_CASE("rows of the files that are often read wrongly") {
  struct Case {
    const char* file;
    Texts texts;
  };
  const Case cases[] = {
      {"crlf.txt", {"first line", "", "third line", "   ", "fifth line"}},
      {"bom.txt", {"first line", "second line"}},
      {"cr_inside.txt", {"one\rstill one", "two"}},
      {"no_final_newline.txt", {"a", "b"}},
      {"only_newline.txt", {""}},
      {"empty.txt", {}},
      {"ls.txt", {"one\xE2\x80\xA8still one", "two\xC2\x85still two"}},
      {"quoted.csv", {"line a\r\nline b, with \"quotes\"", "plain", ""}},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.file));
    const Outcome outcome = ReadAll({Data(c.file)});
    CHECK(outcome.error == "");
    CHECK(outcome.texts == c.texts);
  }
}

TEST_CASE("JSON lines: null and missing texts are named by their lines, and none is shifted") {
  const Outcome outcome = ReadAll({Data("mixed.jsonl")});
  CHECK(outcome.texts == Texts{"one", "two\nlines"});
  CHECK(outcome.error.find("lines 4 (null, not a string), 5 (no such member)") !=
        std::string::npos);
}

TEST_CASE("JSON lines: fields") {
  struct Case {
    const char* name;
    const char* content;
    const char* field;
    Texts texts;
    const char* error;  // part of it
  };
  const Case cases[] = {
      {"strings", "\"a\"\n\"b\\u0000c\"\n", "", {"a", std::string("b\0c", 3)}, ""},
      {"named", "{\"body\":\"x\",\"text\":\"y\"}", "body", {"x"}, ""},
      {"path", "{\"a\":{\"b\":\"x\"}}", "a.b", {"x"}, ""},
      {"dotted name wins", "{\"a\":{\"b\":\"x\"},\"a.b\":\"y\"}", "a.b", {"y"}, ""},
      {"escapes",
       "{\"text\":\"\\u00e9\\n\\ud83d\\ude00\"}",
       "",
       {"\xC3\xA9\n\xF0\x9F\x98\x80"},
       ""},
      {"number", "{\"text\":12}", "", {}, "line 1 (12, not a string)"},
      {"array", "[\"a\"]", "", {}, "line 1 (an array, not a string)"},
      {"not JSON", "{\"text\":\"a\"}\nhello\n", "", {"a"}, "line 2: not valid JSON"},
      {"not UTF-8", "{\"text\":\"\xE9\"}\n", "", {}, "line 1, byte 10 (0xE9): is not UTF-8"},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.name));
    TextFilesOptions options;
    options.text_field = c.field;
    const Outcome outcome = ReadText("x.jsonl", c.content, options);
    CHECK(outcome.texts == c.texts);
    if (*c.error == '\0') CHECK(outcome.error == "");
    CAPTURE(outcome.error);
    CHECK(outcome.error.find(c.error) != std::string::npos);
  }
}

TEST_CASE("CSV and TSV") {
  struct Case {
    const char* file;
    const char* content;
    const char* field;
    bool header;
    Texts texts;
    const char* error;
  };
  const Case cases[] = {
      {"a.csv", "text\na\n\nb\n", "", true, {"a", "", "b"}, ""},
      {"a.csv", "id,text\n1,a\n\n2,b\n", "", true, {"a", "b"}, ""},
      {"a.csv", "id,body\n1,a\n2,b", "body", true, {"a", "b"}, ""},
      {"a.csv", "id,body\n1,a\n2,b\r\n", "2", true, {"a", "b"}, ""},
      {"a.csv", "1,a\n2,b\n", "2", false, {"a", "b"}, ""},
      {"a.csv", "text\n\"a\"\"b\"\n\"\"\"\"\n\"\"\n", "", true, {"a\"b", "\"", ""}, ""},
      {"a.csv", "text\n5\" disk\n", "", true, {"5\" disk"}, ""},
      {"a.csv", "text\nlast\r", "", true, {"last"}, ""},
      {"a.tsv", "id\ttext\n1\ta, b\n", "", true, {"a, b"}, ""},
      {"a.csv", "id,body\n1,a\n", "", true, {}, "line 1: no column \"text\" among id, body"},
      {"a.csv", "id,text\n1,a\n2\n", "", true, {"a"}, "line 3: has 1 columns"},
      {"a.csv", "text\nok\n\"open\n", "", true, {"ok"}, "line 3: a quoted field is not closed"},
      {"a.csv", "text\n\"two\nlines\"\n\xFF\n", "", true, {"two\nlines"}, "line 4, byte 1 (0xFF)"},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.content));
    TextFilesOptions options;
    options.text_field = c.field;
    options.header = c.header;
    const Outcome outcome = ReadText(c.file, c.content, options);
    CHECK(outcome.texts == c.texts);
    CAPTURE(outcome.error);
    if (*c.error == '\0') CHECK(outcome.error == "");
    CHECK(outcome.error.find(c.error) != std::string::npos);
  }
}

TEST_CASE("what is not UTF-8 is refused with file, line and byte") {
  struct Case {
    const char* name;
    std::string content;
    const char* error;
  };
  const Case cases[] = {
      {"latin-1", "one\ntwo \xE9\n", "x.txt: line 2, byte 5 (0xE9): is not UTF-8"},
      {"overlong", "\xC0\xAF\n", "line 1, byte 1 (0xC0)"},
      {"surrogate", "a\xED\xA0\x80\n", "line 1, byte 2 (0xED)"},
      {"above U+10FFFF", "\xF4\x90\x80\x80", "line 1, byte 1 (0xF4)"},
      {"cut short", "abc\xE2\x82", "line 1, byte 4 (0xE2)"},
      {"UTF-16 with mark", std::string("\xFF\xFEh\0i\0", 6), "is UTF-16"},
      {"UTF-16 big-endian", std::string("\xFE\xFF\0h\0i", 6), "is UTF-16"},
      {"UTF-16 without mark", std::string("h\0i\0\n\0", 6), "is UTF-16"},
      {"PNG", "\x89PNG\r\n", "line 1, byte 1 (0x89)"},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.name));
    const Outcome outcome = ReadText("x.txt", c.content);
    CAPTURE(outcome.error);
    CHECK(outcome.error.find(c.error) != std::string::npos);
  }
}

TEST_CASE("U+0000 and long lines are texts") {
  CHECK(ReadText("x.txt", std::string("a\0b\n", 4)).texts == Texts{std::string("a\0b", 3)});
  const std::string line(1 << 20, 'x');
  const Outcome outcome = ReadText("x.txt", "a\n" + line + "\nb\n");
  CHECK(outcome.texts == Texts{"a", line, "b"});
}

TEST_CASE("several files are one stream; a missing one is found before the first text") {
  const TemporaryFolder folder;
  const std::string a = folder.Write("a.txt", "1\n2"), b = folder.Write("b.jsonl", "\"3\"\n");
  CHECK(ReadAll({a, b, a}).texts == Texts{"1", "2", "3", "1", "2"});
  const Outcome missing = ReadAll({a, folder.File("no.txt")});
  CHECK(missing.texts.empty());
  CHECK(missing.error.find("no.txt: no such file") != std::string::npos);
  CHECK(ReadAll({folder.path()}).error.find("is a folder") != std::string::npos);
}

TEST_CASE("how far the input has come") {
  const TemporaryFolder folder;
  std::string content;
  for (int i = 0; i < 1000; ++i) content += "ten bytes\n";
  auto files = TextFiles::Open({folder.Write("a.txt", content)}, {}).value();
  for (int i = 0; i < 600; ++i) REQUIRE(files->Next().ok());
  CHECK(*files->ShareOf(0) == 0);
  CHECK(*files->ShareOf(256) == doctest::Approx(0.256));
  CHECK(*files->ShareOf(600) == doctest::Approx(0.576));  // the last mark: 18 * 32
}

}  // namespace
}  // namespace pozor::tools
