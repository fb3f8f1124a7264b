//===- SchemaTest.cpp - the JSON Schema says what the table says ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Schema.h"

#include "frontends/spec/Accelerators.h"
#include "frontends/spec/Keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace reckon {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

const Json &schema() {
  static const Json json = Json::parse(specSchema());
  return json;
}

/// The object schema among the alternatives of a key.
const Json *objectOf(const Json &json) {
  if (json.contains("properties"))
    return &json;
  if (json.contains("anyOf"))
    for (const Json &each : json["anyOf"])
      if (const Json *found = objectOf(each))
        return found;
  return nullptr;
}

/// The schema of a dotted path, or null.
const Json *at(std::string_view path) {
  const Json *json = &schema();
  while (!path.empty()) {
    size_t dot = path.find('.');
    const Json *object = objectOf(*json);
    std::string key(path.substr(0, dot));
    if (!object || !(*object)["properties"].contains(key))
      return nullptr;
    json = &(*object)["properties"][key];
    path.remove_prefix(dot == path.npos ? path.size() : dot + 1);
  }
  return json;
}

TEST(Schema, HasEveryKeyAndNoOther) {
  EXPECT_EQ(schema()["$schema"],
            "https://json-schema.org/draft/2020-12/schema");
  for (const KeyRow &row : keyTable()) {
    const Json *json = at(row.path);
    ASSERT_TRUE(json) << row.path;
    EXPECT_THAT((*json)["description"].get<std::string>(),
                HasSubstr(std::string(row.doc)));
  }
  // As many properties as rows, in closed objects.
  size_t properties = 0;
  std::function<void(const Json &)> count = [&](const Json &json) {
    if (const Json *object = objectOf(json)) {
      if (object->contains("required")) // the form {layers: n}
        return;
      EXPECT_EQ((*object)["additionalProperties"], false);
      for (const auto &[key, value] : (*object)["properties"].items())
        ++properties, count(value);
    }
  };
  count(schema());
  EXPECT_EQ(properties, keyTable().size());
}

TEST(Schema, TypesAndRanges) {
  const Json &integer = (*at("model.hidden_size"))["anyOf"][0];
  EXPECT_EQ(integer["type"], "integer");
  EXPECT_EQ(integer["minimum"], 1);
  EXPECT_EQ(integer["maximum"], 16777216);
  EXPECT_EQ((*at("cluster.gpu_mtbf_hours"))["default"], 50000.0);
  EXPECT_EQ((*at("model.architecture"))["anyOf"][0]["enum"].size(), 6u);
  // A degree: no wish, one number, or a list of them.
  const Json &degree = (*at("parallelism.tensor_parallel"))["anyOf"];
  ASSERT_EQ(degree.size(), 3u);
  EXPECT_EQ(degree[1]["type"], "integer");
  EXPECT_EQ(degree[2]["items"], degree[1]);
  // Words with a part to fill in.
  std::string schedule = at("parallelism.pipeline_schedule")->dump();
  EXPECT_THAT(schedule, HasSubstr("^csv:.+"));
  EXPECT_THAT(schedule, ::testing::Not(HasSubstr("csv:FILE\"]")));
  EXPECT_THAT(at("parallelism.recompute")->dump(), HasSubstr("\"layers\""));
  const Json &chips = (*at("cluster.accelerator"))["anyOf"][0]["enum"];
  EXPECT_EQ(chips.size(), acceleratorCatalogue().size());
}

} // namespace
} // namespace reckon
