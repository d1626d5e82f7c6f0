// Where a model is computed: names of devices, what is refused, and that a model on another device
// is computed there.
#include "onset/model/device.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "onset/model/decoder.h"
#include "onset/model/placement.h"
#include "support/support.h"
#include "support/test_devices.h"

namespace onset::testing {
namespace {

TEST(Devices, HaveNames) {
  EXPECT_EQ(parse_device("cpu"), Device{});
  EXPECT_EQ(parse_device("cuda"), (Device{.kind = DeviceKind::cuda}));
  EXPECT_EQ(parse_device("cuda:3"), (Device{.kind = DeviceKind::cuda, .index = 3}));
  for (const char* name : {"cpu", "cuda:0", "cuda:12"}) {
    EXPECT_EQ(device_name(parse_device(name)), name);
  }
}

TEST(Devices, AnUnknownNameIsRefusedWithThoseThatThereAre) {
  for (const char* name : {"", "gpu", "CUDA", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:999",
                           "cuda: 1", "cpu:0", "registered:0"}) {
    EXPECT_NE(error_of([&] { static_cast<void>(parse_device(name)); }).find("cpu, cuda, or cuda:N"),
              std::string::npos)
        << name;
  }
}

TEST(Devices, CudaWithoutAGpuSaysWhatToDo) {
  if (gpu_found()) GTEST_SKIP() << "a GPU was found";
  const std::string message = error_of([] {
    static_cast<void>(Model::open(data("models/llama"), {.device = {.kind = DeviceKind::cuda}}));
  });
  const char* what = built_with_cuda() ? "no GPU found" : "-DONSET_CUDA=ON";
  EXPECT_NE(message.find(what), std::string::npos) << message;
}

// The parameters "_cuda" of the other tests are there only where there is a GPU.
TEST(Devices, TestsOnAGpu) {
  if (!gpu_found()) {
    GTEST_SKIP() << "no GPU found: the tests of this program ran on the CPU and the far device";
  }
  const at::Tensor there = at::ones({2, 3}).to(torch_device({.kind = DeviceKind::cuda}));
  EXPECT_EQ(there.sum().item<double>(), 6.0);
}

TEST(FarDevice, RefusesTensorsOfTheHost) {
  const at::Tensor far = at::ones({2, 3}).to(torch_device(far_device()));
  EXPECT_TRUE(at::equal((far + far).cpu(), at::full({2, 3}, 2.0)));
  EXPECT_THROW(static_cast<void>(far + at::ones({2, 3})), c10::Error);
  EXPECT_THROW(static_cast<void>(at::mm(far, at::ones({3, 2}))), c10::Error);
  EXPECT_THROW(static_cast<void>(far.index_select(0, at::zeros({1}, at::kLong))), c10::Error);
}

TEST(FarDevice, APassIsComputedThere) {
  const c10::InferenceMode inference;
  const std::vector<SequenceInput> batch{{.ids = {1, 17, 42, 99, 5, 63}}, {.ids = {3, 4}}};
  for (const Residency residency : {Residency::streamed, Residency::resident}) {
    const Model model =
        Model::open(data("models/llama"), {.residency = residency, .device = far_device()});
    const std::int64_t before = far_operations();
    const ForwardResult result = model.decoder().forward(batch, LogitRows::last);
    EXPECT_EQ(result.logits.device(), torch_device(far_device()));
    EXPECT_EQ(result.hidden.device(), torch_device(far_device()));
    // Seven products, two norms, two rotations and attention are more than 20 a layer.
    EXPECT_GT(far_operations() - before, 20 * model.config().layer_count());
  }
}

// Interventions get and give tensors on the CPU; those that ask for it stay on the device.
TEST(FarDevice, HooksSeeTheCpuUnlessTheyAskForTheDevice) {
  const c10::InferenceMode inference;
  const Model model = Model::open(data("models/llama"), {.device = far_device()});
  const SiteSet sites = SiteSet::parse("layers.0.resid_post", model.config());
  Hooks hooks(model.config().layer_count());
  hooks.intervene(sites, [](const SiteContext&, const at::Tensor& state) {
    EXPECT_TRUE(state.is_cpu());
    return state * 2.0;
  });
  hooks.intervene_on_device(sites, [](const SiteContext&, const at::Tensor& state) {
    EXPECT_EQ(state.device(), torch_device(far_device()));
    return state + at::ones_like(state);
  });
  at::Tensor edited;
  hooks.observe(sites, [&](const SiteContext&, const at::Tensor& state) { edited = state; });
  Hooks plain(model.config().layer_count());
  at::Tensor state;
  plain.observe(sites, [&](const SiteContext&, const at::Tensor& seen) { state = seen; });
  const std::vector<SequenceInput> batch{{.ids = {1, 17, 42}}};
  static_cast<void>(model.decoder().forward(batch, LogitRows::none, &plain));
  static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
  ASSERT_TRUE(edited.is_cpu());
  EXPECT_TRUE(at::equal(edited, state * 2.0 + 1.0));
}

}  // namespace
}  // namespace onset::testing
