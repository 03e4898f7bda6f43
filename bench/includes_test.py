"""Each C++ file includes the standard headers of the names that it uses, and no others: what one
compiler's <string> brings along, another's does not. What the header of the same name includes,
its source does not repeat."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [
    path
    for folder in ("kernels", "bench")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".cpp", ".hpp", ".cu", ".cuh"}
]

# The header of every standard name in use; of names in std::ranges the last part. Where several
# have one, they follow each other, and any of them will do.
PROVIDERS = {
    "algorithm": "all_of any_of clamp copy copy_n count count_if equal fill fill_n find find_if "
    "for_each includes is_sorted lower_bound max max_element min min_element mismatch none_of "
    "nth_element replace_if shuffle sort stable_partition stable_sort swap_ranges "
    "unique upper_bound",
    "array": "array",
    "atomic": r"atomic\w* memory_order\w*",
    "bit": "bit_cast bit_ceil bit_width countr_zero",
    "cctype": "isalnum iscntrl isdigit tolower toupper",
    "cerrno": "errno EEXIST EINTR EWOULDBLOCK",
    "cfenv": "fegetenv fenv_t fesetenv fesetround FE_DFL_ENV FE_UPWARD",
    "charconv": "from_chars",
    "chrono": "chrono chrono_literals",
    "cinttypes": r"PRI\w+",
    "climits": r"U?(CHAR|SHRT|INT|LONG|LLONG)_MAX",
    "cmath": "ceil copysign pow fabs floor fma fmin frexp hypot "
    "ilogb isfinite isinf isnan ldexp llround log log10 log2 "
    "lround nan nanf nearbyint nextafterf? remainder round sin sqrt trunc HUGE_VALF? INFINITY NAN",
    "cmath cstdlib": "abs",
    "concepts": "same_as",
    "condition_variable": "condition_variable",
    "cstdarg": "va_list",
    "cstddef": "byte max_align_t nullptr_t ptrdiff_t offsetof",
    "cstddef cstdio cstdlib cstring ctime": "size_t",
    "cstdint": r"u?int\d+_t uintptr_t",
    "cstdio": "fflush fprintf fputs printf rename snprintf vsnprintf stderr stdout",
    "cstdlib": r"_Exit abort aligned_alloc atof atoi exit free getenv system EXIT_\w+",
    "cstring": "memcmp memcpy memset strerror",
    "ctime": "gmtime strftime time time_t",
    "deque": "deque",
    "exception": r"current_exception exception\w* rethrow_exception",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream",
    "functional": "function greater hash",
    "future": "async future launch",
    "initializer_list": "initializer_list",
    "ios iostream": "hex ios streamsize",
    "iostream": "cerr cin cout",
    "istream iosfwd iostream fstream sstream": "istream",
    "iterator": "back_inserter distance istreambuf_iterator",
    "iterator array span string vector map set": "end size ssize",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map",
    "memory": "make_shared make_unique shared_ptr unique_ptr weak_ptr",
    "mutex": "call_once lock_guard mutex once_flag recursive_mutex unique_lock",
    "numeric": "accumulate gcd iota",
    "optional": "nullopt optional",
    "ostream iostream": "endl flush",
    "ostream iosfwd iostream fstream sstream": "ostream",
    "random": r"mt19937(_64)? random_device uniform_real_distribution",
    "ranges": "views",
    "regex": "regex regex_error regex_match regex_search smatch sregex_iterator",
    "set": "set",
    "source_location": "source_location",
    "span": "span",
    "sstream": "istringstream ostringstream stringstream",
    "stdexcept": "invalid_argument length_error logic_error runtime_error",
    "string": "getline stod stoi stoul string to_string",
    "string_view": "string_view",
    "system_error": "errc error_code",
    "thread": "jthread this_thread thread",
    "tuple": "tuple",
    "type_traits": "bool_constant conditional_t decay_t is_arithmetic_v is_function_v "
    "is_invocable_r_v is_same_v remove_const_t remove_pointer_t remove_reference_t type_identity_t",
    "utility": "exchange forward index_sequence make_index_sequence move pair swap",
    "vector string map set": "erase erase_if",
    "vector": "vector",
}
MACROS = re.compile(r"\b(?<!::)(errno|[A-Z][A-Z0-9_]+|PRI\w+|offsetof|stderr|stdout)\b")
NAMES = re.compile(r"\bstd::(?:ranges::)?(\w+)")
HEADERS = {header for headers in PROVIDERS for header in headers.split()}


def providers(name: str) -> list[str] | None:
    for headers, names in PROVIDERS.items():
        if re.fullmatch(names.replace(" ", "|"), name):
            return headers.split()
    return None


def standard_headers(text: str) -> list[str]:
    return re.findall(r"^\s*#\s*include <([a-z_]+)>", text, re.MULTILINE)


def own_header(source: Path, text: str) -> str:
    """The text of the header of the same name that a source file includes, or ""."""
    for header in (source.with_suffix(".hpp"), source.with_suffix(".cuh")):
        if header != source and f'#include "{header.relative_to(ROOT)}"' in text:
            return header.read_text()
    return ""


def complaints(text: str, header: str = "") -> list[str]:
    included, given = standard_headers(text), standard_headers(header)
    code = re.sub(r"//.*|R\"\((.|\n)*?\)\"|\"(\\.|[^\"\\\n])*\"", "", text)
    names = set(NAMES.findall(code))
    wrong, needed = [], set()
    for name in sorted(names | set(MACROS.findall(code))):
        headers = providers(name)
        if headers is None and name in names:
            wrong.append(f"say in PROVIDERS which header has std::{name}")
        if headers is not None:
            needed |= set(headers)
            if not set(headers) & {*included, *given}:
                wrong.append(f"<{headers[0]}> is missing, for {name}")
    wrong += [f"<{name}> is in its own header" for name in included if name in given]
    return wrong + [f"<{name}> is not used" for name in included if name not in needed]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_standard_headers_are_those_of_the_names_in_use(path: Path) -> None:
    text = path.read_text()
    assert complaints(text, own_header(path, text)) == []


def test_what_is_missing_unused_or_unknown_is_told() -> None:
    assert complaints("#include <vector>\nstd::vector<int> v;  // std::max") == []
    assert complaints("int i = std::max(1, errno);") == [
        "<cerrno> is missing, for errno",
        "<algorithm> is missing, for max",
    ]
    assert complaints("#include <vector>\nint i;") == ["<vector> is not used"]
    assert complaints("std::vector<int> v;", "#include <vector>") == []
    assert complaints("#include <vector>\nstd::vector<int> v;", "#include <vector>") == [
        "<vector> is in its own header"
    ]
    assert complaints("std::frobnicate();") == ["say in PROVIDERS which header has std::frobnicate"]
