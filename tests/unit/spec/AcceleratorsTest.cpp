//===- AcceleratorsTest.cpp - the catalogue and figures of one's own ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Keys.h"
#include "tests/unit/spec/SpecTesting.h"

namespace reckon::testing_spec {
namespace {

using ::testing::HasSubstr;

TEST(Accelerators, HoldsTheContractsNames) {
  for (const char *name :
       {"cpu", "a100-sxm-40gb", "a100-sxm-80gb", "h100-sxm",
        "h100-sxm-94gb-hbm2e", "h100-sxm-96gb-hbm2e", "h200-sxm", "h800-sxm",
        "b200-sxm", "b300-sxm", "gb200-nvl72", "gb300-nvl72"})
    EXPECT_TRUE(findAccelerator(name)) << name;
  EXPECT_EQ(acceleratorCatalogue().size(), 12u);
  EXPECT_FALSE(findAccelerator("h100"));
}

TEST(Accelerators, FiguresArePlausible) {
  for (const Accelerator &a : acceleratorCatalogue()) {
    SCOPED_TRACE(a.name);
    EXPECT_GT(a.bf16DenseTflops, 0);
    EXPECT_GT(a.fp32Tflops, 0);
    EXPECT_LE(a.fp32Tflops, a.bf16DenseTflops);
    EXPECT_GT(a.memGb, a.memoryReserveGib);
    EXPECT_GT(a.memBwGbs, 0);
    EXPECT_GT(a.intraNodeBwGbs, a.interNodeBwGbsPerGpu);
    EXPECT_GE(a.intraNodeSize, 8);
    EXPECT_FALSE(a.source.empty());
    EXPECT_EQ(a.memoryReserveGib, a.isCpu() ? 0 : 2);
  }
  const Accelerator &h100 = *findAccelerator("h100-sxm");
  EXPECT_EQ(h100.bf16DenseTflops, 989.4);
  EXPECT_EQ(h100.fp32Tflops, 66.9);
  EXPECT_EQ(h100.memoryBytes(), int64_t{80} << 30);
  EXPECT_EQ(h100.intraNodeBwGbs, 450);
}

TEST(Accelerators, DocumentationNamesThemAll) {
  std::string doc(findKey("cluster.accelerator")->doc);
  for (const Accelerator &a : acceleratorCatalogue())
    EXPECT_THAT(doc, HasSubstr(a.name));
}

TEST(Accelerators, TableFaultsHaveALine) {
  std::string header =
      "catalogue_name,chip,bf16_dense_tflops,fp8_dense_tflops,fp32_tflops,"
      "mem_gb,mem_bw_gbs,intra_node_bw_gbs,intra_node_size,"
      "inter_node_bw_gbs_per_gpu,memory_reserve_gib,peak_is_assumed,source\n";
  auto good = parseAccelerators(
      header + "x,\"X, the \"\"best\"\"\",1,,1,1,1,1,1,1,1,0,\"a,b\"\n");
  ASSERT_TRUE(good.ok()) << good.error().message;
  EXPECT_EQ((*good)[0].chip, "X, the \"best\"");
  EXPECT_EQ((*good)[0].source, "a,b");
  EXPECT_EQ((*good)[0].fp8DenseTflops, 0);
  auto few = parseAccelerators(header + "x,y\n");
  ASSERT_FALSE(few.ok());
  EXPECT_THAT(few.error().message, HasSubstr("accelerators.csv:2"));
  EXPECT_FALSE(
      parseAccelerators(header + "x,y,fast,,1,1,1,1,1,1,1,0,s\n").ok());
  EXPECT_FALSE(parseAccelerators("name,b,c,d,e,f,g,h,i,j,k,l,m\n").ok());
}

TEST(Accelerators, AMapOfFigures) {
  std::string map = "\n    chip: TPU\n    bf16_dense_tflops: 160\n"
                    "    mem_gb: 32\n    mem_bw_gbs: 1000\n"
                    "    intra_node_bw_gbs: 100\n";
  Spec spec = loadGood(edited(goodSpec, " h100-sxm\n", map));
  const Accelerator &a = *spec.cluster.accelerator;
  EXPECT_EQ(a.name, "custom");
  EXPECT_EQ(a.chip, "TPU");
  EXPECT_EQ(a.fp32Tflops, 10); // 160 / 16
  EXPECT_EQ(a.intraNodeSize, 8);
  EXPECT_EQ(*spec.cluster.interNodeBandwidthGbps, 400);
  EXPECT_EQ(*spec.constraints.memoryLimitGib, 30); // 32 - 2
}

TEST(Accelerators, AMapNeedsItsFigures) {
  Loaded loaded =
      load(edited(goodSpec, " h100-sxm\n", "\n    mem_gb: 32\n    men: 1\n"));
  EXPECT_THAT(loaded.text(),
              HasSubstr("spec.yaml:10:3: error: expected the key "
                        "cluster.accelerator.bf16_dense_tflops"));
  EXPECT_THAT(loaded.text(), HasSubstr("spec.yaml:12:5: error: expected a "
                                       "known key under cluster.accelerator"));
}

TEST(Accelerators, AListIsNone) {
  EXPECT_THAT(load(edited(goodSpec, "h100-sxm", "[h100-sxm]")).text(),
              HasSubstr("spec.yaml:10:16: error: expected an accelerator"));
}

} // namespace
} // namespace reckon::testing_spec
