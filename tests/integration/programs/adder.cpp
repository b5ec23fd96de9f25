// Adds two tensors as often as the first argument says, and exits with the second.
#include <torch/torch.h>

#include <cstdlib>

int main(int, char** arguments) {
    const auto ones = torch::ones({3});
    for (long i = std::atol(arguments[1]); i > 0; --i) torch::add(ones, ones);
    return std::atoi(arguments[2]);
}
