//===- Import.cpp - a Hugging Face config.json as a spec ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/import/hf/Import.h"

#include "frontends/spec/HfConfig.h"
#include "frontends/spec/Reader.h"

using namespace reckon;

std::string hf::importConfig(const std::string &file, std::string_view text,
                             std::vector<Diagnostic> &errors) {
  std::optional<HfModel> config = readHfConfig(file, text, errors);
  if (!config || !errors.empty())
    return "";
  std::string remark = config->remark();
  Node root;
  root.kind = Node::Kind::Map;
  root.entries.push_back({"model", {}, std::move(config->model)});
  std::string name = SourceLoc{file, 0, 0}.shortStr();
  return "# From the Hugging Face configuration " + name + ".\n" +
         (remark.empty() ? "" : "# " + remark + "\n") + canonicalYaml(root);
}
