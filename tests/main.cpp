// The main function of every test program: only this file defines CATCH_CONFIG_MAIN, so its eight seconds of
// compilation are spent once. With Catch2 version 3 the function comes from its library.
#include "heed/tests/catch.h"
