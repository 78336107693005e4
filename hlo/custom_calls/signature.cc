#include "hlo/custom_calls/signature.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "hlo/error.h"

namespace hlorun::hlo {
namespace {

bool IsNameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool IsName(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(), IsNameCharacter);
}

std::string Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return std::string(text);
}

// Recursive descent: sum = product {(+|-) product}, product = factor {(*|/) factor}, factor = number | name |
// function(sum, sum) | (sum).
class Expression {
 public:
  Expression(std::string_view text, const Bindings& bindings) : text_(text), rest_(text), bindings_(bindings) {}

  int64_t Value() {
    const int64_t value = Sum();
    if (Peek() != '\0') Fail();
    return value;
  }

 private:
  static constexpr int kDeepest = 64;

  [[noreturn]] void Fail() const { Invalid("\"{}\" is no size: numbers, names, + - * / ( ) min max ceildiv", text_); }

  char Peek() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  int64_t Sum() {
    if (++depth_ > kDeepest) Fail();
    int64_t value = Product();
    for (char c = Peek(); c == '+' || c == '-'; c = Peek()) {
      rest_.remove_prefix(1);
      const int64_t right = Product();
      const bool overflow =
          c == '+' ? __builtin_add_overflow(value, right, &value) : __builtin_sub_overflow(value, right, &value);
      if (overflow) Invalid("\"{}\" overflows", text_);
    }
    --depth_;
    return value;
  }

  int64_t Product() {
    int64_t value = Factor();
    for (char c = Peek(); c == '*' || c == '/'; c = Peek()) {
      rest_.remove_prefix(1);
      const int64_t right = Factor();
      if (c == '/') {
        value = Quotient(value, right);
      } else if (__builtin_mul_overflow(value, right, &value)) {
        Invalid("\"{}\" overflows", text_);
      }
    }
    return value;
  }

  int64_t Quotient(int64_t value, int64_t by) const {
    if (by <= 0) Invalid("\"{}\" divides by {}", text_, by);
    return value / by;
  }

  int64_t Factor() {
    if (Take('(')) {
      const int64_t value = Sum();
      if (!Take(')')) Fail();
      return value;
    }
    const char first = Peek();
    if (std::isdigit(static_cast<unsigned char>(first)) != 0) return Number();
    size_t length = 0;
    while (length < rest_.size() && IsNameCharacter(rest_[length])) ++length;
    const std::string name(rest_.substr(0, length));
    if (name.empty()) Fail();
    rest_.remove_prefix(length);
    if (Take('(')) return Function(name);
    const auto bound = bindings_.sizes.find(name);
    if (bound == bindings_.sizes.end()) Invalid("\"{}\": nothing gives {} a value", text_, name);
    return bound->second;
  }

  int64_t Number() {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) Fail();
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  int64_t Function(const std::string& name) {
    const int64_t a = Sum();
    if (!Take(',')) Fail();
    const int64_t b = Sum();
    if (!Take(')')) Fail();
    if (name == "min") return std::min(a, b);
    if (name == "max") return std::max(a, b);
    if (name == "ceildiv") return Quotient(a, b) + (a % b > 0 ? 1 : 0);
    Invalid("\"{}\": there is no function {}; min, max and ceildiv are", text_, name);
  }

  std::string_view text_, rest_;
  const Bindings& bindings_;
  int depth_ = 0;
};

// Commas outside of parentheses.
std::vector<std::string> SplitDimensions(std::string_view text) {
  std::vector<std::string> parts;
  int depth = 0;
  std::string part;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.push_back(Trimmed(part));
      part.clear();
    } else {
      part += c;
    }
  }
  if (!parts.empty() || !Trimmed(part).empty()) parts.push_back(Trimmed(part));
  return parts;
}

}  // namespace

int64_t Bindings::BatchCount() const {
  int64_t count = 1;
  for (const int64_t size : batch.value_or(Dims{})) count *= size;
  return count;
}

int64_t EvaluateSizeExpression(std::string_view text, const Bindings& bindings) {
  return Expression(text, bindings).Value();
}

Signature::Pattern Signature::Parse(const std::string& text) {
  Pattern pattern;
  pattern.text = text;
  const size_t bracket = text.find('[');
  if (bracket == std::string::npos || text.back() != ']') {
    Invalid("\"{}\" is no shape rule; one looks like f32[n,m] or T[...,n]", text);
  }
  pattern.type = Trimmed(text.substr(0, bracket));
  const bool is_variable = !pattern.type.empty() && std::isupper(static_cast<unsigned char>(pattern.type[0])) != 0;
  const std::optional<ElementType> type = is_variable ? std::nullopt : ElementTypeFromName(pattern.type);
  if (!is_variable && (!type || !IsArrayType(*type))) Invalid("\"{}\": {} is no element type", text, pattern.type);
  pattern.dimensions = SplitDimensions(std::string_view(text).substr(bracket + 1, text.size() - bracket - 2));
  if (!pattern.dimensions.empty() && pattern.dimensions.front() == "...") {
    pattern.has_batch = true;
    pattern.dimensions.erase(pattern.dimensions.begin());
  }
  for (const std::string& dimension : pattern.dimensions) {
    if (dimension.empty() || dimension == "...")
      Invalid("\"{}\": \"...\" comes first, and no dimension is empty", text);
  }
  return pattern;
}

Signature::Signature(const std::vector<std::string>& operands, const std::vector<std::string>& results) {
  for (const std::string& text : operands) operands_.push_back(Parse(text));
  for (const std::string& text : results) results_.push_back(Parse(text));
}

void Signature::Bind(const Pattern& pattern, const Shape& shape, Bindings& bindings) {
  const bool is_variable = std::isupper(static_cast<unsigned char>(pattern.type[0])) != 0;
  ElementType type = shape.element_type();
  if (is_variable) {
    type = bindings.types.try_emplace(pattern.type, type).first->second;
  } else {
    type = *ElementTypeFromName(pattern.type);
  }
  if (type != shape.element_type()) Invalid("its type must be {}", ElementTypeName(type));
  const auto fixed = static_cast<int64_t>(pattern.dimensions.size());
  const int64_t leading = shape.rank() - fixed;
  if (leading < 0 || (leading > 0 && !pattern.has_batch)) Invalid("it must have {} dimensions", fixed);
  if (pattern.has_batch) {
    const Dims batch(shape.dimensions().begin(), shape.dimensions().begin() + leading);
    if (!bindings.batch) bindings.batch = batch;
    if (*bindings.batch != batch) Invalid("its leading dimensions must be [{}]", fmt::join(*bindings.batch, ","));
  }
  for (int64_t d = 0; d < fixed; ++d) {
    const std::string& text = pattern.dimensions[static_cast<size_t>(d)];
    const int64_t size = shape.dimension(leading + d);
    int64_t expected = size;
    if (IsName(text)) {
      expected = bindings.sizes.try_emplace(text, size).first->second;
    } else {
      expected = EvaluateSizeExpression(text, bindings);
    }
    if (expected != size) Invalid("dimension {} must be {} = {}", leading + d, text, expected);
  }
}

Bindings Signature::Match(std::span<const Shape> operands, std::span<const Shape> results, Bindings known) const {
  const auto match = [&](std::string_view what, const std::vector<Pattern>& patterns, std::span<const Shape> shapes) {
    if (patterns.size() != shapes.size()) {
      Invalid("it has {} {} arrays, its registration {} has {}", shapes.size(), what, ToString(), patterns.size());
    }
    for (size_t i = 0; i < patterns.size(); ++i) {
      try {
        Bind(patterns[i], shapes[i], known);
      } catch (const Error& error) {
        Invalid("{} {} is {}, which is not {}: {}", what, i, shapes[i].ToString(false), patterns[i].text,
                error.message());
      }
    }
  };
  match("operand", operands_, operands);
  match("result", results_, results);
  return known;
}

std::string Signature::ToString() const {
  const auto list = [](const std::vector<Pattern>& patterns) {
    std::string text;
    for (const Pattern& pattern : patterns) text += (text.empty() ? "" : ", ") + pattern.text;
    return text;
  };
  return fmt::format("({}) -> ({})", list(operands_), list(results_));
}

}  // namespace hlorun::hlo
