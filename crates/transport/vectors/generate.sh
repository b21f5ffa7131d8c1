#!/bin/sh
# Makes the traces that tests/ns2.rs replays. Needs ns-2.35 (Debian package ns2).
cd "$(dirname "$0")" || exit 1
make() { # NAME AGENT ECN DROPS MARKS SECONDS SINK WINDOW
    { echo "# ns-2.35: ns ns2.tcl $2 $3 \"$4\" \"$5\" $6 $7 $8   ($(date -u +%F))"
      echo "# drops:$4"
      echo "# marks:$5"
      echo "# time [s], segment, size [bytes], C: with CWR"
      # Agent/TCP/Linux also tells what it was told.
      ns ns2.tcl "$2" "$3" "$4" "$5" "$6" "$7" "$8" | grep '^[0-9]'; } > "$1.txt"
}
burst=" $(seq -s " " 200 205)"
dense=" $(seq -s " " 120 134)"
make reno-drops Reno 0 " 20 60 62 63 120 129$burst" "" 9 TCPSink 1000
make newreno-drops Newreno 0 " 20 60 62 63 120 129$burst" "" 9 TCPSink 1000
make reno-syn Reno 0 " 0 1 4" "" 12 TCPSink 1000
make reno-marks Reno 1 "" " 20 60 61 90$dense" 16 TCPSink 1000
make reno-drops-marks Reno 1 " 24 95 96 131" " 20 22 60 61 90 130 133" 8 TCPSink 1000
make newreno-drops-marks Newreno 1 " 24 95 96 131" " 20 22 60 61 90 130 133" 8 TCPSink 1000
make reno-drops-delayed-acks Reno 0 " 20 60 62 63 120 129" "" 8 TCPSink/DelAck 1000
make reno-window-limit Reno 1 " 70" " 40" 5 TCPSink 12
make cubic-drops Linux 0 " 30 60 61 62 63 80 81 82 83 84 85 110 111 200 201" "" 9 TCPSink/Sack1 4000
make cubic-bursts Linux 0 " 100 $(seq -s " " 180 2 220) 236 238 240 241 242 260 600" "" 9 TCPSink/Sack1 4000
make cubic-window Linux 0 " 100 $(seq -s " " 150 200)" "" 9 TCPSink/Sack1 4000
make sack-drops Sack1 0 " 20 60 62 63 120 129$burst" "" 9 TCPSink/Sack1 1000
make sack-drops-marks Sack1 1 " 24 95 96 131" " 20 22 60 61 90 130 133" 8 TCPSink/Sack1 1000
make sack-marks-in-recovery Sack1 1 " 40 41 42 90 91 150 153" " 50 55 60 95 97 99 152 155 160 170" 9 TCPSink/Sack1 1000
# Every other segment of a window is lost, then retransmissions and new data.
make sack-bursts Sack1 0 " 100 $(seq -s " " 180 2 260) 290 291 300 301 302 340 600" "" 12 TCPSink/Sack1 1000
make sack-window Sack1 0 " $(seq -s " " 200 320)" "" 12 TCPSink/Sack1 1000
make sack-limits Sack1 0 " 30 34 70 71 90" "" 6 TCPSink/Sack1 12
make sack-delayed-acks Sack1 0 " 20 60 62 63 120 129" "" 8 TCPSink/Sack1/DelAck 1000
