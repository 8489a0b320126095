package e2e

import "flag"

var diffCases = flag.Int("cases", 100, "cases of TestDiff; a hundredth of it is the calls TestDiffFunctions makes of each function")
