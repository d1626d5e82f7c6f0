#include "support/far_device.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>
#include <cstdlib>

namespace onset::testing {
namespace {

// No address of a process has this bit.
constexpr std::uintptr_t far_bit = std::uintptr_t{1} << 62U;
constexpr auto far_type = c10::DeviceType::PrivateUse1;
const c10::Device far_place(far_type, 0);
std::atomic<std::int64_t> operations = 0;

void* moved(const void* address) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) ^ far_bit);
}

class FarAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    void* memory = std::malloc(size > 0 ? size : 1);
    TORCH_CHECK(memory != nullptr, "far device: out of memory");
    return {moved(memory), memory, &std::free, far_place};
  }
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t size) const override {
    default_copy_data(moved(to), moved(from), size);
  }
};

FarAllocator& allocator() {
  static FarAllocator one;
  return one;
}

class FarGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  [[nodiscard]] c10::DeviceType type() const override { return far_type; }
  [[nodiscard]] c10::Device exchangeDevice(c10::Device /*device*/) const override {
    return far_place;
  }
  [[nodiscard]] c10::Device getDevice() const override { return far_place; }
  void setDevice(c10::Device /*device*/) const override {}
  void uncheckedSetDevice(c10::Device /*device*/) const noexcept override {}
  [[nodiscard]] c10::Stream getStream(c10::Device /*device*/) const override {
    return c10::Stream(c10::Stream::DEFAULT, far_place);
  }
  [[nodiscard]] c10::Stream getDefaultStream(c10::Device /*device*/) const override {
    return c10::Stream(c10::Stream::DEFAULT, far_place);
  }
  [[nodiscard]] c10::Stream exchangeStream(c10::Stream /*stream*/) const override {
    return c10::Stream(c10::Stream::DEFAULT, far_place);
  }
  [[nodiscard]] c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, FarGuard)

// What autograd asks before it runs on the device, and at::manual_seed for all devices.
struct FarHooks final : at::PrivateUse1HooksInterface {
  [[nodiscard]] bool isBuilt() const override { return true; }
  [[nodiscard]] bool isAvailable() const override { return true; }
  [[nodiscard]] bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override { return true; }
  [[nodiscard]] c10::DeviceIndex deviceCount() const override { return 1; }
  [[nodiscard]] c10::DeviceIndex getCurrentDevice() const override { return 0; }
  [[nodiscard]] const at::Generator& getDefaultGenerator(
      c10::DeviceIndex /*index*/) const override {
    static const at::Generator generator = at::detail::createCPUGenerator();
    return generator;
  }
};

[[maybe_unused]] const bool registered = [] {
  static FarHooks hooks;
  c10::register_privateuse1_backend("far");
  at::RegisterPrivateUse1HooksInterface(&hooks);
  return true;
}();

// The tensor's numbers where the host can reach them, without a copy.
at::Tensor near_view(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  return at::from_blob(moved(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(),
                       tensor.options().device(c10::kCPU).requires_grad(false));
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride,
                         std::optional<at::ScalarType> type, std::optional<at::Layout> /*layout*/,
                         std::optional<at::Device> /*device*/, std::optional<bool> /*pin_memory*/) {
  return at::Tensor(at::detail::empty_strided_generic(
      size, stride, &allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      type.value_or(at::kFloat)));
}

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> type,
                 std::optional<at::Layout> /*layout*/, std::optional<at::Device> /*device*/,
                 std::optional<bool> /*pin_memory*/, std::optional<at::MemoryFormat> format) {
  return at::Tensor(at::detail::empty_generic(size, &allocator(),
                                              c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                              type.value_or(at::kFloat), format));
}

at::Tensor far_copy(const at::Tensor& near) {
  at::Tensor far = empty_strided(near.sizes(), near.strides(), near.scalar_type(), {}, {}, {});
  near_view(far).copy_(near);
  return far;
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool /*non_blocking*/) {
  near_view(to).copy_(near_view(from));
  return to;
}

const at::Tensor& resize_far(const at::Tensor& tensor, c10::IntArrayRef size,
                             std::optional<at::MemoryFormat> /*format*/) {
  auto* impl = tensor.unsafeGetTensorImpl();
  const std::size_t bytes =
      static_cast<std::size_t>(c10::multiply_integers(size)) * tensor.element_size();
  if (bytes > tensor.storage().nbytes()) {
    tensor.storage().set_data_ptr_noswap(allocator().allocate(bytes));
    tensor.storage().set_nbytes(bytes);
  }
  impl->set_sizes_contiguous(size);
  return tensor;
}

at::Scalar local_scalar(const at::Tensor& tensor) {
  return at::native::_local_scalar_dense_cpu(near_view(tensor));
}

// Of matrices of bfloat16, with a result in another type; only GPUs have it.
at::Tensor mm_in_type(const at::Tensor& a, const at::Tensor& b, at::ScalarType type) {
  ++operations;
  TORCH_CHECK(!a.is_cpu() && !b.is_cpu(), "far device: mm mixes it with the CPU");
  return far_copy(at::mm(near_view(a).to(type), near_view(b).to(type)));
}

// The arguments of one call, brought near, and what is to go back behind it.
class Call {
 public:
  explicit Call(const c10::OperatorHandle& op) : op_(op) {}

  void run(torch::jit::Stack& stack) {
    ++operations;
    const auto& arguments = op_.schema().arguments();
    const std::size_t first = stack.size() - arguments.size();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto* alias = arguments[i].alias_info();
      bring_near(stack[first + i], alias != nullptr && alias->isWrite());
    }
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
    for (const auto& [far, near] : written_) {
      if (far.sizes() != near.sizes()) resize_far(far, near.sizes(), std::nullopt);
      near_view(far).copy_(near);
    }
    const std::size_t results = op_.schema().returns().size();
    for (std::size_t i = stack.size() - results; i < stack.size(); ++i) bring_back(stack[i]);
  }

 private:
  at::Tensor near(const at::Tensor& tensor, bool write) {
    if (!tensor.defined()) return tensor;
    if (tensor.is_cpu()) {
      TORCH_CHECK(tensor.dim() == 0 && !write, "far device: ", op_.schema().name(),
                  " mixes it with a tensor ", tensor.sizes(), " on the CPU");
      return tensor;
    }
    if (!write) return near_view(tensor);
    written_.emplace_back(tensor, near_view(tensor).clone());
    return written_.back().second;
  }

  void bring_near(c10::IValue& value, bool write) {
    if (value.isTensor()) {
      value = near(value.toTensor(), write);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(near(tensor, write));
      value = list;
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList().vec()) {
        list.push_back(tensor ? std::optional(near(*tensor, write)) : std::nullopt);
      }
      value = list;
    } else if (value.isDevice()) {
      value = c10::Device(c10::kCPU);
    }
  }

  at::Tensor far(const at::Tensor& tensor) {
    for (const auto& [original, near] : written_) {
      if (near.is_same(tensor)) return original;
    }
    return tensor.defined() ? far_copy(tensor) : tensor;
  }

  void bring_back(c10::IValue& value) {
    if (value.isTensor()) {
      value = far(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(far(tensor));
      value = list;
    }
  }

  const c10::OperatorHandle& op_;
  std::vector<std::pair<at::Tensor, at::Tensor>> written_;  // far, near
};

void compute_near(const c10::OperatorHandle& op, torch::jit::Stack* stack) { Call(op).run(*stack); }

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&compute_near>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("resize_", &resize_far);
  library.impl("_copy_from", &copy_from);
  library.impl("mm.dtype", &mm_in_type);
  library.impl("_local_scalar_dense", &local_scalar);
}

}  // namespace

Device far_device() { return {.kind = DeviceKind::registered}; }
std::int64_t far_operations() { return operations; }

}  // namespace onset::testing
