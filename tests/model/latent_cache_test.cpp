// Decoding with a cache of latents equals recomputation, by both ways that attention reads them:
// keys and values made anew, or the queries brought to the latents ("absorbed"). With the fixtures'
// sizes one new token behind two or more positions takes the second, ten behind two the first.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <map>

#include "onset/model/decoder.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

using Ids = std::vector<std::int64_t>;

const Ids prompt{1, 17, 45, 200, 3, 99, 120, 7, 64, 180, 33, 250};

Ids part(std::size_t begin, std::size_t end) {
  return {prompt.begin() + static_cast<std::ptrdiff_t>(begin),
          prompt.begin() + static_cast<std::ptrdiff_t>(end)};
}

struct LatentCase {
  const char* path;
  Compute compute;
  Residency residency;
};

class LatentCache : public ::testing::TestWithParam<LatentCase> {
 protected:
  [[nodiscard]] at::Tensor logits(const std::vector<SequenceInput>& batch,
                                  const Hooks* hooks = nullptr) const {
    return model_.decoder().forward(batch, LogitRows::all, hooks).logits;
  }
  [[nodiscard]] at::Tensor whole(const Ids& ids, const Hooks* hooks = nullptr) const {
    return logits({{.ids = ids}}, hooks);
  }
  // A cache that holds the first `count` tokens of the prompt.
  [[nodiscard]] KvCache filled(std::size_t count) const {
    KvCache cache = model_.decoder().new_cache();
    static_cast<void>(logits({{.ids = part(0, count), .cache = &cache}}));
    return cache;
  }
  [[nodiscard]] Hooks observing(const std::string& patterns,
                                std::map<std::string, at::Tensor>& seen) const {
    Hooks hooks(model_.config().layer_count());
    hooks.observe(SiteSet::parse(patterns, model_.config()),
                  [&seen](const SiteContext& context, const at::Tensor& tensor) {
                    seen[site_name(context.site)] = tensor;
                  });
    return hooks;
  }

  c10::InferenceMode inference_;
  Model model_ = Model::open(onset::testing::data(std::string("models/") + GetParam().path),
                             {GetParam().compute, GetParam().residency});
  Tolerance tolerance_ = GetParam().compute == Compute::f64
                             ? Tolerance{.atol = 1e-11, .rtol = 1e-11}
                             : Tolerance{.atol = 3e-5, .rtol = 3e-5};
};

TEST_P(LatentCache, OneTokenBehindALongPrefix) {
  KvCache cache = filled(11);
  const at::Tensor found = logits({{.ids = part(11, 12), .cache = &cache}});
  EXPECT_TRUE(close(found[0], whole(prompt)[11], tolerance_));
  EXPECT_EQ(cache.length(), 12);
}

TEST_P(LatentCache, ALongChunkBehindAShortPrefix) {
  KvCache cache = filled(2);
  const at::Tensor found = logits({{.ids = part(2, 12), .cache = &cache}});
  EXPECT_TRUE(close(found, whole(prompt).narrow(0, 2, 10), tolerance_));
}

TEST_P(LatentCache, EverySplitIntoTwoAndOneByOne) {
  const at::Tensor expected = whole(prompt);
  KvCache stepwise = model_.decoder().new_cache();
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    EXPECT_TRUE(
        close(logits({{.ids = part(i, i + 1), .cache = &stepwise}})[0], expected[row], tolerance_))
        << i;
    if (i == 0) continue;
    KvCache cache = filled(i);
    EXPECT_TRUE(close(logits({{.ids = part(i, 12), .cache = &cache}}),
                      expected.narrow(0, row, 12 - row), tolerance_))
        << i;
  }
}

// Every row is what it is alone, whatever it shares the call with.
TEST_P(LatentCache, RowsWithAndWithoutCachesInOneBatch) {
  KvCache long_prefix = filled(11);
  KvCache short_prefix = filled(2);
  KvCache empty = model_.decoder().new_cache();
  const Ids other{1, 5, 9};
  const at::Tensor found = logits({{.ids = part(11, 12), .cache = &long_prefix},
                                   {.ids = other},
                                   {.ids = part(2, 12), .cache = &short_prefix},
                                   {.ids = other, .cache = &empty},
                                   {.ids = {7}}});
  const at::Tensor expected = whole(prompt);
  EXPECT_TRUE(close(found.narrow(0, 0, 1), expected.narrow(0, 11, 1), tolerance_));
  EXPECT_TRUE(close(found.narrow(0, 1, 3), whole(other), tolerance_));
  EXPECT_TRUE(close(found.narrow(0, 4, 10), expected.narrow(0, 2, 10), tolerance_));
  EXPECT_TRUE(close(found.narrow(0, 14, 3), whole(other), tolerance_));
  EXPECT_TRUE(close(found.narrow(0, 17, 1), whole({7}), tolerance_));
  EXPECT_EQ(empty.ids(), other);
}

TEST_P(LatentCache, ATruncatedCacheGoesOnFromThere) {
  KvCache cache = filled(10);
  cache.truncate(4);
  Ids turned = part(0, 4);
  for (const std::int64_t id : {201, 14, 88}) {
    turned.push_back(id);
    const at::Tensor found = logits({{.ids = {id}, .cache = &cache}});
    EXPECT_TRUE(
        close(found[0], whole(turned)[static_cast<std::int64_t>(turned.size()) - 1], tolerance_));
  }
  cache.truncate(0);
  EXPECT_TRUE(close(logits({{.ids = prompt, .cache = &cache}}), whole(prompt), tolerance_));
}

// What an observer sees of the new positions is what it sees of them without a cache.
TEST_P(LatentCache, SitesShowTheSameWithACache) {
  const std::string sites = "layers.*.*";
  std::map<std::string, at::Tensor> expected;
  const Hooks watching = observing(sites, expected);
  static_cast<void>(whole(prompt, &watching));
  for (const std::size_t prefix : {std::size_t{2}, std::size_t{11}}) {
    KvCache cache = filled(prefix);
    std::map<std::string, at::Tensor> found;
    const Hooks hooks = observing(sites, found);
    static_cast<void>(logits({{.ids = part(prefix, 12), .cache = &cache}}, &hooks));
    const auto first = static_cast<std::int64_t>(prefix);
    for (const std::string layer : {"layers.0.", "layers.2."}) {
      for (const std::string kind :
           {"q", "k", "k_pre", "v", "kv_latent", "attn_heads", "attn_out"}) {
        const at::Tensor& all = expected.at(layer + kind);
        EXPECT_TRUE(close(found.at(layer + kind), all.narrow(0, first, 12 - first), tolerance_))
            << layer << kind << " behind " << prefix;
      }
      EXPECT_TRUE(close(found.at(layer + "attn_probs"),
                        expected.at(layer + "attn_probs").narrow(1, first, 12 - first), tolerance_))
          << layer << " behind " << prefix;
    }
  }
}

TEST_P(LatentCache, AnEditOfTheLatentIsKept) {
  Hooks hooks(model_.config().layer_count());
  hooks.intervene(SiteSet::parse("layers.1.kv_latent", model_.config()),
                  [](const SiteContext& context, const at::Tensor& tensor) {
                    at::Tensor edited = tensor.clone();
                    for (const SequenceRows& rows : context.sequences) {
                      if (rows.position == 0) edited[rows.row].mul_(-3.0);
                    }
                    return edited;
                  });
  const at::Tensor expected = whole(prompt, &hooks);
  EXPECT_FALSE(close(expected[11], whole(prompt)[11], {.atol = 1e-3, .rtol = 0}));
  KvCache cache = model_.decoder().new_cache();
  static_cast<void>(logits({{.ids = part(0, 11), .cache = &cache}}, &hooks));
  EXPECT_TRUE(
      close(logits({{.ids = part(11, 12), .cache = &cache}}, &hooks)[0], expected[11], tolerance_));
}

// The cache could not keep what becomes of keys and values: refused with a cache, done without.
TEST_P(LatentCache, EditsOfKeysAndValuesAreRefusedWithACache) {
  const at::Tensor plain = whole(prompt);
  for (const std::string kind : {"k_pre", "k", "v"}) {
    Hooks hooks(model_.config().layer_count());
    hooks.intervene(SiteSet::parse("layers.1." + kind, model_.config()),
                    [](const SiteContext&, const at::Tensor& tensor) { return tensor.mul(2.0); });
    KvCache cache = filled(5);
    const std::string error = error_of(
        [&] { static_cast<void>(logits({{.ids = part(5, 12), .cache = &cache}}, &hooks)); });
    EXPECT_NE(error.find("layers.1." + kind), std::string::npos) << error;
    EXPECT_NE(error.find("kv_latent"), std::string::npos) << error;
    EXPECT_EQ(cache.length(), 5);
    EXPECT_TRUE(
        close(logits({{.ids = part(5, 12), .cache = &cache}}), plain.narrow(0, 5, 7), tolerance_))
        << "the cache is as it was";
    EXPECT_FALSE(close(whole(prompt, &hooks), plain, {.atol = 1e-3, .rtol = 0})) << kind;
  }
}

// Twice the key before RoPE is twice the key after it, in every dim.
TEST_P(LatentCache, AnEditBeforeRopeReachesTheWholeKey) {
  std::map<std::string, at::Tensor> plain;
  const Hooks watching = observing("layers.1.k", plain);
  static_cast<void>(whole(prompt, &watching));
  std::map<std::string, at::Tensor> doubled;
  Hooks hooks = observing("layers.1.k", doubled);
  hooks.intervene(SiteSet::parse("layers.1.k_pre", model_.config()),
                  [](const SiteContext&, const at::Tensor& tensor) { return tensor.mul(2.0); });
  static_cast<void>(whole(prompt, &hooks));
  EXPECT_TRUE(close(doubled.at("layers.1.k"), plain.at("layers.1.k").mul(2.0), tolerance_));
}

INSTANTIATE_TEST_SUITE_P(
    Models, LatentCache,
    ::testing::Values(LatentCase{"deepseek_v2", Compute::f32, Residency::streamed},
                      LatentCase{"deepseek_v2_lite", Compute::f64, Residency::resident},
                      LatentCase{"deepseek_v3", Compute::f32, Residency::resident},
                      LatentCase{"deepseek_v3", Compute::f64, Residency::streamed},
                      LatentCase{"deepseek_v3/f32.gguf", Compute::f32, Residency::streamed},
                      LatentCase{"deepseek_v3/f32.gguf", Compute::f64, Residency::resident}),
    [](const auto& parameter) {
      std::string name = parameter.param.path;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == '/' || c == '.'; }, '_');
      return name + "_" + std::string(compute_name(parameter.param.compute)) +
             (parameter.param.residency == Residency::resident ? "_resident" : "");
    });

}  // namespace
}  // namespace onset::testing
