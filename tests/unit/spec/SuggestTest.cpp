//===- SuggestTest.cpp - nearest words ------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Suggest.h"

#include "frontends/spec/Keys.h"

#include <gtest/gtest.h>

namespace reckon {
namespace {

TEST(Suggest, Distances) {
  EXPECT_EQ(editDistance("", ""), 0u);
  EXPECT_EQ(editDistance("", "abc"), 3u);
  EXPECT_EQ(editDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(editDistance("smx", "sxm"), 1u); // a swap
  EXPECT_EQ(editDistance("LLAMA", "llama"), 0u);
}

TEST(Suggest, NearestWord) {
  std::vector<std::string> words = {"llama", "gpt2", "qwen2", "qwen3"};
  EXPECT_EQ(nearestWord("lama", words), "llama");
  EXPECT_EQ(nearestWord("qwen", words), "qwen2"); // the first of equals
  EXPECT_EQ(nearestWord("transformer", words), "");
  EXPECT_EQ(nearestWord(std::string(100000, 'a'), words), "");
}

TEST(Suggest, NearestKey) {
  EXPECT_EQ(nearestKey("model", "hiden_size"), "model.hidden_size");
  EXPECT_EQ(nearestKey("", "modle"), "model");
  EXPECT_EQ(nearestKey("parallelism", "tp"), "parallelism.tensor_parallel");
  EXPECT_EQ(nearestKey("training", "lr"), "training.optimizer.lr");
  EXPECT_EQ(nearestKey("", "tensor_paralel"), "parallelism.tensor_parallel");
  EXPECT_EQ(nearestKey("model", "zzzzzzzz"), "");
}

TEST(Suggest, Lists) {
  EXPECT_EQ(listWords({}), "");
  EXPECT_EQ(listWords({"a"}), "a");
  EXPECT_EQ(listWords({"a", "b", "c"}), "a, b or c");
}

} // namespace
} // namespace reckon
