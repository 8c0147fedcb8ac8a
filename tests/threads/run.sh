#!/usr/bin/env bash
# Runs the tests of the crates under ThreadSanitizer. A lock of the standard library is seen only when the library is instrumented too, so
# it is compiled from its source, which has to be there: a compiler with the component rust-src and its own runtime of the sanitizer
# (rustup's nightly), or Debian's rustc-web, cargo-web and rust-web-src, which take the runtime of libclang-rt-19-dev.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

# unstable flags of a stable compiler
export RUSTC_BOOTSTRAP=1 CARGO_INCREMENTAL=0
# unoptimized code is so slow that the tests' own clocks run out
export CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=line-tables-only
flags="-Zsanitizer=thread"
cargo=cargo
if [[ ! -d $(rustc --print sysroot)/lib/rustlib/src/rust/library ]]; then
    cargo=/usr/bin/cargo
    export RUSTC=/usr/bin/rustc
    runtime=$(echo /usr/lib/llvm-19/lib/clang/*/lib/linux/libclang_rt.tsan-x86_64.a)
    if [[ ! -d $($RUSTC --print sysroot 2> /dev/null)/lib/rustlib/src/rust/library || ! -f $runtime ]]; then
        echo "the source of the standard library is missing: see the comment in $0" >&2
        exit 1
    fi
    # GNU ld fails on the versions of the symbols that the runtime replaces
    flags+=" -Zexternal-clangrt -Clink-arg=-fuse-ld=gold -Clink-arg=-Wl,--whole-archive,$runtime,--no-whole-archive -Clink-arg=-lc"
fi
export RUSTFLAGS=$flags

# tells the soak tests that the memory of a process is not its own alone
export VGI_TEST_SANITIZED=1

# threads of the network runtime live as long as the process
export TSAN_OPTIONS="suppressions=$here/suppressions.txt history_size=4 report_thread_leaks=0 exitcode=66 ${TSAN_OPTIONS:-}"
for symbolizer in /usr/bin/llvm-symbolizer-19 /usr/bin/llvm-symbolizer; do
    if [[ -x $symbolizer ]]; then
        TSAN_OPTIONS+=" external_symbolizer_path=$symbolizer"
        break
    fi
done
"$cargo" test -Zbuild-std --target "$(rustc -vV | sed -n 's/^host: //p')" --locked --no-fail-fast \
    -p vgi-wire -p vgi-transport -p vgi-worker --lib --bins --tests -- "$@"
