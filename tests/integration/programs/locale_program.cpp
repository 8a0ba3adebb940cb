// heed in a program that follows the locale of its environment, as many programs do.
#include <clocale>
#include <cstdio>
#include <locale>

#include "heed/train/program.h"

int main(int count, char** arguments) {
  if (std::setlocale(LC_ALL, "") == nullptr) {
    std::fprintf(stderr, "locale_program: the locale of LC_ALL is not installed\n");
    return 2;
  }
  std::locale::global(std::locale(""));  // the locale of streams
  return heed::run_program(count, arguments);
}
