// A kernel's source text with its constants in place. Only integers are rendered: nothing that a caller passes as text is compiled.
#include <algorithm>
#include <stdexcept>

#include "program.hpp"
#include "sources.hpp"

namespace sycl_mat {
namespace {

constexpr std::string_view begin_mark = "// constants: begin";
constexpr std::string_view end_mark = "// constants: end";

/// The text with every `#include "…"` replaced by that file, each file once.
std::string inline_includes(std::string_view text, std::vector<std::string>& done) {
  std::string out;
  while (!text.empty()) {
    const auto length = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, length);
    text.remove_prefix(length);
    constexpr std::string_view include = "#include \"";
    if (line.starts_with("#pragma once")) continue;
    if (!line.starts_with(include)) {
      out += line;
      continue;
    }
    const std::string name(line.substr(include.size(), line.find('"', include.size()) - include.size()));
    if (std::find(done.begin(), done.end(), name) != done.end()) continue;
    done.push_back(name);
    out += inline_includes(source_text(name), done);
  }
  return out;
}

/// Replaces the value in the line `constexpr int NAME = …;` that stands between a pair of marks.
void set_constant(std::string& text, std::string_view name, int value) {
  const std::string declaration = "constexpr int " + std::string(name) + " =";
  for (auto begin = text.find(begin_mark); begin != std::string::npos; begin = text.find(begin_mark, begin + 1)) {
    const auto end = text.find(end_mark, begin);
    const auto found = text.find(declaration, begin);
    if (found == std::string::npos || found > end) continue;
    const auto from = found + declaration.size();
    text.replace(from, text.find(';', from) - from, " " + std::to_string(value));
    return;
  }
  throw std::logic_error("the kernel has no constant " + std::string(name));
}

}  // namespace

std::string render(const Kernel& kernel, const Constants& constants) {
  std::vector<std::string> done;
  std::string text = inline_includes(source_text(kernel.file), done);
  for (const auto& [name, value] : constants) set_constant(text, name, value);
  text.append("\nENTRY(").append(kernel.name).append(")\n");  // nothing, except for PTX: see device.hpp
  return text;
}

}  // namespace sycl_mat
