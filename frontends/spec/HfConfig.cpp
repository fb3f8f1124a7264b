//===- HfConfig.cpp -------------------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/HfConfig.h"

#include "frontends/spec/HfFamilies.h"
#include "frontends/spec/JsonNode.h"
#include "frontends/spec/Keys.h"
#include "frontends/spec/Scalars.h"
#include "frontends/spec/Suggest.h"

#include <algorithm>

namespace reckon {
namespace {

using namespace hf;

bool isEmpty(const Node &node) {
  switch (node.kind) {
  case Node::Kind::Null:
    return true;
  case Node::Kind::Scalar:
    return node.text.empty() || node.text == "false" || node.text == "0" ||
           node.text == "0.0";
  case Node::Kind::List:
    return node.items.empty();
  case Node::Kind::Map:
    return node.entries.empty();
  }
  return false;
}

template <typename Range>
bool contains(const Range &range, std::string_view word) {
  return std::find(std::begin(range), std::end(range), word) != std::end(range);
}

class Converter {
public:
  Converter(const Node &root, std::vector<Diagnostic> &errors)
      : root_(root), errors_(errors) {}

  std::optional<HfModel> run() {
    if (!findFamily())
      return std::nullopt;
    for (const Entry &entry : root_.entries)
      key(entry);
    required();
    if (!errors_.empty())
      return std::nullopt;
    order();
    return std::move(out_);
  }

private:
  void error(const SourceLoc &loc, std::string message) {
    errors_.push_back(errorAt(loc, std::move(message)));
  }

  bool findFamily() {
    const Entry *type = root_.find("model_type");
    std::vector<std::string> names;
    for (const Family &family : families) {
      names.emplace_back(family.type);
      if (type && type->value.text == family.type)
        family_ = &family;
    }
    if (!family_) {
      std::string near = type ? nearestWord(type->value.text, names) : "";
      error(type ? type->value.loc : root_.loc,
            "expected model_type " + listWords(names) + ", got " +
                (type ? type->value.describe() : "none") +
                (near.empty() ? "; other families are not accounted for"
                              : "; did you mean " + near + "?"));
      return false;
    }
    out_.model.kind = Node::Kind::Map;
    out_.model.loc = root_.loc;
    word("architecture", *type, std::string(family_->architecture));
    if (family_->type == "qwen3_moe")
      word("qk_norm", *type, "true");
    return true;
  }

  void put(std::string_view name, const Entry &from) {
    Entry entry = from;
    entry.key = name;
    if (Entry *there = out_.model.find(name))
      *there = std::move(entry);
    else
      out_.model.entries.push_back(std::move(entry));
  }
  /// A plain word with the place of `from`.
  void word(std::string_view name, const Entry &from, std::string text) {
    Entry entry = from;
    entry.value = Node();
    entry.value.kind = Node::Kind::Scalar;
    entry.value.loc = from.value.loc;
    entry.value.text = std::move(text);
    put(name, entry);
  }

  /// Reports a value that makes another model of it.
  void check(const Entry &entry, std::string_view values,
             std::string_view why) {
    if (isEmpty(entry.value))
      return;
    for (const std::string &value : splitWords(values))
      if (entry.value.isScalar() && entry.value.text == value)
        return;
    error(entry.value.loc,
          "expected " +
              (values.empty() ? std::string("nothing or false")
                              : listWords(splitWords(values))) +
              " for " + entry.key + ", got " + entry.value.describe() + "; " +
              std::string(why));
  }

  void key(const Entry &entry) {
    const std::string &name = entry.key;
    const Node &value = entry.value;
    if (name == "model_type")
      return;
    if (name == "rope_scaling" || name == "rope_parameters")
      return rope(entry);
    if (name == "_name_or_path" && !value.text.empty() && value.isScalar()) {
      std::string path = value.text;
      while (path.size() > 1 && path.back() == '/')
        path.pop_back();
      word("name", entry, path.substr(path.rfind('/') + 1));
      out_.model.find("name")->value.quoted = true;
      return;
    }
    if (name == "sliding_window")
      return slidingWindow(entry);
    if (name == "layer_types") {
      for (const Node &item : value.items)
        if (item.text != "full_attention")
          return error(item.loc,
                       "expected full_attention in layer_types, got " +
                           item.describe() +
                           "; other attention is not accounted for");
      out_.ignored.push_back(name);
      return;
    }
    for (const Only &each : only)
      if (name == each.key) {
        check(entry, each.values, each.why);
        out_.ignored.push_back(name);
        return;
      }
    if (family_->type == "deepseek_v3")
      for (const Only &each : routerOnly)
        if (name == each.key)
          check(entry, each.values, each.why);
    if (name == "attention_bias" && family_->type != "qwen2") {
      check(entry, "",
            "it would bias the output projection too, which is not accounted "
            "for");
      out_.ignored.push_back(name);
      return;
    }
    if (name == "scale_attn_weights" && value.text == "false")
      return error(value.loc, "expected true for scale_attn_weights, got "
                              "false; attention of another scale is another "
                              "model");
    if (contains(harmless, name))
      out_.ignored.push_back(name);
    else
      known(entry);
  }

  /// A key of ours, by our name or that of the family.
  void known(const Entry &entry) {
    std::string name = entry.key;
    if (family_->type == "gpt2")
      for (const Rename &each : gpt2Names)
        if (name == each.theirs)
          name = each.ours;
    if (name == "num_experts" || name == "n_routed_experts")
      name = "num_local_experts";
    const KeyRow *row = findKey("model." + name);
    bool scalar =
        row && row->kind != KeyKind::Section && row->kind != KeyKind::Special;
    bool applies =
        scalar && (row->applies.empty() ||
                   contains(splitWords(row->applies), family_->architecture));
    if (!scalar || name == "architecture") {
      out_.unknown.push_back(entry.key);
      return;
    }
    if (!applies) {
      out_.ignored.push_back(entry.key);
      return;
    }
    if (!entry.value.isNull()) {
      put(name, entry);
      // A word in JSON's quotes is the word.
      if (row->kind == KeyKind::Word)
        out_.model.find(name)->value.quoted = false;
    } else if (name == "q_lora_rank") {
      word(name, entry, "0"); // queries are not compressed
    }
  }

  void slidingWindow(const Entry &entry) {
    const Entry *use = root_.find("use_sliding_window");
    bool off = use && use->value.text == "false";
    bool qwen = family_->type.substr(0, 4) == "qwen";
    // Qwen's default is not to use it.
    if (!off && !qwen)
      check(entry, "", "sliding windows are not accounted for; write null");
    out_.ignored.push_back(entry.key);
  }

  void rope(const Entry &entry) {
    const Node &map = entry.value;
    if (isEmpty(map))
      return;
    if (!map.isMap()) {
      error(map.loc, "expected a map for " + entry.key + ", got " +
                         map.describe() + "; remove it or write its keys");
      return;
    }
    Entry scaling = entry;
    scaling.key = "rope_scaling";
    scaling.value.entries.clear();
    const Entry *type = map.find("rope_type");
    if (!type)
      type = map.find("type");
    for (const Entry &inner : map.entries) {
      std::string path = entry.key + "." + inner.key;
      if (inner.value.isMap()) {
        error(inner.loc, "expected one set of rotary parameters, got " +
                             quoteForMessage(inner.key) +
                             "; layers of different kinds are not accounted "
                             "for");
        return;
      }
      if (inner.key == "rope_theta" && !inner.value.isNull())
        put("rope_theta", inner);
      else if (inner.key == "partial_rotary_factor")
        check(inner, "1|1.0", "partly rotary heads are not accounted for");
      else if (&inner == type || inner.key == "type" || inner.value.isNull())
        continue;
      else if (findKey("model.rope_scaling." + inner.key))
        scaling.value.entries.push_back(inner);
      else
        out_.ignored.push_back(path); // such as longrope's factors
    }
    if (!type || type->value.text == "default")
      return;
    Entry kind = *type;
    kind.key = "rope_type";
    kind.value.quoted = false;
    if (kind.value.text == "su")
      kind.value.text = "longrope";
    scaling.value.entries.insert(scaling.value.entries.begin(), kind);
    put("rope_scaling", scaling);
  }

  /// Sizes whose default in Hugging Face is one model's, not a rule.
  void required() {
    bool grouped = family_->type == "mixtral" || family_->type == "mistral" ||
                   family_->type.substr(0, 4) == "qwen";
    if (grouped && !root_.find("num_key_value_heads"))
      error(root_.loc, "expected the key num_key_value_heads in a " +
                           std::string(family_->type) +
                           " config, got none; add it");
    if (family_->type == "qwen3_moe")
      for (const Rename &each : qwen3MoeDefaults)
        if (!out_.model.find(each.theirs))
          word(each.theirs, *root_.find("model_type"), std::string(each.ours));
  }

  void order() {
    std::vector<Entry> sorted;
    for (const KeyRow *row : keysBelow("model"))
      if (Entry *entry = out_.model.find(row->name()))
        sorted.push_back(std::move(*entry));
    out_.model.entries = std::move(sorted);
  }

  const Node &root_;
  std::vector<Diagnostic> &errors_;
  const Family *family_ = nullptr;
  HfModel out_;
};

} // namespace

std::string HfModel::remark() const {
  auto list = [](const std::vector<std::string> &keys) {
    std::string text;
    for (const std::string &key : keys)
      text += (text.empty() ? "" : ", ") + key;
    return text;
  };
  std::string text;
  if (!ignored.empty())
    text =
        "ignored, since memory and time do not depend on it: " + list(ignored);
  if (!unknown.empty())
    text += (text.empty() ? "" : "; ") +
            ("not known and taken to change nothing: " + list(unknown));
  return text;
}

std::optional<HfModel> readHfConfig(const std::string &file,
                                    std::string_view text,
                                    std::vector<Diagnostic> &errors) {
  std::vector<Diagnostic> found;
  std::optional<HfModel> model;
  std::optional<Node> root = parseJson(file, text, found);
  if (root && !root->isMap())
    found.push_back(errorAt(root->loc, "expected a map of keys, got " +
                                           root->describe() +
                                           "; name a config.json"));
  else if (root)
    model = Converter(*root, found).run();
  errors.insert(errors.end(), found.begin(), found.end());
  return model;
}

} // namespace reckon
