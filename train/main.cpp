// The program heed.
#include "train/commands/verb.h"

int main(int count, char** arguments) { return heed::run_program(count, arguments); }
