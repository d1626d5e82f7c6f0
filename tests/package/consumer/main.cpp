#include <iostream>

#include "onset/massive/scan.h"
#include "onset/model/model.h"

int main(int, char** argv) {
  const onset::Model model = onset::Model::open(argv[1]);
  const onset::ScanResult result = onset::scan(model, {{"", {1, 5, 9, 4, 7}}}, {});
  std::cout << "ME layer " << result.me_layer.value_or(-1) << '\n';
}
