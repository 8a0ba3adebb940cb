// Translates lines of standard input with a trained run: translate runs/translate-001
#include <heed/heed.h>

#include <iostream>

int main(int arguments, char** argv) try {
  if (arguments != 2) heed::fail("translate: give it the folder of a run.");
  heed::Translator translator = heed::load_translator(argv[1]);
  translator.config.decode.beam_size = 4;
  for (std::string line; std::getline(std::cin, line);) std::cout << translator.translate(line) << '\n';
} catch (const heed::Error& error) {
  std::cerr << error.what() << '\n';
  return static_cast<int>(error.fault());
}
