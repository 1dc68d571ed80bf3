// Checks the known answers in every build, whether or not a native draws numbers.
#include "base/philox.h"
