//===- HfConfigTest.cpp - config.json of several families -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/HfConfig.h"
#include "frontends/spec/JsonNode.h"
#include "tests/unit/spec/SpecTesting.h"

namespace reckon::testing_spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const char *llama = R"({
  "architectures": ["LlamaForCausalLM"],
  "attention_bias": false,
  "attention_dropout": 0.0,
  "bos_token_id": 128000,
  "hidden_act": "silu",
  "hidden_size": 4096,
  "initializer_range": 0.02,
  "intermediate_size": 14336,
  "max_position_embeddings": 131072,
  "mlp_bias": false,
  "model_type": "llama",
  "num_attention_heads": 32,
  "num_hidden_layers": 32,
  "num_key_value_heads": 8,
  "pretraining_tp": 1,
  "rms_norm_eps": 1e-05,
  "rope_scaling": {
    "factor": 8.0,
    "high_freq_factor": 4.0,
    "low_freq_factor": 1.0,
    "original_max_position_embeddings": 8192,
    "rope_type": "llama3"
  },
  "rope_theta": 500000.0,
  "tie_word_embeddings": false,
  "torch_dtype": "bfloat16",
  "use_cache": true,
  "vocab_size": 128256
})";

const char *qwen3 = R"({"model_type": "qwen3", "hidden_size": 1024,
 "intermediate_size": 3072, "num_hidden_layers": 28,
 "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
 "vocab_size": 151936, "tie_word_embeddings": true, "use_sliding_window": false,
 "sliding_window": 4096, "max_window_layers": 28, "rms_norm_eps": 1e-6,
 "layer_types": ["full_attention", "full_attention"],
 "rope_parameters": {"rope_type": "default", "rope_theta": 1000000}})";

const char *qwen3Moe = R"({"model_type": "qwen3_moe", "hidden_size": 2048,
 "intermediate_size": 6144, "num_hidden_layers": 48,
 "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 151936,
 "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
 "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": true,
 "head_dim": 128})";

const char *mixtral = R"({"model_type": "mixtral", "hidden_size": 4096,
 "intermediate_size": 14336, "num_hidden_layers": 32,
 "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
 "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": null,
 "router_aux_loss_coef": 0.02, "output_router_logits": false})";

const char *deepseek = R"({"model_type": "deepseek_v3", "hidden_size": 7168,
 "intermediate_size": 18432, "num_hidden_layers": 61,
 "num_attention_heads": 128, "num_key_value_heads": 128, "vocab_size": 129280,
 "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
 "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256,
 "n_shared_experts": 1, "num_experts_per_tok": 8,
 "moe_intermediate_size": 2048, "first_k_dense_replace": 3,
 "moe_layer_freq": 1, "num_nextn_predict_layers": 1,
 "scoring_func": "sigmoid", "topk_method": "noaux_tc",
 "quantization_config": {"quant_method": "fp8"},
 "rope_scaling": {"type": "yarn", "factor": 40, "beta_fast": 32,
   "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0,
   "original_max_position_embeddings": 4096}})";

const char *gpt2 = R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12,
 "n_head": 12, "n_positions": 1024, "n_inner": null, "vocab_size": 50257,
 "activation_function": "gelu_new", "resid_pdrop": 0.1,
 "layer_norm_epsilon": 1e-5, "shiny_new_key": 3})";

/// A spec in a folder of its own whose model is the config.json beside it.
Loaded withConfig(const std::string &config, const std::string &more = "",
                  const std::vector<std::string> &sets = {}) {
  FakeFileSystem files;
  files.files["jobs/spec.yaml"] = "model:\n"
                                  "  hf_config: ./config.json\n" +
                                  more +
                                  "cluster: {accelerator: h100-sxm, nodes: "
                                  "16, gpus_per_node: 8}\n"
                                  "training: {sequence_length: 1024, "
                                  "global_batch_size: 256}\n";
  files.files["jobs/config.json"] = config;
  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec({"jobs/spec.yaml"}, sets, errors, files);
  return {std::move(spec), std::move(errors)};
}

Spec modelOf(const std::string &config, const std::string &more = "") {
  Loaded loaded = withConfig(config, more);
  EXPECT_TRUE(loaded.spec.ok()) << loaded.text();
  return loaded.spec.ok() ? *loaded.spec : Spec();
}

TEST(HfConfig, Llama) {
  Spec spec = modelOf(llama);
  const ModelSpec &m = spec.model;
  EXPECT_EQ(*m.architecture, "llama");
  EXPECT_EQ(*m.hiddenSize, 4096);
  EXPECT_EQ(m.hiddenSize.loc.str(), "jobs/config.json:7:3");
  EXPECT_EQ(*m.rmsNormEps, 1e-5);
  EXPECT_EQ(*m.ropeScaling.type, RopeType::Llama3);
  EXPECT_EQ(*m.ropeScaling.factor, 8);
  EXPECT_EQ(*m.ropeTheta, 500000);
  EXPECT_EQ(*m.hiddenAct, "silu");
  EXPECT_FALSE(*m.tieWordEmbeddings);
  ASSERT_EQ(spec.warnings.size(), 1u) << joinDiagnostics(spec.warnings);
  EXPECT_THAT(spec.warnings[0].str(),
              HasSubstr("jobs/spec.yaml:2:14: warning: jobs/config.json: "
                        "ignored, since memory and time do not depend on it: "
                        "architectures, attention_bias, attention_dropout"));
}

TEST(HfConfig, KeysOfTheSpecOverride) {
  Spec spec = modelOf(llama, "  num_hidden_layers: 4\n"
                             "  rope_scaling: none\n");
  EXPECT_EQ(*spec.model.numHiddenLayers, 4);
  EXPECT_EQ(spec.model.numHiddenLayers.loc.str(), "jobs/spec.yaml:3:3");
  EXPECT_EQ(*spec.model.ropeScaling.type, RopeType::None);
  spec = modelOf(deepseek, "  n_routed_experts: 16\n");
  EXPECT_EQ(*spec.model.numExperts, 16);
}

TEST(HfConfig, TheCanonicalSpecHoldsTheKeysNotThePath) {
  Spec first = modelOf(deepseek);
  EXPECT_THAT(first.canonical, ::testing::Not(HasSubstr("config.json")));
  EXPECT_THAT(first.canonical, HasSubstr("architecture: deepseek_v3"));
  Spec second = loadGood(first.canonical);
  EXPECT_EQ(second.canonical, first.canonical);
  EXPECT_EQ(*second.model.numExperts, 256);
}

TEST(HfConfig, Qwen) {
  const ModelSpec m = modelOf(qwen3).model;
  EXPECT_EQ(*m.architecture, "qwen3");
  EXPECT_TRUE(*m.qkNorm);
  EXPECT_TRUE(*m.tieWordEmbeddings);
  EXPECT_EQ(*m.headDim, 128);       // not 1024 / 16
  EXPECT_EQ(*m.ropeTheta, 1000000); // of rope_parameters
  EXPECT_EQ(*m.ropeScaling.type, RopeType::None);
  const ModelSpec moe = modelOf(qwen3Moe).model;
  EXPECT_EQ(*moe.architecture, "mixtral"); // with norms on queries and keys
  EXPECT_TRUE(*moe.qkNorm);
  EXPECT_EQ(*moe.numExperts, 128);
  EXPECT_EQ(*moe.moeIntermediateSize, 768);
  EXPECT_EQ(*moe.rmsNormEps, 1e-6); // Qwen's default, not Mixtral's
}

TEST(HfConfig, Mixtral) {
  const ModelSpec m = modelOf(mixtral).model;
  EXPECT_EQ(*m.numExperts, 8);
  EXPECT_EQ(*m.moeIntermediateSize, 14336); // the only width there is
  EXPECT_EQ(*m.ropeTheta, 1e6);
  EXPECT_EQ(*m.routerAuxLossCoef, 0.02);
}

TEST(HfConfig, Deepseek) {
  const ModelSpec m = modelOf(deepseek).model;
  EXPECT_EQ(*m.numExperts, 256);
  EXPECT_EQ(*m.qLoraRank, 1536);
  EXPECT_EQ(*m.headDim, 192); // 128 + 64
  EXPECT_EQ(*m.numNextnPredictLayers, 1);
  EXPECT_EQ(*m.ropeScaling.type, RopeType::Yarn);
  EXPECT_EQ(*m.ropeScaling.betaFast, 32);
  // Queries that are not compressed.
  std::string whole =
      edited(deepseek, "\"q_lora_rank\": 1536", "\"q_lora_rank\": null");
  EXPECT_EQ(*modelOf(whole).model.qLoraRank, 0);
}

TEST(HfConfig, Gpt2) {
  Spec spec = modelOf(gpt2);
  const ModelSpec &m = spec.model;
  EXPECT_EQ(*m.hiddenSize, 768);
  EXPECT_EQ(*m.intermediateSize, 3072); // 4 * 768
  EXPECT_EQ(*m.maxPositionEmbeddings, 1024);
  EXPECT_TRUE(*m.tieWordEmbeddings);
  EXPECT_EQ(*m.hiddenAct, "gelu_new");
  EXPECT_THAT(joinDiagnostics(spec.warnings),
              HasSubstr("not known and taken to change nothing: "
                        "shiny_new_key"));
}

/// An edit of a config that makes another model of it.
struct Refused {
  const char *name, *config, *find, *replacement;
  std::vector<std::string> words;
};

class Refuses : public ::testing::TestWithParam<Refused> {};

TEST_P(Refuses, AtItsPlace) {
  const Refused &p = GetParam();
  Loaded loaded = withConfig(edited(p.config, p.find, p.replacement));
  ASSERT_EQ(loaded.errors.size(), 1u) << loaded.text();
  EXPECT_EQ(loaded.spec.error().code, ExitCode::BadSpec);
  EXPECT_EQ(loaded.errors[0].loc.file, "jobs/config.json");
  EXPECT_GT(loaded.errors[0].loc.line, 0u);
  for (const std::string &word : p.words)
    EXPECT_THAT(loaded.text(), HasSubstr(word));
}

INSTANTIATE_TEST_SUITE_P(
    All, Refuses,
    ::testing::Values(Refused{"Family",
                              llama,
                              "\"llama\"",
                              "\"lama\"",
                              {"config.json:12:17", "did you mean llama?"}},
                      Refused{
                          "MlpBias",
                          llama,
                          "\"mlp_bias\": false",
                          "\"mlp_bias\": true",
                          {"config.json:11:15", "biases of the feed-forward"}},
                      Refused{"AttentionBias",
                              llama,
                              "\"attention_bias\": false",
                              "\"attention_bias\": true",
                              {"output projection"}},
                      Refused{"SlidingWindow",
                              qwen3,
                              "\"use_sliding_window\": false",
                              "\"use_sliding_window\": true",
                              {"sliding windows"}},
                      Refused{"MixtralWindow",
                              mixtral,
                              "\"sliding_window\": null",
                              "\"sliding_window\": 4096",
                              {"sliding windows"}},
                      Refused{"LayerTypes",
                              qwen3,
                              "[\"full_attention\"",
                              "[\"sliding_attention\"",
                              {"full_attention", "sliding"}},
                      Refused{"RopeType",
                              qwen3,
                              "\"rope_type\": \"default\"",
                              "\"rope_type\": \"mrope\"",
                              {"rope_type", "\"mrope\""}},
                      Refused{"Activation",
                              llama,
                              "\"hidden_act\": \"silu\"",
                              "\"hidden_act\": \"xielu\"",
                              {"hidden_act", "xielu"}},
                      Refused{"Router",
                              deepseek,
                              "\"sigmoid\"",
                              "\"softmax\"",
                              {"scoring_func", "sigmoids"}},
                      Refused{"DenseLayersBetween",
                              qwen3Moe,
                              "\"decoder_sparse_step\": 1",
                              "\"decoder_sparse_step\": 2",
                              {"alternate"}},
                      Refused{"PartialRope",
                              llama,
                              "\"use_cache\": true",
                              "\"partial_rotary_factor\": 0.5",
                              {"partly rotary"}},
                      Refused{"KeyHeads",
                              mixtral,
                              "\"num_key_value_heads\": 8,",
                              "",
                              {"num_key_value_heads", "add it"}},
                      Refused{"NotANumber",
                              llama,
                              "\"hidden_size\": 4096",
                              "\"hidden_size\": \"4096\"",
                              {"config.json:7:18", "remove the quotes"}},
                      Refused{"Twice",
                              llama,
                              "\"use_cache\": true",
                              "\"vocab_size\": 1",
                              {"\"vocab_size\" twice"}},
                      Refused{"NotJson",
                              llama,
                              "\"use_cache\": true,",
                              "\"use_cache\": true",
                              {"config.json:29", "missing comma"}}),
    [](const ::testing::TestParamInfo<Refused> &info) {
      return std::string(info.param.name);
    });

TEST(HfConfig, AMissingFileIsNoBadSpec) {
  Loaded loaded =
      load(edited(goodSpec, "architecture: llama", "hf_config: other.json"));
  ASSERT_FALSE(loaded.spec.ok());
  EXPECT_EQ(loaded.spec.error().code, ExitCode::Environment);
  ASSERT_EQ(loaded.errors.size(), 1u) << loaded.text();
  EXPECT_EQ(loaded.errors[0].loc.str(), "spec.yaml:2:14");
  EXPECT_THAT(loaded.text(), HasSubstr("other.json"));
}

TEST(HfConfig, OtherFaultsOfTheSpecAreReportedToo) {
  Loaded loaded = withConfig("{}", "", {"training.sequence_length=-1"});
  EXPECT_EQ(loaded.errors.size(), 2u) << loaded.text();
  EXPECT_THAT(loaded.text(), HasSubstr("model_type"));
  EXPECT_THAT(loaded.text(), HasSubstr("sequence_length"));
}

TEST(JsonNode, PlacesAndStrings) {
  std::vector<Diagnostic> errors;
  std::optional<Node> node =
      parseJson("f.json",
                "{\n  \"a\": [1, -2.5e3,\n true],\t\"b\\n\": "
                "\"\\u00e9\\\"\", \"c\": null}",
                errors);
  ASSERT_TRUE(node) << joinDiagnostics(errors);
  const Node &list = node->find("a")->value;
  EXPECT_EQ(list.items[1].text, "-2.5e3");
  EXPECT_EQ(list.items[1].loc.str(), "f.json:2:12");
  EXPECT_EQ(list.items[2].loc.str(), "f.json:3:2");
  EXPECT_EQ(node->find("b\n")->value.text, "\xc3\xa9\"");
  EXPECT_TRUE(node->find("b\n")->value.quoted);
  EXPECT_TRUE(node->find("c")->value.isNull());
}

TEST(JsonNode, DepthAndNoiseAreErrors) {
  for (const std::string &text :
       {std::string(100000, '['), std::string(), std::string("{\"a\" 1}"),
        std::string("[") + std::string(70, '[') + std::string(71, ']'),
        std::string("\x00\xff", 2)}) {
    std::vector<Diagnostic> errors;
    EXPECT_FALSE(parseJson("f.json", text, errors));
    EXPECT_EQ(errors.size(), 1u) << text.substr(0, 20);
  }
}

} // namespace
} // namespace reckon::testing_spec
