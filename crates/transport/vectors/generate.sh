#!/bin/sh
# Makes the traces that tests/ns2.rs replays. Needs ns-2.35 (Debian package ns2).
cd "$(dirname "$0")" || exit 1
make() { # NAME AGENT ECN DROPS MARKS SECONDS
    { echo "# ns-2.35: ns ns2.tcl $2 $3 \"$4\" \"$5\" $6   ($(date -u +%F))"
      echo "# drops:$4"
      echo "# marks:$5"
      echo "# time [s], segment, size [bytes], C: with CWR"
      ns ns2.tcl "$2" "$3" "$4" "$5" "$6"; } > "$1.txt"
}
burst=" $(seq -s " " 300 305)"
dense=" $(seq -s " " 120 134)"
make reno-drops Reno 0 " 20 60 62 63 120 129$burst" "" 16
make newreno-drops Newreno 0 " 20 60 62 63 120 129$burst" "" 16
make sack-drops Sack1 0 " 20 60 62 63 120 129$burst" "" 16
make reno-syn Reno 0 " 0 1 4" "" 20
make reno-marks Reno 1 "" " 20 60 61 90$dense" 20
make reno-drops-marks Reno 1 " 24 95 96 131" " 20 22 60 61 90 130 133" 8
make newreno-drops-marks Newreno 1 " 24 95 96 131" " 20 22 60 61 90 130 133" 8
