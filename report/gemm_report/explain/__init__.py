"""Why a kernel is as fast as it is: from counters, or from models without them."""
