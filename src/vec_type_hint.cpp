#include "vec_type_hint.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

namespace sycl_mat {
namespace {

// Opcodes and enumerants of the SPIR-V specification, sections 3.49 and 3.6.
enum : std::uint32_t { op_name = 5, op_entry_point = 15, op_execution_mode = 16, op_function = 54 };
constexpr std::uint32_t spirv_magic = 0x07230203, mode_vec_type_hint = 30;
constexpr std::uint32_t float16_hint = 16u << 16 | 5u;  // sixteen components of type float, as OpenCL's vec_type_hint encodes it
constexpr std::size_t header_words = 5, words_a_hint = 4;

std::uint32_t length_of(std::uint32_t word) { return word >> 16; }
std::uint32_t opcode_of(std::uint32_t word) { return word & 0xffff; }

std::optional<std::size_t> find_module(const std::vector<char>& bundle) {
  for (std::size_t at = 0; at + header_words * 4 <= bundle.size(); at += 4)
    if (std::memcmp(&bundle[at], &spirv_magic, 4) == 0) return at;
  return std::nullopt;
}

}  // namespace

bool add_vec_type_hint(std::vector<char>& bundle) {
  const auto start = find_module(bundle);
  if (!start) return false;
  std::vector<std::uint32_t> words((bundle.size() - *start) / 4);
  std::memcpy(words.data(), &bundle[*start], words.size() * 4);

  // Entry points stand together; execution modes follow them.
  std::vector<std::uint32_t> entries;
  std::size_t insert_at = 0;
  for (std::size_t i = header_words; i < words.size() && length_of(words[i]) != 0; i += length_of(words[i])) {
    if (opcode_of(words[i]) == op_entry_point && i + 2 < words.size()) {
      entries.push_back(words[i + 2]);
    } else if (!entries.empty()) {
      insert_at = i;
      break;
    }
  }
  if (insert_at == 0) return false;

  std::vector<std::uint32_t> out;
  for (const auto entry : entries) out.insert(out.end(), {words_a_hint << 16 | op_execution_mode, entry, mode_vec_type_hint, float16_hint});
  std::size_t missing = out.size();
  std::size_t i = insert_at;
  while (missing > 0) {
    if (i >= words.size() || length_of(words[i]) == 0 || opcode_of(words[i]) == op_function || i + length_of(words[i]) > words.size())
      return false;
    const std::uint32_t length = length_of(words[i]);
    if (opcode_of(words[i]) == op_name && length > 3) {  // opcode, target, at least one word of text
      const auto cut = static_cast<std::uint32_t>(std::min<std::size_t>(length - 3, missing));
      out.push_back((length - cut) << 16 | op_name);
      out.insert(out.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                 words.begin() + static_cast<std::ptrdiff_t>(i + length - cut));
      out.back() &= 0x00ffffff;  // the text ends in a zero byte
      missing -= cut;
    } else {
      out.insert(out.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.begin() + static_cast<std::ptrdiff_t>(i + length));
    }
    i += length;
  }
  std::memcpy(&bundle[*start + insert_at * 4], out.data(), out.size() * 4);
  return true;
}

}  // namespace sycl_mat
