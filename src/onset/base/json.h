// JSON: parsing with errors that name the file, typed access that names the key, and numbers that
// can always be printed (JSON has no NaN or infinity).
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace onset {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// Throws an input error that begins with WHERE and says what is wrong: not valid JSON (at which
// byte), a number out of range, nested more than `max_json_depth` deep.
// `callback`: see nlohmann's parser_callback_t.
[[nodiscard]] Json parse_json(std::string_view text, const std::string& where,
                              const Json::parser_callback_t& callback = nullptr);
// The same with the members of objects in the order of the text.
[[nodiscard]] OrderedJson parse_ordered_json(std::string_view text, const std::string& where);
// Trees are copied and printed recursively: a million brackets would end the process.
inline constexpr int max_json_depth = 500;
[[nodiscard]] Json read_json(const std::filesystem::path& path);

// Typed members of an object. A missing key, or null, gives the fallback or nothing; a value of
// another type is an input error "WHERE: key "KEY" should be an integer, is a string".
[[nodiscard]] std::optional<std::int64_t> find_int(const Json& object, const std::string& key,
                                                   const std::string& where);
[[nodiscard]] std::optional<double> find_number(const Json& object, const std::string& key,
                                                const std::string& where);
[[nodiscard]] std::optional<bool> find_bool(const Json& object, const std::string& key,
                                            const std::string& where);
[[nodiscard]] std::optional<std::string> find_string(const Json& object, const std::string& key,
                                                     const std::string& where);

// Number as JSON; NaN and infinities become null.
[[nodiscard]] OrderedJson finite_or_null(double value);
// A float32 as the shortest decimal that reads back as the same float32 (JSON readers see
// 23738.1 rather than 23738.09960937); NaN and infinities become null.
[[nodiscard]] OrderedJson float_or_null(float value);

// Text without invalid UTF-8: every bad byte becomes U+FFFD, as printed results need it.
[[nodiscard]] std::string valid_utf8(std::string_view text);

}  // namespace onset
