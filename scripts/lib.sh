# shellcheck shell=bash
# What the scripts share: errors, getting what is missing, finding what cargo built.

# With it cd may go elsewhere, and prints the place.
unset CDPATH
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Where servers and cargo's programs are, also for accounts whose PATH lacks them.
PATH=${CARGO_HOME:-${HOME:-/root}/.cargo}/bin:$PATH:/usr/local/sbin:/usr/sbin:/sbin

# What happened, and what to do about it.
die() {
    printf 'error: %s\n' "$1" >&2
    [ $# -lt 2 ] || printf '\nhint: %s\n' "$2" >&2
    exit 2
}

has() { command -v "$1" >/dev/null; }

# Runs a command whose output matters only if it fails.
quietly() {
    local log status=0
    log=$(mktemp)
    "$@" </dev/null >"$log" 2>&1 || status=$?
    [ "$status" = 0 ] || tail -n 40 "$log" >&2
    rm -f "$log"
    return "$status"
}

# Installs Debian packages.
install_debian() {
    local as_root=()
    has apt-get || die "missing here: $*" "these are Debian's packages; install what they hold"
    if [ "$(id -u)" != 0 ]; then
        has sudo || die "missing here: $*" "as root: apt-get install $*"
        as_root=(sudo)
    fi
    echo "installing $*" >&2
    # Another program may be installing at the moment.
    quietly "${as_root[@]}" apt-get -q -o DPkg::Lock::Timeout=300 update &&
        quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get -qy -o DPkg::Lock::Timeout=300 install --no-install-recommends "$@"
}

# Gets the programs that are missing: PROGRAM=PACKAGES, the packages separated by commas.
need() {
    local entry packages missing=()
    for entry; do
        has "${entry%%=*}" && continue
        IFS=, read -ra packages <<<"${entry#*=}"
        missing+=("${packages[@]}")
    done
    [ ${#missing[@]} = 0 ] || install_debian "${missing[@]}" ||
        die "could not install ${missing[*]}" "apt-get's own words are above"
}

# Rust as new as the project wants it, and a linker; COMPONENTs of the toolchain.
need_rust() {
    local wanted found component
    need cc=gcc,libc6-dev
    has cargo || die "cargo is not installed" "https://rustup.rs has it; Debian's own is too old"
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$project/Cargo.toml")
    found=$(rustc --version | cut -d ' ' -f 2)
    [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1)" = "$wanted" ] ||
        die "Rust $found is here, $wanted or newer is needed" "rustup update stable"
    for component; do
        ! cargo "${component#rust}" --version >/dev/null 2>&1 || continue
        has rustup || die "the toolchain lacks $component, and there is no rustup to add it"
        quietly rustup component add "$component" || die "could not add $component"
    done
}

# The directory that cargo builds into.
target_dir() {
    cargo metadata --locked --no-deps --format-version 1 |
        sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
}

# Waits until a server has written its port to a file; ends where it does not, or is gone.
await_port() { # FILE PID
    local _
    for _ in $(seq 600); do
        [ ! -s "$1" ] || return 0
        kill -0 "$2" 2>/dev/null || die "the server ended before it named its port"
        sleep 0.05
    done
    die "the server has not named its port within 30 s"
}

# The programs of scripts/kill.py: LOADGEN and SANDBOX, built if they are not named.
built_for_killing() {
    if [ -z "${LOADGEN-}" ] || [ -z "${SANDBOX-}" ]; then
        need_rust
        cargo build --locked --bin loadgen --example sandbox
    fi
    export LOADGEN=${LOADGEN:-$(target_dir)/debug/loadgen}
    export SANDBOX=${SANDBOX:-$(target_dir)/debug/examples/sandbox}
}

# Sets LOADGEN_TEST_SERVERS to servers of these names, from ../shared/servers where that is there.
# One that cannot be had has no program, and counts as skipped.
get_servers() {
    local name program servers=$project/../shared/servers
    LOADGEN_TEST_SERVERS=
    for name; do
        program=
        if [ -x "$servers" ]; then
            echo "getting $name"
            program=$(timeout 600 "$servers" binary "$name" </dev/null) || program=
        fi
        LOADGEN_TEST_SERVERS+=" $name=$program"
    done
    export LOADGEN_TEST_SERVERS
}
