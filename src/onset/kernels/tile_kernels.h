// What tile_product calls of the file compiled for AVX-512. Torch-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "onset/kernels/tile_product.h"

namespace onset::tiles {

struct Source {
  const float* x = nullptr;  // [rows, columns]
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t lanes = 0;
};

void pack_f32(const Source& source, float* to);
void pack_bf16(const Source& source, float* to);

// The words of a block of lanes that its columns are, from the word of its first row on; bf16: a
// word is two rows, the last of an odd number has a zero. Values past `columns` are zero.
void pack_columns_f32(const MatrixPart& part, std::int64_t lanes, float* to);
void pack_columns_bf16(const MatrixPart& part, std::int64_t lanes, float* to);

// The transpose, [columns, words]: as float32, or rounded to bfloat16 with two rows to a word.
void turn_f32(const MatrixPart& part, std::int64_t words, void* to);
void turn_bf16(const MatrixPart& part, std::int64_t words, void* to);

// [rows, words]: as float32, or rounded to bfloat16 with two columns to a word.
void take_f32(const MatrixPart& part, std::int64_t words, void* to);
void round_bf16(const MatrixPart& part, std::int64_t words, void* to);

struct Product {
  const float* x = nullptr;  // a packed block [words, lanes]
  std::int64_t x_rows = 0;
  std::int64_t lanes = 0;
  const void* weights = nullptr;
  std::int64_t count = 0;
  std::int64_t words = 0;
  std::span<const std::byte> next = {};
  // A second product in float32 that is added: as x and weights, of so many words; 0: none.
  const float* more_x = nullptr;
  const float* more_weights = nullptr;
  std::int64_t more_words = 0;
  float* sums = nullptr;  // [count, lanes], scratch
};

void multiply_f32(const Product& product, float* out, std::int64_t out_stride);
void multiply_bf16(const Product& product, float* out, std::int64_t out_stride);

// The same the other way round, a row of `out` for each weight row; `add`: to what is there.
void multiply_turned_f32(const Product& product, float* out, std::int64_t out_stride, bool add);
void multiply_turned_bf16(const Product& product, float* out, std::int64_t out_stride, bool add);

void accumulate(const PlainProduct& all);

// Attention of 32 lanes, each one query of one head, to keys of one head.
struct Attention {
  float* rows = nullptr;          // the scaled queries [32, dim]; then the output [32, value_dim]
  float* packed = nullptr;        // scratch [dim, 32]
  float* scores = nullptr;        // scratch [key_count, 32]
  float* sums = nullptr;          // scratch [value_dim, 32]
  const float* keys = nullptr;    // [key_count, dim]
  const float* values = nullptr;  // value dim d of key j at values + d * value_stride + j
  std::int64_t value_stride = 0;
  std::int64_t key_count = 0;
  std::int64_t dim = 0;
  std::int64_t value_dim = 0;
  // Of each lane: it sees the keys from one to the other, both included, at least one.
  const std::int32_t* first_key = nullptr;
  const std::int32_t* last_key = nullptr;
};

void attend(const Attention& attention);

// The gradients of that by the queries, keys and values.
struct AttentionGradient {
  const float* queries = nullptr;      // scaled [32, dim_stride], zeros past dim
  const float* dout = nullptr;         // [32, value_stride], zeros past value_dim
  float* packed = nullptr;             // scratch [the larger of dim and value_dim, 32]
  float* weights = nullptr;            // scratch [key_count, 32]
  float* changes = nullptr;            // scratch [key_count, 32]
  float* sums = nullptr;               // scratch [dim, 32]
  const float* keys = nullptr;         // [key_count, dim]
  const float* turned_keys = nullptr;  // dim d of key j at turned_keys + d * turned_stride + j
  std::int64_t turned_stride = 0;
  const float* values = nullptr;  // [key_count, value_dim]
  std::int64_t key_count = 0;
  std::int64_t dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t dim_stride = 0;  // multiples of 16
  std::int64_t value_stride = 0;
  float* dqueries = nullptr;                // written: of the scaled queries [32, dim]
  float* dkeys = nullptr;                   // added to: [key_count, dim_stride]
  float* dvalues = nullptr;                 // added to: [key_count, value_stride]
  const std::int32_t* first_key = nullptr;  // as above
  const std::int32_t* last_key = nullptr;
};

void attend_gradient(const AttentionGradient& attention);

}  // namespace onset::tiles
