# shellcheck shell=bash
# What check-hosts and check-slurm share: packages that are unpacked and not installed, the server, one run and how it
# ended. Everything is in a temporary directory, and is ended by its process id.

[ "$(id -u)" = 0 ] || die "this check needs root: it has a mount namespace of its own"
has apt-get || die "this check unpacks Debian's packages" "on Debian or Ubuntu"
if [ -z "${LOADGEN-}" ]; then
    need_rust
    cargo build --locked
    LOADGEN=$(target_dir)/debug/loadgen
fi

work=$(mktemp -d)
chmod 755 "$work"
root=$work/root out=$work/out loadgen=$work/loadgen failed=0 rank_variable=PMI_RANK
# The one of this name is nobody else's.
cp "$LOADGEN" "$loadgen"
# Their process ids, in the order of their end.
daemons=()
clean_up() {
    local pid
    # What an interrupted check leaves: launchers and ranks.
    pgrep -f "$loadgen (point|rank)" | xargs -r kill || true
    for pid in "${daemons[@]}"; do
        kill "$pid" 2>/dev/null || continue
        for _ in $(seq 100); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
    done
    # Slurm's daemons leave those of their steps.
    for pid in /proc/[0-9]*; do
        [[ $(readlink "$pid/exe") != "$work"/* ]] || kill -KILL "${pid#/proc/}" || true
    done
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Unpacks packages into $root, and sets $libraries.
unpack() { # PACKAGE...
    local package machine
    machine=$(uname -m)-linux-gnu
    mkdir "$work/deb" "$root"
    (cd "$work/deb" && quietly apt-get download "$@") || die "the packages cannot be had" "apt-get update"
    for package in "$work"/deb/*.deb; do dpkg -x "$package" "$root"; done
    # shellcheck disable=SC2034 # It is those scripts'.
    libraries=$root/usr/lib/$machine:$root/lib/$machine
}

within() { # SECONDS COMMAND...
    local _
    for _ in $(seq "${1}0"); do
        ! "${@:2}" || return 0
        sleep 0.1
    done
    return 1
}

# Starts the server, and sets $server and $sweep: its address, and a measurement that lacks its time.
start_server() {
    local port=$work/port
    "$loadgen" canned >"$port" &
    daemons+=($!)
    within 10 test -s "$port" || die "the server does not start"
    server=(-h 127.0.0.1 -P "$(<"$port")" -u root --no-defaults)
    # shellcheck disable=SC2034 # It is those scripts'.
    sweep=("$loadgen" point-select "${server[@]}" --tables 8 --clients 8
        --think 5ms --engine-threads 1 --warmup 1s --quiet --out "$out")
}

fail() {
    echo "FAILED: $1"
    # shellcheck disable=SC2034 # It is those scripts'.
    failed=1
}

# The processes that have clients: all of --hosts, and that of rank 0's host of --ranks.
ranks() { pgrep -f "^$loadgen rank" || true; }
# Launchers have its name among their words.
are_gone() { ! pgrep -f "$loadgen (point|rank)" >/dev/null; }
# All clients have a connection to the server.
measures() {
    [ "$(grep -c ": [0-9A-F:]* 0100007F:$(printf %04X "${server[3]}") 01 " /proc/net/tcp)" -ge 8 ]
}

# The process whose environment, by the variable $rank_variable, says that it is this rank.
told() { # RANK
    local pid
    for pid in $(pgrep -f "^$loadgen point"); do
        ! grep -qz "^$rank_variable=$1\$" "/proc/$pid/environ" || echo "$pid"
    done
}

# The events: each is given the process id of what was started.
kill_other() { kill -KILL "$(told 1)"; }
kill_rank_0() { kill -KILL "$(told 0)"; }
kill_client() { kill -KILL "$(ranks | head -n 1)"; }
kill_launcher() { kill -KILL "$(pgrep -P "$(pgrep -f "^$loadgen point")" | head -n 1)"; }
interrupt() { kill -INT "$1"; }
terminate() { kill -TERM "$1"; }

# Runs a command, and an event a while after it measures; looks at the status, at the outcome that was stored, at the
# time that the end took, and at what stays. STATUS and OUTCOME are patterns; "nothing" where nothing was stored.
run() { # WHAT STATUS OUTCOME EVENT COMMAND...
    local what=$1 event=$4 status=0 run since outcome
    rm -rf "$out"
    # A shell has its background ignore SIGINT.
    env --default-signal=INT "${@:5}" <"${keys:-/dev/null}" >"$work/log" 2>&1 &
    run=$!
    if [ "$event" != none ]; then
        within 20 measures || fail "$what: it does not measure"
        sleep 4
        "$event" "$run" || fail "$what: the event did not happen"
        since=$SECONDS
    fi
    wait "$run" || status=$?
    outcome=$(sed -n 's/.*"outcome": "\([a-z_]*\)".*/\1/p' "$out"/*.json 2>/dev/null) || true
    # shellcheck disable=SC2053 # They are patterns.
    if [[ $status = $2 && ${outcome:=nothing} = $3 ]]; then echo "ok: $what ($status, $outcome)"; else
        fail "$what: status $status, not $2; outcome $outcome, not $3"
        tail -n 12 "$work/log" | sed 's/^/    /'
    fi
    [ "$event" = none ] || [ $((SECONDS - since)) -lt 15 ] || fail "$what: it took $((SECONDS - since)) s"
    within 5 are_gone || fail "$what: a process stays"
}
