// Opens a model and saves it: save_probe MODEL FOLDER [f32|bf16]. The folder is made.
#include <exception>
#include <filesystem>
#include <iostream>
#include <string_view>

#include "onset/model/save_model.h"

int main(int count, char** words) {
  if (count != 3 && count != 4) {
    std::cerr << "save_probe MODEL FOLDER [f32|bf16]\n";
    return 2;
  }
  try {
    onset::SaveOptions options;
    if (count == 4) {
      options.dtype = std::string_view(words[3]) == "bf16" ? onset::DType::bf16 : onset::DType::f32;
    }
    std::filesystem::create_directories(words[2]);
    onset::save_model(onset::Model::open(words[1]), words[2], options);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
