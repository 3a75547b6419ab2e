#pragma once  // everything a kernel needs of it stands in cupilot_prelude.h or is built in
