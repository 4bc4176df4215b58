#!/bin/sh
# Wait for the leader of the group, or for all its ranks, without Python:
#
#     sh rendezvous.sh leader|all [--port PORT] [--timeout SECONDS] [--size RANKS]
#
# It needs getent or nslookup; for a port also bash with timeout, or nc. Exit codes: 0 met, 2 wrong arguments, and
# 80 no name, 81 no address, 82 port closed, 83 port silent, 84 wrong size, 85 no DNS, 86 no group, 87 no tools.

say() { echo "rendezvous: $*" >&2; }

end() { # code text advice
    text="$2 (exit code $1). $3"
    say "$text"
    if [ -w /dev/termination-log ]; then echo "rendezvous: $text" >/dev/termination-log; fi
    exit "$1"
}

words_of() {
    case $1 in
    80) echo "its name does not exist" ;;
    81) echo "its name has no address" ;;
    82) echo "its port is closed" ;;
    83) echo "its port does not respond" ;;
    85) echo "its name cannot be resolved, because no name server responds" ;;
    esac
}

advice_of() {
    case $1 in
    80) echo "Check that its pod exists, and that the Service is headless and publishes unready addresses" ;;
    81) echo "Check whether its pod is waiting for a node, an image or a volume" ;;
    82) echo "Check that the program listens on all addresses, not only on 127.0.0.1. If the program loads slowly, increase --timeout" ;;
    83) echo "Check whether a NetworkPolicy, a firewall or a lost node blocks the connection" ;;
    84) echo "Set --size and spec.leaderWorkerTemplate.size to the same number" ;;
    85) echo "On a local cluster, check that its pod exists. On other clusters, check the cluster DNS and NetworkPolicies" ;;
    86) echo "Run the command in a pod of a LeaderWorkerSet, and keep the LWS_ variables of the pod" ;;
    87) echo "Install getent or nslookup. To check ports, also install bash and timeout, or nc. Alternatively, use the Python variant" ;;
    esac
}

usage() {
    say "$*; usage: rendezvous.sh leader|all [--port PORT] [--timeout SECONDS] [--size RANKS]"
    exit 2
}

is_number() {
    case $1 in
    '' | *[!0-9]* | ??????????*) return 1 ;;
    esac
}

has() { command -v "$1" >/dev/null 2>&1; }

# The domain of all Services of the cluster, from the search list of the resolver: svc.cluster.local.
service_domain() {
    [ -r /etc/resolv.conf ] || return
    while read -r key entries; do
        [ "$key" = search ] || continue
        for entry in $entries; do
            case $entry in
            svc.*) echo "$entry" && return ;;
            esac
        done
    done </etc/resolv.conf
}

# The code of what is in the way of a name, 0 if it has an address.
resolve() {
    if has getent && { getent ahosts "$1" || getent hosts "$1"; } >/dev/null 2>&1; then return 0; fi
    has nslookup || return 80 # getent does not say more
    if [ -n "$domain" ]; then # nslookup of busybox ignores the search list
        look_up "$1.$domain"
        result=$?
        [ "$result" -eq 80 ] || return "$result"
    fi
    look_up "$1"
}

look_up() {
    told=$(nslookup "$1" 2>&1)
    result=$?
    case $told in
    *Name:*Address*) if has getent; then return 81; else return 0; fi ;; # there may be no address of another kind
    *"no servers could be reached"* | *"timed out"* | *SERVFAIL* | *"onnection refused"*) return 85 ;;
    *"No answer"*) return 81 ;;
    esac
    [ "$result" -eq 0 ] || return 80
    has getent && return 81 # of another kind than an address
    return 0
}

# Connect to the port of a host, and close the connection. Debian's busybox has an nc without -v and -z.
connect() {
    case $(nc -h 2>&1 </dev/null) in
    *-z*) nc -v -z -w 2 "$1" "$port" ;;
    *) nc -w 2 "$1" "$port" -e true ;;
    esac
}

# The code of what is in the way of a name and a port, 0 if it listens.
reach() {
    resolve "$1" || return $?
    [ -n "$port" ] || return 0
    if has bash && has timeout; then
        told=$(LC_ALL=C timeout 2 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$port" 2>&1) && return 0
    else
        told=$(LC_ALL=C connect "$1" 2>&1 </dev/null) && return 0
    fi
    case $told in
    *refused*) return 82 ;;
    esac
    return 83
}

name_of() { if [ "$1" -eq 0 ]; then echo "$address"; else echo "${address%%.*}-$1.${address#*.}"; fi; }

title_of() {
    place=$(name_of "$1")${port:+:$port}
    if [ "$1" -eq 0 ]; then echo "the leader ($place)"; else echo "rank $1 ($place)"; fi
}

trap 'exit 143' TERM
case ${1:-} in
leader | all) whom=$1 ;;
*) usage "specify leader or all" ;;
esac
shift
port='' seconds=600 expected=''
while [ $# -gt 0 ]; do
    is_number "${2:-}" && [ "$2" -gt 0 ] || usage "$1: '${2:-}' is not a whole number above 0"
    case $1 in
    --port) [ "$2" -lt 65536 ] || usage "--port: '$2' is not below 65536"; port=$2 ;;
    --timeout) [ "$2" -le 604800 ] || usage "--timeout: '$2' is more than a week"; seconds=$2 ;;
    --size) expected=$2 ;;
    *) usage "unknown: $1" ;;
    esac
    shift 2
done

address=${LWS_LEADER_ADDRESS:-} size=${LWS_GROUP_SIZE:-} own=${LWS_WORKER_INDEX:-}
[ -n "$address" ] || end 86 "LWS_LEADER_ADDRESS is not set" "$(advice_of 86)"
is_number "$size" || end 86 "LWS_GROUP_SIZE is '$size', not a number" "$(advice_of 86)"
is_number "$own" || end 86 "LWS_WORKER_INDEX is '$own', not a number" "$(advice_of 86)"
[ "$own" -lt "$size" ] || end 84 "LWS_WORKER_INDEX ($own) must be less than LWS_GROUP_SIZE ($size)" "$(advice_of 84)"
[ "${expected:-$size}" -eq "$size" ] ||
    end 84 "--size is $expected, but LWS_GROUP_SIZE is $size" "$(advice_of 84)"
has getent || has nslookup || end 87 "getent and nslookup are not installed" "$(advice_of 87)"
if [ -n "$port" ] && ! has nc && ! { has bash && has timeout; }; then
    end 87 "neither nc nor bash with timeout is installed" "$(advice_of 87)"
fi

domain=$(service_domain)
begun=$(date +%s)
deadline=$((begun + seconds))
rank=0 last=''
while [ "$rank" -lt "$size" ]; do
    [ "$whom" = all ] || [ "$rank" -eq 0 ] || break
    if [ "$rank" -eq "$own" ] || { reach "$(name_of "$rank")"; code=$?; [ "$code" -eq 0 ]; }; then
        rank=$((rank + 1))
        continue
    fi
    if [ "$last" != "$rank $code" ]; then say "waiting for $(title_of "$rank"): $(words_of "$code")"; fi
    last="$rank $code"
    if [ "$(date +%s)" -ge "$deadline" ]; then
        end "$code" "$(title_of "$rank") did not respond within $seconds s: $(words_of "$code")" "$(advice_of "$code")"
    fi
    sleep 1
done
say "rank $own reached $whom after $(($(date +%s) - begun)) s"
