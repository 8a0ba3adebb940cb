// The main function of every test program: the build defines CATCH_CONFIG_MAIN for this file alone, so that
// its eight seconds are spent once. With Catch2 version 3 the function comes from its own library.
#include "tests/catch.h"
